"""Pareto frontiers: the designs that no other beats in two respects at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from model_core.search.arrays import Rows
from model_core.search.axes import Axis
from model_core.search.readers import MAXIMISED
from model_core.search.space import Space
from model_core.search.sweep import Chunk, SweepResult
from model_core.spec.workload import Phase

PER_MODEL_AND_DTYPE: Final = ("model", "plan.weight_dtype", "workload.phase")
"""Axes that separate the frontiers of Pope's Figures 1 and C.1."""


def pareto_indices(x: Rows, y: Rows) -> Rows:
    """Return the frontier of points when both coordinates are to be small, in the order of ``x``.

    Of equal points the first counts. Points with a NaN are never on it.

    Args:
        x: first coordinate, shape (n,).
        y: second coordinate, shape (n,).

    Returns:
        Indices of the points that no other point equals or beats in both coordinates.
    """
    known = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    known = known[_promising(x[known], y[known])]
    order = known[np.lexsort((y[known], x[known]))]
    best = np.minimum.accumulate(y[order])
    better = np.ones(len(order), np.bool_)
    better[1:] = y[order][1:] < best[:-1]
    return order[better]


_BINS: Final = 1024


def _promising(x: Rows, y: Rows) -> Rows:
    """Drop, in linear time, most points that cannot be on the frontier, so that few are left to sort.

    A point is dropped where some point in a bin further left is at least as low.
    """
    if len(x) < 4 * _BINS:
        return np.arange(len(x))
    sample = np.sort(x[:: len(x) // (4 * _BINS) + 1])
    edges = sample[:: max(1, len(sample) // _BINS)]
    bins = np.searchsorted(edges, x, side="right")
    lowest = np.full(len(edges) + 1, np.inf)
    np.minimum.at(lowest, bins, y)
    before = np.concatenate(([np.inf], np.minimum.accumulate(lowest)[:-1]))
    return np.flatnonzero(y < before[bins])


@dataclass(frozen=True, slots=True)
class Frontier:
    """One frontier: what its designs have in common, and their numbers by growing latency.

    ``x`` and ``y`` name the columns; the latency is that of a step in decode and of the phase in prefill.
    ``columns`` holds the columns of these designs.
    """

    common: dict[str, Any]
    x: str
    y: str
    numbers: Rows
    columns: Mapping[str, Rows] = field(default_factory=dict)


def frontiers(result: SweepResult, y: str, per: Sequence[str] = PER_MODEL_AND_DTYPE) -> tuple[Frontier, ...]:
    """Return the frontiers of latency against a column, one for each value of some axes.

    Args:
        result: a sweep; only designs that are valid, fit and have a time take part.
        y: the column beside the latency; ``mfu`` and throughputs are to be large, others small.
        per: paths that separate frontiers; those without an axis are the same for all.
    """
    usable = np.flatnonzero(result.usable)
    return streamed_frontiers([Chunk(usable, _taken(result.columns, usable))], result.space, (y,), per)


def streamed_frontiers(
    chunks: Iterable[Chunk], space: Space, ys: Sequence[str], per: Sequence[str] = PER_MODEL_AND_DTYPE
) -> tuple[Frontier, ...]:
    """Like `frontiers`, for several columns in one pass over the chunks of a space too large to keep.

    Only the frontiers so far are held.
    """
    separating = [axis for axis in space.axes if axis.path in per]
    found: dict[tuple[int, int], Frontier] = {}
    for chunk in chunks:
        usable = np.flatnonzero(
            chunk.columns["valid"] & chunk.columns["fits"] & ~np.isnan(chunk.columns["step_s"])
        )
        codes = _codes(space, separating, chunk.numbers[usable])
        for code in np.unique(codes):
            which = usable[codes == code]
            part = Chunk(chunk.numbers[which], _taken(chunk.columns, which))
            for order, y in enumerate(ys):
                key = (order, int(code))
                found[key] = _extended(found.get(key), part, space, separating, y)
    return tuple(found[key] for key in sorted(found))


def _codes(space: Space, separating: Sequence[Axis], numbers: Rows) -> Rows:
    """Number the frontier that each design belongs to."""
    codes = np.zeros(len(numbers), np.int64)
    for axis in separating:
        length = len(axis.values)
        codes = codes * length + numbers // space.strides[axis.path] % length
    return codes


def _extended(
    before: Frontier | None, part: Chunk, space: Space, separating: Sequence[Axis], y: str
) -> Frontier:
    """Return a frontier after more designs, of which there is at least one."""
    numbers, columns = part.numbers, part.columns
    if before is not None:
        numbers = np.concatenate((before.numbers, numbers))
        columns = {name: np.concatenate((column, columns[name])) for name, column in before.columns.items()}
    x = latency_column(phase_of(space, int(numbers[0])))
    sign = -1.0 if y in MAXIMISED else 1.0
    on = pareto_indices(columns[x], sign * columns[y])
    where = space.position(int(numbers[0]))
    common = {axis.path: axis.plain(where[axis.path]) for axis in separating}
    return Frontier(common, x, y, numbers[on], _taken(columns, on))


def _taken(columns: Mapping[str, Rows], which: Rows) -> dict[str, Rows]:
    return {name: column[which] for name, column in columns.items()}


def phase_of(space: Space, number: int) -> Phase:
    """Return the phase of one design of a space."""
    values = space.values_of(number)
    workload = values.get("workload", space.design.workload)
    return Phase(values.get("workload.phase", workload.phase))


def latency_column(phase: Phase) -> str:
    """Return the column that is the latency of a phase: of a token in decode, of the whole input in prefill."""
    return "step_s" if phase is Phase.DECODE else "latency_s"
