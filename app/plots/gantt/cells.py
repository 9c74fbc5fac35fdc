"""A simulated schedule as what is drawn: for each rank a row of segments, cells and idle times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model_core.schedule import OpKind, Schedule
from model_core.schedule.dependencies import dependencies
from model_core.schedule_plan import PlannedRun

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

OUTSIDE, WARM_UP, STEADY, DRAIN, MESSAGE = range(5)
"""Codes of segments in which a rank does not compute; those of cells follow."""
FIRST_CELL: Final = 5
MANY_SEGMENTS: Final = 60_000
OVERVIEW_LOOKS: Final = 2_097_152
FINEST_OVERVIEW, COARSEST_OVERVIEW = 4096, 1024
_ROUNDING: Final = 1e-9


class CellKind(NamedTuple):
    """What the cells of one code have in common; ``lane2`` is -1 for all but pairs."""

    op: OpKind
    lane: int
    lane2: int


class Overview(NamedTuple):
    """The segment of each rank at multiples of a step of time [ranks, times]."""

    step_s: float
    segment: NDArray[np.int32]

    def at(self, ranks: Ints, number: Ints) -> NDArray[np.int32]:
        """Return the segments of some ranks at times given by their numbers."""
        inside = np.clip(number, 0, self.segment.shape[1] - 1)
        found: NDArray[np.int32] = self.segment[ranks[:, None], inside]
        return found


@dataclass(frozen=True, eq=False)
class Cells:
    """One schedule as segments in time.

    ``offsets[r]:offsets[r + 1]`` are the segments of rank ``r``: they follow each other without gaps from
    time 0, the last has the code `OUTSIDE`. ``row`` is the operation of a segment, or the next one where
    the rank idles; ``level`` the activations held (chunks). ``kinds[code - FIRST_CELL]`` says what a code
    of a cell is.
    """

    run: PlannedRun
    start: Floats
    code: NDArray[np.uint16]
    row: NDArray[np.int32]
    level: NDArray[np.float32]
    offsets: Ints
    kinds: tuple[CellKind, ...]

    @property
    def schedule(self) -> Schedule:
        """The operations."""
        return self.run.schedule

    @property
    def pp(self) -> int:
        """Ranks."""
        return self.schedule.pp

    @property
    def makespan_s(self) -> float:
        """End of the last operation."""
        return self.run.simulation.makespan_s

    @cached_property
    def end(self) -> Floats:
        """End of each segment; that of the last of a rank is never."""
        ends = np.append(self.start[1:], np.inf)
        ends[self.offsets[1:] - 1] = np.inf
        return ends

    @cached_property
    def _key(self) -> Floats:
        """Start of each segment on one axis, rank after rank, so that one search finds them all."""
        return self.start + np.repeat(np.arange(self.pp), np.diff(self.offsets)) * self._span

    @cached_property
    def overview(self) -> Overview | None:
        """The segments at many times; none where all can be looked up anew for every frame."""
        count = min(OVERVIEW_LOOKS // self.pp, FINEST_OVERVIEW)
        if len(self.start) < MANY_SEGMENTS or count < COARSEST_OVERVIEW:
            return None
        step_s = self.makespan_s / count
        times = np.arange(count + 1) * step_s
        looks = [
            first + np.searchsorted(self.start[first:last], times, side="right") - 1
            for first, last in pairwise(self.offsets.tolist())
        ]
        return Overview(step_s, np.array(looks, np.int32))

    def prepare(self) -> None:
        """Compute what look-ups need, while no one waits for it."""
        self.visible(np.arange(self.pp), 0.0, self.makespan_s)
        self.at(0, float(self.end[0]))
        _ = self.overview

    @property
    def _span(self) -> float:
        return 2.0 * self.makespan_s

    def at(self, rank: int, time_s: float) -> int:
        """Return the segment of a rank at a time; before the start the first, after the end the last."""
        first, last = int(self.offsets[rank]), int(self.offsets[rank + 1])
        found = first + int(np.searchsorted(self.start[first:last], time_s, side="right")) - 1
        return max(first, found)

    def visible(self, ranks: Ints, start_s: float, end_s: float) -> tuple[Ints, Ints]:
        """Return the first segment of each rank in a stretch of time, and the one after the last."""
        base = ranks * self._span
        low = min(max(start_s, 0.0), self.makespan_s)
        high = min(max(end_s, 0.0), self.makespan_s)
        first = np.searchsorted(self._key, base + low, side="right") - 1
        last = np.searchsorted(self._key, base + high, side="right")
        return np.maximum(first, self.offsets[ranks]), np.minimum(last, self.offsets[ranks + 1])

    def segment_of(self, row: int) -> int:
        """Return the segment of an operation."""
        return self.at(int(self.schedule.rank[row]), float(self._middle(row)))

    def _middle(self, row: int) -> float:
        simulation = self.run.simulation
        return float((simulation.start_s[row] + simulation.end_s[row]) / 2)


def make_cells(run: PlannedRun) -> Cells:
    """Cut the time of each rank into segments."""
    schedule, simulation = run.schedule, run.simulation
    before = _level_before(run)
    causes = idle_causes(run)
    idle_from, message_from = _idle_times(run)
    codes, kinds = _cell_codes(schedule)
    rows = np.arange(len(schedule))
    # Three segments for each operation: waiting, waiting for a message under way, and the operation.
    start = np.stack([idle_from, message_from, simulation.start_s], axis=1)
    code = np.stack([causes, np.full(len(rows), MESSAGE), codes], axis=1).astype(np.uint16)
    level = np.stack([before, before, run.memory.during], axis=1)
    length = np.diff(start, axis=1)
    kept = np.column_stack([length > _ROUNDING * simulation.makespan_s, np.ones(len(rows), np.bool_)])
    return _with_ends(run, start, code, np.repeat(rows[:, None], 3, axis=1), level, kept, kinds)


def _with_ends(
    run: PlannedRun,
    start: Floats,
    code: NDArray[np.uint16],
    row: Ints,
    level: Floats,
    kept: NDArray[np.bool_],
    kinds: tuple[CellKind, ...],
) -> Cells:
    """Put two segments at the end of each rank: waiting for the others, and nothing."""
    schedule, simulation = run.schedule, run.simulation
    places = np.repeat(3 * schedule.offsets[1:], 2)
    last = schedule.offsets[1:] - 1
    ends = np.stack([simulation.end_s[last], np.full(schedule.pp, simulation.makespan_s)], axis=1)
    waits = simulation.makespan_s - simulation.end_s[last] > _ROUNDING * simulation.makespan_s
    end_codes = np.tile(np.array([DRAIN, OUTSIDE], np.uint16), schedule.pp)
    keep = np.insert(kept.ravel(), places, np.column_stack([waits, np.ones_like(waits)]).ravel())
    counts = np.add.reduceat(keep, 3 * schedule.offsets[:-1] + 2 * np.arange(schedule.pp), dtype=np.int64)
    return Cells(
        run,
        np.insert(start.ravel(), places, ends.ravel())[keep],
        np.insert(code.ravel(), places, end_codes)[keep],
        np.insert(row.ravel(), places, np.repeat(last, 2))[keep].astype(np.int32),
        np.insert(level.ravel(), places, 0.0)[keep].astype(np.float32),
        np.concatenate([[0], np.cumsum(counts)]),
        kinds,
    )


def _cell_codes(schedule: Schedule) -> tuple[Ints, tuple[CellKind, ...]]:
    lanes = schedule.layout.n_lanes + 1
    joined = (schedule.op.astype(np.int64) * lanes + schedule.lane) * lanes + schedule.lane2 + 1
    found, codes = np.unique(joined, return_inverse=True)
    kinds = tuple(
        CellKind(OpKind(value // lanes // lanes), value // lanes % lanes, value % lanes - 1)
        for value in found.tolist()
    )
    return codes + FIRST_CELL, kinds


def _level_before(run: PlannedRun) -> Floats:
    before = np.concatenate([[0.0], run.memory.after[:-1]])
    before[run.schedule.offsets[:-1]] = 0.0
    return before


def idle_causes(run: PlannedRun) -> NDArray[np.int64]:
    """Return for each operation why its rank idles before it, by the rule of `bubble_causes`."""
    schedule = run.schedule
    first, last = schedule.offsets[:-1], schedule.offsets[1:]
    rows = np.arange(len(schedule))
    backwards = np.flatnonzero(schedule.runs_backward)
    forwards = np.flatnonzero(schedule.runs_forward)
    first_backward = backwards[np.searchsorted(backwards, first)][schedule.rank]
    last_forward = forwards[np.searchsorted(forwards, last) - 1][schedule.rank]
    later = np.where(rows > last_forward, DRAIN, STEADY)
    return np.where(rows <= first_backward, WARM_UP, later)


def _idle_times(run: PlannedRun) -> tuple[Floats, Floats]:
    """Return for each operation since when its rank idles, and since when a message is under way."""
    schedule, simulation = run.schedule, run.simulation
    idle_from = np.concatenate([[0.0], simulation.end_s[:-1]])
    idle_from[schedule.offsets[:-1]] = 0.0
    waits = dependencies(schedule)
    reached = np.append(simulation.end_s, 0.0)
    p2p = np.append(simulation.durations.p2p_s, 0.0)
    first, second = p2p[waits.first_edge], p2p[waits.second_edge]
    first_was_last = reached[waits.first] + first >= reached[waits.second] + second
    message = np.where(first_was_last, first, second)
    return idle_from, np.maximum(simulation.start_s - message, idle_from)
