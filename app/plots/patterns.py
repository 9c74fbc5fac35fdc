"""Patterns as lines and dots cut to a rectangle, so that they stay vectors and need no clip path."""

from __future__ import annotations

import math
from functools import lru_cache

from app.plots.scene import Pattern, Rect

STEP = 5.0
Segment = tuple[float, float, float, float]


@lru_cache(maxsize=1024)
def marks(rect: Rect, pattern: Pattern) -> tuple[tuple[Segment, ...], tuple[tuple[float, float], ...]]:
    """Return the line segments and the dots of a pattern inside a rectangle."""
    lines: list[Segment] = []
    dots: list[tuple[float, float]] = []
    if pattern in (Pattern.HATCH, Pattern.CROSS):
        lines += _diagonals(rect)
    if pattern in (Pattern.BACK_HATCH, Pattern.CROSS):
        lines += [_mirrored(segment, rect) for segment in _diagonals(rect)]
    if pattern is Pattern.VERTICAL:
        count = int(rect.w / STEP)
        lines += [(rect.x + i * STEP, rect.y, rect.x + i * STEP, rect.bottom) for i in range(1, count + 1)]
    if pattern is Pattern.DOTS:
        dots = _dots(rect)
    return tuple(lines), tuple(dots)


def _diagonals(rect: Rect) -> list[Segment]:
    """Lines x + y = c, from the lower left to the upper right, at a fixed distance on the whole drawing."""
    first = math.ceil((rect.x + rect.y) / STEP)
    last = math.floor((rect.right + rect.bottom) / STEP)
    segments = []
    for index in range(first, last + 1):
        c = index * STEP
        x1 = max(rect.x, c - rect.bottom)
        x2 = min(rect.right, c - rect.y)
        if x2 - x1 > 0.3:
            segments.append((x1, c - x1, x2, c - x2))
    return segments


def _mirrored(segment: Segment, rect: Rect) -> Segment:
    x1, y1, x2, y2 = segment
    turn = rect.x + rect.right
    return (turn - x1, y1, turn - x2, y2)


def _dots(rect: Rect) -> list[tuple[float, float]]:
    step = STEP * 0.9
    rows = max(1, int(rect.h / step))
    top = rect.y + (rect.h - (rows - 1) * step) / 2
    columns = int((rect.w - 2) / step)
    return [
        (rect.x + 2.5 + column * step + (row % 2) * step / 2, top + row * step)
        for row in range(rows)
        for column in range(columns)
    ]
