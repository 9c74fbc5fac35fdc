"""The policies that find a placement from loads alone: contiguous, global and hierarchical."""

from __future__ import annotations

import numpy as np

from model_core.experts.arrays import Bools, Floats, Ints
from model_core.experts.groups import (
    assign_groups,
    deal_bound,
    longest_first,
    node_experts,
    node_loads,
)
from model_core.experts.placement import Placement, PlacementRequest
from model_core.experts.replication import greedy_counts, heaviest_replica
from model_core.experts.solve import FAST, PLAIN, Effort, solve


def contiguous(n_layers: int, n_experts: int, request: PlacementRequest) -> Placement:
    """Return experts in order, and from the first again in the slots that are left: as engines load them."""
    row = np.arange(request.n_slots) % n_experts
    slots = np.tile(row, (n_layers, 1))
    return Placement.of(slots, n_experts=n_experts, n_gpus=request.n_gpus, n_nodes=request.n_nodes)


def place_globally(loads: Floats, request: PlacementRequest, effort: Effort = FAST) -> Placement:
    """Balance over all GPUs, wherever the experts of a group come to be.

    Args:
        loads: layers x experts, each layer with some load.
        request: slots and GPUs.
        effort: how long to look.
    """
    replica = heaviest_replica(loads, greedy_counts(loads, request.n_slots, request.n_gpus))
    target = np.maximum(loads.sum(axis=1) / request.n_gpus, replica)
    slots = solve(loads, request.n_gpus, request.n_slots, target, effort).slots
    return _placement(_in_order(slots), loads, request)


def _in_order(slots: Ints) -> Ints:
    """Order the GPUs of each layer by their first expert: experts of a group come onto fewer nodes."""
    inside = np.sort(slots, axis=2)
    order = np.argsort(inside[:, :, 0], axis=1, kind="stable")
    return np.take_along_axis(inside, order[:, :, None], axis=1)


def place_by_groups(loads: Floats, request: PlacementRequest, effort: Effort = FAST) -> Placement:
    """Keep each group on one node: groups to nodes, replicas within the node, replicas to its GPUs.

    A token that routing sends to at most four groups then reaches at most four nodes.

    Source: hierarchical policy of deepseek-ai/EPLB; DeepSeek-V3 report 3.4.1 (rearranged within a node, so
        that cross-node traffic does not grow).

    Args:
        loads: layers x experts, each layer with some load.
        request: slots, GPUs, nodes and groups.
        effort: how long to look.
    """
    dealt = assign_groups(loads, request.n_groups, request.n_nodes, request.n_gpus, request.n_slots)
    slots, of_node = _within_nodes(loads, dealt.groups, dealt.bound, request, effort)
    _try_longest_first(loads, dealt.groups, slots, of_node, request)
    return _placement(slots, loads, request)


def _try_longest_first(
    loads: Floats, groups: Ints, slots: Ints, of_node: Floats, request: PlacementRequest
) -> None:
    """Take the public algorithm's deal of the groups, in place, in layers where it turns out better.

    It cannot where its bound is higher than what was reached, or where it has a node with the same groups
    as our hottest one: that node is as hot there. So only few layers are tried.
    """
    plain = longest_first(loads, request.n_groups, request.n_nodes)
    bound = deal_bound(loads, plain, request.n_groups, request.n_gpus, request.n_slots)
    hottest = of_node.max(axis=1)
    same = _has_node(plain, groups[np.arange(len(loads)), of_node.argmax(axis=1)])
    rows = np.flatnonzero((bound < hottest * (1 - 1e-9)) & ~same)
    if not rows.size:
        return
    other, of_other = _within_nodes(loads[rows], plain[rows], bound[rows], request, PLAIN)
    better = of_other.max(axis=1) < hottest[rows]
    slots[rows[better]] = other[better]


def _has_node(deal: Ints, node: Ints) -> Bools:
    """Tell in which layers a deal (layers x nodes x groups) has a node with the given groups."""
    equal = np.sort(deal, axis=2) == np.sort(node, axis=1)[:, None, :]
    has: Bools = equal.all(axis=2).any(axis=1)
    return has


def _within_nodes(
    loads: Floats, groups: Ints, bound: Floats, request: PlacementRequest, effort: Effort
) -> tuple[Ints, Floats]:
    """Balance each node; cold nodes need be no better than the bound of the layer's hottest one."""
    n_layers, n_nodes = groups.shape[:2]
    on_node = node_loads(loads, groups, request.n_groups)
    solution = solve(
        on_node, request.n_gpus // n_nodes, request.n_slots // n_nodes, np.repeat(bound, n_nodes), effort
    )
    experts = node_experts(groups, request.n_groups, loads.shape[1])
    local = solution.slots.reshape(n_layers, n_nodes, -1)
    slots = np.take_along_axis(experts, local, axis=2)
    return slots, solution.hottest.reshape(n_layers, n_nodes)


def _placement(slots: Ints, loads: Floats, request: PlacementRequest) -> Placement:
    return Placement.of(slots, n_experts=loads.shape[1], n_gpus=request.n_gpus, n_nodes=request.n_nodes)
