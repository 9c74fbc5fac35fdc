"""ZB-V: two chunks on each rank, up the ranks and back; no bubble at the memory of 1F1B."""

from __future__ import annotations

from model_core.schedule.operations import Ints, Schedule, assemble, vee
from model_core.schedule.patterns import phases


def build(pp: int, microbatches: int, _virtual_stages: int) -> Schedule:
    """Order the operations in the V shape of Qi et al. 2024 (V-ZB), both chunks alternating."""
    ranks = [_rank(pp, microbatches, rank) for rank in range(pp)]
    return assemble("zb-v", vee(pp), microbatches, ranks)


def _rank(pp: int, microbatches: int, rank: int) -> Ints:
    to_turn = pp - rank  # chunks from this rank to the turn of the V
    return phases(
        ("F0", 2 * to_turn - 1),
        ("F1 F0", rank),
        ("F1 I1 W", to_turn),
        ("F0 I0 W F1 I1 W", microbatches - 2 * pp + rank + 1),
        ("I0 W F1 I1 W", to_turn - 1),
        ("I0 I1", rank),
        ("I0 W", to_turn),
        ("W", 2 * rank),
    )
