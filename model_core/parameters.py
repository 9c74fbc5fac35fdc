"""Counts the parameters of a model, matrix group by matrix group."""

from __future__ import annotations

from model_core.quantities import formula
from model_core.results import ParameterCount
from model_core.spec.model import ModelSpec

ACTIVE_CONVENTION = (
    "parameters that one token is multiplied with: all matrices, of the routed experts only those it visits; "
    "the embedding look-up and the output projection count once each, multi-token prediction does not count"
)


@formula("parameters_attention")
def attention_parameters(model: ModelSpec) -> int:
    """Attention parameters of one layer.

    Formula: E·D·(2H + 2K); latent attention: down and up projections of query, key and value, and output
    Source: Pope 3.3; DeepSeek-V3 report 2.1.1
    """
    e, h = model.d_model, model.n_heads
    if model.mla is None:
        return e * model.d_head * (2 * h + 2 * model.n_kv_heads)
    mla = model.mla
    qk = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    query = e * h * qk if mla.q_lora_rank is None else mla.q_lora_rank * (e + h * qk)
    latent = e * (mla.kv_lora_rank + mla.qk_rope_head_dim)
    up = mla.kv_lora_rank * h * (mla.qk_nope_head_dim + mla.v_head_dim)
    return query + latent + up + h * mla.v_head_dim * e


@formula("parameters_feedforward")
def feedforward_parameters(model: ModelSpec, d_ff: int) -> int:
    """Parameters of one feedforward layer or expert.

    Formula: 3·E·F gated, 2·E·F plain
    Source: Pope 3.2
    """
    return (3 if model.gated_ffn else 2) * model.d_model * d_ff


def _norm_parameters(model: ModelSpec) -> int:
    width = model.d_model * (2 if model.norm == "layernorm" and model.biases else 1)
    per_layer = width if model.parallel_block else 2 * width
    if model.mla is not None:
        per_layer += (model.mla.q_lora_rank or 0) + model.mla.kv_lora_rank
    return model.n_layers * per_layer + width


def _bias_parameters(model: ModelSpec) -> int:
    if not model.biases:
        return 0
    attention = model.d_head * (model.n_heads + 2 * model.n_kv_heads) + model.d_model
    feedforward = model.d_ff * (2 if model.gated_ffn else 1) + model.d_model
    return model.n_layers * (attention + feedforward)


def _expert_groups(model: ModelSpec) -> tuple[dict[str, int], int]:
    """Return the groups of the feedforward layers, and how many routed parameters a token skips."""
    moe = model.moe
    if moe is None:
        return {"feedforward": model.n_layers * feedforward_parameters(model, model.d_ff)}, 0
    layers = model.n_layers - moe.n_dense_layers
    expert = feedforward_parameters(model, moe.d_ff_expert)
    gate = moe.n_routed_experts * (model.d_model + (1 if moe.gate_bias else 0))
    groups = {
        "feedforward": moe.n_dense_layers * feedforward_parameters(model, model.d_ff),
        "routed experts": layers * moe.n_routed_experts * expert,
        "shared experts": layers * moe.n_shared_experts * expert,
        "gate": layers * gate,
    }
    return groups, layers * (moe.n_routed_experts - moe.n_experts_per_token) * expert


@formula("parameters_total")
def count_parameters(model: ModelSpec) -> ParameterCount:
    """Parameters of a model.

    Formula: Σ over matrix groups; active = total − routed experts that a token does not visit
    Source: Pope D.1; DeepSeek-V3 report 2
    Assumes: multi-token prediction modules are not counted
    """
    table = model.vocab_size * model.d_model
    feedforward, skipped = _expert_groups(model)
    groups = {
        "attention": model.n_layers * attention_parameters(model),
        **feedforward,
        "embedding": table,
        "output": 0 if model.tied_embedding else table,
        "positions": model.n_positions * model.d_model,
        "norms": _norm_parameters(model),
        "biases": _bias_parameters(model),
    }
    total = sum(groups.values())
    padding = 0
    if model.n_heads_unpadded is not None and model.mla is None:
        padded = model.n_heads - model.n_heads_unpadded
        padding = model.n_layers * 2 * model.d_model * model.d_head * padded
    active = total - skipped
    shown = {name: count for name, count in groups.items() if count}
    return ParameterCount(total, active, active - padding, shown, ACTIVE_CONVENTION)
