"""The exact policy: as near to the proven lower bound as a long search gets, layer by layer."""

from __future__ import annotations

from typing import Final

import numpy as np

from model_core.experts.arrays import Bools, Floats, Ints
from model_core.experts.bounds import crowding_bound, grouped_bound, replica_bound
from model_core.experts.moves import MOST_FORCED, LayerSearch
from model_core.experts.packing import gpu_loads, pack
from model_core.experts.pairs import pair_counts
from model_core.experts.placement import Placement, PlacementRequest
from model_core.experts.policies import place_by_groups, place_globally
from model_core.experts.solve import THOROUGH

_CLOSE: Final = 5e-5
_WIDE_GAP: Final = 1.005
_MOST_MOVES: Final = 200
# With more slots the light replicas are so many that they crowd no one.
_MOST_SLOTS_THAT_CROWD: Final = 4


def lower_bound(loads: Floats, request: PlacementRequest, reached: Floats | None = None) -> Floats:
    """Return what the hottest GPU of each layer has at least under the request, each load split evenly.

    Args:
        loads: layers x experts.
        request: slots, GPUs, nodes, and whether groups stay on one node.
        reached: the hottest GPU of each layer in a placement; with it a slower, tighter bound is found where
            GPUs have few slots.
    """
    size = (request.n_gpus, request.n_slots)
    if request.groups_on_nodes:
        return grouped_bound(loads, request.n_groups, request.n_nodes, *size)
    if reached is not None and 2 <= request.slots_per_gpu <= _MOST_SLOTS_THAT_CROWD:
        return crowding_bound(loads, *size, reached)
    return replica_bound(loads, *size)


def place_exactly(loads: Floats, request: PlacementRequest) -> Placement:
    """Search until the hottest GPU of each layer meets the lower bound or no single move helps.

    Args:
        loads: layers x experts, each layer with some load.
        request: slots, GPUs, nodes, and whether groups stay on one node.
    """
    grouped = request.groups_on_nodes
    start = (place_by_groups if grouped else place_globally)(loads, request, THOROUGH)
    enough = lower_bound(loads, request) * (1 + _CLOSE)
    slots = start.by_gpu.copy()
    for layer, row in enumerate(loads):
        if request.slots_per_gpu == 2 and not grouped:
            _pair(row, slots[layer], float(enough[layer]))
        allowed = allowed_places(start, layer) if grouped else np.ones((row.size, request.n_gpus), bool)
        _search(row, slots[layer], allowed, float(enough[layer]))
    return Placement.of(slots, n_experts=loads.shape[1], n_gpus=request.n_gpus, n_nodes=request.n_nodes)


def _pair(loads: Floats, slots: Ints, enough: float) -> None:
    """Replace a layer's slots, in place, if a search of the replica counts leads to a cooler hottest GPU."""
    counts = np.bincount(slots.ravel(), minlength=loads.size)
    hottest = float((loads / counts)[slots].sum(axis=1).max())
    if hottest <= enough:
        return
    found, expected = pair_counts(loads, len(slots), enough)
    if expected < hottest:
        other = pack(loads[None], found[None], len(slots))
        if gpu_loads(loads[None], found[None], other).max() < hottest:
            slots[:] = other[0]


def _search(loads: Floats, slots: Ints, allowed: Bools, enough: float) -> None:
    """Improve a layer's slots, in place, by single moves."""
    search = LayerSearch(loads, slots, allowed)
    lowest = search.hottest
    forced = MOST_FORCED if lowest > enough * _WIDE_GAP else 0
    for _ in search.steps(enough, _MOST_MOVES, forced):
        if search.hottest < lowest:
            lowest = search.hottest
            slots[:] = search.slots


def allowed_places(placement: Placement, layer: int) -> Bools:
    """Return experts x GPUs: the GPUs of the nodes that an expert is on."""
    on_node = placement.hosted_by_node[layer] > 0
    return np.repeat(on_node.T, placement.n_gpus // placement.n_nodes, axis=1)
