"""Replica counts for two slots per GPU, where the best packing of given replicas is known.

Sorted replicas are paired heaviest with lightest; so only the counts are left to search. Splitting the
lightest experts can help as much as splitting the hottest: they are the partners of hot replicas.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from model_core.experts.arrays import Floats, Ints
from model_core.experts.replication import greedy_counts

_POWER: Final = 24
_TOP_PAIRS: Final = 4
_MOST_STEPS: Final = 60
_SHARES_TO_HOT: Final = (1.0, 0.75, 0.5)


def pair_counts(loads: Floats, n_gpus: int, enough: float) -> tuple[Ints, float]:
    """Search the replica counts of one layer for pairs of slots.

    Args:
        loads: experts.
        n_gpus: GPUs; there are twice as many slots.
        enough: load of the hottest GPU at which to stop.

    Returns:
        The counts, and the load of the hottest GPU when heaviest and lightest replicas are paired.
    """
    best, lowest = np.ones(loads.size, np.intp), np.inf
    for share in _SHARES_TO_HOT:
        counts, hottest = _descend(loads, _start(loads, n_gpus, share), n_gpus, enough)
        if hottest < lowest:
            best, lowest = counts, hottest
        if lowest <= enough:
            break
    return best, lowest


def _start(loads: Floats, n_gpus: int, share: float) -> Ints:
    """Spend a share of the spare slots on the hottest experts, the others on the lightest."""
    spare = 2 * n_gpus - loads.size
    hot = max(round(share * spare), spare - loads.size)
    counts: Ints = greedy_counts(loads[None], loads.size + hot, n_gpus)[0]
    # An expert with as many replicas as GPUs can have no more.
    light = np.argsort(np.where(counts < n_gpus, loads, np.inf), kind="stable")[: spare - hot]
    counts[light] += 1
    return counts


def _descend(loads: Floats, counts: Ints, n_gpus: int, enough: float) -> tuple[Ints, float]:
    """Move one replica at a time from one expert to another while the pairs become more even."""
    sums = _pair_sums(np.repeat(loads / counts, counts)[None])[0]
    best, lowest, level = counts, float(sums.max()), float(_power_mean(sums))
    for _ in range(_MOST_STEPS):
        if lowest <= enough:
            break
        givers, takers = _candidates(loads, counts, n_gpus)
        if not givers.size:
            break
        all_sums = _pair_sums(_moved(loads, counts, givers, takers))
        means = _power_mean(all_sums)
        move = int(means.argmin())
        if means[move] >= level * (1 - 1e-9):
            break
        counts = counts.copy()
        counts[givers[move]] -= 1
        counts[takers[move]] += 1
        level = float(means[move])
        if all_sums[move].max() < lowest:
            best, lowest = counts, float(all_sums[move].max())
    return best, lowest


def _candidates(loads: Floats, counts: Ints, n_gpus: int) -> tuple[Ints, Ints]:
    """Return experts that can give a replica and experts of the hottest pairs that can take it, all couples."""
    experts = np.repeat(np.arange(loads.size), counts)
    order = np.argsort(loads[experts] / counts[experts])
    low, high = order[:n_gpus], order[: n_gpus - 1 : -1]
    replica = loads[experts] / counts[experts]
    top = np.argsort(-(replica[low] + replica[high]))[:_TOP_PAIRS]
    takers = np.unique(experts[np.concatenate([low[top], high[top]])])
    takers = takers[counts[takers] < n_gpus]
    givers = np.flatnonzero(counts > 1)
    couples = np.stack(np.meshgrid(givers, takers, indexing="ij"), axis=-1).reshape(-1, 2)
    couples = couples[couples[:, 0] != couples[:, 1]]
    return couples[:, 0], couples[:, 1]


def _moved(loads: Floats, counts: Ints, givers: Ints, takers: Ints) -> Floats:
    """Return the replica loads after each move: moves x slots, in no order."""
    experts = np.repeat(np.arange(loads.size), counts)
    last = np.cumsum(counts) - 1
    after = np.tile(loads[experts] / counts[experts], (givers.size, 1))
    less = (loads[givers] / (counts[givers] - 1))[:, None]
    more = (loads[takers] / (counts[takers] + 1))[:, None]
    after = np.where(experts == givers[:, None], less, after)
    after = np.where(experts == takers[:, None], more, after)
    after[np.arange(givers.size), last[givers]] = more[:, 0]
    return after


def _pair_sums(replicas: Floats) -> Floats:
    ordered = np.sort(replicas, axis=1)
    half = ordered.shape[1] // 2
    return ordered[:, :half] + ordered[:, : half - 1 : -1]


def _power_mean(sums: Floats) -> Floats:
    scale = sums.max(axis=-1, keepdims=True)
    mean: Floats = scale[..., 0] * ((sums / scale) ** _POWER).mean(axis=-1) ** (1 / _POWER)
    return mean
