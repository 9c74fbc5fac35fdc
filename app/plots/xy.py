"""Lines with markers on a plot area, each named where it runs: the colour never stands alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

import numpy as np

from app.plots.header import LEGEND_ROW, Mark, legend, legend_rows, words
from app.plots.scene import Ink, Line, Rect, Run, SceneBuilder
from app.plots.text import TINY, text_at, width_of
from app.plots.xy_axis import ABOVE, PlotArea, PlotAxis, plot_area
from app.theme import Role

LINE_ROLES: Final = (Role.AXIS_Y, Role.AXIS_X, Role.AXIS_Z, Role.KV, Role.WEIGHT, Role.HIDDEN)
_SAMPLE: Final = 7.0
_HEIGHT: Final = 15.0
_GAP: Final = 7.0
_FAR: Final = 4.0
_KEY: Final = 13.0
_TRIES: Final = 3
_MOST_TRIED: Final = 24


class Marker(Enum):
    """The shape at the points of a line, which tells lines apart without their colour."""

    NONE = "none"
    CIRCLE = "circle"
    SQUARE = "square"
    RING = "ring"
    FRAME = "frame"


MARKERS: Final = (Marker.CIRCLE, Marker.SQUARE, Marker.RING, Marker.FRAME)


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line. ``notes`` say what each point stands for; ``joined`` draws the line between the points.

    A line without a label is not named: it goes on from another one.
    """

    label: str
    points: tuple[tuple[float, float], ...]
    role: Role
    marker: Marker = Marker.CIRCLE
    dashed: bool = False
    joined: bool = True
    notes: tuple[str, ...] = ()
    width: float = 2.0

    def mark(self, builder: SceneBuilder, x: float, y: float, size: float = 6.5) -> None:
        """Draw the marker."""
        place = Rect(x - size / 2, y - size / 2, size, size)
        round_ = size / 2 if self.marker in (Marker.CIRCLE, Marker.RING) else 0.0
        if self.marker in (Marker.RING, Marker.FRAME):
            builder.box(place, Ink(Role.PANEL), Ink(self.role), round_, 1.6)
        elif self.marker is not Marker.NONE:
            builder.box(place, Ink(self.role), Ink(Role.PANEL), round_, 0.8)


Marks = Callable[[SceneBuilder, PlotArea], Sequence[Rect]]


def no_marks(_builder: SceneBuilder, _area: PlotArea) -> Sequence[Rect]:
    """Mark nothing."""
    return ()


def plot_of(
    builder: SceneBuilder,
    place: Rect,
    x: PlotAxis,
    y: PlotAxis,
    lines: Sequence[PlotLine],
    marks: Marks = no_marks,
) -> PlotArea:
    """Draw axes and lines into a place. Lines without room for their name get a legend above the area.

    Args:
        builder: takes the items.
        place: the whole room.
        x: axis below.
        y: axis at the left.
        lines: later ones lie over earlier ones.
        marks: draws rules, which go under the lines, and words, which go over them; returns the places that
            names must not cover.
    """
    reserved = 0.0
    for _ in range(_TRIES):
        area = plot_area(SceneBuilder(), _below(place, reserved), x, y)
        homeless = _nameless(area, lines, marks(SceneBuilder(), area))
        needed = len(legend_rows([_legend_mark(line) for line in homeless], area.rect.w)) if homeless else 0
        if needed * LEGEND_ROW <= reserved:
            break
        reserved = needed * LEGEND_ROW
    area = plot_area(builder, _below(place, reserved), x, y)
    marked = SceneBuilder()
    taken = marks(marked, area)
    builder.items += [item for item in marked.items if isinstance(item, Line)]
    draw_lines(builder, area, lines, taken)
    builder.items += [item for item in marked.items if not isinstance(item, Line)]
    builder.targets += marked.targets
    return area


def _below(place: Rect, reserved: float) -> Rect:
    return Rect(place.x, place.y + reserved, place.w, place.h - reserved)


def _nameless(area: PlotArea, lines: Sequence[PlotLine], taken: Sequence[Rect]) -> list[PlotLine]:
    placed = [[area.at(*point) for point in line.points] for line in lines]
    return _name_lines(SceneBuilder(), area, lines, placed, list(taken))


def draw_lines(
    builder: SceneBuilder, area: PlotArea, lines: Sequence[PlotLine], taken: Sequence[Rect] = ()
) -> None:
    """Draw lines, their markers and their names; those without room for a name go into a legend above."""
    placed = [[area.at(*point) for point in line.points] for line in lines]
    for line, points in zip(lines, placed, strict=True):
        if line.joined and len(points) > 1:
            builder.line(*points, ink=Ink(line.role), width=line.width, dashed=line.dashed)
    for line, points in zip(lines, placed, strict=True):
        for x, y in points:
            line.mark(builder, x, y)
    homeless = _name_lines(builder, area, lines, placed, list(taken))
    if homeless:
        marks = [_legend_mark(line) for line in homeless]
        rows = len(legend_rows(marks, area.rect.w))
        # Above the title of the axis, in the room that `plot_of` has reserved.
        legend(builder, marks, area.rect.x, area.rect.y - ABOVE - LEGEND_ROW * rows, area.rect.w, right=True)


def _legend_mark(line: PlotLine) -> Mark:
    def draw(builder: SceneBuilder, place: Rect) -> None:
        y = place.y + place.h / 2
        builder.line((place.x, y), (place.right, y), ink=Ink(line.role), width=2.0, dashed=line.dashed)
        line.mark(builder, place.x + place.w / 2, y)

    return Mark(draw, words(line.label))


def _name_lines(
    builder: SceneBuilder,
    area: PlotArea,
    lines: Sequence[PlotLine],
    placed: Sequence[Sequence[tuple[float, float]]],
    taken: list[Rect],
) -> list[PlotLine]:
    """Write each line's name near it, clear of other lines and names; return those without such a place."""
    course = _Course(lines, placed)
    homeless = []
    for number, line in enumerate(lines):
        if not line.label or not placed[number]:
            continue
        found = _best_place(area, line.label, number, placed[number], course, taken)
        if found is None:
            homeless.append(line)
            continue
        place, at_end = found
        taken.append(place)
        builder.box(place.inset(-2, 0), Ink(Role.PANEL, 0.86), radius=3)
        if not at_end:
            line.mark(builder, place.x + 5, place.y + place.h / 2, 6.0)
        run = Run(line.label, TINY, True, Role.TEXT)
        builder.items.append(text_at(place.x + (0 if at_end else _KEY), place.y + 11.5, (run,)))
    return homeless


class _Course:
    """Where lines run: positions every few pixels, each with the number of its line."""

    def __init__(self, lines: Sequence[PlotLine], placed: Sequence[Sequence[tuple[float, float]]]) -> None:
        found = [_sampled(points, line.joined) for line, points in zip(lines, placed, strict=True)]
        self._at = np.array([at for line in found for at in line], np.float64).reshape(-1, 2)
        self._line = np.repeat(np.arange(len(found)), [len(line) for line in found])

    def hits(self, rect: Rect, own: int) -> tuple[int, int]:
        """Count the positions inside a rectangle: of one line, and near it of the others."""
        x, y = self._at[:, 0], self._at[:, 1]
        near = (x >= rect.x - 3) & (x <= rect.right + 3) & (y >= rect.y - 3) & (y <= rect.bottom + 3)
        others = int(np.count_nonzero(near & (self._line != own)))
        mine = near & (self._line == own)
        inside = (
            (x[mine] >= rect.x) & (x[mine] <= rect.right) & (y[mine] >= rect.y) & (y[mine] <= rect.bottom)
        )
        return int(np.count_nonzero(inside)), others


def _sampled(points: Sequence[tuple[float, float]], joined: bool) -> list[tuple[float, float]]:
    found = list(points)
    for (x0, y0), (x1, y1) in pairwise(points) if joined else ():
        steps = int(max(abs(x1 - x0), abs(y1 - y0)) / _SAMPLE)
        found += [(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps) for i in range(1, steps)]
    return found


def _best_place(
    area: PlotArea,
    label: str,
    number: int,
    points: Sequence[tuple[float, float]],
    course: _Course,
    taken: Sequence[Rect],
) -> tuple[Rect, bool] | None:
    """Return the best place for a name, and whether it goes on from the end of its line."""
    bare = width_of(label, TINY, True)
    best, best_cost = None, _FAR
    for index in range(0, len(points), 1 + len(points) // _MOST_TRIED):
        x, y = points[index]
        ends = (index == len(points) - 1, index == 0)
        for side, around in enumerate(_places_around(x, y, bare + _KEY)):
            at_end = (side == 0 and ends[0]) or (side == 4 and ends[1])
            shift = _KEY if side == 4 else 0
            rect = Rect(around.x + shift, around.y, bare, around.h) if at_end else around
            if not _within(rect, area.rect) or any(rect.overlaps(other, -3) for other in taken):
                continue
            own, others = course.hits(rect, number)
            cost = 0.6 * own + 1.6 * others + 0.1 * side + (0.0 if any(ends) else 0.4)
            if cost < best_cost:
                best, best_cost = (rect, at_end), cost
    return best


def clear_place(area: PlotArea, lines: Sequence[PlotLine], x: float, y: float, w: float, gap: float) -> Rect:
    """Return the place beside a position where a name of some width covers least of the lines."""
    course = _Course(lines, [[area.at(*point) for point in line.points] for line in lines])
    places = [rect for rect in _places_around(x, y, w, gap) if _within(rect, area.rect)]
    hits = [course.hits(rect, -1)[1] for rect in places]
    return places[hits.index(min(hits))] if places else Rect(x - w / 2, y - _HEIGHT - gap, w, _HEIGHT)


def _places_around(x: float, y: float, w: float, gap: float = _GAP) -> tuple[Rect, ...]:
    half, near = _HEIGHT / 2, gap - 4
    return (
        Rect(x + gap, y - half, w, _HEIGHT),
        Rect(x - w / 2, y - _HEIGHT - gap, w, _HEIGHT),
        Rect(x + gap, y - _HEIGHT - near, w, _HEIGHT),
        Rect(x + gap, y + near, w, _HEIGHT),
        Rect(x - gap - w, y - half, w, _HEIGHT),
        Rect(x - w / 2, y + gap, w, _HEIGHT),
        Rect(x - gap - w, y - _HEIGHT - near, w, _HEIGHT),
        Rect(x - gap - w, y + near, w, _HEIGHT),
    )


def _within(rect: Rect, area: Rect) -> bool:
    return (
        rect.x >= area.x + 3
        and rect.right <= area.right + 12
        and rect.y >= area.y
        and rect.bottom <= area.bottom - 2
    )


def point_targets(
    builder: SceneBuilder, area: PlotArea, line: PlotLine, write: Callable[[tuple[float, float]], str]
) -> None:
    """Let every point of a line say what it is; ``write`` words its coordinates."""
    notes = line.notes or ("",) * len(line.points)
    for point, note in zip(line.points, notes, strict=True):
        x, y = area.at(*point)
        builder.target(Rect(x - 6, y - 6, 12, 12), "", line.label, write(point), note, radius=6)
