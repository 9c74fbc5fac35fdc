"""What goes with the cells when they move: rank names, idle and peak of each rank, ruler and memory curve."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from app.i18n import tr
from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import Cells, Floats
from app.plots.gantt.frame import SIDE, ChartPlace
from app.plots.header import muted
from app.plots.scene import Ink, Line, Rect, Run, SceneBuilder
from app.plots.text import SMALL, TINY, text_at
from app.theme import Role

TICK_SPACE: Final = 92.0
NAME_SPACE: Final = 14.0
FINEST: Final = 4.0
"""Pixels of the narrowest step of a curve: finer ones make a blur, and take longest to paint."""
TICK: Final = 4.0
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def add_axes(builder: SceneBuilder, place: ChartPlace, camera: TimeCamera) -> None:
    """Draw rank names and the numbers at the side, the ruler and its grid."""
    _add_ranks(builder, place, camera)
    _add_ruler(builder, place, camera)


def _add_ranks(builder: SceneBuilder, place: ChartPlace, camera: TimeCamera) -> None:
    height = place.row_height(camera)
    step = _nice_count(NAME_SPACE / height)
    run = place.cells.run
    idle = run.simulation.bubble_s / place.cells.makespan_s
    area = place.area
    right = area.right + SIDE
    if place.has_side:
        builder.items.append(text_at(right - 46, area.y - 5, muted(tr("idle"), TINY), 1.0))
        builder.items.append(text_at(right, area.y - 5, muted(tr("peak"), TINY), 1.0))
    for rank in place.rows(camera).ranks.tolist():
        row = place.row(rank, camera)
        middle = row.y + row.h / 2
        if rank % step or not area.y <= middle <= area.bottom:
            continue
        base = middle + 4
        builder.items.append(text_at(area.x - 8, base, (Run(str(rank), SMALL, False, Role.TEXT),), 1.0))
        if place.has_side:
            builder.items.append(text_at(right - 46, base, muted(f"{idle[rank]:.1%}", TINY), 1.0))
            builder.items.append(text_at(right, base, muted(f"{run.memory.peak[rank]:g}", TINY), 1.0))


def _nice_count(smallest: float) -> int:
    """Return the least of 1, 2, 4, 8 … that is not smaller."""
    return 1 if smallest <= 1 else int(2 ** math.ceil(math.log2(smallest)))


def ticks(camera: TimeCamera, width: float) -> list[tuple[float, str]]:
    """Return round times in view with their texts."""
    step = nice_step(camera.span_s * TICK_SPACE / max(width, TICK_SPACE))
    largest = max(abs(camera.start_s), abs(camera.end_s))
    factor, unit = next((u for u in _UNITS if largest >= u[0]), _UNITS[-1])
    digits = max(0, math.ceil(-math.log10(step / factor) - 1e-9))
    first, last = math.ceil(camera.start_s / step - 1e-9), math.floor(camera.end_s / step + 1e-9)
    return [(n * step, f"{n * step / factor:.{digits}f} {unit}") for n in range(max(first, 0), last + 1)]


def nice_step(smallest: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is not smaller."""
    power = 10.0 ** math.floor(math.log10(smallest))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= smallest * (1 - 1e-9))


def _add_ruler(builder: SceneBuilder, place: ChartPlace, camera: TimeCamera) -> None:
    area, memory = place.area, place.memory
    builder.line((area.x, area.bottom + 1), (area.right, area.bottom + 1), ink=Ink(Role.BORDER))
    for time_s, text in ticks(camera, area.w):
        x = place.x_of(time_s, camera)
        builder.line((x, area.bottom + 1), (x, area.bottom + 1 + TICK), ink=Ink(Role.TEXT_MUTED))
        builder.line((x, memory.y), (x, memory.bottom), ink=Ink(Role.GRID))
        label = text_at(x, area.bottom + 15, muted(text, TINY), 0.5)
        if label.rect.x >= area.x - 24 and label.rect.right <= area.right + 24:
            builder.items.append(label)


def add_memory(
    builder: SceneBuilder, place: ChartPlace, camera: TimeCamera, rank: int, band: tuple[Floats, Floats]
) -> None:
    """Draw the activations that one rank holds over time, and the band of all ranks.

    Args:
        builder: collects the items.
        place: of the chart.
        camera: the stretch of time.
        rank: whose curve.
        band: least and most of all ranks in each column.
    """
    area = place.memory
    if not area.h:
        return
    highest = float(place.cells.run.memory.peak.max())
    scale = (area.h - 4) / max(highest, 1e-300)
    baseline = area.y - 5
    peak = float(place.cells.run.memory.peak[rank])
    text = tr("activations held, in chunks: rank {rank}, peak {peak}", rank=rank, peak=f"{peak:g}")
    words = muted(f" · {tr('thin: least and most of all ranks')}", TINY)
    builder.items.append(text_at(area.x, baseline, (Run(text, TINY, True, Role.TEXT), *words)))
    builder.items.append(text_at(area.x - 8, area.y + 8, muted(f"{highest:g}", TINY), 1.0))
    builder.items.append(text_at(area.x - 8, area.bottom, muted("0", TINY), 1.0))
    builder.items += _band(area, band, scale)
    builder.line((area.x, area.bottom), (area.right, area.bottom), ink=Ink(Role.BORDER))
    points = _curve(place, camera, rank, scale)
    if len(points) > 1:
        builder.items.append(Line(points, Ink(Role.ACTIVATION), 1.6))


def _band(area: Rect, band: tuple[Floats, Floats], scale: float) -> list[Line]:
    low, high = band
    if not len(low):
        return []
    count = min(len(low), max(1, int(area.w / FINEST)))
    edges = np.linspace(0, len(low), count + 1).astype(np.int64)[:-1]
    low, high = np.minimum.reduceat(low, edges), np.maximum.reduceat(high, edges)
    x = area.x + (np.arange(count) + 0.5) * (area.w / count)
    lines = []
    for values in (low, high):
        kept = _corners(values)
        ys = area.bottom - values[kept] * scale
        points = tuple(zip(x[kept].tolist(), ys.tolist(), strict=True))
        lines.append(Line(points, Ink(Role.ACTIVATION, 0.45), 1.0))
    return lines


def _corners(values: Floats) -> list[int]:
    """Return both ends of every run of equal values."""
    changes = np.flatnonzero(np.diff(values))
    return sorted({0, len(values) - 1, *changes.tolist(), *(changes + 1).tolist()})


def _curve(place: ChartPlace, camera: TimeCamera, rank: int, scale: float) -> tuple[tuple[float, float], ...]:
    """Return the exact steps of a rank where they can be seen, else the most in each pixel."""
    cells, area = place.cells, place.memory
    first, last = (int(v[0]) for v in cells.visible(np.array([rank]), camera.start_s, camera.end_s))
    start = np.clip(cells.start[first:last], max(camera.start_s, 0.0), camera.end_s)
    end = np.clip(cells.end[first:last], None, min(camera.end_s, cells.makespan_s))
    if not len(start):
        return ()
    level = cells.level[first:last].astype(np.float64)
    if len(start) > area.w / FINEST:
        start, end, level = _most(start, end, level, int(area.w / FINEST))
    # Only where the level changes is there a corner.
    kept = np.flatnonzero(np.diff(level, prepend=-1.0))
    start, level, end = start[kept], level[kept], np.append(start[kept[1:]], end[-1])
    times = np.column_stack([start, np.maximum(start, end)]).ravel()
    x = np.clip(area.x + (times - camera.start_s) / camera.span_s * area.w, area.x, area.right)
    y = area.bottom - np.repeat(level, 2) * scale
    return tuple(zip(x.tolist(), y.tolist(), strict=True))


def _most(start: Floats, end: Floats, level: Floats, bins: int) -> tuple[Floats, Floats, Floats]:
    edges = np.linspace(0, len(start), bins + 1).astype(np.int64)[:-1]
    return start[edges], np.append(start[edges[1:]], end[-1]), np.maximum.reduceat(level, edges)


def fullest(cells: Cells) -> int:
    """Return the rank that holds most."""
    return int(np.argmax(cells.run.memory.peak))
