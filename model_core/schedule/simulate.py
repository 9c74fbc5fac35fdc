"""Event simulation: when every operation of a schedule starts and ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from model_core.diagnostics import Diagnostic
from model_core.schedule.dependencies import Dependencies, dependencies
from model_core.schedule.engine import Problem, completion_times
from model_core.schedule.operations import Floats, Layout, OpKind, Schedule


@dataclass(frozen=True, slots=True)
class Durations:
    """How long the operations take, in seconds; numbers hold for all, arrays go by stage or rank.

    ``forward_s``, ``input_s`` and ``weight_s`` are by stage [stages]; a full backward takes input and
    weight together. ``pair_s`` is an overlapped pair by rank [pp]; left out, it takes its forward and
    backward one after the other. ``p2p_s`` is the time of a message over the boundary after a stage
    [stages - 1]; between stages of one rank it is not used.
    """

    forward_s: ArrayLike = 1.0
    input_s: ArrayLike = 1.0
    weight_s: ArrayLike = 1.0
    pair_s: ArrayLike | None = None
    p2p_s: ArrayLike = 0.0

    def on(self, layout: Layout) -> StageDurations:
        """Return the durations as arrays for a layout.

        Raises:
            ValueError: an array has another length than there are stages or ranks, or a time is negative.
        """
        stages = layout.n_stages
        return StageDurations(
            _spread("forward_s", self.forward_s, stages),
            _spread("input_s", self.input_s, stages),
            _spread("weight_s", self.weight_s, stages),
            None if self.pair_s is None else _spread("pair_s", self.pair_s, layout.pp),
            np.where(layout.hops, _spread("p2p_s", self.p2p_s, stages - 1), 0.0),
        )


@dataclass(frozen=True, slots=True, eq=False)
class StageDurations:
    """`Durations` of one layout: arrays by stage, by rank (``pair_s``) and by boundary (``p2p_s``)."""

    forward_s: Floats
    input_s: Floats
    weight_s: Floats
    pair_s: Floats | None
    p2p_s: Floats

    @property
    def backward_s(self) -> Floats:
        """Full backward of each stage."""
        return self.input_s + self.weight_s

    def of(self, schedule: Schedule) -> Floats:
        """Return the duration of each row of a schedule."""
        stage = schedule.stage
        by_kind = np.stack([self.forward_s, self.backward_s, self.input_s, self.weight_s, self.forward_s])
        durations: Floats = by_kind[schedule.op, stage]
        pairs = np.flatnonzero(schedule.op == OpKind.OVERLAPPED)
        if self.pair_s is None:
            durations[pairs] += self.backward_s[schedule.stage2[pairs]]
        else:
            durations[pairs] = self.pair_s[schedule.rank[pairs]]
        return durations


def _spread(name: str, value: ArrayLike, length: int) -> Floats:
    array = np.asarray(value, np.float64)
    if array.shape not in {(), (length,)}:
        raise ValueError(f"{name} has shape {array.shape}; give one number or {length}")
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError(f"{name} holds a time that is negative or not finite")
    return np.broadcast_to(array, (length,))


@dataclass(frozen=True, eq=False)
class Simulation:
    """When each row of a schedule runs. Times are seconds from the start of the first operation."""

    schedule: Schedule
    durations: StageDurations
    start_s: Floats
    end_s: Floats

    @cached_property
    def makespan_s(self) -> float:
        """End of the last operation."""
        return float(self.end_s.max(initial=0.0))

    @cached_property
    def busy_s(self) -> Floats:
        """Time that each rank computes."""
        return np.add.reduceat(self.end_s - self.start_s, self.schedule.offsets[:-1])

    @property
    def bubble_s(self) -> Floats:
        """Time that each rank idles between the first start and the last end of all ranks."""
        return self.makespan_s - self.busy_s

    @cached_property
    def period_s(self) -> float:
        """Longest time from a rank's own first start to its own last end.

        This is the time from iteration to iteration where no rank waits for all others between them
        (Qi et al. 2023, 4: post-validation of the optimizer step).
        """
        first, last = self.schedule.offsets[:-1], self.schedule.offsets[1:] - 1
        return float((self.end_s[last] - self.start_s[first]).max())

    @property
    def iteration_bubble_s(self) -> Floats:
        """Time that each rank idles per iteration where no rank waits for all others between them."""
        return self.period_s - self.busy_s

    @property
    def bubble_fraction(self) -> float:
        """Idle part of all ranks' time."""
        return float(self.bubble_s.sum() / (self.makespan_s * self.schedule.pp)) if self.makespan_s else 0.0


Outcome = tuple[Simulation | None, tuple[Diagnostic, ...]]


def simulate(schedule: Schedule, durations: Durations) -> Outcome:
    """Run a schedule.

    Formula: start = max(end of the row before on its rank, end of what it waits for + p2p)
    Source: the semantics of DSV3 Figure 5 and of Qi et al. 2023, 3.1.
    Assumes: messages do not delay each other and cost the ranks no time.

    Args:
        schedule: what each rank does in order.
        durations: how long it takes.

    Returns:
        The simulation; or, where operations are missing or wait for each other, why there is none.

    Raises:
        ValueError: the durations do not fit the schedule's layout.
    """
    waits = dependencies(schedule)
    if waits.problems:
        return None, waits.problems
    resolved = durations.on(schedule.layout)
    problem = _problem(schedule, waits, resolved)
    end = completion_times(problem)
    if not np.isfinite(end).all():
        return None, (_deadlock(schedule, waits, end),)
    return Simulation(schedule, resolved, _starts(problem, end), end), ()


def _problem(schedule: Schedule, waits: Dependencies, durations: StageDurations) -> Problem:
    # Rows that wait for nothing have edge -1: the last entry.
    p2p = np.append(durations.p2p_s, 0.0)
    return Problem(
        schedule.offsets,
        waits.first,
        waits.second,
        p2p[waits.first_edge],
        p2p[waits.second_edge],
        durations.of(schedule),
        waits.signature,
    )


def _starts(problem: Problem, end: Floats) -> Floats:
    """Return when each row starts, from when everything ends."""
    reached: Floats = np.append(end, 0.0)
    before = np.concatenate([[0.0], end[:-1]])
    before[problem.offsets[:-1]] = 0.0
    arrived: Floats = reached[problem.first] + problem.first_delay_s
    np.maximum(arrived, reached[problem.second] + problem.second_delay_s, out=arrived)
    np.maximum(arrived, before, out=arrived)
    return arrived


def _deadlock(schedule: Schedule, waits: Dependencies, end: Floats) -> Diagnostic:
    """Name an operation of a circle of operations that wait for each other."""
    never = np.append(~np.isfinite(end), False)
    stuck = {
        rank: int(begin + np.argmax(never[begin:stop]))
        for rank, (begin, stop) in enumerate(pairwise(schedule.offsets.tolist()))
        if never[begin:stop].any()
    }
    rank = next(iter(stuck))
    for _ in stuck:  # after as many steps as there are ranks the walk is on the circle
        row = stuck[rank]
        other = int(waits.first[row] if never[waits.first[row]] else waits.second[row])
        rank = int(schedule.rank[other])
    values = {
        "operation": schedule.label(row),
        "rank": int(schedule.rank[row]),
        "other": schedule.label(other),
        "other_rank": rank,
        "count": len(stuck),
    }
    return Diagnostic("schedule_deadlock", "", values)
