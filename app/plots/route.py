"""Places the cells of a band and routes its arrows at right angles through the space between them.

Arrows run in the gutters between columns and along places that no cell takes, so that none crosses a card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from app.plots.flow import Band, Place

GUTTER: Final = 18.0
TRACK: Final = 7.0
TRACK_LEFT: Final = 7.0
TRACK_RIGHT: Final = 13.0
ENTRY: Final = 14.0
ENTRY_STEP: Final = 7.0

Point = tuple[float, float]
Edge = tuple[Place, Place]


@dataclass(slots=True)
class Plan:
    """Decisions about arrows before there are coordinates.

    ``along`` is the lane that an arrow of more than one column runs along; ``tracks`` lists for every
    gutter the sources whose arrows turn there; ``entries`` says how far from the middle an arrow arrives.
    """

    along: dict[Edge, int] = field(default_factory=dict)
    tracks: dict[int, list[Place]] = field(default_factory=dict)
    entries: dict[Edge, float] = field(default_factory=dict)
    below: int = 0


@dataclass(frozen=True, slots=True)
class Geometry:
    """Coordinates of a band: left edges and widths of columns, upper edges of lanes, and the arrows."""

    x: tuple[float, ...]
    w: tuple[float, ...]
    y: tuple[float, ...]
    arrows: tuple[tuple[Point, ...], ...]


def plan(band: Band) -> Plan:
    """Choose for every arrow where it runs."""
    result = Plan()
    occupied: dict[Place, Place] = {place: place for place in band.cells}
    edges = sorted(band.edges, key=lambda e: (e[0][1] != e[1][1], e[1][0] - e[0][0], e))
    for edge in edges:
        _choose_lane(edge, band.n_lanes, occupied, result)
    for edge in edges:
        for gutter in _turns(edge, result):
            nets = result.tracks.setdefault(gutter, [])
            if edge[0] not in nets:
                nets.append(edge[0])
    for gutter, nets in result.tracks.items():
        nets.sort(key=lambda net: _track_order(net, gutter, band.edges))
    _choose_entries(band, edges, result)
    return result


def _choose_lane(edge: Edge, n_lanes: int, occupied: dict[Place, Place], result: Plan) -> None:
    source, target = edge
    between = range(source[0] + 1, target[0])
    if not between:
        result.along[edge] = target[1]
        return
    candidates = [
        target[1],
        source[1],
        *(lane for lane in range(n_lanes) if lane not in (target[1], source[1])),
    ]
    for lane in candidates:
        if all(occupied.get((column, lane), source) == source for column in between):
            break
    else:
        lane = n_lanes + result.below
        result.below += 1
    occupied.update({(column, lane): source for column in between})
    result.along[edge] = lane


def _turns(edge: Edge, result: Plan) -> tuple[int, ...]:
    """Gutters in which an arrow changes its lane; gutter c lies to the right of column c."""
    (column, lane), (end, target) = edge
    along = result.along[edge]
    first = (column,) if along != lane else ()
    last = (end - 1,) if along != target and end - 1 not in first else ()
    return first + last


def _track_order(net: Place, gutter: int, edges: Iterable[Edge]) -> tuple[int, int]:
    lanes = [target[1] for source, target in edges if source == net and target[0] > gutter]
    down = max(lanes, default=net[1]) > net[1]
    return (1, -net[1]) if down else (0, net[1])


def _choose_entries(band: Band, edges: list[Edge], result: Plan) -> None:
    arriving: dict[Place, list[Edge]] = {}
    for edge in edges:
        arriving.setdefault(edge[1], []).append(edge)
    for target, group in arriving.items():
        straight = [e for e in group if result.along[e] == target[1] and _free(e, result)]
        for edge in straight:
            result.entries[edge] = 0.0
        others = [edge for edge in group if edge not in straight]
        neighbour = (target[0] - 1, target[1]) in band.cells
        if len(others) == 1 and not straight and not neighbour:
            result.entries[others[0]] = 0.0
            continue
        for above in (True, False):
            side = [e for e in others if (_origin(e, result) < target[1]) == above]
            side.sort(key=lambda e: abs(_origin(e, result) - target[1]))
            for number, edge in enumerate(side):
                offset = ENTRY + ENTRY_STEP * number
                result.entries[edge] = -offset if above else offset


def _origin(edge: Edge, result: Plan) -> int:
    """The lane from which an arrow comes to its target."""
    along = result.along[edge]
    return along if along != edge[1][1] else edge[0][1]


def _free(edge: Edge, result: Plan) -> bool:
    """Whether an arrow reaches its target along the target's own lane."""
    source, target = edge
    return source[1] == target[1] if target[0] - source[0] == 1 else result.along[edge] == target[1]


def width(chosen: Plan, widths: tuple[float, ...]) -> float:
    """Return the width that a band takes."""
    return sum(widths) + sum(gutter_width(chosen, column) for column in range(len(widths) - 1))


def height(band: Band, chosen: Plan, cell: float, gap: float) -> float:
    """Return the height that a band takes."""
    return band.n_lanes * (cell + gap) - gap + (TRACK * (chosen.below + 1) if chosen.below else 0.0)


def geometry(band: Band, chosen: Plan, widths: tuple[float, ...], cell: float, gap: float) -> Geometry:
    """Turn the decisions into coordinates."""
    x: list[float] = []
    at = 0.0
    for column, width in enumerate(widths):
        x.append(at)
        at += width + gutter_width(chosen, column)
    lanes = band.n_lanes
    y = tuple(lane * (cell + gap) for lane in range(lanes))
    below = lanes * (cell + gap) - gap

    def middle(lane: int) -> float:
        return y[lane] + cell / 2 if lane < lanes else below + TRACK * (lane - lanes + 1)

    arrows = tuple(_path(edge, chosen, x, widths, middle) for edge in band.edges)
    return Geometry(tuple(x), widths, y, arrows)


def gutter_width(chosen: Plan, column: int) -> float:
    """Width of the space to the right of a column."""
    count = len(chosen.tracks.get(column, ()))
    return max(GUTTER, TRACK_LEFT + TRACK * (count - 1) + TRACK_RIGHT) if count else GUTTER


def _path(
    edge: Edge,
    chosen: Plan,
    x: list[float],
    widths: tuple[float, ...],
    middle: Callable[[int], float],
) -> tuple[Point, ...]:
    source, target = edge
    along = chosen.along[edge]

    def track(column: int) -> float:
        return x[column] + widths[column] + TRACK_LEFT + TRACK * chosen.tracks[column].index(source)

    points: list[Point] = [(x[source[0]] + widths[source[0]], middle(source[1]))]
    end = middle(target[1]) + chosen.entries[edge]
    one_column = target[0] - source[0] == 1
    if one_column and source[1] != target[1]:
        points += [(track(source[0]), points[0][1]), (track(source[0]), end)]
    elif not one_column:
        if along != source[1]:
            points += [(track(source[0]), points[0][1]), (track(source[0]), middle(along))]
        if along != target[1]:
            points += [(track(target[0] - 1), middle(along)), (track(target[0] - 1), end)]
    points.append((x[target[0]], end))
    return tuple(points)
