"""A pipeline schedule as columns: one row for each operation, grouped by rank, in issue order.

Every reader (event simulation, memory, drawing, export, execution) uses these arrays. The notation
``F0.3 FB0.4/1.2 I1.2 W1.2 B0.3`` names an operation by its kind, its lane and its microbatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class OpKind(IntEnum):
    """What a rank does at a time: the operations of DSV3 Figure 5."""

    FORWARD = 0
    BACKWARD = 1
    BACKWARD_INPUT = 2
    BACKWARD_WEIGHT = 3
    OVERLAPPED = 4


LETTERS: Final = ("F", "B", "I", "W", "FB")
"""The letters of the notation, by `OpKind`."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the stages of the model sit.

    A lane is one chunk of layers on a rank: number ``direction × n_chunks + chunk``, the digit of the
    notation. ``stage_of[lane, rank]`` is the stage it holds; with two directions each stage has a copy
    of its parameters in each.
    """

    stage_of: Ints
    n_directions: int = 1

    def __post_init__(self) -> None:
        self.stage_of.flags.writeable = False

    @property
    def pp(self) -> int:
        """Ranks."""
        return int(self.stage_of.shape[1])

    @property
    def n_lanes(self) -> int:
        """Stages on each rank: how many times the parameters of one stage it holds (DSV3 Table 2)."""
        return int(self.stage_of.shape[0])

    @property
    def n_chunks(self) -> int:
        """Stages on each rank in one direction."""
        return self.n_lanes // self.n_directions

    @property
    def n_stages(self) -> int:
        """Parts that the model is cut into."""
        return self.pp * self.n_chunks

    @cached_property
    def rank_of(self) -> Ints:
        """The rank of a stage in a direction: [directions][stages]."""
        holders = np.empty((self.n_directions, self.n_stages), np.int64)
        for lane, stages in enumerate(self.stage_of):
            holders[lane // self.n_chunks, stages] = np.arange(self.pp)
        return holders

    @cached_property
    def hops(self) -> Flags:
        """Whether the boundary after a stage lies between two ranks: [stages - 1]."""
        found: Flags = self.rank_of[0, 1:] != self.rank_of[0, :-1]
        return found


def looped(pp: int, n_chunks: int = 1) -> Layout:
    """Stages go round the ranks: stage = chunk × pp + rank. One chunk: the plain pipeline."""
    return Layout(np.arange(pp) + pp * np.arange(n_chunks)[:, None])


def vee(pp: int) -> Layout:
    """Stages go up the ranks and come back: the first and the last are on rank 0."""
    return Layout(np.stack([np.arange(pp), 2 * pp - 1 - np.arange(pp)]))


def bidirectional(pp: int) -> Layout:
    """Two copies of the pipeline; direction 0 enters at rank 0, direction 1 at the last rank."""
    return Layout(np.stack([np.arange(pp), pp - 1 - np.arange(pp)]), n_directions=2)


@dataclass(frozen=True, eq=False)
class Schedule:
    """The ordered operations of every rank.

    ``offsets[r]:offsets[r + 1]`` are the rows of rank ``r``. ``lane`` and ``microbatch`` say what a row
    works on; for an overlapped pair that is the forward, and ``lane2`` and ``microbatch2`` are the
    backward (-1 elsewhere). Microbatches are numbered within a direction, as in the notation.
    """

    kind: str
    layout: Layout
    microbatches: int
    offsets: Ints
    op: NDArray[np.int8]
    lane: NDArray[np.int16]
    microbatch: NDArray[np.int32]
    lane2: NDArray[np.int16]
    microbatch2: NDArray[np.int32]

    def __post_init__(self) -> None:
        for column in (self.offsets, self.op, self.lane, self.microbatch, self.lane2, self.microbatch2):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.op)

    @property
    def pp(self) -> int:
        """Ranks."""
        return self.layout.pp

    @property
    def microbatches_per_direction(self) -> int:
        """Microbatches that enter at each end."""
        return self.microbatches // self.layout.n_directions

    @cached_property
    def rank(self) -> Ints:
        """The rank of each row."""
        return np.repeat(np.arange(self.pp), np.diff(self.offsets))

    @cached_property
    def stage(self) -> Ints:
        """The stage of each row; of a pair that of the forward."""
        return self.layout.stage_of[self.lane, self.rank]

    @cached_property
    def stage2(self) -> Ints:
        """The stage of the backward of a pair; -1 elsewhere."""
        return np.where(self.lane2 < 0, -1, self.layout.stage_of[self.lane2, self.rank])

    @cached_property
    def direction(self) -> Ints:
        """The direction of each row; of a pair that of the forward."""
        return self.lane.astype(np.int64) // self.layout.n_chunks

    @cached_property
    def direction2(self) -> Ints:
        """The direction of the backward of a pair; -1 elsewhere."""
        return np.where(self.lane2 < 0, -1, self.lane2.astype(np.int64) // self.layout.n_chunks)

    @property
    def chunk(self) -> Ints:
        """Which of the rank's chunks of layers a row works on; of a pair that of the forward."""
        return self.lane.astype(np.int64) % self.layout.n_chunks

    @cached_property
    def runs_forward(self) -> Flags:
        """Rows that run a forward, alone or in a pair."""
        return np.isin(self.op, (OpKind.FORWARD, OpKind.OVERLAPPED))

    @cached_property
    def runs_backward(self) -> Flags:
        """Rows that run a backward for input, with or without that for weights, alone or in a pair."""
        return np.isin(self.op, (OpKind.FORWARD, OpKind.BACKWARD_WEIGHT), invert=True)

    @cached_property
    def backward_stage(self) -> Ints:
        """The stage whose backward a row runs; meaningless for forwards."""
        return np.where(self.op == OpKind.OVERLAPPED, self.stage2, self.stage)

    def label(self, row: int) -> str:
        """Return a row in the notation."""
        text = f"{LETTERS[self.op[row]]}{self.lane[row]}.{self.microbatch[row]}"
        return f"{text}/{self.lane2[row]}.{self.microbatch2[row]}" if self.lane2[row] >= 0 else text

    def row(self, rank: int, label: str) -> int:
        """Return the row of an operation.

        Raises:
            KeyError: the rank has no such operation.
        """
        for found in range(int(self.offsets[rank]), int(self.offsets[rank + 1])):
            if self.label(found) == label:
                return found
        raise KeyError(f"rank {rank} has no {label}")


_PAIR_SHIFT: Final = 10
_KIND_SHIFT: Final = 20
_LANE_MASK: Final = (1 << _PAIR_SHIFT) - 1
MAX_LANES: Final = _LANE_MASK


def code(op: OpKind, lane: Ints | int, lane2: int = -1) -> Ints:
    """Return operations as numbers: kind and lanes, without the microbatch."""
    return (np.asarray(lane, np.int64) << _PAIR_SHIFT) + (int(op) << _KIND_SHIFT) + lane2 + 1


def assemble(kind: str, layout: Layout, microbatches: int, codes: Sequence[Ints]) -> Schedule:
    """Make a schedule from what each rank does in order; microbatches are numbered by counting.

    On a rank every lane takes its microbatches in order, and deferred backwards for weights run in the
    order of their backwards for input, whatever lane their code names.

    Args:
        kind: the name of the schedule.
        layout: where its stages sit.
        microbatches: over all directions.
        codes: for each rank its operations as made by `code`.
    """
    flat = np.concatenate(codes)
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in codes])]).astype(np.int64)
    op = (flat >> _KIND_SHIFT).astype(np.int8)
    lane = ((flat >> _PAIR_SHIFT) & _LANE_MASK).astype(np.int16)
    lane2 = ((flat & _LANE_MASK) - 1).astype(np.int16)
    forward = (op == OpKind.FORWARD) | (op == OpKind.OVERLAPPED)
    backward = (op != OpKind.FORWARD) & (op != OpKind.BACKWARD_WEIGHT)
    backward_lane = np.where(op == OpKind.OVERLAPPED, lane2, lane)
    nth_forward = _occurrence(lane, forward, offsets, layout.n_lanes)
    nth_backward = _occurrence(backward_lane, backward, offsets, layout.n_lanes)
    microbatch = np.where(forward, nth_forward, nth_backward)
    inputs, weights = (
        np.flatnonzero(op == OpKind.BACKWARD_INPUT),
        np.flatnonzero(op == OpKind.BACKWARD_WEIGHT),
    )
    lane[weights], microbatch[weights] = lane[inputs], microbatch[inputs]
    microbatch2 = np.where(op == OpKind.OVERLAPPED, nth_backward, -1)
    return Schedule(
        kind,
        layout,
        microbatches,
        offsets,
        op,
        lane,
        microbatch.astype(np.int32),
        lane2,
        microbatch2.astype(np.int32),
    )


def _occurrence(lane: NDArray[np.int16], counted: Flags, offsets: Ints, n_lanes: int) -> Ints:
    """Number the counted rows of each rank and lane from 0; other rows get what stands before them."""
    numbers = np.zeros(len(lane), np.int64)
    rows = np.diff(offsets)
    for index in range(n_lanes):
        mine = counted & (lane == index)
        before = np.concatenate([[0], np.cumsum(mine)])
        found = before[:-1] - np.repeat(before[offsets[:-1]], rows)
        numbers[mine] = found[mine]
    return numbers
