"""One balanced packing for each problem of a batch: replicate, pack, refine, and try fewer, larger replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from model_core.experts.arrays import Floats, Ints
from model_core.experts.packing import gpu_loads, pack, refine
from model_core.experts.replication import greedy_counts, threshold_counts


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to look.

    rounds: most rounds of swaps. tolerance: the gap to the target at which swaps end. thresholds: largest
    replicas to try, as parts of the target, where greedy replication leaves a gap above ``retry_gap``.
    """

    rounds: int
    tolerance: float
    thresholds: tuple[float, ...]
    retry_gap: float


FAST: Final = Effort(rounds=1, tolerance=1e-4, thresholds=(1.0, 0.9, 0.8), retry_gap=5e-3)
PLAIN: Final = Effort(rounds=1, tolerance=5e-4, thresholds=(), retry_gap=1e-2)
THOROUGH: Final = Effort(
    rounds=6,
    tolerance=1e-6,
    thresholds=(1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3),
    retry_gap=1e-4,
)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The packing of each problem and the load of its hottest GPU."""

    slots: Ints
    hottest: Floats


def solve(loads: Floats, n_gpus: int, n_slots: int, target: Floats, effort: Effort) -> Solution:
    """Pack each problem so that its hottest GPU has as little load as possible.

    Args:
        loads: problems x experts.
        n_gpus: GPUs of one problem.
        n_slots: slots of one problem, a multiple of ``n_gpus``.
        target: for each problem the load that no packing can go below, or below which nothing is gained.
        effort: when to stop.

    Returns:
        Slots of shape problems x GPUs x slots per GPU, and the load of the hottest GPU of each.
    """
    enough = target * (1 + effort.tolerance)
    best = _packed(loads, greedy_counts(loads, n_slots, n_gpus), n_gpus, enough, effort.rounds)
    if n_slots <= 2 * n_gpus or n_slots == loads.shape[1]:
        return best  # in pairs greedy replication is best; without spare slots there is none
    rows = np.flatnonzero(best.hottest > target * (1 + effort.retry_gap))
    if rows.size and effort.thresholds:
        _retry(best, rows, loads[rows], n_gpus, n_slots, target[rows], effort)
    return best


def _retry(
    best: Solution, rows: Ints, loads: Floats, n_gpus: int, n_slots: int, target: Floats, effort: Effort
) -> None:
    """Pack some problems with fewer, larger replicas, all thresholds in one batch; keep the best, in place."""
    factors = np.array(effort.thresholds)
    loads, rows = np.tile(loads, (factors.size, 1)), np.tile(rows, factors.size)
    limit = (factors[:, None] * target).ravel()
    counts, valid = threshold_counts(loads, n_slots, n_gpus, limit)
    enough = np.tile(target * (1 + effort.tolerance), factors.size)
    other = _packed(loads[valid], counts[valid], n_gpus, enough[valid], effort.rounds)
    # Worst first, so that the best of several for one problem is written last.
    order = np.argsort(-other.hottest)
    order = order[other.hottest[order] < best.hottest[rows[valid][order]]]
    best.slots[rows[valid][order]] = other.slots[order]
    best.hottest[rows[valid][order]] = other.hottest[order]


def _packed(loads: Floats, counts: Ints, n_gpus: int, enough: Floats, rounds: int) -> Solution:
    slots = pack(loads, counts, n_gpus)
    refine(loads, counts, slots, enough, rounds)
    # Summed anew: the running totals of the swaps carry rounding.
    return Solution(slots, gpu_loads(loads, counts, slots).max(axis=1))
