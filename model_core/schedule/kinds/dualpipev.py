"""DualPipeV: DualPipe cut in half and folded, so that each rank holds two chunks and no copy."""

from __future__ import annotations

from model_core.schedule.kinds.dualpipe import eight_steps
from model_core.schedule.operations import Schedule, assemble, vee


def build(pp: int, microbatches: int, _virtual_stages: int) -> Schedule:
    """Order the operations as the lower half of a DualPipe of ``2 pp`` ranks."""
    return assemble(
        "dualpipev", vee(pp), microbatches, [eight_steps(pp, microbatches, rank) for rank in range(pp)]
    )
