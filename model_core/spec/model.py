"""What a Transformer is: dimensions of its attention, feedforward, experts and embeddings."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from model_core.spec.base import SourcedSpec, Spec

Size = int
MAX_SIZE = 10**8


class MlaSpec(Spec):
    """Multi-head latent attention (DeepSeek-V3 report, 2.1.1)."""

    q_lora_rank: Size | None = Field(
        default=None, ge=1, le=MAX_SIZE, description="Rank of the compressed query; empty: not compressed"
    )
    kv_lora_rank: Size = Field(
        ge=1, le=MAX_SIZE, description="Rank of the compressed key and value (the latent that is cached)"
    )
    qk_nope_head_dim: Size = Field(
        ge=1, le=MAX_SIZE, description="Width of a query or key head without position"
    )
    qk_rope_head_dim: Size = Field(
        ge=1, le=MAX_SIZE, description="Width of the rotary part, one key for all heads"
    )
    v_head_dim: Size = Field(ge=1, le=MAX_SIZE, description="Width of a value head")


class MoeSpec(Spec):
    """Mixture of experts (DeepSeek-V3 report, 2.1.2)."""

    n_routed_experts: Size = Field(ge=1, le=MAX_SIZE, description="Routed experts per layer")
    n_shared_experts: int = Field(default=0, ge=0, le=MAX_SIZE, description="Experts that every token visits")
    n_experts_per_token: Size = Field(ge=1, le=MAX_SIZE, description="Routed experts that a token visits")
    d_ff_expert: Size = Field(ge=1, le=MAX_SIZE, description="Hidden width of one expert")
    n_dense_layers: int = Field(
        default=0, ge=0, description="First layers that keep a dense feedforward layer"
    )
    n_expert_groups: Size = Field(
        default=1, ge=1, le=MAX_SIZE, description="Groups that the routed experts are divided into"
    )
    n_groups_per_token: Size = Field(
        default=1, ge=1, le=MAX_SIZE, description="Groups that the experts of one token may come from"
    )
    gate_bias: bool = Field(
        default=False, description="One bias per expert in the gate (auxiliary-loss-free balancing)"
    )

    @model_validator(mode="after")
    def _experts_exist(self) -> Self:
        if self.n_experts_per_token > self.n_routed_experts:
            raise ValueError(
                f"n_experts_per_token = {self.n_experts_per_token} exceeds "
                f"n_routed_experts = {self.n_routed_experts}"
            )
        if self.n_routed_experts % self.n_expert_groups:
            raise ValueError(
                f"n_routed_experts = {self.n_routed_experts} is not a multiple of "
                f"n_expert_groups = {self.n_expert_groups}"
            )
        if self.n_groups_per_token > self.n_expert_groups:
            raise ValueError(
                f"n_groups_per_token = {self.n_groups_per_token} exceeds "
                f"n_expert_groups = {self.n_expert_groups}"
            )
        return self


class ModelSpec(SourcedSpec):
    """A decoder-only Transformer."""

    n_layers: Size = Field(ge=1, le=10_000, description="Transformer blocks")
    d_model: Size = Field(ge=1, le=MAX_SIZE, description="Width of the residual stream (E)")
    d_ff: Size = Field(ge=1, le=MAX_SIZE, description="Hidden width of the dense feedforward layer (F)")
    n_heads: Size = Field(ge=1, le=MAX_SIZE, description="Query heads (H), padding included")
    n_heads_unpadded: Size | None = Field(
        default=None, ge=1, le=MAX_SIZE, description="Query heads before padding; MFU counts only these"
    )
    n_kv_heads: Size = Field(
        ge=1, le=MAX_SIZE, description="Key and value heads: 1 is multiquery, n_heads is multihead"
    )
    d_head: Size = Field(ge=1, le=MAX_SIZE, description="Width of one head (D)")
    vocab_size: Size = Field(ge=1, le=MAX_SIZE, description="Rows of the embedding (V)")
    gated_ffn: bool = Field(
        default=True, description="Gated (SwiGLU, three matrices) or plain (two matrices) feedforward layer"
    )
    parallel_block: bool = Field(
        default=False, description="Attention and feedforward run side by side from one norm (Pope 3.4)"
    )
    tied_embedding: bool = Field(default=False, description="The output projection is the embedding")
    n_positions: int = Field(
        default=0, ge=0, le=MAX_SIZE, description="Learned position embeddings; 0: rotary or none"
    )
    biases: bool = Field(default=False, description="Matrices have biases")
    norm: Literal["rmsnorm", "layernorm"] = Field(default="rmsnorm", description="Kind of normalisation")
    max_context: int = Field(default=0, ge=0, description="Longest context trained for; 0: not stated")
    n_mtp_layers: int = Field(default=0, ge=0, le=64, description="Multi-token prediction modules")
    mla: MlaSpec | None = Field(default=None, description="Multi-head latent attention")
    moe: MoeSpec | None = Field(default=None, description="Mixture of experts")

    @model_validator(mode="after")
    def _heads_agree(self) -> Self:
        if self.n_heads % self.n_kv_heads:
            raise ValueError(f"n_heads = {self.n_heads} is not a multiple of n_kv_heads = {self.n_kv_heads}")
        if self.n_heads_unpadded is not None and self.n_heads_unpadded > self.n_heads:
            raise ValueError(f"n_heads_unpadded = {self.n_heads_unpadded} exceeds n_heads = {self.n_heads}")
        if self.moe is not None and self.moe.n_dense_layers > self.n_layers:
            raise ValueError(
                f"moe.n_dense_layers = {self.moe.n_dense_layers} exceeds n_layers = {self.n_layers}"
            )
        return self

    @property
    def attention_kind(self) -> Literal["multihead", "grouped-query", "multiquery", "latent"]:
        """The field's name for how keys and values are shared."""
        if self.mla is not None:
            return "latent"
        if self.n_kv_heads == self.n_heads:
            return "multihead"
        return "multiquery" if self.n_kv_heads == 1 else "grouped-query"
