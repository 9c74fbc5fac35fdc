"""One microbatch on its way through all ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import FIRST_CELL, Cells
from app.plots.gantt.frame import ChartPlace
from app.plots.gantt.inks import CellInks, inks_of
from app.plots.gantt.labels import Writer, cell_rect
from app.plots.gantt.vector import add_cell, add_labels
from app.plots.scene import Ink, Rect, SceneBuilder
from app.theme import Role, Theme
from model_core.schedule import OpKind, Schedule


@dataclass(frozen=True, slots=True)
class Followed:
    """The operations of a microbatch in the order of their starts, and which hands over to which."""

    direction: int
    microbatch: int
    rows: tuple[int, ...]
    links: tuple[tuple[int, int], ...]


def follow(schedule: Schedule, direction: int, microbatch: int) -> Followed:
    """Find the operations of a microbatch."""
    own = (schedule.direction == direction) & (schedule.microbatch == microbatch)
    paired = (schedule.direction2 == direction) & (schedule.microbatch2 == microbatch)
    pair = schedule.op == OpKind.OVERLAPPED
    forward = np.flatnonzero(own & schedule.runs_forward)
    backward = np.flatnonzero((own & schedule.runs_backward & ~pair) | (paired & pair))
    weight = np.flatnonzero(own & (schedule.op == OpKind.BACKWARD_WEIGHT))
    up = forward[np.argsort(schedule.stage[forward])].tolist()
    down = backward[np.argsort(-schedule.backward_stage[backward])].tolist()
    rows = sorted({*up, *down, *weight.tolist()})
    links = [(a, b) for a, b in pairwise([*up, *down]) if schedule.rank[a] != schedule.rank[b]]
    return Followed(direction, microbatch, tuple(rows), tuple(links))


def followed_at(schedule: Schedule, row: int, lower_half: bool) -> Followed:
    """Follow what an operation works on; of a pair the forward, or the backward of its lower half."""
    if lower_half and schedule.lane2[row] >= 0:
        return follow(schedule, int(schedule.direction2[row]), int(schedule.microbatch2[row]))
    return follow(schedule, int(schedule.direction[row]), int(schedule.microbatch[row]))


def span_of(cells: Cells, followed: Followed) -> tuple[float, float]:
    """Return when a microbatch starts and ends."""
    rows = list(followed.rows)
    simulation = cells.run.simulation
    return float(simulation.start_s[rows].min()), float(simulation.end_s[rows].max())


def add_followed(
    builder: SceneBuilder, place: ChartPlace, camera: TimeCamera, followed: Followed, theme: Theme
) -> None:
    """Draw the cells of a microbatch and arrows from rank to rank."""
    cells = place.cells
    inks = inks_of(cells)
    writer = Writer(cells, place.row_height(camera))
    for row in followed.rows:
        segment, rank = cells.segment_of(row), int(cells.schedule.rank[row])
        rect = cell_rect(place, camera, segment, rank)
        if rect.w <= 0 or rect.y >= place.area.bottom or rect.bottom <= place.area.y:
            continue
        shown, half = _half_of(cells, row, followed, inks[int(cells.code[segment]) - FIRST_CELL], rect)
        add_cell(builder, half, shown, theme)
        add_labels(builder, (t for t in writer.write(rank, segment, rect) if _lies_in(t.rect, half)), theme)
        builder.box(half.inset(-0.5, -0.5), None, Ink(Role.TEXT), width=1.4)
    for before, after in followed.links:
        _add_arrow(builder, place, camera, before, after)


def _half_of(cells: Cells, row: int, followed: Followed, inks: CellInks, rect: Rect) -> tuple[CellInks, Rect]:
    """Return the half of a pair that works on the microbatch; other cells are whole."""
    if not inks.is_pair:
        return inks, rect
    schedule, half = cells.schedule, rect.h / 2
    runs_forward = (int(schedule.direction[row]), int(schedule.microbatch[row])) == (
        followed.direction,
        followed.microbatch,
    )
    if runs_forward:
        return replace(inks, lower=inks.upper, lower_bar=inks.upper_bar), rect._replace(h=half)
    return replace(inks, upper=inks.lower), rect._replace(y=rect.y + half, h=half)


def _lies_in(inner: Rect, outer: Rect) -> bool:
    return inner.y >= outer.y - 0.5 and inner.bottom <= outer.bottom + 0.5


def _add_arrow(builder: SceneBuilder, place: ChartPlace, camera: TimeCamera, before: int, after: int) -> None:
    simulation, schedule = place.cells.run.simulation, place.cells.schedule
    x1 = place.x_of(float(simulation.end_s[before]), camera)
    x2 = place.x_of(float(simulation.start_s[after]), camera)
    area = place.area
    if max(x1, x2) < area.x or min(x1, x2) > area.right:
        return
    one, other = (place.row(int(schedule.rank[row]), camera) for row in (before, after))
    y1, y2 = one.y + one.h / 2, other.y + other.h / 2
    y1, y2 = (one.bottom - 2, other.y + 1) if y2 > y1 else (one.y + 1, other.bottom - 2)
    builder.line((x1, y1), (x2, y2), ink=Ink(Role.TEXT), width=1.3, arrow=abs(y2 - y1) > 8)


def name_of(schedule: Schedule, followed: Followed) -> str:
    """Return the number of a microbatch with its mark of direction."""
    prime = "\u2032" if followed.direction and schedule.layout.n_directions > 1 else ""
    return f"{followed.microbatch}{prime}"
