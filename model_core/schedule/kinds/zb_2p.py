"""ZB-2P: no bubble between iterations where F = I = W, at about twice the memory of 1F1B."""

from __future__ import annotations

from model_core.schedule.kinds.deferred import deferred_weights
from model_core.schedule.operations import Schedule, assemble, looped


def build(pp: int, microbatches: int, _virtual_stages: int) -> Schedule:
    """Order the operations as the handcrafted ZB-H2 (Qi et al. 2023, 2.2): a parallelogram.

    Each rank holds at most ``2 pp - 1`` microbatches.
    """
    ranks = [deferred_weights(microbatches, 2 * (pp - rank) - 1, 2 * rank) for rank in range(pp)]
    return assemble("zb-2p", looped(pp), microbatches, ranks)
