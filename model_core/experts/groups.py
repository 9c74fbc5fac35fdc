"""Groups of experts onto nodes, so that the hottest node can be balanced best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb, factorial
from typing import Final

import numpy as np

from model_core.experts.arrays import Floats, Ints
from model_core.experts.replication import greedy_counts, heaviest_replica

MAX_DEALS: Final = 1_000
MAX_SETS: Final = 128


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Groups of each node: layers x nodes x groups per node, and the least possible load of the hottest GPU.

    ``bound`` holds for these groups on these nodes; ``proven`` for every way to deal the groups, where all
    ways were looked at, else it is NaN.
    """

    groups: Ints
    bound: Floats
    proven: Floats


def can_look_at_all(n_groups: int, n_nodes: int) -> bool:
    """Tell whether all ways to deal the groups to nodes, which are alike, are few enough to look at."""
    per_node = n_groups // n_nodes
    deals = factorial(n_groups) // (factorial(per_node) ** n_nodes * factorial(n_nodes))
    return deals <= MAX_DEALS and comb(n_groups, per_node) <= MAX_SETS


@lru_cache(maxsize=32)
def sets_and_deals(n_groups: int, n_nodes: int) -> tuple[Ints, Ints]:
    """Return the sets of groups a node may hold (sets x per node), and the deals (deals x nodes, set indices)."""
    sets = list(combinations(range(n_groups), n_groups // n_nodes))
    index = {chosen: i for i, chosen in enumerate(sets)}
    deals = [
        [index[chosen] for chosen in deal] for deal in _deals(tuple(range(n_groups)), n_groups // n_nodes)
    ]
    return np.array(sets, np.intp), np.array(deals, np.intp)


def _deals(groups: tuple[int, ...], per_node: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    if not groups:
        yield ()
        return
    for others in combinations(groups[1:], per_node - 1):
        node = (groups[0], *others)
        for rest in _deals(tuple(g for g in groups if g not in node), per_node):
            yield (node, *rest)


def node_bound(loads: Floats, n_gpus: int, n_slots: int) -> Floats:
    """Return what the hottest GPU of a node has at least.

    Formula: max(sum of loads / GPUs, heaviest replica after greedy replication)

    Args:
        loads: nodes x experts on the node.
        n_gpus: GPUs of a node.
        n_slots: slots of a node.
    """
    heaviest = heaviest_replica(loads, greedy_counts(loads, n_slots, n_gpus))
    bound: Floats = np.maximum(loads.sum(axis=1) / n_gpus, heaviest)
    return bound


def assign_groups(loads: Floats, n_groups: int, n_nodes: int, n_gpus: int, n_slots: int) -> Assignment:
    """Deal the groups to the nodes.

    Where all deals can be looked at, the one whose hottest GPU has the lowest bound is taken; else longest
    processing time first, improved by swaps of groups between nodes.

    Args:
        loads: layers x experts; group ``g`` holds the experts from ``g x E / n_groups`` on.
        n_groups: groups, a multiple of ``n_nodes``.
        n_nodes: nodes.
        n_gpus: GPUs of all nodes.
        n_slots: slots of all nodes.
    """
    if can_look_at_all(n_groups, n_nodes):
        return _best_deal(loads, n_groups, n_nodes, n_gpus, n_slots)
    groups = _improve(group_loads(loads, n_groups), longest_first(loads, n_groups, n_nodes))
    bound = deal_bound(loads, groups, n_groups, n_gpus, n_slots)
    return Assignment(groups, bound, np.full(len(loads), np.nan))


def _best_deal(loads: Floats, n_groups: int, n_nodes: int, n_gpus: int, n_slots: int) -> Assignment:
    sets, deals = sets_and_deals(n_groups, n_nodes)
    by_group = loads.reshape(len(loads), n_groups, -1)
    of_set = by_group[:, sets].reshape(len(loads) * len(sets), -1)
    bound = node_bound(of_set, n_gpus // n_nodes, n_slots // n_nodes).reshape(len(loads), -1)
    of_deal = bound[:, deals].max(axis=2)
    best = of_deal.argmin(axis=1)
    lowest = of_deal[np.arange(len(loads)), best]
    return Assignment(sets[deals[best]], lowest, lowest)


def group_loads(loads: Floats, n_groups: int) -> Floats:
    """Return layers x groups loads."""
    total: Floats = loads.reshape(len(loads), n_groups, -1).sum(axis=2)
    return total


def deal_bound(loads: Floats, groups: Ints, n_groups: int, n_gpus: int, n_slots: int) -> Floats:
    """Return, for given groups on nodes, what the hottest GPU of each layer has at least."""
    n_layers, n_nodes = groups.shape[:2]
    on_node = node_loads(loads, groups, n_groups)
    bound = node_bound(on_node, n_gpus // n_nodes, n_slots // n_nodes)
    highest: Floats = bound.reshape(n_layers, n_nodes).max(axis=1)
    return highest


def node_experts(groups: Ints, n_groups: int, n_experts: int) -> Ints:
    """Return the experts of each node: layers x nodes x experts per node."""
    size = n_experts // n_groups
    experts = groups[:, :, :, None] * size + np.arange(size)
    return experts.reshape(*groups.shape[:2], -1)


def node_loads(loads: Floats, groups: Ints, n_groups: int) -> Floats:
    """Return the loads of the experts of each node: (layers x nodes) x experts per node."""
    experts = node_experts(groups, n_groups, loads.shape[1])
    flat = np.take_along_axis(loads, experts.reshape(len(loads), -1), axis=1)
    return flat.reshape(-1, experts.shape[2])


def longest_first(loads: Floats, n_groups: int, n_nodes: int) -> Ints:
    """Deal the heaviest group left to the least loaded node with room, as the public algorithm does.

    Source: deepseek-ai/EPLB, step 1 of its hierarchical policy.
    """
    weights = group_loads(loads, n_groups)
    n_layers, per_node = len(loads), n_groups // n_nodes
    if per_node == 1:
        return np.tile(np.arange(n_groups), (n_layers, 1))[:, :, None]
    order = np.argsort(-weights, axis=1, kind="stable")
    work = np.zeros((n_layers, n_nodes))
    dealt = np.zeros((n_layers, n_nodes), np.intp)
    groups = np.empty((n_layers, n_nodes, per_node), np.intp)
    rows = np.arange(n_layers)
    for step in range(n_groups):
        group = order[:, step]
        node = np.where(dealt < per_node, work, np.inf).argmin(axis=1)
        groups[rows, node, dealt[rows, node]] = group
        work[rows, node] += weights[rows, group]
        dealt[rows, node] += 1
    return groups


def _improve(weights: Floats, groups: Ints) -> Ints:
    """Swap groups between the hottest node and others while that lowers the hotter of the two."""
    best = groups.copy()
    for layer, nodes in enumerate(best):
        own = weights[layer]
        while _swap_groups(own, nodes):
            pass
    return best


def _swap_groups(weights: Floats, nodes: Ints) -> bool:
    """Make the best swap with the hottest node, in place; tell whether one lowered it."""
    totals = weights[nodes].sum(axis=1)
    hot = int(totals.argmax())
    moved = weights[nodes[hot]][:, None, None] - weights[nodes][None]
    after = np.maximum(totals[hot] - moved, totals[None, :, None] + moved)
    after[:, hot] = np.inf
    given, node, taken = np.unravel_index(after.argmin(), after.shape)
    if after[given, node, taken] >= totals[hot] * (1 - 1e-12):
        return False
    nodes[hot, given], nodes[node, taken] = nodes[node, taken], nodes[hot, given]
    return True


def group_sum_bound(weights: Floats, n_nodes: int) -> Floats:
    """Return what the hottest node has at least, for any deal of the groups.

    Formula: of the i x N + 1 heaviest groups some node holds i + 1, each no lighter than the lightest of
        them; its other groups are no lighter than the lightest of all. Also the mean over nodes.
    Source: pigeonhole bounds of bin packing with equal cardinality.

    Args:
        weights: layers x groups loads.
        n_nodes: nodes.
    """
    per_node = weights.shape[1] // n_nodes
    ordered = np.sort(weights, axis=1)[:, ::-1]
    bound: Floats = weights.sum(axis=1) / n_nodes
    for extra in range(per_node):
        last = extra * n_nodes
        heavy = ordered[:, last - extra : last + 1].sum(axis=1)
        light = ordered[:, weights.shape[1] - (per_node - extra - 1) :].sum(axis=1)
        bound = np.maximum(bound, heavy + light)
    return bound
