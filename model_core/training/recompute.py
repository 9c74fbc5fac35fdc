"""What of the forward pass is computed again in the backward pass instead of being kept."""

from __future__ import annotations

from functools import lru_cache

from model_core.partition.backward import Backward, Recompute, backward
from model_core.partition.program import Collective, CollectiveKind, LayerProgram, Local, LocalKind, Op, Role
from model_core.spec.training import TrainingSpec

NORMS = (LocalKind.NORM, LocalKind.LATENT_NORM)
ACTIVATIONS = (LocalKind.ACTIVATION, LocalKind.GATED_ACTIVATION)
UP_PROJECTIONS = ("query", "expand")
"""Products that expand the latents of multi-head latent attention, by what they are fused with."""


def _is_free(op: Op) -> bool:
    """Tell what is never kept twice: gathered shards, scores of a fused kernel, and views."""
    gathers = isinstance(op, Collective) and op.kind is CollectiveKind.ALL_GATHER
    is_view = isinstance(op, Local) and op.kind is LocalKind.AS_KEYS
    return gathers or is_view or op.output.role is Role.ON_CHIP


def _is_score(op: Op) -> bool:
    dims = op.output.sharding.dims
    return "L" in dims and "M" in dims


def _is_up_projection(op: Op) -> bool:
    if isinstance(op, Local):
        return op.kind is LocalKind.ROTARY
    return not isinstance(op, Collective) and op.fused in UP_PROJECTIONS


@lru_cache(maxsize=64)
def recompute_of(recompute: str, also: tuple[str, ...]) -> Recompute:
    """Return the predicate of a choice; equal choices share one, so that programs are derived once.

    Source: Korthikanti et al. 2022, 5 (selective); DeepSeek-V3 report, 3.2.3 and 3.3.3 (the other parts)
    """
    parts = {
        "norms": lambda op: isinstance(op, Local) and op.kind in NORMS,
        "mla_up_projection": _is_up_projection,
        "swiglu_output": lambda op: isinstance(op, Local) and op.kind in ACTIVATIONS,
    }
    chosen: list[Recompute] = [_is_free, *(parts[name] for name in also)]
    if recompute == "selective":
        chosen.append(_is_score)
    if recompute == "full":
        chosen.append(lambda _op: True)
    return lambda op: any(part(op) for part in chosen)


def training_backward(program: LayerProgram, spec: TrainingSpec) -> Backward:
    """Derive (or find) the backward pass of a program under the choices of a plan."""
    return backward(program, recompute_of(spec.recompute, tuple(sorted(spec.recompute_also))))
