"""1F1B: after a warm-up every forward is followed by a backward."""

from __future__ import annotations

from model_core.schedule.operations import Schedule, assemble, looped
from model_core.schedule.patterns import phases


def build(pp: int, microbatches: int, _virtual_stages: int) -> Schedule:
    """Order the operations as PipeDream with a flush does (Narayanan et al. 2021)."""
    warm_up = [min(pp - rank - 1, microbatches) for rank in range(pp)]
    ranks = [phases(("F0", w), ("F0 B0", microbatches - w), ("B0", w)) for w in warm_up]
    return assemble("1f1b", looped(pp), microbatches, ranks)
