"""What no placement can go below: proven lower bounds of the hottest GPU's load, per layer."""

from __future__ import annotations

from typing import Final

import numpy as np

from model_core.experts.arrays import Bools, Floats
from model_core.experts.groups import can_look_at_all, group_loads, group_sum_bound, sets_and_deals

_BISECTIONS: Final = 40
_REFINEMENTS: Final = 3
_CROWDING_BISECTIONS: Final = 10
_CROWDING_LIMITS: Final = 24
_PRICES: Final = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
# A bound may be too low, never too high: comparisons are rounded in favour of the placement.
_ROUNDING: Final = 1e-9


def replica_bound(loads: Floats, n_gpus: int, n_slots: int) -> Floats:
    """Return the least load of the hottest GPU when every expert's load is split evenly over its replicas.

    Formula: the least T with sum over e of max(1, ceil(load_e / (T - M))) <= slots, and never below
        sum(load) / GPUs. M is what the other slots of a GPU hold at least: the slots / GPUs - 1 smallest
        values of load_e / (most replicas that e can have at T).
    Source: counting argument: on the GPU of a replica of e the other slots hold other experts, so
        load_e / c_e + M <= T for every e; any T that asks for more slots than there are is out of reach.
    Assumes: no GPU holds an expert twice.

    Args:
        loads: problems x experts.
        n_gpus: GPUs.
        n_slots: slots.

    Returns:
        One bound for each problem.
    """
    mean = loads.sum(axis=1) / n_gpus
    low, high = mean * (1 - 1e-12), loads.sum(axis=1)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        possible = _replicas_at(loads, middle, n_gpus, n_slots)[1]
        low, high = np.where(possible, low, middle), np.where(possible, middle, high)
    bound: Floats = np.maximum(low, mean)
    return bound


def _replicas_at(loads: Floats, limit: Floats, n_gpus: int, n_slots: int) -> tuple[Floats, Bools]:
    """Return the replicas that each expert needs at least, and where the slots do not rule the limit out."""
    beside = np.zeros(len(loads))
    possible = np.ones(len(loads), bool)
    needed = np.ones_like(loads)
    for _ in range(_REFINEMENTS):
        room = np.maximum(limit - beside, 1e-300)
        needed = np.clip(np.ceil(loads / room[:, None] * (1 - _ROUNDING)), 1, n_slots + 1)
        spare = n_slots - needed.sum(axis=1)
        possible &= (spare >= 0) & (needed.max(axis=1) <= n_gpus)
        most = np.minimum(needed + np.maximum(spare, 0)[:, None], n_gpus)
        beside = _smallest_sum(loads / most, n_slots // n_gpus - 1)
    return needed, possible


def crowding_bound(loads: Floats, n_gpus: int, n_slots: int, reached: Floats) -> Floats:
    """Raise `replica_bound` where hot replicas need more light ones beside them than there are.

    Formula: for every x <= T / 2: (k - 1) x replicas above T - x <= replicas below x, with k slots per GPU.
        The replicas are chosen in the placement's favour; a Lagrange price on the spare slots bounds what
        that choice can gain. The least T that no x rules out is the bound.
    Source: no GPU holds two replicas above T - x, and beside one of them all others are below x; for k = 2
        this is Hall's condition and with given replicas exact.
    Assumes: no GPU holds an expert twice.

    Args:
        loads: problems x experts.
        n_gpus: GPUs.
        n_slots: slots, more than one per GPU.
        reached: the hottest GPU of some placement of each problem, where the search for a bound ends.

    Returns:
        One bound for each problem, between `replica_bound` and ``reached``.
    """
    low = np.minimum(replica_bound(loads, n_gpus, n_slots), reached)
    high = reached.copy()
    for _ in range(_CROWDING_BISECTIONS):
        rows = np.flatnonzero(high > low * (1 + 1e-4))
        if not rows.size:
            break
        middle = (low[rows] + high[rows]) / 2
        needed, possible = _replicas_at(loads[rows], middle, n_gpus, n_slots)
        ruled_out = ~possible
        ruled_out[possible] = _is_crowded(
            loads[rows[possible]], needed[possible], middle[possible], n_gpus, n_slots
        )
        low[rows] = np.where(ruled_out, middle, low[rows])
        high[rows] = np.where(ruled_out, high[rows], middle)
    return low


def _is_crowded(loads: Floats, needed: Floats, limit: Floats, n_gpus: int, n_slots: int) -> Bools:
    """Tell where some x rules a limit out; see `crowding_bound`."""
    partners = n_slots // n_gpus - 1
    picks = np.unique(np.linspace(0, loads.shape[1] - 1, _CROWDING_LIMITS).astype(np.intp))
    small = np.sort(loads, axis=1)[:, picks]
    small = np.clip(small, 1e-12 * limit[:, None], limit[:, None] / 2)[:, :, None]
    hot_above = (limit[:, None, None] - small) * (1 + _ROUNDING)
    light_below = small * (1 + _ROUNDING)
    load, count = loads[:, None, :], needed[:, None, :]
    now = count * (partners * (load / count > hot_above) - 1.0 * (load / count < light_below))
    # An expert may be split until its replicas are no longer hot, or until they are light.
    to_mild = np.maximum(np.ceil(load / hot_above * (1 - _ROUNDING)) - count, 0)
    to_light = np.maximum(np.floor(load / light_below) + 1 - count, 0)
    gain_mild, gain_light = np.maximum(now, 0), now + count + to_light
    spare = (n_slots - needed.sum(axis=1))[:, None]
    most = np.full(now.shape[:2], np.inf)
    for price in _PRICES:
        profit = np.maximum(gain_mild - price * to_mild, gain_light - price * to_light)
        most = np.minimum(most, np.maximum(profit, 0).sum(axis=2) + price * spare)
    crowded: Bools = (now.sum(axis=2) - most > 1e-6).any(axis=1)
    return crowded


def _smallest_sum(values: Floats, count: int) -> Floats:
    if count == 0:
        return np.zeros(len(values))
    total: Floats = np.partition(values, count - 1, axis=1)[:, :count].sum(axis=1)
    return total


def grouped_bound(loads: Floats, n_groups: int, n_nodes: int, n_gpus: int, n_slots: int) -> Floats:
    """Return the least load of the hottest GPU when each group of experts stays on one node.

    Formula: min over deals of groups to nodes of max over nodes of `replica_bound` of the node; where the
        deals are too many to look at, the pigeonhole bound of the hottest node's load / its GPUs.

    Args:
        loads: layers x experts.
        n_groups: groups, a multiple of ``n_nodes``.
        n_nodes: nodes.
        n_gpus: GPUs of all nodes.
        n_slots: slots of all nodes.
    """
    free = replica_bound(loads, n_gpus, n_slots)
    per_node = n_gpus // n_nodes
    if not can_look_at_all(n_groups, n_nodes):
        return np.maximum(free, group_sum_bound(group_loads(loads, n_groups), n_nodes) / per_node)
    sets, deals = sets_and_deals(n_groups, n_nodes)
    by_group = loads.reshape(len(loads), n_groups, -1)
    of_set = by_group[:, sets].reshape(len(loads) * len(sets), -1)
    bound = replica_bound(of_set, per_node, n_slots // n_nodes).reshape(len(loads), -1)
    grouped: Floats = np.maximum(free, bound[:, deals].max(axis=2).min(axis=1))
    return grouped


def flexible_bound(loads: Floats, n_gpus: int, n_slots: int) -> Floats:
    """Return the least load of the hottest GPU when an expert's load may be split unevenly over its replicas.

    Formula: max over j of the j heaviest loads / min(GPUs, j + redundant slots), and the mean.
    Source: the j heaviest experts have at most j + redundant replicas, so they use no more GPUs than that.

    Args:
        loads: problems x experts.
        n_gpus: GPUs.
        n_slots: slots.
    """
    n_experts = loads.shape[1]
    heaviest = np.cumsum(np.sort(loads, axis=1)[:, ::-1], axis=1)
    gpus = np.minimum(n_gpus, np.arange(1, n_experts + 1) + n_slots - n_experts)
    bound: Floats = (heaviest / gpus).max(axis=1)
    return bound
