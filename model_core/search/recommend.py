"""Recommends a design: the best of a space that meets some targets, the next best, and what binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from model_core.diagnostics import Diagnostic
from model_core.search.arrays import Rows
from model_core.search.axes import MESH, Axis
from model_core.search.choices import default_axes, refined_axes
from model_core.search.differences import Difference, differences
from model_core.search.space import Cancelled, make_space
from model_core.search.sweep import Progress, SweepResult, sweep
from model_core.search.targets import FITS, MEASURES, Measure, Target, all_met
from model_core.spec.base import get_at
from model_core.spec.design import Design

RELAXED: Final = 0.1
"""Share by which each bound is relaxed to tell what it costs."""

TIE: Final = 1e-9
"""Relative difference below which two designs are equally good."""

NOTICEABLE: Final = 1e-3
"""Relative difference from which on a worse design is worth naming as the next best."""

TOP: Final = 200
"""Best designs whose choices are looked at again with finer batches."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What to optimise: a name of `MEASURES`, to be small or large."""

    name: str
    minimise: bool

    @property
    def measure(self) -> Measure:
        """Its column and unit."""
        return MEASURES[self.name]

    def cost(self, columns: Mapping[str, Rows]) -> Rows:
        """Return what is to be small."""
        values = columns[self.measure.column]
        return values if self.minimise else -values


@dataclass(frozen=True, slots=True)
class Answer:
    """One design: the goal's value, the columns of the sweep, and how it differs from the one given."""

    design: Design
    value: float
    row: dict[str, Any]
    changes: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A target, or the memory: the answer's ``value`` against the ``bound``, and what the bound costs.

    ``relaxed``: the goal's value with the bound relaxed by `RELAXED`; ``without``: without the bound. Both
    are ``None`` where nothing would be gained.
    """

    name: str
    bound: float
    value: float
    relaxed: float | None
    without: float | None

    @property
    def binds(self) -> bool:
        """Whether the goal would be better without it."""
        return self.without is not None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What a search found among ``designs`` designs.

    ``best`` is ``None`` where no design meets all targets: ``problems`` then says why (otherwise it holds
    warnings), and ``closest`` is the valid design that fits and misses its targets by the smallest share.
    """

    goal: Goal
    targets: tuple[Target, ...]
    designs: int
    best: Answer | None = None
    next_best: Answer | None = None
    constraints: tuple[Constraint, ...] = ()
    closest: Answer | None = None
    problems: tuple[Diagnostic, ...] = ()

    @property
    def margin(self) -> float | None:
        """By what share the next best is worse."""
        if self.best is None or self.next_best is None or not self.best.value:
            return None
        return abs(self.next_best.value / self.best.value - 1)


def recommend(
    design: Design,
    targets: Sequence[Target],
    goal: Goal,
    fixed: Sequence[str] = (),
    axes: Sequence[Axis] = (),
    cancelled: Cancelled | None = None,
    progress: Progress | None = None,
) -> Recommendation:
    """Search layouts, attention shardings, meshes, slice shapes, batches and formats for the best design.

    Args:
        design: model, workload and chip come from it; the rest is where the search starts.
        targets: bounds that the answer must meet; the memory always counts.
        goal: what to optimise among those that do.
        fixed: paths that keep their value.
        axes: axes that replace the default ones for their paths, or add others.
        cancelled: asked between chunks.
        progress: called between chunks.

    Raises:
        SearchCancelledError: it was cancelled.
    """
    wanted = tuple(targets)
    measures = (goal.name, *(target.name for target in wanted))
    space, problems = make_space(design, default_axes(design, measures, fixed, axes))
    if space is None:
        return Recommendation(goal, wanted, 0, problems=problems)
    coarse, problems = sweep(space, cancelled, progress)
    if coarse is None:
        return Recommendation(goal, wanted, space.size, problems=problems)
    order = _ordered(coarse, wanted, goal)
    if not len(order):
        return _nothing(coarse, wanted, goal)
    given = [axis.path for axis in axes]
    fine_space, _ = make_space(design, refined_axes(space, order[:TOP], given))
    fine, _ = sweep(fine_space, cancelled) if fine_space is not None else (None, ())
    if fine is None:
        fine = coarse
    order = _ordered(fine, wanted, goal)
    best = int(order[0])
    other = _next_best(fine, order, goal)
    return Recommendation(
        goal,
        wanted,
        coarse.space.size + fine.space.size,
        best=_answer(fine, best, goal),
        next_best=None if other is None else _answer(fine, other, goal),
        constraints=_constraints((coarse, fine), best, wanted, goal),
        problems=mixed_calibration(coarse),
    )


def mixed_calibration(result: SweepResult) -> tuple[Diagnostic, ...]:
    """Warn where some designs that can be used are calibrated and others are not."""
    calibrated = result.columns["calibrated"][result.usable]
    mixed = calibrated.any() and not calibrated.all()
    return (Diagnostic("calibration_mixed", "plan.calibration"),) if mixed else ()


def _ordered(result: SweepResult, targets: tuple[Target, ...], goal: Goal) -> Rows:
    """Number the designs that meet all targets, best first; of equals those that change less."""
    known = ~np.isnan(result.columns[goal.measure.column])
    meet = np.flatnonzero(result.usable & known & all_met(targets, result.columns))
    if not len(meet):
        return meet
    cost = goal.cost(result.columns)[meet]
    # Equal up to rounding errors: then fewer changes, fewer chips and less memory decide.
    steps = np.round(cost / max(abs(float(cost.min())), 1e-300) / TIE)
    chips, memory = result.columns["n_chips"][meet], result.columns["memory_per_chip_bytes"][meet]
    order: Rows = meet[np.lexsort((memory, chips, _changes(result)[meet], steps))]
    return order


def _changes(result: SweepResult) -> Rows:
    """Count along how many axes each design differs from the given one."""
    total = np.zeros(result.space.size, np.int16)
    for axis in result.space.axes:
        total += result.index(axis.path) != _own_index(result.space.design, axis)
    return total


def _own_index(design: Design, axis: Axis) -> int:
    try:
        own = get_at(design, axis.path)
    except AttributeError:
        return -1
    return axis.values.index(own) if own in axis.values else -1


def _next_best(result: SweepResult, order: Rows, goal: Goal) -> int | None:
    """Return the best design that is noticeably worse and makes another choice than the best.

    Another batch, or another mesh for the same layout, is not another choice.
    """
    cost = goal.cost(result.columns)
    differs = np.zeros(len(order), np.bool_)
    for axis in result.space.axes:
        if not axis.is_numeric and axis.path != MESH:
            index = result.index(axis.path)[order]
            differs |= index != index[0]
    worse = cost[order] > cost[order[0]] + abs(cost[order[0]]) * NOTICEABLE
    found = order[differs & worse]
    return int(found[0]) if len(found) else None


def _answer(result: SweepResult, number: int, goal: Goal) -> Answer:
    given, found = result.space.design, result.design(number)
    row = result.row(number)
    changes = differences(given, found)
    cluster = found.cluster
    if cluster.name == given.cluster.name and cluster.topology != given.cluster.topology:
        found = found.replace(cluster=cluster.replace(name=f"{cluster.chip.name} {cluster.shape_text}"))
    return Answer(found, row[goal.measure.column], row, changes)


def _constraints(
    results: Sequence[SweepResult], best: int, targets: tuple[Target, ...], goal: Goal
) -> tuple[Constraint, ...]:
    """Tell for the memory and each target what relaxing it would give."""
    answer = results[-1]
    reached = float(goal.cost(answer.columns)[best])
    capacity = answer.design(best).cluster.chip.hbm_capacity
    memory = float(answer.columns["memory_per_chip_bytes"][best])
    found = [
        Constraint(
            FITS,
            capacity,
            memory,
            _gain(results, targets, goal, reached, memory_slack=RELAXED),
            _gain(results, targets, goal, reached, memory_slack=np.inf),
        )
    ]
    for target in targets:
        others = tuple(t for t in targets if t is not target)
        value = float(answer.columns[target.measure.column][best])
        relaxed = _gain(results, others, goal, reached, slack=(target, RELAXED))
        found.append(
            Constraint(target.text, target.bound, value, relaxed, _gain(results, others, goal, reached))
        )
    return tuple(found)


def _gain(
    results: Sequence[SweepResult],
    targets: tuple[Target, ...],
    goal: Goal,
    reached: float,
    slack: tuple[Target, float] | None = None,
    memory_slack: float = 0.0,
) -> float | None:
    """Return the goal's value under other bounds, or ``None`` where it is no better than what is reached."""
    best = reached
    for result in results:
        columns = result.columns
        held = columns["memory_per_chip_bytes"] <= columns["capacity_bytes"] * (1 + memory_slack)
        meet = columns["valid"] & held & ~np.isnan(columns["step_s"]) & all_met(targets, columns)
        if slack is not None:
            meet &= slack[0].met_by(columns, slack[1])
        best = min(best, float(np.nanmin(goal.cost(columns)[meet], initial=np.inf)))
    if best >= reached - abs(reached) * TIE:
        return None
    return best if goal.minimise else -best


def _nothing(result: SweepResult, targets: tuple[Target, ...], goal: Goal) -> Recommendation:
    """Say that no design meets the targets, how far each can be met alone, and which design comes closest."""
    usable = np.flatnonzero(result.usable)
    if not len(usable):
        problem = Diagnostic("no_design_fits", "cluster", {"count": f"{result.space.size:,}"})
        return Recommendation(goal, targets, result.space.size, problems=(problem,))
    miss = np.zeros(len(usable))
    best = []
    for target in targets:
        values = result.columns[target.measure.column][usable]
        best.append(f"{target.name} {target.show(float(values.min() if target.at_most else values.max()))}")
        short = values / target.bound - 1 if target.at_most else target.bound / values - 1
        miss = np.maximum(miss, short)
    values_of = {
        "count": f"{result.space.size:,}",
        "targets": ", ".join(target.text for target in targets),
        "best": ", ".join(best),
    }
    closest = _answer(result, int(usable[np.argmin(miss)]), goal)
    problem = Diagnostic("no_design", "", values_of)
    return Recommendation(goal, targets, result.space.size, closest=closest, problems=(problem,))
