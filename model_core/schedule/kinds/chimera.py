"""Chimera: two 1F1B pipelines in opposite directions, merged without a conflict."""

from __future__ import annotations

import numpy as np

from model_core.schedule.operations import Ints, OpKind, Schedule, assemble, bidirectional, code


def build(pp: int, microbatches: int, _virtual_stages: int) -> Schedule:
    """Order the operations as Li and Hoefler 2021, 3.1; units of ``pp`` microbatches are concatenated."""
    ranks = [_rank(pp, microbatches, rank) for rank in range(pp)]
    return assemble("chimera", bidirectional(pp), microbatches, ranks)


def _rank(pp: int, microbatches: int, rank: int) -> Ints:
    """Read one rank off the slots that its operations would take if each took one slot."""
    unit, nth = np.divmod(np.arange(microbatches // 2), pp // 2)
    slots, codes = [], []
    for lane, stage in enumerate((rank, pp - 1 - rank)):
        entered = 2 * pp * unit + 2 * nth
        slots += [entered + stage, entered + 2 * pp - 1 - stage]
        codes += [
            code(OpKind.FORWARD, np.full_like(nth, lane)),
            code(OpKind.BACKWARD, np.full_like(nth, lane)),
        ]
    return np.concatenate(codes)[np.argsort(np.concatenate(slots), kind="stable")]
