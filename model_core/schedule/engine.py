"""Completion times of operations that wait for each other: the longest paths of the schedule's graph.

Two ways give the same times. Wide schedules (many ranks) advance all ranks together, one operation
each, in NumPy. Narrow ones advance rank by rank in plain Python, and skip what repeats: once a stretch
of every rank equals the stretch before it shifted in time, and what follows waits for nothing older,
all further repetitions are that stretch shifted again. The skipping is exact, not an extrapolation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from model_core.schedule.operations import Floats, Ints

_WIDE_RANKS: Final = 32
_WIDE_RATIO: Final = 40
_SHORT: Final = 64
_CANDIDATES: Final = 32
_ROUNDING: Final = 4 * np.finfo(np.float64).eps


_Rows = tuple[list[int], list[int], list[float], list[float], list[float]]


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows grouped by rank; each runs after the row before it and after ``first`` and ``second``.

    ``len(duration_s)`` in ``first`` and ``second`` stands for nothing. The delays are between the end
    of what is waited for and the earliest start. ``signature`` is that of `Dependencies`.
    """

    offsets: Ints
    first: Ints
    second: Ints
    first_delay_s: Floats
    second_delay_s: Floats
    duration_s: Floats
    signature: Ints

    @property
    def pp(self) -> int:
        """Ranks."""
        return len(self.offsets) - 1

    @property
    def longest(self) -> int:
        """Rows of the rank with the most."""
        return int(np.diff(self.offsets).max(initial=0))


def completion_times(problem: Problem) -> Floats:
    """Return when each row ends; infinity for rows that wait for each other and never run."""
    if problem.pp >= _WIDE_RANKS and problem.longest <= _WIDE_RATIO * problem.pp:
        return _together(problem)
    return _Narrow(problem).run()


def _together(problem: Problem) -> Floats:
    """Advance all ranks by one row at a time."""
    n, pp = len(problem.duration_s), problem.pp
    rank = np.repeat(np.arange(pp), np.diff(problem.offsets))
    # Every rank gets one row more at its end, which never runs; two last rows are "at once" and "never".
    place = np.concatenate([np.arange(n) + rank, [n + pp]])
    at_once, never = n + pp, n + pp + 1
    first, second = np.full(n + pp, never), np.full(n + pp, never)
    delay, delay2, duration = np.zeros(n + pp), np.zeros(n + pp), np.zeros(n + pp)
    rows = place[:-1]
    first[rows], second[rows] = place[problem.first], place[problem.second]
    delay[rows], delay2[rows] = problem.first_delay_s, problem.second_delay_s
    duration[rows] = problem.duration_s
    end = np.full(n + pp + 2, np.inf)
    end[at_once] = 0.0
    at, clock = problem.offsets[:-1] + np.arange(pp), np.zeros(pp)
    while True:
        ready_s = np.maximum(end[first[at]] + delay[at], end[second[at]] + delay2[at])
        ready = ready_s < np.inf
        if not ready.any():
            return np.take(end, rows)
        now = np.maximum(ready_s, clock) + duration[at]
        end[at] = now
        clock = np.where(ready, now, clock)
        at += ready


class _Narrow:
    """Advances rank by rank, and skips repetitions."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n, pp = len(problem.duration_s), problem.pp
        self.end = [np.inf] * n + [0.0]
        self.at: list[int] = problem.offsets[:-1].tolist()
        self.stop: list[int] = problem.offsets[1:].tolist()
        self.clock = [0.0] * pp

    def run(self) -> Floats:
        """Return the end of each row."""
        step = _SHORT
        while self._advance(step):
            if not self._skip():
                step *= 2
        return np.array(self.end[:-1])

    def _advance(self, step: int) -> bool:
        """Run up to ``step`` rows of every rank; returns whether any ran."""
        begin = self.at.copy()
        stop = [min(at + step, stop) for at, stop in zip(begin, self.stop, strict=True)]
        rows = [self._rows(a, b) for a, b in zip(begin, stop, strict=True)]
        order = list(range(self.problem.pp))
        idle_sweeps = 0
        while idle_sweeps < 2:
            ran = False
            for rank in order:
                if self.at[rank] < stop[rank]:
                    ran |= self._run_rank(rank, rows[rank], begin[rank], stop[rank])
            # Forwards travel up the ranks and backwards down: turning round finds both at once.
            order.reverse()
            idle_sweeps = 0 if ran else idle_sweeps + 1
        return self.at != begin

    def _rows(self, begin: int, stop: int) -> _Rows:
        p = self.problem
        return (
            p.first[begin:stop].tolist(),
            p.second[begin:stop].tolist(),
            p.first_delay_s[begin:stop].tolist(),
            p.second_delay_s[begin:stop].tolist(),
            p.duration_s[begin:stop].tolist(),
        )

    def _run_rank(
        self,
        rank: int,
        rows: _Rows,
        base: int,
        stop: int,
    ) -> bool:
        """Run rows of one rank until one waits for a row that has not run."""
        first, second, delay, delay2, duration = rows
        end, clock = self.end, self.clock[rank]
        begin = row = self.at[rank]
        never = np.inf
        while row < stop:
            k = row - base
            ready = end[first[k]] + delay[k]
            other = end[second[k]] + delay2[k]
            if other > ready:  # noqa: PLR1730 - max() takes three times as long
                ready = other
            if ready == never:
                break
            if ready > clock:  # noqa: PLR1730
                clock = ready
            clock += duration[k]
            end[row] = clock
            row += 1
        self.at[rank], self.clock[rank] = row, clock
        return row > begin

    def _skip(self) -> bool:
        """Pass over repetitions of what was just run; returns whether there were any."""
        remaining = [stop - at for at, stop in zip(self.at, self.stop, strict=True)]
        if not len(self.problem.signature) or max(remaining) < _SHORT:
            return False
        for period in self._candidates(int(np.argmax(remaining))):
            window = self._window(period)
            shift_s = self._shift(period, window) if window else None
            if shift_s is not None:
                repeats = self._repeats(period)
                if repeats > 1:
                    self._repeat(period, repeats, shift_s)
                    return True
        return False

    def _candidates(self, rank: int) -> list[int]:
        """Return distances at which the next rows of a rank repeat earlier ones, shortest first."""
        signature, at = self.problem.signature, self.at[rank]
        before = signature[int(self.problem.offsets[rank]) : at][::-1]
        ahead = min(_SHORT, self.stop[rank] - at)
        found: list[int] = []
        for distance in (np.flatnonzero(before == signature[at]) + 1).tolist():
            if np.array_equal(signature[at : at + ahead], signature[at - distance : at - distance + ahead]):
                found.append(distance)
                if len(found) == _CANDIDATES:
                    break
        return found

    def _window(self, period: int) -> int:
        """Return how far back the next period's rows look; 0 where some wait for rows after that period."""
        p, window = self.problem, period
        nothing = len(p.duration_s)
        at = np.array(self.at)
        for begin, stop in zip(self.at, self.stop, strict=True):
            rows = slice(begin, min(begin + period, stop))
            others = np.concatenate([p.first[rows], p.second[rows]])
            others = others[others < nothing]
            back = at[np.searchsorted(p.offsets, others, side="right") - 1] - others
            if len(back) and back.min() <= -period:
                return 0
            window = max(window, int(back.max(initial=0)))
        return window

    def _shift(self, period: int, window: int) -> float | None:
        """Return by how much the last rows of every rank end after those a period before, if all do."""
        shift_s: float | None = None
        for begin, at in zip(self.problem.offsets[:-1].tolist(), self.at, strict=True):
            if at - begin < window + period:
                return None
            now = np.array(self.end[at - window : at])
            later = now - np.array(self.end[at - window - period : at - period])
            shift_s = float(later[-1]) if shift_s is None else shift_s
            # Sums of the same durations in another order differ in their last digits only.
            if np.abs(later - shift_s).max() > _ROUNDING * now[-1]:
                return None
        return shift_s

    def _repeats(self, period: int) -> int:
        """Return how many periods follow in which every rank does the same again."""
        signature, fewest = self.problem.signature, len(self.problem.duration_s)
        for at, stop in zip(self.at, self.stop, strict=True):
            differs = signature[at:stop] != signature[at - period : stop - period]
            same = int(np.argmax(differs)) if differs.any() else stop - at
            fewest = min(fewest, same // period)
        return fewest

    def _repeat(self, period: int, repeats: int, shift_s: float) -> None:
        """Run whole periods: the last one again, each time later by the same shift."""
        later = shift_s * np.arange(1, repeats + 1)[:, None]
        for rank, at in enumerate(self.at):
            times = (np.array(self.end[at - period : at]) + later).ravel().tolist()
            self.end[at : at + len(times)] = times
            self.at[rank] = at + len(times)
            self.clock[rank] = times[-1]
