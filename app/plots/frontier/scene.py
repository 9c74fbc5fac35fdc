"""The picture of the frontier: axes, frontiers with their names, the current design, pins and the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtCore import QSizeF

from app.i18n import tr, tr_text
from app.plots.frontier.cloud import SAME, WEIGHTS, Cloud, NoCloud
from app.plots.frontier.words import Column, column, percent, phase_title, short_title
from app.plots.header import muted, title_runs
from app.plots.scene import Dots, Ink, Rect, Run, Scene, SceneBuilder
from app.plots.text import BODY, SMALL, TINY, elided, runs_width, text_at, width_of, wrapped
from app.plots.xy import LINE_ROLES, MARKERS, PlotLine, clear_place, draw_lines
from app.plots.xy_axis import PlotArea, axis_over, plot_area
from app.theme import Role
from model_core.results import Evaluation
from model_core.search.arrays import Rows
from model_core.spec import Design, Phase

TOP: Final = 56.0
SMALLEST: Final = (460.0, 260.0)
ROOMY: Final = 360.0
CELL: Final = 3.0
PRICED: Final = ("usd_per_million_tokens", "joules_per_token")
FARTHEST: Final = 2.0
"""Designs much worse than all of the frontier are left out: they would press it into a corner."""
LEVELS: Final = ((1, 0.42), (4, 0.58), (20, 0.75))


@dataclass(frozen=True, slots=True)
class Pin:
    """A design kept for comparison, with a letter and its place in the plot."""

    letter: str
    design: Design
    row: dict[str, float]


@dataclass(frozen=True, slots=True)
class Picture:
    """A scene, and where its plot lies, so that points can be found under the pointer."""

    scene: Scene
    area: PlotArea | None = None


def draw_frontier(
    cloud: Cloud | NoCloud,
    evaluation: Evaluation | None,
    size: QSizeF,
    pins: Sequence[Pin] = (),
    dots: bool = True,
) -> Picture:
    """Draw a cloud.

    Args:
        cloud: the swept designs.
        evaluation: of the current design, which is marked.
        size: the space.
        pins: marked with their letters.
        dots: draw a dot for every design, where no image of them lies below.
    """
    width, height = max(size.width(), SMALLEST[0]), max(size.height(), SMALLEST[1])
    builder = SceneBuilder()
    title = phase_title(cloud.wish.design.workload.phase)
    model = cloud.wish.design.model.name
    builder.items.append(text_at(0, 18, (*title_runs(title), *muted(f"   {model}"))))
    if isinstance(cloud, NoCloud):
        return Picture(_empty(builder, cloud, width, height, title))
    found = _remark(cloud, evaluation)
    told = wrapped(found, BODY, width)[:2] if height >= ROOMY else [elided(found, BODY, width)]
    for number, line in enumerate(told):
        builder.items.append(text_at(0, 40 + 18 * number, muted(line)))
    top = TOP + 18 * (len(told) - 1)
    x, y = column(cloud.x), column(cloud.y)
    area = _area(builder, cloud, evaluation, pins, Rect(0, top, width, height - top), x, y)
    if dots:
        _dots(builder, cloud, area)
    over, lines = SceneBuilder(), _lines(cloud)
    taken = _target_line(over, cloud, evaluation, area)
    taken += _current(over, cloud, evaluation, area, lines)
    taken += [_pin(over, pin, cloud, area) for pin in pins if _is_there(pin, cloud)]
    draw_lines(builder, area, lines, taken)
    builder.items += over.items
    _line_targets(builder, cloud, area)
    return Picture(builder.scene(width, height, title, f"{title}, {model}. {found}"), area)


def _area(
    builder: SceneBuilder,
    cloud: Cloud,
    evaluation: Evaluation | None,
    pins: Sequence[Pin],
    place: Rect,
    x: Column,
    y: Column,
) -> PlotArea:
    here = [at for at in (current_position(cloud, evaluation),) if at is not None]
    here += [(pin.row[cloud.x], pin.row[cloud.y]) for pin in pins if _is_there(pin, cloud)]
    front = cloud.on_front()
    fast, good = cloud.result.columns[cloud.x][front], cloud.result.columns[cloud.y][front]
    here += [(float(fast.min()), float(good.min())), (float(fast.max()), float(good.max()))]
    xs = [*(at[0] for at in here), min(float(cloud.xs.max()), FARTHEST * float(fast.max()))]
    ys = [*(at[1] for at in here), min(float(cloud.ys.max()), FARTHEST * float(good.max()))]
    better = tr("lower is better") if not cloud.higher_is_better else tr("higher is better")
    return plot_area(
        builder,
        place,
        axis_over(xs, f"{x.title} →", x.write),
        axis_over(ys, f"↑ {y.title} ({better})", y.write, y.log),
    )


def current_position(cloud: Cloud | NoCloud, evaluation: Evaluation | None) -> tuple[float, float] | None:
    """Return the coordinates of the current design; ``None`` where it has no time."""
    if evaluation is None or isinstance(cloud, NoCloud):
        return None
    x, y = evaluation.value(cloud.x), evaluation.value(cloud.y)
    return None if x is None or y is None or x <= 0 or y <= 0 else (x, y)


def _lines(cloud: Cloud) -> tuple[PlotLine, ...]:
    lines = []
    for number, front in enumerate(cloud.fronts):
        points = tuple(cloud.position(int(n)) for n in front.numbers)
        look = number % len(LINE_ROLES), number % len(MARKERS)
        lines.append(
            PlotLine(
                front_name(cloud, number), points, LINE_ROLES[look[0]], MARKERS[look[1]], number % 2 == 1
            )
        )
    return tuple(lines)


def front_name(cloud: Cloud, index: int) -> str:
    """Name a frontier by what sets its designs apart."""
    dtype = cloud.fronts[index].common.get(WEIGHTS, cloud.wish.design.plan.weight_dtype)
    return tr("{dtype} weights", dtype=dtype)


def _line_targets(builder: SceneBuilder, cloud: Cloud, area: PlotArea) -> None:
    x, y = column(cloud.x), column(cloud.y)
    for index, front in enumerate(cloud.fronts):
        for number in front.numbers:
            px, py = cloud.position(int(number))
            at = area.at(px, py)
            builder.target_told(
                Rect(at[0] - 6, at[1] - 6, 12, 12),
                f"design/{number}",
                f"{x.write(px)}, {y.write(py)}",
                _Told(cloud, int(number), front_name(cloud, index)),
                radius=6,
            )


@dataclass(frozen=True, slots=True)
class _Told:
    """What a target says, written when it is read: building a design takes a while."""

    cloud: Cloud
    number: int
    front: str

    def __call__(self) -> tuple[str, ...]:
        return self.front, short_title(self.cloud.result.design(self.number))


def _current(
    builder: SceneBuilder,
    cloud: Cloud,
    evaluation: Evaluation | None,
    area: PlotArea,
    lines: Sequence[PlotLine],
) -> list[Rect]:
    here = current_position(cloud, evaluation)
    if here is None:
        return []
    x, y = area.at(*here)
    for radius, width in ((8.5, 2.2), (3.0, 1.6)):
        place = Rect(x - radius, y - radius, 2 * radius, 2 * radius)
        builder.box(place, None, Ink(Role.TEXT), radius, width)
    label = tr("current design")
    name = clear_place(area, lines, x, y, width_of(label, TINY, True), 13)
    builder.box(name.inset(-3, 0), Ink(Role.PANEL, 0.9), radius=3)
    builder.items.append(text_at(name.x, name.y + 11.5, (Run(label, TINY, True),)))
    return [Rect(x - 10, y - 10, 20, 20), name]


def _pin(builder: SceneBuilder, pin: Pin, cloud: Cloud, area: PlotArea) -> Rect:
    x, y = area.at(pin.row[cloud.x], pin.row[cloud.y])
    place = Rect(x - 8, y - 26, 16, 16)
    builder.line((x, y), (x, y - 10), ink=Ink(Role.TEXT), width=1.4)
    builder.box(place, Ink(Role.TEXT), None, 8)
    builder.items.append(text_at(x, y - 14, (Run(pin.letter, TINY, True, Role.PANEL),), 0.5))
    return Rect(x - 9, y - 27, 18, 30)


def _is_there(pin: Pin, cloud: Cloud) -> bool:
    return cloud.x in pin.row and cloud.y in pin.row


def _target_line(
    builder: SceneBuilder, cloud: Cloud, evaluation: Evaluation | None, area: PlotArea
) -> list[Rect]:
    design = cloud.wish.design if evaluation is None else evaluation.design
    target = design.workload.latency_target
    if target is None or not 0 < area.x.share(target) < 1:
        return []
    x, _ = area.at(target, area.y.low)
    rect = area.rect
    builder.line((x, rect.y), (x, rect.bottom), ink=Ink(Role.WARNING), width=1.6, dashed=True)
    text = tr("target {time}", time=column(cloud.x).write(target))
    w = width_of(text, TINY, True)
    at = x + 6 if x + 8 + w < rect.right else x - 6 - w
    builder.box(Rect(at - 2, rect.y + 3, w + 4, 15), Ink(Role.PANEL, 0.9), radius=3)
    builder.items.append(text_at(at, rect.y + 14, (Run(text, TINY, True, Role.WARNING),)))
    return [Rect(at - 2, rect.y + 3, w + 4, 15)]


def _dots(builder: SceneBuilder, cloud: Cloud, area: PlotArea) -> None:
    """Draw the designs as dots, one per cell of a fine grid, stronger where there are many."""
    columns, rows = shares(cloud, area)
    seen = (columns <= 1) & (rows >= 0) & (rows <= 1)
    columns, rows = columns[seen], rows[seen]
    cells = np.round(columns * area.rect.w / CELL), np.round(rows * area.rect.h / CELL)
    places, counts = np.unique(np.stack(cells), axis=1, return_counts=True)
    xs, ys = area.rect.x + places[0] * CELL, area.rect.bottom - places[1] * CELL
    for (least, strength), below in zip(LEVELS, (*(n for n, _ in LEVELS[1:]), 1 << 60), strict=True):
        some = (counts >= least) & (counts < below)
        if some.any():
            points = tuple(zip(xs[some].tolist(), ys[some].tolist(), strict=True))
            builder.items.append(Dots(points, Ink(Role.TEXT_MUTED, strength), CELL))


def shares(cloud: Cloud, area: PlotArea) -> tuple[Rows, Rows]:
    """Return how far along each axis every design lies."""
    return _share(cloud.xs, area.x.low, area.x.high, area.x.log), _share(
        cloud.ys, area.y.low, area.y.high, area.y.log
    )


def _share(values: Rows, low: float, high: float, log: bool) -> Rows:
    if log:
        found: Rows = (np.log(values) - np.log(low)) / (np.log(high) - np.log(low))
        return found
    return np.asarray((values - low) / (high - low))


def _remark(cloud: Cloud, evaluation: Evaluation | None) -> str:
    """Say how many designs there are, and what the current one leaves on the table."""
    counted = tr(
        "{total} designs, {usable} of them fit, {best} on the frontier",
        total=f"{cloud.total:,}",
        usable=f"{len(cloud.numbers):,}",
        best=f"{len(cloud.on_front()):,}",
    )
    gain = _gain(cloud, evaluation)
    return f"{gain} {counted}." if gain else f"{counted}."


def _gain(cloud: Cloud, evaluation: Evaluation | None) -> str:
    here = current_position(cloud, evaluation)
    best = None if here is None else cloud.best_within(here[0])
    if here is None or best is None:
        return ""
    share = cloud.position(best)[1] / here[1] - 1
    gained = share if cloud.higher_is_better else -share
    if cloud.is_on_front(*here):
        return tr("The current design is on the frontier.")
    if gained < SAME:
        return tr("No design that is as fast as the current one is better.")
    return tr(
        "A design as fast as the current one has {change} {what}.",
        change=percent(share),
        what=column(cloud.y).title,
    )


def _empty(builder: SceneBuilder, cloud: NoCloud, width: float, height: float, title: str) -> Scene:
    text = tr("None of the {total} designs fits and has a time.", total=f"{cloud.total:,}")
    reasons = [text, *(tr_text(problem.message) for problem in cloud.problems)]
    if cloud.wish.design.workload.phase is Phase.TRAINING:
        reasons = [tr("The frontier is drawn for prefill and decode.")]
    elif cloud.wish.y in PRICED:
        reasons = [tr("The chip has no price or no power; set it under Cluster, Chip.")]
    elif cloud.total:
        reasons.append(tr("Sweep more of slices, batch or formats, or take a smaller model."))
    lines = [line for reason in reasons for line in wrapped(reason, BODY, min(width, 640))]
    for number, line in enumerate(lines):
        runs = (
            Run(
                line,
                BODY if number == 0 else SMALL,
                number == 0,
                Role.TEXT if number == 0 else Role.TEXT_MUTED,
            ),
        )
        builder.items.append(text_at(width / 2 - runs_width(runs) / 2, height / 2 + 20 * number, runs))
    return builder.scene(width, height, title, " ".join(lines))
