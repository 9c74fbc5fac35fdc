"""The legend of schedules: what colours, halves, bars and patterns mean, as far as they occur."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np

from app.i18n import tr
from app.plots.gantt.cells import DRAIN, FIRST_CELL, MESSAGE, STEADY, WARM_UP, Cells
from app.plots.gantt.inks import IDLE, IDLE_MARKS, IDLE_PATTERNS, LIGHTEST, ROLES
from app.plots.gantt.words import PRIME, idle_name, letters, operation_name
from app.plots.header import Mark, words
from app.plots.scene import Ink, Rect, Run, SceneBuilder
from app.plots.text import SMALL
from app.theme import Role
from model_core.schedule import OpKind

_HEIGHT: Final = 12.0
_ORDER: Final = (
    OpKind.FORWARD,
    OpKind.BACKWARD,
    OpKind.BACKWARD_INPUT,
    OpKind.BACKWARD_WEIGHT,
    OpKind.OVERLAPPED,
)


def legend_marks(shown: Iterable[Cells]) -> list[Mark]:
    """Return the entries that some schedules need."""
    charts = tuple(shown)
    ops = {kind.op for cells in charts for kind in cells.kinds}
    marks = [_operation_mark(op) for op in _ORDER if op in ops]
    layouts = [cells.schedule.layout for cells in charts]
    if any(layout.n_directions > 1 for layout in layouts):
        reverse = tr("bar and {example}: reverse direction", example=f"3{PRIME}")
        marks.append(Mark(_draw_reverse, words(reverse), height=_HEIGHT))
    if any(layout.n_chunks > 1 for layout in layouts):
        marks.append(Mark(_draw_pale, words(tr("paler: later chunk")), height=_HEIGHT))
    idle = {int(code) for cells in charts for code in np.unique(cells.code) if code < FIRST_CELL}
    marks += [
        Mark(partial(_draw_idle, code), words(idle_name(code)), height=_HEIGHT)
        for code in (WARM_UP, STEADY, DRAIN, MESSAGE)
        if code in idle
    ]
    return marks


def _operation_mark(op: OpKind) -> Mark:
    name = (Run(letters(op), SMALL, True), Run(f" {operation_name(op)}", SMALL, False, Role.TEXT_MUTED))
    draw = _draw_pair if op is OpKind.OVERLAPPED else partial(_draw_plain, Ink(ROLES[op]))
    return Mark(draw, name, height=_HEIGHT)


def _draw_plain(ink: Ink, builder: SceneBuilder, rect: Rect) -> None:
    builder.box(rect, ink)


def _draw_pair(builder: SceneBuilder, rect: Rect) -> None:
    half = rect.h / 2
    builder.box(Rect(rect.x, rect.y, rect.w, half), Ink(Role.FORWARD))
    builder.box(Rect(rect.x, rect.y + half, rect.w, half), Ink(Role.BACKWARD))
    builder.box(rect, None, Ink(Role.TEXT))


def _draw_reverse(builder: SceneBuilder, rect: Rect) -> None:
    builder.box(rect, Ink(Role.FORWARD, LIGHTEST))
    builder.box(Rect(rect.x, rect.bottom - 3, rect.w, 3), Ink(Role.TEXT, 0.8))


def _draw_pale(builder: SceneBuilder, rect: Rect) -> None:
    half = rect.w / 2
    builder.box(Rect(rect.x, rect.y, half, rect.h), Ink(Role.FORWARD))
    builder.box(Rect(rect.x + half, rect.y, half, rect.h), Ink(Role.FORWARD, LIGHTEST))


def _draw_idle(code: int, builder: SceneBuilder, rect: Rect) -> None:
    builder.box(rect, IDLE[code], pattern=IDLE_PATTERNS[code], marks=IDLE_MARKS)
