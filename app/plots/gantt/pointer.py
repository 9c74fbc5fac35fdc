"""What a position or the keyboard points at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF

from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import FIRST_CELL, OUTSIDE
from app.plots.gantt.frame import ChartPlace


class Spot(NamedTuple):
    """A segment of a rank in one of the charts."""

    chart: int
    rank: int
    segment: int

    def is_cell(self, places: Sequence[ChartPlace]) -> bool:
        """Whether it is an operation, not an idle time."""
        return int(places[self.chart].cells.code[self.segment]) >= FIRST_CELL


def spot_at(places: Sequence[ChartPlace], camera: TimeCamera, position: QPointF) -> Spot | None:
    """Return what is under a position."""
    for number, place in enumerate(places):
        if not place.area.contains(position.x(), position.y()):
            continue
        time_s = place.time_of(position.x(), camera)
        rank = place.rank_at(position.y(), camera)
        segment = place.cells.at(rank, time_s)
        if time_s < 0 or int(place.cells.code[segment]) == OUTSIDE:
            return None
        return Spot(number, rank, segment)
    return None


def step_from(places: Sequence[ChartPlace], focused: Spot | None, camera: TimeCamera, direction: int) -> Spot:
    """Return the next or the previous operation of a rank; without a focus the first one in view."""
    if focused is None:
        rank = int(places[0].rows(camera).ranks[0])
        focused = Spot(0, rank, places[0].cells.at(rank, camera.start_s))
        if focused.is_cell(places):
            return focused
    cells = places[focused.chart].cells
    first, last = (int(offset) for offset in cells.offsets[focused.rank : focused.rank + 2])
    segment = focused.segment + direction
    while first <= segment < last:
        if int(cells.code[segment]) >= FIRST_CELL:
            return focused._replace(segment=segment)
        segment += direction
    return focused


def zoom_to(place: ChartPlace, camera: TimeCamera, band: QRectF) -> None:
    """Show a selection: its time, and its ranks where it is higher than one."""
    area = place.area
    top, bottom = (
        camera.top + min(max((y - area.y) / area.h, 0.0), 1.0) / camera.rows
        for y in (band.top(), band.bottom())
    )
    if bottom - top < 1.0 / place.cells.pp:
        top, bottom = camera.top, camera.top + 1.0 / camera.rows
    camera.show(place.time_of(band.left(), camera), place.time_of(band.right(), camera), top, bottom)
