"""GPipe: all forwards, then all backwards."""

from __future__ import annotations

from model_core.schedule.operations import Schedule, assemble, looped
from model_core.schedule.patterns import phases


def build(pp: int, microbatches: int, _virtual_stages: int) -> Schedule:
    """Order the operations as in Huang et al. 2019; backwards in the order of the forwards."""
    rank = phases(("F0", microbatches), ("B0", microbatches))
    return assemble("gpipe", looped(pp), microbatches, [rank] * pp)
