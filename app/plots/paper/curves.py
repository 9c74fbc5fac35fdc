"""Draws a curve of a paper with the paper's axes: each line named where it runs, measured points hollow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QSizeF

from app.i18n import tr, tr_text
from app.plots.facts import LAYOUT_NAMES
from app.plots.header import muted, title_runs
from app.plots.paper.catalogue import PaperItem
from app.plots.paper.words import term
from app.plots.scene import Rect, Scene, SceneBuilder
from app.plots.text import BODY, elided, runs_width, text_at
from app.plots.xy import LINE_ROLES, Marker, PlotLine, plot_of, point_targets
from app.plots.xy_axis import PlotArea, PlotAxis, axis_over, compact
from model_core.reproduce import ReproducedRow
from model_core.reproduce.values import Axis, Curve, Series
from model_core.spec.base import Evidence
from model_core.spec.plan import FfnLayout
from model_core.units import CHIP_SECONDS, RATIO, SECONDS, format_quantity

TOP: Final = 54.0
SMALLEST: Final = (460.0, 260.0)
MEASURED: Final = ", measured"
_LAYOUTS: Final = frozenset(str(layout) for layout in FfnLayout)
_DTYPES: Final = ("int8", "bfloat16", "float16", "fp8")


def draw_curve(item: PaperItem, rows: Sequence[ReproducedRow], size: QSizeF) -> Scene:
    """Draw the curve of a figure."""
    curve = rows[0].predicted.curve if rows else None
    width, height = max(size.width(), SMALLEST[0]), max(size.height(), SMALLEST[1])
    builder = SceneBuilder()
    said = elided(item.caption, BODY, width - runs_width(title_runs(item.name)) - 24)
    builder.items.append(text_at(0, 18, (*title_runs(item.name), *muted(f"   {said}"))))
    if curve is None:
        return builder.scene(width, height, item.name, item.caption)
    builder.items.append(text_at(0, 39, muted(elided(_remark(rows[0]), BODY, width))))
    x, y = _axis(curve, curve.x, 0), _axis(curve, curve.y, 1)
    lines = plot_lines(curve)
    area = plot_of(builder, Rect(0, TOP, width, height - TOP), x, y, lines)
    for line in lines:
        point_targets(builder, area, line, _Coordinates(area))
    named = ", ".join(line.label for line in lines)
    return builder.scene(width, height, item.name, f"{item.name}: {item.caption}. {named}")


class _Coordinates:
    """Writes the coordinates of a point."""

    def __init__(self, area: PlotArea) -> None:
        self._area = area

    def __call__(self, point: tuple[float, float]) -> str:
        return f"{self._area.x.write(point[0])}, {self._area.y.write(point[1])}"


def plot_lines(curve: Curve) -> tuple[PlotLine, ...]:
    """Give each series its look: one colour a subject, a dashed line and another marker for its second form."""
    subjects = list(dict.fromkeys(_subject(series) for series in curve.series))
    return tuple(_line(series, subjects.index(_subject(series))) for series in curve.series)


def _subject(series: Series) -> str:
    label = series.label.removesuffix(MEASURED)
    head, comma, tail = label.rpartition(", ")
    return head if comma and (tail in _DTYPES or tail.startswith("S ")) else label


def _line(series: Series, subject: int) -> PlotLine:
    measured = series.evidence is Evidence.PUBLISHED
    second = measured or series.label.endswith(_DTYPES[0])
    marker = (
        Marker.RING if measured else Marker.FRAME if second else (Marker.CIRCLE, Marker.SQUARE)[subject % 2]
    )
    return PlotLine(
        series_name(series),
        series.points,
        LINE_ROLES[subject % len(LINE_ROLES)],
        marker,
        dashed=second,
        notes=series.notes,
        width=1.4 if measured else 2.0,
    )


def series_name(series: Series) -> str:
    """Name a series as people know it."""
    if series.label in _LAYOUTS:
        return tr_text(LAYOUT_NAMES[FfnLayout(series.label)])
    if series.evidence is Evidence.PUBLISHED:
        return tr("{what}, measured", what=series.label.removesuffix(MEASURED))
    return term(series.label)


def _axis(curve: Curve, axis: Axis, index: int) -> PlotAxis:
    values = [point[index] for series in curve.series for point in series.points]
    counted = axis.unit in ("", "tokens") and axis.quantity != "MFU"
    title = term(axis.quantity)
    if axis.unit not in ("", "s"):
        title = f"{title} ({term(axis.unit)})"
    arrow = f"{title} →" if index == 0 else f"↑ {title}"
    return axis_over(values, arrow, _Writer(axis), axis.logarithmic, powers_of_two=counted)


class _Writer:
    """Writes values of an axis."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis

    def __call__(self, value: float) -> str:
        if self._axis.unit == "s":
            return format_quantity(value, SECONDS)
        if self._axis.unit.startswith("chip·s"):
            return format_quantity(value, CHIP_SECONDS)
        if self._axis.quantity == "MFU":
            return format_quantity(value, RATIO)
        return compact(value)


def _remark(row: ReproducedRow) -> str:
    band = row.predicted.error_band
    parts = [row.source, tr("ours: {evidence}", evidence=tr_text(str(row.predicted.evidence)))]
    if band:
        parts.append(tr("times within ±{band}", band=f"{band:.0%}"))
    return " · ".join(parts)
