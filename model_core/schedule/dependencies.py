"""What each operation of a schedule waits for, and whether the schedule is complete."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_core.diagnostics import Diagnostic
from model_core.memo import memoised
from model_core.schedule.operations import Flags, Ints, OpKind, Schedule


@dataclass(frozen=True, eq=False)
class Dependencies:
    """For each row the rows on which it waits, besides those before it on its own rank.

    ``first`` is what the row's forward, or its only part, waits for; ``second`` what the backward of a
    pair waits for. ``len(schedule)`` stands for nothing. ``first_edge`` and ``second_edge`` number the
    boundary between stages that the data crosses, -1 where it crosses none. ``signature`` is equal for
    two rows of a rank only if they run the same kind in the same lanes and wait for rows at the same
    distance; empty where it would not fit into 64 bits. ``problems`` says what is missing or twice there.
    """

    first: Ints
    second: Ints
    first_edge: Ints
    second_edge: Ints
    signature: Ints
    problems: tuple[Diagnostic, ...]


@memoised(capacity=4)
def dependencies(schedule: Schedule) -> Dependencies:
    """Find what the operations of a schedule wait for.

    A forward waits for that of the stage before, a backward for input for that of the stage after (in
    the last stage for the forward), a backward for weights for that for input.
    """
    nothing, last = len(schedule), schedule.layout.n_stages - 1
    forward = np.flatnonzero(schedule.runs_forward)
    alone = np.flatnonzero(schedule.runs_backward & (schedule.op != OpKind.OVERLAPPED))
    pairs = np.flatnonzero(schedule.op == OpKind.OVERLAPPED)
    weights = np.flatnonzero(schedule.op == OpKind.BACKWARD_WEIGHT)
    keys = _Keys(schedule)
    forward_key, alone_key, weight_key = (keys.of(rows) for rows in (forward, alone, weights))
    pair_key = keys.of_backward(pairs)
    forwards, backwards = keys.table(), keys.table()
    forwards[forward_key] = forward
    backwards[alone_key], backwards[pair_key] = alone, pairs

    first, second = np.full(nothing, nothing), np.full(nothing, nothing)
    first_edge, second_edge = np.full(nothing, -1), np.full(nothing, -1)
    stage = schedule.stage[forward]
    first[forward] = np.where(stage > 0, forwards[forward_key - keys.per_stage], nothing)
    first_edge[forward] = stage - 1
    stage = schedule.stage[alone]
    first[alone] = np.where(stage < last, backwards[alone_key + keys.per_stage], forwards[alone_key])
    first_edge[alone] = np.where(stage < last, stage, -1)
    stage = schedule.stage2[pairs]
    second[pairs] = np.where(stage < last, backwards[pair_key + keys.per_stage], forwards[pair_key])
    second_edge[pairs] = np.where(stage < last, stage, -1)
    first[weights] = backwards[weight_key]
    for waits_for, edge in ((first, first_edge), (second, second_edge)):
        implied = _before_on_its_rank(schedule, waits_for)
        waits_for[implied], edge[implied] = nothing, -1

    problems = _problems(schedule, keys, (forward_key, np.concatenate([alone_key, pair_key]), weight_key))
    signature = np.empty(0, np.int64) if problems else _signature(schedule, first, second)
    return Dependencies(first, second, first_edge, second_edge, signature, problems)


def _before_on_its_rank(schedule: Schedule, waits_for: Ints) -> Flags:
    rows = np.arange(len(schedule))
    first_row = schedule.offsets[schedule.rank]
    return (waits_for >= first_row) & (waits_for < rows)


class _Keys:
    """Numbers (direction, stage, microbatch), so that tables find the row of each.

    The tables have a stage to spare at both ends, so that looking up a neighbour needs no bounds.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.per_stage = max(
            schedule.microbatches_per_direction,
            int(schedule.microbatch.max(initial=0)) + 1,
            int(schedule.microbatch2.max(initial=0)) + 1,
        )
        self.per_direction = (schedule.layout.n_stages + 2) * self.per_stage

    def table(self) -> Ints:
        return np.full(self.schedule.layout.n_directions * self.per_direction, len(self.schedule))

    def of(self, rows: Ints) -> Ints:
        s = self.schedule
        return self._key(s.direction[rows], s.stage[rows], s.microbatch[rows])

    def of_backward(self, pairs: Ints) -> Ints:
        s = self.schedule
        return self._key(s.direction2[pairs], s.stage2[pairs], s.microbatch2[pairs])

    def expected(self) -> Ints:
        s = self.schedule
        shape = (s.layout.n_directions, s.layout.n_stages, s.microbatches_per_direction)
        direction, stage, microbatch = np.indices(shape).reshape(3, -1)
        return self._key(direction, stage, microbatch)

    def _key(self, direction: Ints, stage: Ints, microbatch: NDArray[np.integer]) -> Ints:
        return direction * self.per_direction + (stage + 1) * self.per_stage + microbatch


def _problems(schedule: Schedule, keys: _Keys, found: tuple[Ints, Ints, Ints]) -> tuple[Diagnostic, ...]:
    """Report a microbatch whose forward, backward or backward for weights is not there exactly once."""
    inputs = keys.of(np.flatnonzero(schedule.op == OpKind.BACKWARD_INPUT))
    expected = np.zeros(len(keys.table()), np.int64)
    expected[keys.expected()] = 1
    split = np.bincount(inputs, minlength=len(expected))
    wanted = (expected, expected, split)
    for name, key, want in zip(("F", "B", "W"), found, wanted, strict=True):
        wrong = np.flatnonzero(np.bincount(key, minlength=len(want)) != want)
        if len(wrong):
            return (_wrong(keys, name, int(wrong[0]), len(wrong)),)
    return ()


def _wrong(keys: _Keys, name: str, key: int, count: int) -> Diagnostic:
    direction, rest = divmod(key, keys.per_direction)
    stage, microbatch = divmod(rest, keys.per_stage)
    values = {
        "operation": name,
        "direction": direction,
        "stage": stage - 1,
        "microbatch": microbatch,
        "count": count,
    }
    return Diagnostic("schedule_incomplete", "", values)


def _signature(schedule: Schedule, first: Ints, second: Ints) -> Ints:
    """Join kind, lanes and distances of the dependencies into one number for each row."""
    lanes = schedule.layout.n_lanes + 1
    what = (schedule.op.astype(np.int64) * lanes + schedule.lane) * lanes + schedule.lane2 + 1
    width = 2 * len(schedule) + 3
    if len(OpKind) * lanes * lanes * width * width >= 2**63:
        return np.empty(0, np.int64)
    local = np.concatenate([np.arange(len(schedule)) - schedule.offsets[schedule.rank], [0]])
    nothing = len(schedule) + 1
    signature = what
    for other in (first, second):
        distance = np.where(other == len(schedule), nothing, local[other] - local[:-1])
        signature = signature * width + distance + len(schedule)
    return signature
