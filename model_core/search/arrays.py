"""Many designs as one: the frozen inputs and what is read of them, with arrays where numbers differ.

A *tree* is a spec, a dataclass, a mapping or a tuple of trees; its leaves are numbers, or things that
shape what is computed (texts, choices, ``None``). Trees that agree in all but their numbers (equal
`skeleton`) are stacked into one tree whose numbers are arrays, which the readers of the core take as they
take a single design.

Every array has the dimensions (rows, first numeric axis, second numeric axis, …), one of size 1 where the
number does not depend on it, so that what depends on few axes is computed for few elements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from model_core.spec.base import Spec

T = TypeVar("T")
Rows = np.ndarray[Any, np.dtype[Any]]

DESCRIPTIVE = frozenset({"name", "notes", "sources", "latency_target"})
"""Fields of specs that change no number; a stacked tree keeps those of its first."""


def is_number(value: object) -> bool:
    """Tell whether a leaf counts: numbers and arrays of them, but not true and false."""
    return isinstance(value, int | float | np.ndarray) and not isinstance(value, bool)


def _entries(tree: Any) -> Iterator[tuple[Any, Any]] | None:
    """Return the named parts of a tree, or ``None`` for a leaf."""
    if isinstance(tree, Spec):
        return ((name, getattr(tree, name)) for name in type(tree).model_fields if name not in DESCRIPTIVE)
    if is_dataclass(tree) and not isinstance(tree, type):
        return ((entry.name, getattr(tree, entry.name)) for entry in fields(tree))
    if isinstance(tree, Mapping):
        return iter(tree.items())
    if isinstance(tree, tuple):
        return iter(enumerate(tree))
    return None


def skeleton(tree: Any) -> Hashable:
    """Return all of a tree but its numbers."""
    entries = _entries(tree)
    if entries is not None:
        return type(tree), tuple((name, skeleton(part)) for name, part in entries)
    return "number" if is_number(tree) else tree


def _rebuilt(tree: Any, parts: Mapping[Any, Any]) -> Any:
    if isinstance(tree, Spec):
        # model_copy does not validate: these specs hold arrays where their fields are numbers.
        return tree.model_copy(update=dict(parts))
    if isinstance(tree, Mapping):
        return dict(parts)
    if isinstance(tree, tuple):
        return tuple(parts[i] for i in range(len(tree)))
    return replace(tree, **parts)


def stack(trees: Sequence[T], dimensions: int, whole: bool = False) -> T:
    """Join trees of equal skeleton; numbers that differ become arrays along the first dimension.

    Args:
        trees: at least one.
        dimensions: of the arrays: 1 + number of numeric axes.
        whole: keep whole numbers as integers instead of floats; their products must stay small.
    """
    first = trees[0]
    if all(tree is first for tree in trees):
        return first
    entries = _entries(first)
    if entries is None:
        return cast(T, _stacked_numbers(trees, dimensions, whole)) if is_number(first) else first
    parts = {name: stack([_part(tree, name) for tree in trees], dimensions, whole) for name, _ in entries}
    return cast(T, _rebuilt(first, parts))


def _part(tree: Any, name: Any) -> Any:
    return tree[name] if isinstance(tree, Mapping | tuple) else getattr(tree, name)


def _stacked_numbers(numbers: Sequence[Any], dimensions: int, whole: bool) -> Any:
    first = numbers[0]
    if any(isinstance(number, np.ndarray) for number in numbers):
        parts = [np.reshape(n, (1,) * dimensions) if np.ndim(n) == 0 else n for n in numbers]
        shape = np.broadcast_shapes(*(part.shape for part in parts))
        return np.concatenate([np.broadcast_to(part, shape) for part in parts])
    if all(number == first for number in numbers):
        return first
    kind = np.int64 if whole and all(isinstance(number, int) for number in numbers) else np.float64
    return np.array(numbers, kind).reshape(-1, *(1,) * (dimensions - 1))


@dataclass(frozen=True, slots=True)
class Arrays:
    """A stacked tree, and where in it arrays are: names of parts, each with the places inside it."""

    tree: Any
    places: Mapping[Any, Any] | None

    @classmethod
    def of(cls, tree: Any) -> Arrays:
        """Look for the arrays of a tree once, so that selecting from it touches nothing else."""
        return cls(tree, _places(tree))

    def select(self, rows: Rows, window: tuple[slice, ...]) -> Any:
        """Return the tree for some rows and a window of the numeric axes."""

        def part(array: Rows) -> Rows:
            cuts = zip(window, array.shape[1:], strict=True)
            along = (cut if size > 1 else slice(None) for cut, size in cuts)
            index: tuple[Any, ...] = (rows if array.shape[0] > 1 else slice(None), *along)
            return np.asarray(array[index])

        return _mapped(self.tree, self.places, part)


def _places(tree: Any) -> Mapping[Any, Any] | None:
    """Return the parts that hold arrays; empty for an array itself, ``None`` where there is none."""
    if isinstance(tree, np.ndarray):
        return {}
    entries = _entries(tree)
    found = {name: _places(part) for name, part in entries} if entries is not None else {}
    return {name: places for name, places in found.items() if places is not None} or None


def _mapped(tree: Any, places: Mapping[Any, Any] | None, function: Callable[[Rows], Rows]) -> Any:
    if places is None:
        return tree
    if isinstance(tree, np.ndarray):
        return function(tree)
    changed = {name: _mapped(_part(tree, name), inside, function) for name, inside in places.items()}
    if isinstance(tree, Mapping | tuple):
        return _rebuilt(tree, {**dict(_entries(tree) or ()), **changed})
    return _rebuilt(tree, changed)
