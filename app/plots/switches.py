"""Which layout, and where it switches: communication and step time of the five layouts against tokens per batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtCore import QSizeF

from app.i18n import tr, tr_text
from app.plots.camera import MARGIN
from app.plots.facts import LAYOUT_NAMES, seconds
from app.plots.frontier.words import short_layout
from app.plots.header import head_with_verdict
from app.plots.scene import Ink, Rect, Run, Scene, SceneBuilder
from app.plots.text import TINY, text_at, width_of
from app.plots.xy import LINE_ROLES, MARKERS, PlotLine, plot_of, point_targets
from app.plots.xy_axis import PlotArea, PlotAxis, axis_over, compact
from app.theme import Role
from model_core.search.arrays import Rows
from model_core.search.axes import BATCH, make_axis
from model_core.search.layouts import LAYOUT, SHARDING, Choice, LayoutChoice, best_layout
from model_core.search.pareto import latency_column
from model_core.search.space import SearchCancelledError, make_space
from model_core.search.sweep import SweepResult, sweep
from model_core.search.volumes import Volumes, feedforward_volumes
from model_core.spec import AttentionSharding, Design, FfnLayout, Phase

SIDE_BY_SIDE: Final = 900.0
GAP: Final = 28.0
LARGEST_BATCH: Final = 12
FEWEST_TOKENS: Final = 8
MOST_TOKENS: Final = 24


@dataclass(frozen=True, slots=True, eq=False)
class LayoutData:
    """What is drawn. ``times``: per layout the step of the better attention sharding over ``tokens``."""

    design: Design
    choice: LayoutChoice
    volumes: Volumes | None
    tokens: Rows
    times: Mapping[FfnLayout, Rows]


def least_height(width: int) -> int:
    """Return the height that the charts need: twice that of one where they lie one below the other."""
    return 380 if width >= SIDE_BY_SIDE + 2 * MARGIN else 700


def compute_layouts(design: Design, cancelled: Callable[[], bool]) -> LayoutData | None:
    """Evaluate all layouts over batches; ``None`` if cancelled."""
    if design.workload.phase is Phase.TRAINING:
        return LayoutData(design, LayoutChoice((), ()), None, np.empty(0), {})
    batches = [1 << k for k in range(LARGEST_BATCH + 1)]
    axes = [
        make_axis(design, path, values)[0]
        for path, values in ((LAYOUT, list(FfnLayout)), (SHARDING, list(AttentionSharding)), (BATCH, batches))
    ]
    space, _ = make_space(design, [axis for axis in axes if axis is not None])
    if space is None or cancelled():
        return None
    try:
        result, _ = sweep(space, cancelled)
    except SearchCancelledError:
        return None
    times = {} if result is None else _times(result, len(batches))
    # Without a sweep the design itself is wrong, such as its mesh; Problems says how.
    choice = LayoutChoice((), ()) if result is None else best_layout(design)
    tokens = np.array(batches, np.float64) * design.workload.step_length
    return None if cancelled() else LayoutData(design, choice, _volumes(design), tokens, times)


def _times(result: SweepResult, batches: int) -> dict[FfnLayout, Rows]:
    column = latency_column(result.space.design.workload.phase)
    seconds_of = np.where(result.columns["valid"], result.columns[column], np.inf)
    best = seconds_of.reshape(len(FfnLayout), len(AttentionSharding), batches).min(axis=1)
    return {layout: best[i] for i, layout in enumerate(FfnLayout)}


def _volumes(design: Design) -> Volumes | None:
    """Count communication where Figure 3 is defined: dense feedforward layers."""
    if design.model.moe is not None or design.model.mla is not None:
        return None
    now = design.workload.batch * design.workload.step_length
    lowest = min(FEWEST_TOKENS, max(int(np.log2(now)) - 1, 0))
    return feedforward_volumes(design, tuple(2.0 ** (k / 2) for k in range(2 * lowest, 2 * MOST_TOKENS + 1)))


# ---- drawing -------------------------------------------------------------------------------


def draw_layouts(data: LayoutData, size: QSizeF) -> Scene:
    """Draw the two charts side by side, or one below the other where it is narrow."""
    width, height = max(size.width(), 420.0), max(size.height(), 320.0)
    builder = SceneBuilder()
    title = tr("Layouts: which one, and where it switches")
    said = _verdict(data)
    top = head_with_verdict(builder, title, data.design.model.name, said, width)
    now = float(data.design.workload.batch * data.design.workload.step_length)
    places = _places(width, height, top, data.volumes is not None)
    if data.volumes is not None:
        _draw_volumes(builder, data, data.volumes, now, places[0])
    if data.times:
        _draw_times(builder, data, now, places[-1])
    return builder.scene(width, height, title, f"{title}. {said}")


def _places(width: float, height: float, top: float, both: bool) -> tuple[Rect, ...]:
    if not both:
        return (Rect(0, top, width, height - top),)
    if width >= SIDE_BY_SIDE:
        half = (width - GAP) / 2
        return Rect(0, top, half, height - top), Rect(half + GAP, top, half, height - top)
    half = (height - top - 12) / 2
    return Rect(0, top, width, half), Rect(0, top + half + 12, width, half)


def _draw_volumes(builder: SceneBuilder, data: LayoutData, volumes: Volumes, now: float, place: Rect) -> None:
    values = [float(v) for found in volumes.elements.values() for v in found if v > 0]
    x = _tokens_axis([*volumes.tokens.tolist(), now])
    y = axis_over(values, "↑ " + tr("feedforward layer: elements received per chip"), compact)
    marks = [(switch.tokens, switch.before, switch.after) for switch in volumes.switches]
    series = {layout: _points(volumes.tokens, found) for layout, found in volumes.elements.items()}
    _draw_series(builder, data, _Frame(place, x, y, now, marks), series, sparse=6)


def _draw_times(builder: SceneBuilder, data: LayoutData, now: float, place: Rect) -> None:
    decode = data.design.workload.phase is Phase.DECODE
    values = [float(v) for found in data.times.values() for v in found if np.isfinite(v)]
    title = tr("whole model: time of a step") if decode else tr("whole model: latency of the prefill")
    x, y = _tokens_axis([*data.tokens.tolist(), now]), axis_over(values, f"↑ {title}", seconds)
    marks = [
        (float(s.tokens), s.before.layout, s.after.layout)
        for s in data.choice.switches
        if s.before.layout is not s.after.layout
    ]
    series = {layout: _points(data.tokens, found) for layout, found in data.times.items()}
    _draw_series(builder, data, _Frame(place, x, y, now, marks), series, sparse=1)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a chart lies, its axes, and what it marks: the present tokens per batch, and the switches."""

    place: Rect
    x: PlotAxis
    y: PlotAxis
    now: float
    marks: Sequence[tuple[float, FfnLayout, FfnLayout]]

    def draw_marks(self, builder: SceneBuilder, area: PlotArea) -> list[Rect]:
        """Draw what is marked; return the places of the words."""
        return [_now_line(builder, area, self.now), *_switch_lines(builder, area, self.marks)]


def _tokens_axis(values: Sequence[float]) -> PlotAxis:
    return axis_over(values, tr("tokens per batch") + " →", compact, powers_of_two=True)


def _points(tokens: Rows, values: Rows) -> tuple[tuple[float, float], ...]:
    return tuple(
        (float(t), float(v)) for t, v in zip(tokens, values, strict=True) if np.isfinite(v) and v > 0
    )


def _draw_series(
    builder: SceneBuilder,
    data: LayoutData,
    frame: _Frame,
    series: Mapping[FfnLayout, tuple[tuple[float, float], ...]],
    sparse: int,
) -> None:
    own = data.design.plan.ffn_layout
    lines = []
    for number, layouts in enumerate(_coinciding(series)):
        label = tr_text(LAYOUT_NAMES[layouts[0]])
        if len(layouts) > 1:
            label = " = ".join(short_layout(layout) for layout in layouts)
        named = tr("{layout} (this design)", layout=label) if own in layouts else label
        look = LINE_ROLES[number % len(LINE_ROLES)], MARKERS[number % len(MARKERS)]
        width = 3.2 if own in layouts else 1.8
        lines.append(PlotLine(named, series[layouts[0]], *look, dashed=number == 4, width=width))
    thinned = [_thinned(line, sparse) for line in lines]
    area = plot_of(builder, frame.place, frame.x, frame.y, thinned, frame.draw_marks)
    for line in lines:
        point_targets(builder, area, line, _Told(frame.y.write))


def _coinciding(series: Mapping[FfnLayout, tuple[tuple[float, float], ...]]) -> list[list[FfnLayout]]:
    """Join layouts that are the same on this mesh: over axes of size one nothing is gathered."""
    groups: list[list[FfnLayout]] = []
    for layout, points in series.items():
        same = next((g for g in groups if _alike(series[g[0]], points)), None)
        if same is None:
            groups.append([layout])
        else:
            same.append(layout)
    return groups


def _alike(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> bool:
    return len(first) == len(second) and bool(np.allclose(first, second, rtol=1e-9))


def _thinned(line: PlotLine, every: int) -> PlotLine:
    """Keep each n-th point, and with it its marker."""
    if every == 1:
        return line
    points = line.points[::every]
    if not points:
        return line
    kept = points if points[-1] == line.points[-1] else (*points, line.points[-1])
    return PlotLine(line.label, kept, line.role, line.marker, line.dashed, width=line.width)


class _Told:
    """Writes a point of a line."""

    def __init__(self, write: Callable[[float], str]) -> None:
        self._write = write

    def __call__(self, point: tuple[float, float]) -> str:
        return f"{tr('{count} tokens', count=f'{point[0]:,.0f}')}: {self._write(point[1])}"


def _now_line(builder: SceneBuilder, area: PlotArea, now: float) -> Rect:
    x, _ = area.at(now, area.y.low)
    rect = area.rect
    builder.line((x, rect.y), (x, rect.bottom), ink=Ink(Role.ACCENT), width=1.8)
    text = tr("now: {tokens}", tokens=f"{now:,.0f}")
    return _tag(builder, area, x, rect.bottom - 18, text, Role.ACCENT)


def _switch_lines(
    builder: SceneBuilder,
    area: PlotArea,
    marks: Sequence[tuple[float, FfnLayout, FfnLayout]],
) -> list[Rect]:
    found: list[Rect] = []
    for number, (tokens, before, after) in enumerate(marks):
        if not 0 < area.x.share(tokens) < 1:
            continue
        x, _ = area.at(tokens, area.y.low)
        rect = area.rect
        builder.line((x, rect.y), (x, rect.bottom), ink=Ink(Role.TEXT_MUTED), width=1.1, dashed=True)
        at = rect.y + 3 + 16 * (number % 3)
        found.append(_tag(builder, area, x, at, f"{tokens:,.0f}", Role.TEXT))
        words = tr(
            "from here on {after} beats {before}",
            after=tr_text(LAYOUT_NAMES[after]),
            before=tr_text(LAYOUT_NAMES[before]),
        )
        builder.target(Rect(x - 5, rect.y, 10, rect.h), "", f"{tokens:,.0f}", words, radius=2)
    return found


def _tag(builder: SceneBuilder, area: PlotArea, x: float, y: float, text: str, role: Role) -> Rect:
    w = width_of(text, TINY, True)
    left = x + 5 if x + 8 + w < area.rect.right else x - 5 - w
    place = Rect(left - 2, y, w + 4, 15)
    builder.box(place, Ink(Role.PANEL, 0.9), radius=3)
    builder.items.append(text_at(left, y + 11.5, (Run(text, TINY, True, role),)))
    return place


def _verdict(data: LayoutData) -> str:
    """Say which layout is best now, by how much the runner-up loses, and where the next switch is."""
    if data.design.workload.phase is Phase.TRAINING:
        return tr("Layouts are compared for prefill and decode.")
    best, other = data.choice.best, data.choice.runner_up
    if best is None:
        return tr("No layout fits into the memory or has a time; see Problems.")
    parts = [tr("Best now: {choice}, {time}.", choice=choice_text(best.choice), time=seconds(best.latency_s))]
    margin = data.choice.margin
    if other is not None and margin is not None:
        parts.append(
            tr("{choice} loses by {margin}.", choice=choice_text(other.choice), margin=f"{margin:.1%}")
        )
    batch = data.design.workload.batch
    following = next((s for s in data.choice.switches if s.batch > batch), None)
    if following is not None:
        parts.append(
            tr(
                "From batch {batch} on: {choice}.",
                batch=f"{following.batch:,}",
                choice=choice_text(following.after),
            )
        )
    return " ".join(parts)


def choice_text(choice: Choice) -> str:
    """Name a layout with its attention sharding."""
    over = (
        tr("attention over batch")
        if choice.sharding is AttentionSharding.BATCH
        else tr("attention over heads")
    )
    return f"{tr_text(LAYOUT_NAMES[choice.layout])}, {over}"
