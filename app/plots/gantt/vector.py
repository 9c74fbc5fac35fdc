"""Cells as shapes and texts, rank by rank: for figures, and for the cells that stand out on screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import FIRST_CELL, OUTSIDE
from app.plots.gantt.frame import ChartPlace
from app.plots.gantt.inks import IDLE, IDLE_MARKS, IDLE_PATTERNS, CellInks, inks_of, label_role
from app.plots.gantt.labels import Label, cell_rect, labels
from app.plots.gantt.raster import FULL_ROW, HALVED_ROW
from app.plots.scene import Ink, Item, Rect, Run, SceneBuilder
from app.plots.text import text_at
from app.theme import Role, Theme

MOST_CELLS: Final = 50_000
"""Cells that a vector figure may have; more are written as an image."""
PATTERN_WIDTH: Final = 6.0
INK_SHARE: Final = 0.36


class RankLayer(NamedTuple):
    """The cells of one rank as items, and how many operations they are."""

    rank: int
    items: tuple[Item, ...]
    operations: int


def visible_operations(place: ChartPlace, camera: TimeCamera) -> int:
    """Return how many operations are in view."""
    first, last = place.cells.visible(np.unique(place.rows(camera).ranks), camera.start_s, camera.end_s)
    return int((last - first).sum())


def rank_layers(place: ChartPlace, camera: TimeCamera, theme: Theme) -> list[RankLayer]:
    """Draw what is in view as items, with the texts that fit."""
    cells = place.cells
    inks = inks_of(cells)
    ranks = np.unique(place.rows(camera).ranks)
    firsts, lasts = cells.visible(ranks, camera.start_s, camera.end_s)
    texts = _texts(place, camera)
    layers = []
    for rank, first, last in zip(ranks.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
        builder, operations = SceneBuilder(), 0
        for segment in range(first, last):
            rect = cell_rect(place, camera, segment, rank)
            if rect.w <= 0:
                continue
            code = int(cells.code[segment])
            if code >= FIRST_CELL:
                add_cell(builder, rect, inks[code - FIRST_CELL], theme)
                operations += 1
            elif code != OUTSIDE:
                add_idle(builder, rect, code)
        add_labels(builder, texts.get(rank, []), theme)
        layers.append(RankLayer(rank, tuple(builder.items), operations))
    return layers


def _texts(place: ChartPlace, camera: TimeCamera) -> dict[int, list[Label]]:
    found: dict[int, list[Label]] = {}
    for label in labels(place, camera):
        found.setdefault(label.rank, []).append(label)
    return found


def add_labels(builder: SceneBuilder, shown: Iterable[Label], theme: Theme) -> None:
    """Draw texts of cells as texts."""
    for _, rect, text, size, ink in shown:
        run = Run(text, size, False, label_role(theme.name, ink))
        baseline = rect.y + rect.h / 2 + size * INK_SHARE
        builder.items.append(text_at(rect.x + rect.w / 2, baseline, (run,), 0.5))


def add_cell(builder: SceneBuilder, rect: Rect, inks: CellInks, theme: Theme) -> None:
    """Draw a cell: one fill or two halves, the bars of the reverse direction, the border of a pair."""
    if not inks.is_pair:
        _add_half(builder, _apart(rect), rect.h, inks.lower, inks.lower_bar, theme)
        return
    half = rect.h / 2
    upper, lower = Rect(rect.x, rect.y, rect.w, half), Rect(rect.x, rect.y + half, rect.w, half)
    upper_bar = inks.upper_bar and rect.h >= HALVED_ROW - 1
    _add_half(builder, upper, rect.h, inks.upper, upper_bar, theme)
    _add_half(builder, lower, rect.h, inks.lower, inks.lower_bar, theme)
    builder.box(rect.inset(0.5, 0.5), None, Ink(Role.TEXT))


def _add_half(builder: SceneBuilder, rect: Rect, row: float, ink: Ink, bar: bool, theme: Theme) -> None:
    builder.box(rect, ink)
    if bar and row >= FULL_ROW - 1:
        height = max(2.0, row // 12)
        foot = Rect(rect.x, rect.bottom - height, rect.w, height)
        builder.box(foot, Ink(label_role(theme.name, ink)))


def add_idle(builder: SceneBuilder, rect: Rect, code: int) -> None:
    """Draw an idle time with the pattern of its cause."""
    builder.box(rect, IDLE[code])
    if rect.w >= PATTERN_WIDTH:
        builder.box(rect, pattern=IDLE_PATTERNS[code], marks=IDLE_MARKS)


def _apart(rect: Rect) -> Rect:
    """Leave a hairline before the next cell, where there is room."""
    return Rect(rect.x, rect.y, rect.w - 1.0, rect.h) if rect.w >= 5 else rect
