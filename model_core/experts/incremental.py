"""The incremental policy: better balance by few moves from the placement that is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from model_core.experts.arrays import Floats, Ints
from model_core.experts.exact import allowed_places, lower_bound
from model_core.experts.moves import LayerSearch
from model_core.experts.packing import separate_twins
from model_core.experts.placement import Placement, PlacementRequest

_CLOSE: Final = 1e-4
_MOST_MOVES: Final = 400
_EVEN_PARTS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Stop:
    """A point on the way of one layer: experts sent so far, the hottest GPU, and the slots."""

    cost: int
    hottest: float
    slots: Ints


def place_incrementally(
    loads: Floats, request: PlacementRequest, previous: Placement, most_received: int | None
) -> Placement:
    """Improve a placement without sending more experts than allowed.

    Each layer is searched move by move; then the experts that may be sent go to the layers where one of
    them lowers the hottest GPU most. A step of the model waits for the hottest GPU of every layer, so the
    sum over layers is what counts.

    Args:
        loads: layers x experts, each layer with some load; layers count equally.
        request: slots, GPUs and nodes; with groups on nodes an expert stays on the nodes it is on.
        previous: the placement to start from.
        most_received: experts that GPUs may receive, all layers together; no limit by default.
    """
    shares = loads / loads.sum(axis=1, keepdims=True)
    enough = lower_bound(shares, request) * (1 + _CLOSE)
    limit = np.iinfo(np.int64).max if most_received is None else most_received
    start = _without_twins(previous.by_gpu, limit)
    # No layer is worth many times its even part of a small budget; searching that far would only take time.
    most = min(limit, _EVEN_PARTS * (limit // previous.n_layers + 1))
    ways = [
        _way(
            shares[layer], previous, layer, start[layer], float(enough[layer]), most, request.groups_on_nodes
        )
        for layer in range(previous.n_layers)
    ]
    slots = np.stack([stop.slots for stop in _choose(ways, limit)])
    return Placement.of(slots, n_experts=previous.n_experts, n_gpus=previous.n_gpus, n_nodes=previous.n_nodes)


def _without_twins(loaded: Ints, limit: int) -> Ints:
    """Return layers x GPUs x slots with each GPU's twins swapped away, in as many layers as may be changed."""
    apart = loaded.copy()
    separate_twins(apart)
    spent = 0
    for layer, slots in enumerate(apart):
        cost = _received(loaded[layer], slots)
        if spent + cost > limit:
            slots[:] = loaded[layer]
        else:
            spent += cost
    return apart


def _way(
    loads: Floats, previous: Placement, layer: int, start: Ints, enough: float, limit: int, stay: bool
) -> list[_Stop]:
    """Search one layer; return the stops worth making, each cheaper way first and strictly better."""
    loaded = previous.by_gpu[layer]
    everywhere = np.ones((previous.n_experts, previous.n_gpus), bool)
    search = LayerSearch(loads, start, allowed_places(previous, layer) if stay else everywhere)
    stops = [_Stop(_received(loaded, start), search.hottest, start)]
    for _ in search.steps(enough, _MOST_MOVES):
        cost = _received(loaded, search.slots)
        if cost > limit:
            break
        if search.hottest < stops[-1].hottest and cost > stops[0].cost:
            stops.append(_Stop(cost, search.hottest, search.slots.copy()))
    return _hull(stops)


def _received(before: Ints, after: Ints) -> int:
    """Count experts that a GPU has in one set of slots and not in the other."""
    return int((~(after[:, :, None] == before[:, None, :]).any(axis=2)).sum())


def _hull(stops: list[_Stop]) -> list[_Stop]:
    """Keep the lower convex hull of hottest GPU over cost: the stops that some price of a move makes best."""
    hull: list[_Stop] = []
    for stop in sorted(stops, key=lambda s: (s.cost, s.hottest)):
        if hull and stop.hottest >= hull[-1].hottest:
            continue
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-2], stop):
            hull.pop()
        hull.append(stop)
    return hull


def _slope(start: _Stop, end: _Stop) -> float:
    """Return by how much the hottest GPU falls per expert sent."""
    return (start.hottest - end.hottest) / (end.cost - start.cost)


def _choose(ways: list[list[_Stop]], limit: int) -> list[_Stop]:
    """Walk the layers' ways, steepest piece first, while the experts sent stay within the limit."""
    pieces = [
        (-_slope(before, after), layer, number)
        for layer, way in enumerate(ways)
        for number, (before, after) in enumerate(pairwise(way), 1)
    ]
    reached = [0] * len(ways)
    spent = sum(way[0].cost for way in ways)
    for _, layer, number in sorted(pieces):
        extra = ways[layer][number].cost - ways[layer][reached[layer]].cost
        if number == reached[layer] + 1 and spent + extra <= limit:
            reached[layer] = number
            spent += extra
    return [way[number] for way, number in zip(ways, reached, strict=True)]
