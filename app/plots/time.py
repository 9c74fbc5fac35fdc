"""The time drawing: where a step's time goes, in all and operation by operation.

Every operation has a row: arithmetic above, loading below, and the longer of the two is its time; of
a collective only what is not hidden behind a product counts.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSizeF

from app.i18n import tr, tr_text
from app.plots.chart import Scale, bar
from app.plots.facts import seconds
from app.plots.header import Mark, legend, muted, title_runs
from app.plots.layout import empty_scene
from app.plots.scene import Ink, Rect, Run, Scene, SceneBuilder
from app.plots.text import BODY, SMALL, TINY, elided, runs_width, text_at, width_of
from app.plots.time_parts import part_name, roles_of, ruled, step_parts
from app.plots.time_rows import operations
from app.theme import Role
from model_core.results import Evaluation, TimeBudget
from model_core.spec import Phase

MAX_WIDTH = 1280.0
MIN_WIDTH = 600.0


def make_scene(evaluation: Evaluation, baseline: Evaluation | None, size: QSizeF) -> Scene:
    """Draw the time budget of a step."""
    budget = evaluation.time
    if budget is None:
        return empty_scene(tr("The time cannot be computed; see Problems."), size)
    before = None if baseline is None else baseline.time
    builder = SceneBuilder()
    width = min(MAX_WIDTH, max(MIN_WIDTH, size.width()))
    status = _header(builder, evaluation, budget, width)
    y = _totals(builder, budget, before, width)
    y = operations(builder, evaluation, budget, width, y, size.height())
    title = tr("Time of one step")
    return builder.scene(width, y, title, f"{title}: {status}")


def _header(builder: SceneBuilder, evaluation: Evaluation, budget: TimeBudget, width: float) -> str:
    builder.items.append(text_at(0, 18, title_runs(tr("Time of one step"))))
    decode = evaluation.design.workload.phase is Phase.DECODE
    unit = tr("one token of every sequence") if decode else tr("the whole input")
    bound = tr("bound by {what}", what=tr_text(budget.bound_by))
    calibration = tr("calibrated") if budget.calibrated else tr("uncalibrated: a bound at peak rates")
    runs = (Run(seconds(budget.step_s), BODY, True), Run(f"   {bound}", BODY, True))
    builder.items.append(text_at(0, 42, runs))
    taken = runs_width(runs)
    rest = elided(f"{unit} · {calibration}", BODY, width - taken - 20)
    builder.items.append(text_at(width, 42, muted(rest), 1.0))
    builder.target(Rect(0, 28, taken, 20), "step_s", seconds(budget.step_s), bound, calibration)
    return f"{seconds(budget.step_s)}, {bound}, {calibration}"


# ---- totals --------------------------------------------------------------------------------


def _totals(builder: SceneBuilder, budget: TimeBudget, before: TimeBudget | None, width: float) -> float:
    left = 118.0
    largest = max(budget.step_s, budget.compute_s, budget.memory_s, budget.communication_s)
    largest = max(largest, before.step_s if before else 0.0)
    scale = Scale(left, width - left - 84, largest)
    y = legend(builder, _marks(budget), 0, 56, width) + 8
    rows = 4 if before else 3
    bottom = y + 34 + 17 * rows
    ruled(builder, scale, y, bottom)
    _stacked(builder, scale, step_parts(budget), Rect(0, y + 2, width, 24), tr("step"), budget.step_s)
    builder.target(Rect(0, y, width, 28), "step_s", tr("step"), *_part_words(budget))
    at = y + 34
    if before:
        _thin_step(builder, scale, before, at, width)
        at += 17
    summed = _summed(budget)
    for key, text, total, bars in summed:
        _thin(builder, scale, text, total, bars, at, width)
        builder.target(Rect(0, at - 1, width, 16), key, text, seconds(total), radius=3)
        at += 17
    return bottom + 24


def _summed(budget: TimeBudget) -> tuple[tuple[str, str, float, tuple[tuple[Role, float], ...]], ...]:
    weights = sum(op.count * op.weight_s for op in budget.ops)
    cache = sum(op.count * op.kv_s for op in budget.ops)
    moved = sum(op.count * op.activation_s for op in budget.ops)
    exposed = budget.exposed_communication_s
    hidden = max(0.0, budget.communication_s - exposed)
    return (
        ("compute_s", tr("compute"), budget.compute_s, ((Role.COMPUTE, budget.compute_s),)),
        (
            "memory_s",
            tr("loading"),
            budget.memory_s,
            ((Role.WEIGHT, weights), (Role.KV, cache), (Role.ACTIVATION, moved)),
        ),
        (
            "communication_s",
            tr("communication"),
            budget.communication_s,
            ((Role.COMMUNICATION, exposed), (Role.HIDDEN, hidden)),
        ),
    )


def _part_words(budget: TimeBudget) -> list[str]:
    return [f"{part_name(role)} {seconds(value)}" for role, value in step_parts(budget).items() if value]


def _stacked(
    builder: SceneBuilder, scale: Scale, parts: dict[Role, float], row: Rect, text: str, total: float
) -> None:
    builder.items.append(text_at(scale.x - 10, row.y + 16, (Run(text, SMALL, True),), 1.0))
    at = 0.0
    for role, value in parts.items():
        if value <= 0:
            continue
        rect = Rect(scale.at(at), row.y, max(scale.at(at + value) - scale.at(at) - 1, 0.75), row.h)
        bar(builder, rect, role)
        label = seconds(value)
        needed = width_of(label, TINY) + 10
        if rect.w > needed + 6:
            chip = Rect(rect.x + (rect.w - needed) / 2, rect.y + 5, needed, row.h - 10)
            builder.box(chip, Ink(Role.PANEL), radius=3)
            builder.items.append(text_at(chip.x + needed / 2, chip.y + 11, (Run(label, TINY),), 0.5))
        at += value
    builder.items.append(text_at(row.right, row.y + 16, (Run(seconds(total), SMALL, True),), 1.0))


def _thin(
    builder: SceneBuilder,
    scale: Scale,
    text: str,
    total: float,
    bars: tuple[tuple[Role, float], ...],
    y: float,
    width: float,
) -> None:
    builder.items.append(text_at(scale.x - 10, y + 10, muted(elided(text, SMALL, scale.x - 12), SMALL), 1.0))
    at = 0.0
    for role, value in bars:
        if value > 0:
            bar(builder, Rect(scale.at(at), y + 2, scale.at(at + value) - scale.at(at) - 0.5, 8), role)
            at += value
    builder.items.append(text_at(width, y + 10, muted(seconds(total), SMALL), 1.0))


def _thin_step(builder: SceneBuilder, scale: Scale, before: TimeBudget, y: float, width: float) -> None:
    bars = tuple(step_parts(before).items())
    _thin(builder, scale, tr("baseline"), before.step_s, bars, y, width)


def _marks(budget: TimeBudget) -> list[Mark]:
    roles = (*roles_of(budget), Role.HIDDEN)
    return [Mark(partial(bar, role=role), muted(part_name(role), SMALL), 22, 9) for role in roles]
