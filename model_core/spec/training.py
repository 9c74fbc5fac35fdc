"""How a model is trained: parallel degrees, what is kept and recomputed, optimizer and its formats."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from model_core.spec.base import Spec

StateDtype = Literal["float32", "bfloat16"]
Recomputed = Literal["none", "selective", "full"]
RecomputedPart = Literal["norms", "mla_up_projection", "swiglu_output"]
Degree = int


class TrainingSpec(Spec):
    """One training step. The pipeline is that of ``plan.schedule``, the batch and its length the workload's.

    Data parallelism takes the chips that tensor, context and pipeline parallelism leave. Tensor-parallel ranks
    are next to each other, then context, then data; pipeline stages are farthest apart.
    """

    tp: Degree = Field(
        default=1, ge=1, le=4096, description="Tensor parallelism: ranks that share each matrix"
    )
    cp: Degree = Field(
        default=1, ge=1, le=4096, description="Context parallelism: ranks that share each sequence"
    )
    ep: Degree = Field(
        default=1, ge=1, le=65_536, description="Expert parallelism: ranks that share the experts"
    )
    sequence_parallel: bool = Field(
        default=True,
        description="Norms and residuals split over the tensor-parallel ranks too; with experts always so",
    )
    zero_stage: int = Field(
        default=1,
        ge=0,
        le=3,
        description="What data-parallel ranks share: 0 nothing, 1 optimizer, 2 also gradients, 3 also weights (FSDP)",
    )
    micro_batch: int = Field(default=1, ge=1, le=10**6, description="Sequences of one microbatch on a rank")
    stage_layers: tuple[int, ...] = Field(
        default=(), description="Layers of each pipeline stage; empty: as even as can be, the last has fewest"
    )
    recompute: Recomputed = Field(
        default="none",
        description="Forward work done again in the backward pass: none, selective (attention scores), or full",
    )
    recompute_also: tuple[RecomputedPart, ...] = Field(
        default=(), description="Further parts that are computed again instead of kept"
    )
    fused_attention: bool = Field(
        default=True, description="Attention in one kernel that never writes scores and skips what is masked"
    )
    overlap_gradients: bool = Field(
        default=False,
        description="Gradients are reduced beside the last backward pass, new weights gathered beside the first forward",
    )
    overlap_tensor_parallel: bool = Field(
        default=False, description="Tensor-parallel collectives run in pieces beside the products around them"
    )
    dropout: bool = Field(
        default=False, description="Dropout after attention and feedforward: masks are kept"
    )
    fp8_activation_cache: bool = Field(
        default=False, description="Inputs of linear layers are kept in FP8, those after attention in 12 bits"
    )
    optimizer: Literal["adamw"] = Field(default="adamw", description="Optimizer: AdamW, two moments")
    parameter_dtype: StateDtype = Field(
        default="bfloat16", description="Format of the weights that every rank holds"
    )
    gradient_dtype: StateDtype = Field(default="float32", description="Format in which gradients accumulate")
    master_weights: bool = Field(default=True, description="The optimizer keeps weights in FP32")
    moment_dtype: StateDtype = Field(default="float32", description="Format of the optimizer's moments")
    ema_on_host: bool = Field(
        default=False, description="An exponential moving average of the weights is kept in host memory"
    )
    shared_embedding_with_mtp: bool = Field(
        default=True,
        description="Multi-token prediction uses the embedding and head that its rank holds anyway",
    )
