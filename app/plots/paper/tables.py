"""Draws a table of a paper: published beside ours, the error as a number and as a bar about zero."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QSizeF

from app.i18n import tr
from app.plots.header import muted, title_runs
from app.plots.paper.catalogue import PaperItem
from app.plots.paper.words import term
from app.plots.scene import Ink, Pattern, Rect, Run, Scene, SceneBuilder
from app.plots.text import BODY, SMALL, TINY, elided, text_at, width_of
from app.plots.xy_axis import compact
from app.theme import Role
from model_core.reproduce import ReproducedRow
from model_core.units import BYTES, RATIO, SECONDS, format_number, format_quantity

TOP: Final = 62.0
HEAD: Final = 26.0
ROW: Final = 26.0
TALLEST: Final = 36.0
NARROWEST: Final = 620.0
WIDEST: Final = 1180.0
BAR: Final = 150.0
LARGE: Final = 0.10
"""Errors above this are marked: ten percent is what the predictions are held to."""


def draw_table(item: PaperItem, rows: Sequence[ReproducedRow], size: QSizeF) -> Scene:
    """Draw the rows of a table."""
    width = min(max(size.width(), NARROWEST), WIDEST)
    row_height = min(TALLEST, max(ROW, (size.height() - TOP - HEAD) / max(len(rows), 1)))
    builder = SceneBuilder()
    builder.items.append(text_at(0, 18, (*title_runs(item.name), *muted(f"   {item.caption}"))))
    summary = _summary(rows)
    builder.items.append(text_at(0, 40, muted(elided(summary, BODY, width))))
    columns = _columns(width)
    _head(builder, columns, TOP)
    scale = max((abs(row.error) for row in rows if row.error is not None), default=0.0)
    y = TOP + HEAD
    for row in rows:
        builder.line((0, y), (width, y), ink=Ink(Role.GRID))
        _row(builder, item, row, columns, Rect(0, y, width, row_height), max(scale, LARGE))
        y += row_height
    builder.line((0, y), (width, y), ink=Ink(Role.BORDER))
    return builder.scene(width, y + 4, item.name, f"{item.name}: {item.caption}. {summary}")


def _columns(width: float) -> tuple[float, float, float, float]:
    """Return the right edges of published, ours and error, and the middle of the bar."""
    bar = width - BAR / 2 - 6
    error = bar - BAR / 2 - 16
    return error - 190, error - 76, error, bar


def _head(builder: SceneBuilder, columns: tuple[float, float, float, float], y: float) -> None:
    titles = ((0.0, tr("quantity"), 0.0), (columns[0], tr("published"), 1.0), (columns[1], tr("ours"), 1.0))
    for x, text, align in (
        *titles,
        (columns[2], tr("error"), 1.0),
        (columns[3], tr("error, about zero"), 0.5),
    ):
        builder.items.append(text_at(x, y + 14, muted(text, TINY), align))


def _row(
    builder: SceneBuilder,
    item: PaperItem,
    row: ReproducedRow,
    columns: tuple[float, float, float, float],
    place: Rect,
    scale: float,
) -> None:
    base = place.y + place.h / 2 + 4
    name, quantity = row_name(item, row)
    published = "—" if row.row.value is None else value_text(row, row.row.value)
    room = columns[0] - width_of(published, SMALL) - 24
    text = elided(name, SMALL, room, bold=True)
    runs = [Run(text, SMALL, True)]
    used = text_at(0, base, runs).width
    if quantity and room - used > 60:
        runs += muted(f"   {elided(quantity, SMALL, room - used - 12)}", SMALL)
    builder.items.append(text_at(0, base, runs))
    builder.items.append(text_at(columns[0], base, (Run(published, SMALL),), 1.0))
    number = row.predicted.number
    ours = "—" if number is None else value_text(row, number)
    builder.items.append(text_at(columns[1], base, (Run(ours, SMALL, True),), 1.0))
    error = row.error
    if error is not None:
        _error(builder, row, error, columns, place, scale)
    builder.target(place, "", name, *_told(row, published, ours), radius=2)


def _error(
    builder: SceneBuilder,
    row: ReproducedRow,
    error: float,
    columns: tuple[float, float, float, float],
    place: Rect,
    scale: float,
) -> None:
    base, middle = place.y + place.h / 2 + 4, columns[3]
    large = abs(error) > LARGE
    mark = "▲ " if large else ""
    text = f"{mark}{'+' if error >= 0 else '−'}{abs(error) * 100:.1f} %"
    run = Run(text, SMALL, large, Role.WARNING if large else Role.TEXT)
    builder.items.append(text_at(columns[2], base, (run,), 1.0))
    half = BAR / 2
    length = max(abs(error) / scale * half, 1.0)
    left = middle - length if error < 0 else middle
    role, pattern = (Role.WEIGHT, Pattern.HATCH) if large else (Role.AXIS_Y, Pattern.SOLID)
    bar = Rect(left, place.y + place.h / 2 - 5, length, 10)
    hollow = row.fitted
    builder.box(bar, None if hollow else Ink(role), Ink(role), pattern=Pattern.SOLID if hollow else pattern)
    builder.line((middle, place.y + 3), (middle, place.y + place.h - 3), ink=Ink(Role.FIELD_BORDER))


def row_name(item: PaperItem, row: ReproducedRow) -> tuple[str, str]:
    """Name a row: in a table by its conditions and its quantity, elsewhere by its quantity."""
    if item.id == "sections":
        return term(row.row.quantity), row.row.source
    quantity = "mfu" if row.row.quantity == "MFU" else "latency"
    condition = row.row.id.removeprefix(f"{item.rows}-").removesuffix(f"-{quantity}")
    words = re.sub(r"-b(\d+)$", r", batch \1", condition).replace("-", " ")
    head, comma, batch = words.partition(", batch ")
    name = tr("{what}, batch {batch}", what=term(head), batch=batch) if comma else term(head)
    return name, term(row.row.quantity)


def value_text(row: ReproducedRow, value: float) -> str:
    """Write a value of a row in its unit."""
    unit = row.row.unit
    if unit == "s":
        return format_quantity(value, SECONDS)
    if unit == "B":
        return format_quantity(value, BYTES)
    if "MFU" in row.row.quantity or row.row.quantity.startswith("share"):
        return format_quantity(value, RATIO)
    if row.row.quantity.startswith("parameters"):
        return f"{value / 1e9:,.4g}B"
    return compact(value) if abs(value) >= 1e3 else format_number(value, 3)


def _told(row: ReproducedRow, published: str, ours: str) -> tuple[str, ...]:
    lines = [
        term(row.row.quantity),
        tr("published {value}", value=published),
        tr("ours {value}", value=ours),
        row.source,
    ]
    if row.predicted.error_band:
        lines.append(tr("calibrated, within ±{band}", band=f"{row.predicted.error_band:.0%}"))
    if row.fitted:
        lines.append(tr("The calibration was fitted to this figure."))
    return tuple(lines)


def _summary(rows: Sequence[ReproducedRow]) -> str:
    errors = [abs(row.error) for row in rows if row.error is not None and not row.fitted]
    parts = []
    if errors:
        mean = f"{sum(errors) / len(errors):.1%}"
        parts.append(tr("mean error of {count} predicted figures: {error}", count=len(errors), error=mean))
    fitted = sum(row.fitted for row in rows)
    if fitted:
        parts.append(tr("{count} were used to fit (hollow bars)", count=fitted))
    parts.append(tr("▲ more than {limit} off", limit=f"{LARGE:.0%}"))
    return " · ".join(parts)
