"""DualPipe: microbatches from both ends, forward and backward of opposite directions overlapped."""

from __future__ import annotations

from model_core.schedule.operations import Ints, Schedule, assemble, bidirectional
from model_core.schedule.patterns import phases

_OPPOSITE = str.maketrans("01", "10")


def build(pp: int, microbatches: int, _virtual_stages: int) -> Schedule:
    """Order the operations as DSV3 Figure 5; the upper half of the ranks mirrors the lower."""
    half = pp // 2
    lower = [eight_steps(half, microbatches // 2, rank) for rank in range(half)]
    upper = [eight_steps(half, microbatches // 2, rank, mirrored=True) for rank in reversed(range(half))]
    return assemble("dualpipe", bidirectional(pp), microbatches, lower + upper)


def eight_steps(half: int, microbatches: int, rank: int, mirrored: bool = False) -> Ints:
    """Return the operations of one rank in the eight steps of the published algorithm.

    Args:
        half: ranks from the end where lane 0 enters to the middle, or to the turn of DualPipeV.
        microbatches: in each lane.
        rank: distance from that end.
        mirrored: the lanes change places.
    """
    inner = half - rank - 1  # ranks between this one and the middle
    even, odd = divmod(rank + 1, 2)
    # The middle rank runs its first pair one after the other, which starts the backward earlier.
    first = ("FB01 FB10", 1) if inner else ("F0 B1 FB10", 1)
    steps = (
        ("F0", 2 * inner),
        ("F0 F1", rank + 1),
        ("I1 W F1", inner),
        first,
        ("FB01 FB10", microbatches - 2 * half + rank),
        ("B1 FB10", inner),
        # Step 6: of 2 (rank + 1) backwards the second half defers its part for weights.
        ("B1 B0", even),
        ("B1 I0", odd),
        ("I1 I0", even),
        ("W I0", inner),
        ("W", rank + 1),
    )
    return phases(*((text.translate(_OPPOSITE) if mirrored else text, count) for text, count in steps))
