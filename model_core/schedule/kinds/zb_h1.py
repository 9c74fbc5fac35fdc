"""ZB-H1 (ZB1P): 1F1B whose backwards for weights fill the drain, at the memory of 1F1B."""

from __future__ import annotations

from model_core.schedule.kinds.deferred import deferred_weights
from model_core.schedule.operations import Schedule, assemble, looped


def build(pp: int, microbatches: int, _virtual_stages: int) -> Schedule:
    """Order the operations so that each rank holds at most ``pp`` microbatches (Qi et al. 2023, 2.1)."""
    ranks = [deferred_weights(microbatches, pp - rank, rank) for rank in range(pp)]
    return assemble("zb-h1", looped(pp), microbatches, ranks)
