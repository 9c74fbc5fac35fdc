"""Sweeps: every design of a space evaluated as arrays, in chunks that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any, Final

import numpy as np

from model_core.diagnostics import Diagnostic
from model_core.search.arrays import Rows
from model_core.search.classify import Classifier
from model_core.search.groups import Group, Loose, groups_of
from model_core.search.numeric import NumericAxes
from model_core.search.readers import BOUND_NAMES, COLUMNS, KINDS, WHOLE, read_columns
from model_core.search.singles import single_columns
from model_core.search.space import Cancelled, SearchCancelledError, Space, never, windows
from model_core.spec.design import Design
from model_core.stages import programs_of

CHUNK: Final = 8192
"""Designs that are computed together: their arrays fit into a core's second-level cache."""

SINGLES: Final = 16
"""Designs per chunk where each is evaluated by itself."""

MOST_DESIGNS: Final = 20_000_000
"""Designs that `sweep` keeps in memory (about 150 bytes each); `stream` has no such limit."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some designs of a space: their numbers and, for each of `COLUMNS`, a value per design."""

    numbers: Rows
    columns: Mapping[str, Rows]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """All designs of a space in the order of their numbers.

    ``columns`` are those of `COLUMNS`; times are NaN where none can be given. ``refused``: why some
    combinations are no designs (the first of them).
    """

    space: Space
    columns: Mapping[str, Rows]
    refused: tuple[Diagnostic, ...] = ()

    @property
    def usable(self) -> Rows:
        """Which designs are valid, fit into the memory and have a time."""
        found: Rows = self.columns["valid"] & self.columns["fits"] & ~np.isnan(self.columns["step_s"])
        return found

    def index(self, path: str) -> Rows:
        """Return the index along one axis for every design."""
        axis = [axis.path for axis in self.space.axes].index(path)
        shape = self.space.shape
        inner = int(np.prod(shape[axis + 1 :], dtype=np.int64))
        return np.arange(self.space.size) // inner % shape[axis]

    def design(self, number: int) -> Design:
        """Return one design.

        Raises:
            ValueError: the combination is no design.
        """
        found, problems = self.space.design_at(number)
        if found is None:
            raise ValueError("; ".join(problem.message for problem in problems))
        return found

    def row(self, number: int) -> dict[str, Any]:
        """Return the columns of one design as plain data; unknown numbers are ``None``."""
        one = {name: column[number : number + 1] for name, column in self.columns.items()}
        return {name: values[0] for name, values in plain_columns(one).items()}


def plain_columns(columns: Mapping[str, Rows]) -> dict[str, list[Any]]:
    """Turn columns into lists of plain data; unknown numbers become ``None``."""
    return {name: _plain_column(name, column) for name, column in columns.items()}


def _plain_column(name: str, column: Rows) -> list[Any]:
    if name == "bound_by":
        return [BOUND_NAMES[value] for value in column]
    if column.dtype != np.float64:
        return list(column.tolist())
    kind: Callable[[float], float] = int if name in WHOLE else float
    known = np.isfinite(column).tolist()
    return [kind(value) if there else None for value, there in zip(column.tolist(), known, strict=True)]


def stream(
    space: Space,
    cancelled: Cancelled | Event | None = None,
    progress: Progress | None = None,
    chunk: int = CHUNK,
    classifier: Classifier | None = None,
) -> Iterator[Chunk]:
    """Evaluate a space chunk by chunk, in no particular order; memory does not grow with the space.

    Args:
        space: the designs.
        cancelled: asked before every chunk; an event that is set cancels.
        progress: called with the designs done and all designs after every chunk.
        chunk: designs per chunk.
        classifier: one made before for the same space.

    Raises:
        SearchCancelledError: it was cancelled.
    """
    stop = _as_question(cancelled)
    found = classifier or Classifier(space, stop)
    done = 0
    for part in _chunks(found, chunk):
        if stop():
            raise SearchCancelledError
        done += len(part.numbers)
        yield part
        if progress is not None:
            progress(done, space.size)


def sweep(
    space: Space,
    cancelled: Cancelled | Event | None = None,
    progress: Progress | None = None,
) -> tuple[SweepResult | None, tuple[Diagnostic, ...]]:
    """Evaluate a whole space.

    Returns:
        The result; or the diagnostics that say why there is none: too many designs, or none at all.

    Raises:
        SearchCancelledError: it was cancelled.
    """
    if space.size > MOST_DESIGNS:
        values = {"count": f"{space.size:,}", "limit": f"{MOST_DESIGNS:,}"}
        return None, (Diagnostic("space_too_large", "", values),)
    classifier = Classifier(space, _as_question(cancelled))
    columns = {name: np.empty(space.size, KINDS.get(name, np.float64)) for name in COLUMNS}
    for part in stream(space, cancelled, progress, classifier=classifier):
        for name, values_of in part.columns.items():
            columns[name][part.numbers] = values_of
    if classifier.refused and not columns["valid"].any() and np.isnan(columns["memory_per_chip_bytes"]).all():
        first = classifier.refused[0]
        return None, (Diagnostic("space_invalid", first.path, {"reason": first.message}),)
    return SweepResult(space, columns, classifier.refused), ()


def _as_question(cancelled: Cancelled | Event | None) -> Cancelled:
    if cancelled is None:
        return never
    return cancelled.is_set if isinstance(cancelled, Event) else cancelled


def _chunks(classifier: Classifier, chunk: int) -> Iterator[Chunk]:
    numeric = classifier.numeric
    for group in groups_of(classifier):
        # A design that is evaluated by itself takes about a millisecond: few at once, to be cancelled soon.
        is_slow = isinstance(group, Loose) and not group.is_refused
        yield from _group_chunks(classifier.space, group, numeric, SINGLES if is_slow else chunk)


def _group_chunks(space: Space, group: Group | Loose, numeric: NumericAxes, chunk: int) -> Iterator[Chunk]:
    cuts = list(windows(numeric.shape, chunk)) if numeric.axes else [()]
    widest = max(int(np.prod([cut.stop - cut.start for cut in window], dtype=np.int64)) for window in cuts)
    step, rows = max(1, chunk // widest), len(group.offsets)
    for start in range(0, rows, step):
        some = slice(start, min(start + step, rows))
        for window in cuts:
            inside = numeric.numbers(window)
            numbers = group.offsets[some].reshape(-1, *(1,) * len(numeric.axes)) + inside
            if isinstance(group, Group):
                yield _array_chunk(group, some, window, numbers)
            else:
                yield _loose_chunk(space, group, numbers.reshape(-1))


def _array_chunk(group: Group, rows: slice, window: tuple[slice, ...], numbers: Rows) -> Chunk:
    programs = programs_of(group.structure, group.phase)
    with np.errstate(all="ignore"):  # designs without a step divide by no tokens; they are cleared
        columns = read_columns(group.stacked(rows, window), group.structure, programs)
    return Chunk(numbers.reshape(-1), {name: _column(columns[name], numbers.shape, name) for name in COLUMNS})


def _loose_chunk(space: Space, group: Loose, numbers: Rows) -> Chunk:
    if not group.is_refused:
        return Chunk(numbers, single_columns(space, numbers))
    empty: dict[str, Any] = {**dict.fromkeys(COLUMNS, np.nan), **dict.fromkeys(KINDS, False)}
    empty["bound_by"] = len(BOUND_NAMES) - 1
    return Chunk(numbers, {name: _column(empty[name], numbers.shape, name) for name in COLUMNS})


def _column(values: Any, shape: tuple[int, ...], name: str) -> Rows:
    kind = KINDS.get(name, np.float64)
    return np.broadcast_to(np.asarray(values, kind), shape).reshape(-1)
