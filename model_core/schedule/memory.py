"""Activations that each rank holds over time, from the same operations as the times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from model_core.schedule.operations import Floats, Ints, Schedule


@dataclass(frozen=True, eq=False)
class ActivationMemory:
    """What each rank holds: while a row runs, and after it.

    A row's own allocation is there from its start, what it releases until its end.
    """

    schedule: Schedule
    during: Floats
    after: Floats

    @cached_property
    def peak(self) -> Floats:
        """Most that each rank ever holds [pp]."""
        return np.maximum.reduceat(self.during, self.schedule.offsets[:-1])

    @property
    def left(self) -> Floats:
        """What each rank holds in the end [pp]: nothing, up to rounding."""
        return self.after[self.schedule.offsets[1:] - 1]

    def steps(self, rank: int, start_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
        """Return the curve of one rank as times and the levels that hold from them on.

        Args:
            rank: which.
            start_s: start of each row of the schedule.
            end_s: end of each row.
        """
        rows = slice(int(self.schedule.offsets[rank]), int(self.schedule.offsets[rank + 1]))
        times = np.stack([start_s[rows], end_s[rows]], axis=1).ravel()
        return times, np.stack([self.during[rows], self.after[rows]], axis=1).ravel()


def activation_memory(
    schedule: Schedule, stage_size: ArrayLike = 1.0, released_by_input: float = 0.0
) -> ActivationMemory:
    """Return the activations held over time.

    A forward allocates the activations of its stage for one microbatch, which stay until the backward
    for weights, or the full backward, has ended.

    Source: DSV3 Table 2 (there in chunks: size 1); Qi et al. 2023, 2.3 for the split.

    Args:
        schedule: what each rank does in order.
        stage_size: activations of a stage for one microbatch: a number (1: count chunks), or one for each
            stage, such as bytes.
        released_by_input: part that a separate backward for input already frees, from 0 to 1.

    Raises:
        ValueError: the part is not from 0 to 1, or the sizes are not one for each stage.
    """
    if not 0 <= released_by_input <= 1:
        raise ValueError(f"released_by_input is {released_by_input}; it is a part from 0 to 1")
    size = np.broadcast_to(np.asarray(stage_size, np.float64), (schedule.layout.n_stages,))
    taken = np.where(schedule.runs_forward, size[schedule.stage], 0.0)
    parts = np.array([0.0, 1.0, released_by_input, 1.0 - released_by_input, 1.0])
    freed = parts[schedule.op] * size[schedule.backward_stage]
    after = _within_ranks(taken - freed, schedule.offsets)
    return ActivationMemory(schedule, after + freed, after)


def parameter_copies(schedule: Schedule) -> int:
    """Return how many stages' parameters each rank holds: the column "parameter" of DSV3 Table 2.

    Two with DualPipe and Chimera (a stage of each direction) and with the V shapes, whose stages are
    half as large at equal ranks: see `parameter_share`.
    """
    return schedule.layout.n_lanes


def parameter_share(schedule: Schedule) -> float:
    """Return the part of the model's parameters that each rank holds, stages being equal."""
    return schedule.layout.n_lanes / schedule.layout.n_stages


def _within_ranks(values: Floats, offsets: Ints) -> Floats:
    """Return running sums that start anew on every rank."""
    sums = np.cumsum(values)
    before = np.concatenate([[0.0], sums])[offsets[:-1]]
    anew: Floats = sums - np.repeat(before, np.diff(offsets))
    return anew
