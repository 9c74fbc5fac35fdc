"""The folded groups of a training step; they apply in training alone."""

from __future__ import annotations

from typing import Final

from app.i18n import tr
from app.panels.fields import FieldGroup, FieldRow
from model_core.spec import Design, Phase, TrainingSpec

_PATH: Final = "plan.training"
_STATE_DTYPES: Final = tuple((name, name) for name in ("float32", "bfloat16"))
_DEFAULTS: Final = TrainingSpec()


def training_groups() -> tuple[FieldGroup, ...]:
    """Return the groups in order."""
    return (
        FieldGroup(tr("Parallel training"), TrainingSpec, _parallel(), _degrees_digest, _is_training),
        FieldGroup(tr("Kept activations"), TrainingSpec, _kept(), _kept_digest, _is_training),
        FieldGroup(tr("Optimizer"), TrainingSpec, _optimizer(), _optimizer_digest, _is_training),
    )


def _parallel() -> tuple[FieldRow, ...]:
    return (
        FieldRow(f"{_PATH}.tp", tr("Tensor (TP)")),
        FieldRow(f"{_PATH}.cp", tr("Context (CP)")),
        FieldRow(f"{_PATH}.ep", tr("Experts (EP)"), shown=_has_experts),
        FieldRow(f"{_PATH}.sequence_parallel", tr("Sequence parallel")),
        FieldRow(f"{_PATH}.zero_stage", tr("ZeRO"), _zero_stages()),
        FieldRow(f"{_PATH}.micro_batch", tr("Microbatch size")),
        FieldRow(f"{_PATH}.stage_layers", tr("Layers by stage"), empty=tr("even")),
        FieldRow(f"{_PATH}.overlap_gradients", tr("Overlap gradients")),
        FieldRow(f"{_PATH}.overlap_tensor_parallel", tr("Overlap TP")),
        FieldRow(f"{_PATH}.shared_embedding_with_mtp", tr("Share with MTP"), shown=_has_mtp),
    )


def _kept() -> tuple[FieldRow, ...]:
    return (
        FieldRow(f"{_PATH}.recompute", tr("Recompute"), _recompute_choices()),
        FieldRow(f"{_PATH}.recompute_also", tr("and also"), _recompute_parts()),
        FieldRow(f"{_PATH}.fused_attention", tr("Fused attention")),
        FieldRow(f"{_PATH}.dropout", tr("Dropout")),
        FieldRow(f"{_PATH}.fp8_activation_cache", tr("Kept in FP8")),
    )


def _optimizer() -> tuple[FieldRow, ...]:
    return (
        FieldRow(f"{_PATH}.optimizer", tr("Optimizer"), (("adamw", "AdamW"),)),
        FieldRow(f"{_PATH}.parameter_dtype", tr("Weights"), _STATE_DTYPES),
        FieldRow(f"{_PATH}.gradient_dtype", tr("Gradients"), _STATE_DTYPES),
        FieldRow(f"{_PATH}.moment_dtype", tr("Moments"), _STATE_DTYPES),
        FieldRow(f"{_PATH}.master_weights", tr("FP32 weights")),
        FieldRow(f"{_PATH}.ema_on_host", tr("EMA on host")),
    )


def _zero_stages() -> tuple[tuple[str, str], ...]:
    return (
        ("0", tr("0: nothing")),
        ("1", tr("1: optimizer")),
        ("2", tr("2: and gradients")),
        ("3", tr("3: and weights")),
    )


def _recompute_choices() -> tuple[tuple[str, str], ...]:
    return (("none", tr("nothing")), ("selective", tr("attention scores")), ("full", tr("everything")))


def _recompute_parts() -> tuple[tuple[str, str], ...]:
    return (
        ("norms", tr("norms")),
        ("mla_up_projection", tr("MLA up-projection")),
        ("swiglu_output", tr("SwiGLU output")),
    )


def _is_training(design: Design) -> bool:
    return design.workload.phase is Phase.TRAINING


def _has_experts(design: Design) -> bool:
    return design.model.moe is not None or _training(design).ep > 1


def _has_mtp(design: Design) -> bool:
    return design.model.n_mtp_layers > 0


def _training(design: Design) -> TrainingSpec:
    return design.plan.training or _DEFAULTS


def _degrees_digest(design: Design) -> str:
    training = _training(design)
    degrees = {"TP": training.tp, "CP": training.cp, "EP": training.ep}
    texts = [f"{name} {degree}" for name, degree in degrees.items() if degree > 1]
    return ", ".join([*texts, f"ZeRO-{training.zero_stage}"])


def _kept_digest(design: Design) -> str:
    training = _training(design)
    again = dict(_recompute_choices())[training.recompute]
    if training.recompute_also and training.recompute == "none":
        again = ", ".join(dict(_recompute_parts())[part] for part in training.recompute_also)
    return tr("recomputed: {parts}", parts=again)


def _optimizer_digest(design: Design) -> str:
    training = _training(design)
    return f"AdamW, {training.moment_dtype}"
