"""The folded groups of the plan: what is in them, and where they apply."""

from __future__ import annotations

from typing import Final

from app.i18n import tr
from app.panels.fields import FieldGroup, FieldRow
from app.panels.mesh_choice import stages_of
from model_core.spec import DTYPE_BYTES, Design, DispatchMode, PlanSpec, ScatterInto
from model_core.units import RATIO, format_quantity

DTYPES: Final = tuple((name, name) for name in DTYPE_BYTES)


def plan_groups() -> tuple[FieldGroup, ...]:
    """Return the groups of fields that any phase may have, in order."""
    return (_pipeline(), _experts(), _arithmetic(), _collectives(), _memory())


def _pipeline() -> FieldGroup:
    rows = (FieldRow("plan.microbatches", tr("Microbatches")),)
    return FieldGroup(tr("Pipeline"), PlanSpec, rows, _pipeline_digest, _has_pipeline)


def _experts() -> FieldGroup:
    rows = (
        FieldRow("plan.dispatch_mode", tr("Dispatch"), _dispatch_modes()),
        FieldRow("plan.dispatch_dtype", tr("Dispatch format"), DTYPES),
        FieldRow("plan.combine_dtype", tr("Combine format"), DTYPES),
        FieldRow("plan.communication_sms", tr("Dispatch SMs"), shown=_is_two_hop),
        FieldRow("plan.overlap_microbatches", tr("Two microbatches")),
        FieldRow("plan.redundant_experts", tr("Redundant slots")),
        FieldRow("plan.shared_expert_as_routed", tr("Shared as routed"), shown=_has_shared_experts),
        FieldRow("plan.expert_imbalance", tr("Imbalance")),
        FieldRow("plan.dense_tensor_parallel", tr("Dense layers split"), shown=_has_dense_layers),
    )
    return FieldGroup(tr("Experts (MoE)"), PlanSpec, rows, _experts_digest, _has_experts)


def _arithmetic() -> FieldGroup:
    rows = (
        FieldRow("plan.weight_dtype", tr("Weights"), DTYPES),
        FieldRow("plan.kv_dtype", tr("KV cache"), DTYPES),
        FieldRow("plan.activation_dtype", tr("Activations"), DTYPES),
        FieldRow("plan.matmul_dtype", tr("Products"), (("", tr("as stored")), *DTYPES)),
        FieldRow("plan.skip_masked_scores", tr("Skip masked")),
    )
    return FieldGroup(tr("Arithmetic"), PlanSpec, rows, _arithmetic_digest)


def _collectives() -> FieldGroup:
    rows = (
        FieldRow("plan.collective_overlap", tr("Collective overlap")),
        FieldRow("plan.scatter_into", tr("Scatter into"), _scatter_choices()),
        FieldRow("plan.large_k", tr("(K − 1)/K as 1")),
    )
    return FieldGroup(tr("Collectives"), PlanSpec, rows, _collectives_digest)


def _memory() -> FieldGroup:
    rows = (
        FieldRow("plan.memory_reserve", tr("Memory reserve")),
        FieldRow("plan.kv_memory_share", tr("KV memory share")),
    )
    return FieldGroup(tr("Memory"), PlanSpec, rows, _memory_digest)


def _dispatch_modes() -> tuple[tuple[str, str], ...]:
    return (
        (DispatchMode.TWO_HOP, tr("two hops")),
        (DispatchMode.LOW_LATENCY, tr("low latency")),
    )


def _scatter_choices() -> tuple[tuple[str, str], ...]:
    return (
        (ScatterInto.HIDDEN, tr("hidden (E, F)")),
        (ScatterInto.BATCH, tr("batch (B)")),
        (ScatterInto.SEQUENCE, tr("sequence (L)")),
    )


def _has_pipeline(design: Design) -> bool:
    mesh = design.plan.mesh
    return design.plan.microbatches > 1 or (mesh is not None and bool(mesh.pipeline))


def _has_experts(design: Design) -> bool:
    return design.model.moe is not None


def _has_shared_experts(design: Design) -> bool:
    moe = design.model.moe
    return design.plan.shared_expert_as_routed or (moe is not None and moe.n_shared_experts > 0)


def _has_dense_layers(design: Design) -> bool:
    moe = design.model.moe
    return design.plan.dense_tensor_parallel or (moe is not None and moe.n_dense_layers > 0)


def _is_two_hop(design: Design) -> bool:
    return design.plan.dispatch_mode is DispatchMode.TWO_HOP


def _pipeline_digest(design: Design) -> str:
    return tr(
        "stages {stages}, microbatches {count}", stages=stages_of(design), count=design.plan.microbatches
    )


def _experts_digest(design: Design) -> str:
    plan = design.plan
    return tr("{dtype}, {count} redundant", dtype=plan.dispatch_dtype, count=plan.redundant_experts)


def _arithmetic_digest(design: Design) -> str:
    plan = design.plan
    formats = (plan.weight_dtype, plan.kv_dtype, plan.activation_dtype)
    return formats[0] if len(set(formats)) == 1 else ", ".join(formats)


def _collectives_digest(design: Design) -> str:
    return tr("{share} hidden", share=format_quantity(design.plan.collective_overlap, RATIO))


def _memory_digest(design: Design) -> str:
    return tr("{share} kept free", share=format_quantity(design.plan.memory_reserve, RATIO))
