"""The memory drawing: what fills one chip, against what it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from PySide6.QtCore import QSizeF

from app.i18n import tr, tr_text
from app.plots.chart import Scale, axis, bar, share_text
from app.plots.facts import amount
from app.plots.header import muted, title_runs
from app.plots.layout import empty_scene
from app.plots.scene import Ink, Pattern, Rect, Run, Scene, SceneBuilder
from app.plots.text import BODY, SMALL, TINY, elided, runs_width, text_at, width_of
from app.theme import Role
from model_core.results import Evaluation, MemoryBudget, MemoryItem
from model_core.units import format_number

GIB = 2.0**30
KIND_ROLE = {
    "weights": Role.WEIGHT,
    "kv": Role.KV,
    "activations": Role.ACTIVATION,
    "buffers": Role.BUFFER,
    "reserve": Role.RESERVE,
}
STRENGTHS = (1.0, 0.72, 0.5, 0.36)
BAR_HEIGHT = 54.0
ROW = 30.0
TALLEST_ROW = 40.0
MAX_WIDTH = 1180.0
MIN_WIDTH = 560.0


@dataclass(frozen=True, slots=True)
class _Segment:
    """One item with its place on the bar."""

    item: MemoryItem
    role: Role
    strength: float
    start: float
    end: float


def make_scene(evaluation: Evaluation, baseline: Evaluation | None, size: QSizeF) -> Scene:
    """Draw the memory budget of a chip: a stacked bar against the capacity, and a table of its items."""
    budget = evaluation.memory
    if budget is None:
        return empty_scene(tr("The memory cannot be computed; see Problems."), size)
    before = None if baseline is None else baseline.memory
    builder = SceneBuilder()
    width = min(MAX_WIDTH, max(MIN_WIDTH, size.width()))
    title = tr("Memory of one chip")
    builder.items.append(text_at(0, 18, title_runs(title)))
    status = _status(builder, budget, before, evaluation, width)
    segments = _segments(budget)
    top = max(budget.capacity_bytes, budget.per_chip_bytes, before.per_chip_bytes if before else 0.0)
    scale = Scale(0.0, width - 1, top * 1.02)
    y = _bars(builder, scale, budget, segments, before)
    room = (size.height() - y - 34) / (len(segments) + 1)
    row = min(TALLEST_ROW, max(ROW, room))
    y = _table(builder, budget, segments, before, width, row, y + 12)
    return builder.scene(width, y, title, _summary(title, status, budget))


def _segments(budget: MemoryBudget) -> list[_Segment]:
    """Largest first, the reserve last; where there is room, it lies before the capacity line."""
    items = sorted(budget.items, key=lambda item: (item.kind == "reserve", -item.bytes))
    segments: list[_Segment] = []
    of_kind: dict[str, int] = {}
    at = 0.0
    for item in items:
        number = of_kind.get(item.kind, 0)
        of_kind[item.kind] = number + 1
        if item.kind == "reserve" and budget.fits:
            at = budget.capacity_bytes - item.bytes
        strength = STRENGTHS[min(number, len(STRENGTHS) - 1)]
        role = KIND_ROLE.get(item.kind, Role.LOCAL)
        segments.append(_Segment(item, role, strength, at, at + item.bytes))
        at += item.bytes
    return segments


def _status(
    builder: SceneBuilder,
    budget: MemoryBudget,
    before: MemoryBudget | None,
    evaluation: Evaluation,
    width: float,
) -> str:
    used, capacity = budget.per_chip_bytes, budget.capacity_bytes
    if budget.fits:
        text = tr("✓ fits: {free} free", free=amount(capacity - used))
        role = Role.GOOD
    else:
        text = tr("✕ does not fit: {excess} too much", excess=amount(used - capacity))
        role = Role.ERROR
    numbers = tr("{used} of {capacity}", used=amount(used), capacity=amount(capacity))
    runs = [Run(text, BODY, True, role), Run(f"   {numbers}", BODY)]
    if before is not None:
        runs += muted("   " + tr("baseline {bytes}", bytes=amount(before.per_chip_bytes)))
    builder.items.append(text_at(0, 42, runs))
    builder.target(Rect(0, 28, runs_width(runs), 20), "memory_per_chip_bytes", text, numbers)
    where = f"{evaluation.design.cluster.chip.name} · {evaluation.design.cluster.name}"
    room = width - runs_width(runs) - 24
    builder.items.append(text_at(width, 42, muted(elided(where, BODY, room)), 1.0))
    return f"{text}, {numbers}"


# ---- bars ----------------------------------------------------------------------------------


def _bars(
    builder: SceneBuilder,
    scale: Scale,
    budget: MemoryBudget,
    segments: list[_Segment],
    before: MemoryBudget | None,
) -> float:
    top = 78.0
    bottom = top + BAR_HEIGHT + (30 if before else 6)
    axis(builder, scale, top - 4, bottom, GIB, lambda value: f"{format_number(value)} GiB")
    end = scale.at(budget.capacity_bytes)
    builder.box(Rect(scale.x, top, end - scale.x, BAR_HEIGHT), None, Ink(Role.FIELD_BORDER), dashed=True)
    for segment in segments:
        bar(builder, _segment_rect(scale, segment, top), segment.role, segment.strength)
    if not budget.fits:
        over = Rect(end, top, scale.at(budget.per_chip_bytes) - end, BAR_HEIGHT)
        builder.box(over, None, Ink(Role.ERROR), width=2.0, pattern=Pattern.BACK_HATCH, marks=Ink(Role.ERROR))
    for segment in segments:
        _label(builder, segment, _segment_rect(scale, segment, top), end)
    _free_space(builder, scale, budget, segments, top)
    if before is not None:
        _baseline(builder, scale, before, end, top + BAR_HEIGHT + 8)
    builder.line((end, top - 8), (end, bottom), ink=Ink(Role.TEXT), width=1.6)
    text = tr("capacity {bytes}", bytes=amount(budget.capacity_bytes))
    room = width_of(text, TINY, True)
    builder.items.append(text_at(max(end, room), top - 12, (Run(text, TINY, True),), 1.0))
    over_text = tr("{excess} too much", excess=amount(budget.per_chip_bytes - budget.capacity_bytes))
    if not budget.fits and scale.x + scale.width - end > width_of(over_text, TINY, True) + 8:
        runs = (Run(over_text, TINY, True, Role.ERROR),)
        builder.items.append(text_at(max(end, room) + 8, top - 12, runs))
    return bottom + 18


def _segment_rect(scale: Scale, segment: _Segment, top: float) -> Rect:
    x = scale.at(segment.start)
    return Rect(x, top, max(scale.at(segment.end) - x - 1.0, 0.75), BAR_HEIGHT)


def _label(builder: SceneBuilder, segment: _Segment, rect: Rect, end: float) -> None:
    """Name a segment on the bar where its larger part, before or after the capacity line, has room."""
    _item_target(builder, rect, segment.item)
    left, right = rect.x, rect.right
    if left < end < right:
        left, right = (left, end) if end - left >= right - end else (end, right)
    name, number = tr_text(segment.item.name), amount(segment.item.bytes)
    needed = max(width_of(name, SMALL, True), width_of(number, TINY)) + 12
    if right - left >= needed + 8:
        chip = Rect((left + right - needed) / 2, rect.y + 9, needed, BAR_HEIGHT - 18)
        builder.box(chip, Ink(Role.PANEL), radius=4)
        builder.items.append(text_at(chip.x + needed / 2, chip.y + 15, (Run(name, SMALL, True),), 0.5))
        builder.items.append(text_at(chip.x + needed / 2, chip.y + 29, muted(number, TINY), 0.5))


def _free_space(
    builder: SceneBuilder, scale: Scale, budget: MemoryBudget, segments: list[_Segment], top: float
) -> None:
    used = max((s.end for s in segments if s.item.kind != "reserve"), default=0.0)
    until = min((s.start for s in segments if s.item.kind == "reserve"), default=budget.capacity_bytes)
    text = tr("{free} free", free=amount(max(budget.capacity_bytes - budget.per_chip_bytes, 0.0)))
    left, right = scale.at(used), scale.at(until)
    if budget.fits and right - left > width_of(text, SMALL) + 16:
        builder.items.append(text_at((left + right) / 2, top + BAR_HEIGHT / 2 + 4, muted(text, SMALL), 0.5))


def _baseline(builder: SceneBuilder, scale: Scale, before: MemoryBudget, end: float, y: float) -> None:
    for segment in _segments(before):
        x = scale.at(segment.start)
        bar(
            builder,
            Rect(x, y, max(scale.at(segment.end) - x - 0.5, 0.5), 8),
            segment.role,
            segment.strength * 0.8,
        )
    text = tr("baseline")
    used = max((s.end for s in _segments(before) if s.item.kind != "reserve"), default=0.0)
    x, room = scale.at(used) + 8, width_of(text, TINY)
    if x - 4 < end < x + room + 4:
        x = end + 8
    covered = any(scale.at(s.start) < x + room + 3 and scale.at(s.end) > x - 3 for s in _segments(before))
    if x + room + 4 <= scale.x + scale.width and not covered:
        builder.box(Rect(x - 3, y - 2, room + 6, 12), Ink(Role.PANEL))
        builder.items.append(text_at(x, y + 8, muted(text, TINY)))
    words = tr("baseline {bytes}", bytes=amount(before.per_chip_bytes))
    builder.target(Rect(scale.x, y - 3, scale.width, 14), "memory_per_chip_bytes", words)


# ---- table ---------------------------------------------------------------------------------


def _table(
    builder: SceneBuilder,
    budget: MemoryBudget,
    segments: list[_Segment],
    before: MemoryBudget | None,
    width: float,
    row: float,
    y: float,
) -> float:
    old = {item.name: item.bytes for item in before.items} if before else {}
    columns = (width, width - 76, width - 166) if before else (width, width - 76, width)
    _table_head(builder, columns, before is not None, y)
    y += 22
    largest = max((item.bytes for item in budget.items), default=0.0)
    for segment in segments:
        builder.line((0, y), (width, y), ink=Ink(Role.GRID))
        _row(builder, budget, segment, columns, old if before else None, largest, Rect(0, y, width, row))
        y += row
    builder.line((0, y), (width, y), ink=Ink(Role.BORDER))
    total = (Run(tr("Sum"), SMALL, True),)
    builder.items.append(text_at(26, y + 20, total))
    share = share_text(budget.per_chip_bytes, budget.capacity_bytes)
    builder.items.append(text_at(columns[0], y + 20, (Run(share, SMALL, True),), 1.0))
    builder.items.append(text_at(columns[1], y + 20, (Run(amount(budget.per_chip_bytes), SMALL, True),), 1.0))
    if before:
        change = _change(budget.per_chip_bytes - before.per_chip_bytes)
        builder.items.append(text_at(columns[2], y + 20, (Run(change, SMALL, True),), 1.0))
    builder.target(
        Rect(0, y, width, row), "memory_per_chip_bytes", tr("Sum"), amount(budget.per_chip_bytes), share
    )
    return y + row


def _table_head(builder: SceneBuilder, columns: tuple[float, float, float], compared: bool, y: float) -> None:
    builder.items.append(text_at(26, y + 14, muted(tr("Item"), TINY)))
    builder.items.append(text_at(columns[0], y + 14, muted(tr("of capacity"), TINY), 1.0))
    builder.items.append(text_at(columns[1], y + 14, muted(tr("per chip"), TINY), 1.0))
    if compared:
        builder.items.append(text_at(columns[2], y + 14, muted(tr("change"), TINY), 1.0))


def _row(
    builder: SceneBuilder,
    budget: MemoryBudget,
    segment: _Segment,
    columns: tuple[float, float, float],
    old: dict[str, float] | None,
    largest: float,
    place: Rect,
) -> None:
    item = segment.item
    middle_y = place.y + place.h / 2
    base = middle_y + 4
    bar(builder, Rect(2, middle_y - 6, 16, 12), segment.role, segment.strength)
    name = Run(tr_text(item.name), SMALL, True)
    builder.items.append(text_at(26, base, (name,)))
    share = share_text(item.bytes, budget.capacity_bytes)
    builder.items.append(text_at(columns[0], base, (Run(share, SMALL),), 1.0))
    builder.items.append(text_at(columns[1], base, (Run(amount(item.bytes), SMALL),), 1.0))
    if old is not None:
        change = _change(item.bytes - old.get(item.name, 0.0))
        builder.items.append(text_at(columns[2], base, muted(change, SMALL), 1.0))
    right = (columns[2] if old is not None else columns[1]) - 92
    detail = detail_text(item.detail)
    start = 26 + width_of(name.text, SMALL, True) + 12
    middle = max(start + 8, right * 0.56)
    if detail and start < middle - 40:
        builder.items.append(text_at(start, base, muted(elided(detail, SMALL, middle - start - 12), SMALL)))
    if right - middle > 60 and largest > 0:
        length = (right - middle) * item.bytes / largest
        bar(builder, Rect(middle, middle_y - 4.5, length, 9), segment.role, segment.strength)
    _item_target(builder, place, item)


def _item_target(builder: SceneBuilder, rect: Rect, item: MemoryItem) -> None:
    lines = (amount(item.bytes), detail_text(item.detail))
    builder.target(rect, f"memory/{item.name}", tr_text(item.name), *lines, radius=3)


def _change(difference: float) -> str:
    if abs(difference) < 0.5:
        return "±0"
    return f"{'+' if difference > 0 else '−'}{amount(abs(difference))}"


def detail_text(detail: str) -> str:
    """Translate the remark of an item part by part."""
    parts = []
    for part in detail.split(", "):
        if match := re.fullmatch(r"context (\d+)", part):
            parts.append(tr("context {tokens}", tokens=match[1]))
        elif match := re.fullmatch(r"operation (\d+)", part):
            parts.append(tr("step {number}", number=int(match[1]) + 1))
        elif match := re.fullmatch(r"([\d.]+) ?% of the memory", part):
            parts.append(tr("{share} % of the memory", share=match[1]))
        else:
            parts.append(tr_text(part))
    return ", ".join(parts)


def _summary(title: str, status: str, budget: MemoryBudget) -> str:
    items = sorted(budget.items, key=lambda item: -item.bytes)[:4]
    named = ", ".join(f"{tr_text(item.name)} {amount(item.bytes)}" for item in items)
    return f"{title}: {status}. {named}"
