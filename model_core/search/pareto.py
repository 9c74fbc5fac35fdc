"""Pareto frontiers: the designs that no other beats in two respects at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from model_core.search.arrays import Rows
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
    """

    common: dict[str, Any]
    x: str
    y: str
    numbers: Rows


def frontiers(result: SweepResult, y: str, per: Sequence[str] = PER_MODEL_AND_DTYPE) -> tuple[Frontier, ...]:
    """Return the frontiers of latency against a column, one for each value of some axes.

    Args:
        result: a sweep; only designs that are valid, fit and have a time take part.
        y: the column beside the latency; ``mfu`` and throughputs are to be large, others small.
        per: paths that separate frontiers; those without an axis are the same for all.
    """
    usable = np.flatnonzero(result.usable)
    space = result.space
    separating = [axis for axis in space.axes if axis.path in per]
    codes = np.zeros(len(usable), np.int64)
    for axis in separating:
        codes = codes * len(axis.values) + result.index(axis.path)[usable]
    return tuple(_one(result, y, separating, int(code), usable[codes == code]) for code in np.unique(codes))


def _one(result: SweepResult, y: str, separating: Sequence[Any], code: int, numbers: Rows) -> Frontier:
    common: dict[str, Any] = {}
    phase = result.space.design.workload.phase
    for axis in reversed(separating):
        code, index = divmod(code, len(axis.values))
        common[axis.path] = axis.plain(index)
    if len(numbers):
        phase = phase_of(result.space, int(numbers[0]))
    x = latency_column(phase)
    sign = -1.0 if y in MAXIMISED else 1.0
    on = pareto_indices(result.columns[x][numbers], sign * result.columns[y][numbers])
    return Frontier(dict(reversed(common.items())), x, y, numbers[on])


def phase_of(space: Space, number: int) -> Phase:
    """Return the phase of one design of a space."""
    values = space.values_of(number)
    workload = values.get("workload", space.design.workload)
    return Phase(values.get("workload.phase", workload.phase))


def latency_column(phase: Phase) -> str:
    """Return the column that is the latency of a phase: of a token in decode, of the whole input in prefill."""
    return "step_s" if phase is Phase.DECODE else "latency_s"


def running_frontier(chunks: Iterable[Chunk], x: str, y: str) -> Iterator[Chunk]:
    """Yield the frontier of all chunks so far after each chunk, for spaces too large to keep.

    Args:
        chunks: from `search.sweep.stream`.
        x: column to be small.
        y: column beside it; to be small unless it is in `MAXIMISED`.
    """
    best: Chunk | None = None
    sign = -1.0 if y in MAXIMISED else 1.0
    for chunk in chunks:
        usable = np.flatnonzero(chunk.columns["valid"] & chunk.columns["fits"])
        found = _taken(chunk, usable)
        if best is not None:
            found = _joined(best, found)
        best = _taken(found, pareto_indices(found.columns[x], sign * found.columns[y]))
        yield best


def _taken(chunk: Chunk, which: Rows) -> Chunk:
    return Chunk(chunk.numbers[which], {name: column[which] for name, column in chunk.columns.items()})


def _joined(first: Chunk, second: Chunk) -> Chunk:
    columns = {name: np.concatenate((column, second.columns[name])) for name, column in first.columns.items()}
    return Chunk(np.concatenate((first.numbers, second.numbers)), columns)
