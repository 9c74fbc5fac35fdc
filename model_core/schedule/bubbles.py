"""Why ranks idle: warm-up, steady phase, drain, or waiting for a message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model_core.schedule.dependencies import dependencies
from model_core.schedule.operations import Flags, Floats, Ints
from model_core.schedule.simulate import Simulation


@dataclass(frozen=True, slots=True, eq=False)
class BubbleCauses:
    """Idle seconds of each rank [pp]; together they are the bubble.

    A rank warms up until its first backward starts and drains once its last forward has ended.
    ``communication_s`` is the part of any wait in which what is waited for was under way.
    """

    warm_up_s: Floats
    steady_s: Floats
    drain_s: Floats
    communication_s: Floats

    @property
    def total_s(self) -> Floats:
        """All idle time."""
        return self.warm_up_s + self.steady_s + self.drain_s + self.communication_s


def bubble_causes(simulation: Simulation) -> BubbleCauses:
    """Sort the idle time of each rank by cause."""
    schedule, offsets = simulation.schedule, simulation.schedule.offsets
    first_rows, rank = offsets[:-1], schedule.rank
    gap = simulation.start_s - np.concatenate([[0.0], simulation.end_s[:-1]])
    gap[first_rows] = simulation.start_s[first_rows]
    under_way = np.minimum(gap, _message_s(simulation))
    waiting = gap - under_way
    rows = np.arange(len(schedule))
    warm = rows <= _first(schedule.runs_backward, offsets)[rank]
    drain = ~warm & (rows > _last(schedule.runs_forward, offsets)[rank])
    after = simulation.makespan_s - simulation.end_s[offsets[1:] - 1]
    return BubbleCauses(
        np.add.reduceat(np.where(warm, waiting, 0.0), first_rows),
        np.add.reduceat(np.where(warm | drain, 0.0, waiting), first_rows),
        np.add.reduceat(np.where(drain, waiting, 0.0), first_rows) + after,
        np.add.reduceat(under_way, first_rows),
    )


def _message_s(simulation: Simulation) -> Floats:
    """Return the time of the message that arrived last for each row."""
    waits = dependencies(simulation.schedule)
    reached, p2p = np.append(simulation.end_s, 0.0), np.append(simulation.durations.p2p_s, 0.0)
    first_s, second_s = p2p[waits.first_edge], p2p[waits.second_edge]
    first_was_last = reached[waits.first] + first_s >= reached[waits.second] + second_s
    return np.where(first_was_last, first_s, second_s)


def _first(flags: Flags, offsets: Ints) -> Ints:
    """Return the first flagged row of each rank."""
    rows = np.flatnonzero(flags)
    return rows[np.searchsorted(rows, offsets[:-1])]


def _last(flags: Flags, offsets: Ints) -> Ints:
    """Return the last flagged row of each rank."""
    rows = np.flatnonzero(flags)
    return rows[np.searchsorted(rows, offsets[1:]) - 1]
