"""The texts in cells: which fit, where they are, and how they are painted fast."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPixmap

from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import FIRST_CELL, Cells, Ints
from app.plots.gantt.frame import ChartPlace
from app.plots.gantt.inks import CellInks, inks_of, label_role
from app.plots.gantt.raster import HALVED_ROW, joined_ranges
from app.plots.gantt.words import PRIME
from app.plots.scene import Ink, Rect
from app.plots.text import font, width_of
from app.theme import Theme, theme_named
from model_core.schedule import LETTERS, OpKind

MOST_MOVING, MOST_STILL = 700, 5_000
"""Cells with texts that are painted while the view moves, and when it rests."""
NARROWEST: Final = 11.0
SMALLEST_ROW: Final = 11.0
SIZES: Final = (8, 13)
ONE_LINE: Final = 14.0
_PAD: Final = 1.5


class Label(NamedTuple):
    """A text and the part of a cell that it stands in the middle of."""

    rank: int
    rect: Rect
    text: str
    size: int
    ink: Ink


def wide_segments(place: ChartPlace, camera: TimeCamera, narrowest: float) -> tuple[Ints, Ints]:
    """Return the segments in view that are at least so many units wide, and their ranks."""
    ranks = np.unique(place.rows(camera).ranks)
    first, last = place.cells.visible(ranks, camera.start_s, camera.end_s)
    index = joined_ranges(first, last)
    needed = narrowest / place.area.w * camera.span_s
    wide = place.cells.end[index] - place.cells.start[index] >= needed
    return index[wide], np.repeat(ranks, last - first)[wide]


def rects(place: ChartPlace, camera: TimeCamera, segments: Ints, ranks: Ints) -> list[Rect]:
    """Return the parts of segments that are in view, for very many of them."""
    cells, area = place.cells, place.area
    per_second = area.w / camera.span_s
    left = np.maximum(area.x + (cells.start[segments] - camera.start_s) * per_second, area.x)
    end = np.minimum(cells.end[segments], cells.makespan_s)
    right = np.minimum(area.x + (end - camera.start_s) * per_second, area.right)
    height = place.row_height(camera)
    top = place.row(0, camera).y + ranks * height
    inner = height - row_gap(height)
    columns = (left.tolist(), top.tolist(), (right - left).tolist())
    return [Rect(x, y, w, inner) for x, y, w in zip(*columns, strict=True)]


def cell_rect(place: ChartPlace, camera: TimeCamera, segment: int, rank: int) -> Rect:
    """Return the part of a segment that is in view; its width may be negative where none is."""
    row = place.row(rank, camera)
    gap = row_gap(row.h)
    left = max(place.x_of(float(place.cells.start[segment]), camera), place.area.x)
    end = min(float(place.cells.end[segment]), place.cells.makespan_s)
    right = min(place.x_of(end, camera), place.area.right)
    return Rect(left, row.y, right - left, row.h - gap)


def row_gap(height: float) -> float:
    """Return the space between two rows."""
    return max(1.0, height // 12) if height >= 8 else 0.0


def labels(place: ChartPlace, camera: TimeCamera, most: int | None = None) -> Iterator[Label]:
    """Yield the texts that fit; none where more than ``most`` cells would have one."""
    height = place.row_height(camera)
    cells = place.cells
    if height < SMALLEST_ROW:
        return
    segments, ranks = wide_segments(place, camera, NARROWEST)
    kept = cells.code[segments] >= FIRST_CELL
    segments, ranks = segments[kept], ranks[kept]
    if most is not None and len(segments) > most:
        return
    writer = Writer(cells, height)
    found = zip(segments.tolist(), ranks.tolist(), rects(place, camera, segments, ranks), strict=True)
    for segment, rank, rect in found:
        if rect.w >= NARROWEST:
            yield from writer.write(rank, segment, rect)


class Writer:
    """Writes the texts of one chart's cells."""

    def __init__(self, cells: Cells, height: float) -> None:
        self._cells = cells
        self._height = height
        self._inks = inks_of(cells)
        self._size = min(max(int(height * 0.46), SIZES[0]), SIZES[1])
        self._half = min(max(int(height * 0.40), SIZES[0]), SIZES[1] - 1)
        self._halves_fit = height >= HALVED_ROW

    def write(self, rank: int, segment: int, rect: Rect) -> Iterator[Label]:
        """Yield the text of a cell, or those of its two halves."""
        schedule, row = self._cells.schedule, int(self._cells.row[segment])
        code = int(self._cells.code[segment]) - FIRST_CELL
        inks, kind = self._inks[code], self._cells.kinds[code]
        chunks = schedule.layout.n_chunks
        number = f"{schedule.microbatch[row]}{PRIME if kind.lane >= chunks else ''}"
        if kind.op is not OpKind.OVERLAPPED:
            yield from self._fitting(rank, rect, LETTERS[kind.op], number, self._size, inks.upper)
            return
        second = f"{schedule.microbatch2[row]}{PRIME if kind.lane2 >= chunks else ''}"
        yield from self._pair(rank, rect, number, second, inks)

    def _pair(self, rank: int, rect: Rect, number: str, second: str, inks: CellInks) -> Iterator[Label]:
        if not self._halves_fit and self._height < ONE_LINE:
            return
        if not self._halves_fit:
            yield from self._fitting(rank, rect, "F/B", f"{number}/{second}", self._size, inks.lower)
            return
        half = rect.h / 2
        yield from self._fitting(
            rank, Rect(rect.x, rect.y, rect.w, half), "F", number, self._half, inks.upper
        )
        lower = Rect(rect.x, rect.y + half, rect.w, half)
        yield from self._fitting(rank, lower, "B", second, self._half, inks.lower)

    def _fitting(
        self, rank: int, rect: Rect, letter: str, number: str, size: int, ink: Ink
    ) -> Iterator[Label]:
        for text, chosen in ((f"{letter} {number}", size), (number, size), (number, max(size - 3, SIZES[0]))):
            if width_of(text, chosen) + 2 * _PAD <= rect.w:
                yield Label(rank, rect, text, chosen, ink)
                return


def paint_labels(
    painter: QPainter, place: ChartPlace, camera: TimeCamera, theme: Theme, ratio: float, most: int
) -> int:
    """Paint the texts as prepared pictures, unless there are too many; return how many there were."""
    count = 0
    for _, rect, text, size, ink in labels(place, camera, most):
        picture, width, height = _picture(theme.name, text, size, ink, ratio)
        x, y = rect.x + (rect.w - width) / 2, rect.y + (rect.h - height) / 2
        painter.drawPixmap(QPointF(round(x * ratio) / ratio, round(y * ratio) / ratio), picture)
        count += 1
    return count


@lru_cache(maxsize=8192)
def _picture(theme: str, text: str, size: int, ink: Ink, ratio: float) -> tuple[QPixmap, float, float]:
    width, height = width_of(text, size) + 2, size + 4.0
    picture = QPixmap(round(width * ratio), round(height * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
    painter.setFont(font(size, False))
    painter.setPen(theme_named(theme).color(label_role(theme, ink)))
    painter.drawText(QPointF(1, size * 0.36 + height / 2), text)
    painter.end()
    return picture, width, height
