"""A search space: a design and the axes over which it varies, as a full product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from model_core.diagnostics import Diagnostic
from model_core.search.axes import BATCH, PARTS, Axis, axis_problem
from model_core.spec.base import Spec
from model_core.spec.design import Design
from model_core.spec.edits import edit_values

Cancelled = Callable[[], bool]
MOST_VARIANTS: Final = 200_000


class SearchCancelledError(Exception):
    """The search was asked to stop before it was done."""


def never() -> bool:
    """Do not cancel."""
    return False


@dataclass(frozen=True, slots=True)
class Space:
    """All designs that differ from ``design`` along ``axes``; made by `make_space`.

    Designs are numbered in the order of the product, the last axis running fastest.
    """

    design: Design
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of designs."""
        return prod(self.shape)

    @property
    def strides(self) -> dict[str, int]:
        """How far apart neighbours along each axis are numbered."""
        strides, stride = {}, 1
        for axis in reversed(self.axes):
            strides[axis.path] = stride
            stride *= len(axis.values)
        return strides

    def position(self, number: int) -> dict[str, int]:
        """Return the index along each axis of a design."""
        if not self.axes:
            return {}
        found = np.unravel_index(number, self.shape)
        return {axis.path: int(index) for axis, index in zip(self.axes, found, strict=True)}

    def values_of(self, number: int) -> dict[str, Any]:
        """Return the value along each axis of a design."""
        where = self.position(number)
        return {axis.path: axis.values[where[axis.path]] for axis in self.axes}

    def labels_of(self, number: int) -> dict[str, Any]:
        """Return the values as plain data: numbers, texts and names of parts."""
        where = self.position(number)
        return {axis.path: axis.plain(where[axis.path]) for axis in self.axes}

    def design_at(self, number: int) -> tuple[Design | None, tuple[Diagnostic, ...]]:
        """Build one design, or say why the combination is none."""
        return edit_values(self.design, _outer_first(self.values_of(number)))


def make_space(design: Design, axes: Sequence[Axis]) -> tuple[Space | None, tuple[Diagnostic, ...]]:
    """Join axes to a space; each field may have one axis only."""
    paths = [axis.path for axis in axes]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        return None, tuple(
            axis_problem(path, "it is given twice", "Give all its values once.") for path in twice
        )
    crowded = [
        part
        for part in PARTS
        if prod(len(a.values) for a in axes if a.part == part and not a.is_numeric) > MOST_VARIANTS
    ]
    if crowded:
        reason = f"the axes of {crowded[0]} have more than {MOST_VARIANTS:,} combinations"
        return None, (axis_problem(crowded[0], reason, "Shorten one of them."),)
    # Structural axes first: designs that are computed together are then numbered together.
    order = sorted(axes, key=lambda axis: 0 if not axis.is_numeric else 1 if axis.path == BATCH else 2)
    return Space(design, tuple(order)), ()


def _outer_first(values: dict[str, Any]) -> dict[str, Any]:
    """Order changes so that a whole part is set before the fields inside it."""
    return dict(sorted(values.items(), key=lambda item: item[0].count(".")))


@dataclass(slots=True)
class Variants:
    """The variants of one part over its structural axes, in the order of their product.

    ``specs`` holds ``None`` for a combination that is no valid part; ``offsets`` the number that each
    contributes to the number of a design.
    """

    specs: list[Spec | None] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    refused: tuple[Diagnostic, ...] = ()


def variants_of(space: Space, part: str, cancelled: Cancelled = never) -> Variants:
    """Build every variant of a part; its numeric axes are left at the design's own values.

    Raises:
        SearchCancelledError: it was cancelled.
    """
    axes = [axis for axis in space.axes if axis.part == part]
    structural = [axis for axis in axes if not axis.is_numeric]
    # A numeric field may exist in some variants only (links of a torus, network cards of nodes).
    probes = {axis.path: axis.values[0] for axis in axes if axis.is_numeric}
    strides = space.strides
    found = Variants()
    for where in product(*(range(len(axis.values)) for axis in structural)):
        if cancelled():
            raise SearchCancelledError
        values = {axis.path: axis.values[i] for axis, i in zip(structural, where, strict=True)}
        spec, problems = _variant(space.design, part, values, probes)
        found.specs.append(spec)
        found.offsets.append(sum(strides[axis.path] * i for axis, i in zip(structural, where, strict=True)))
        if spec is None and not found.refused:
            found.refused = problems
    return found


def _variant(
    design: Design, part: str, values: dict[str, Any], probes: dict[str, Any]
) -> tuple[Spec | None, tuple[Diagnostic, ...]]:
    try:
        # All at once is fast; field by field says what is wrong, and may succeed where parts are empty.
        spec = _replaced(getattr(design, part), part, _outer_first(values))
        _replaced(spec, part, probes)
    except (AttributeError, ValidationError):
        changed, problems = edit_values(design, _outer_first(values))
        if changed is not None and probes:
            _, problems = edit_values(changed, probes)
        if changed is None or problems:
            return None, problems
        spec = getattr(changed, part)
    return spec, ()


def _replaced(spec: Spec, prefix: str, values: dict[str, Any]) -> Spec:
    """Set fields below ``prefix``; sources are left, as no number depends on them.

    Raises:
        AttributeError: a field is not there.
        pydantic.ValidationError: the values are not right together.
    """
    changes: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name, _, rest = path.removeprefix(f"{prefix}.").partition(".")
        if path == prefix:
            spec = value
        elif rest:
            inner.setdefault(name, {})[path] = value
        else:
            changes[name] = value
    for name, below in inner.items():
        changes[name] = _replaced(changes.get(name, getattr(spec, name)), f"{prefix}.{name}", below)
    return spec.replace(**changes) if changes else spec


def windows(shape: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Cut a box of numeric axes into windows of at most ``most`` elements, whole along the last axes."""
    whole = len(shape)
    inside = 1
    while whole > 0 and inside * shape[whole - 1] <= most:
        whole -= 1
        inside *= shape[whole]
    if whole == 0:
        yield tuple(slice(0, size) for size in shape)
        return
    step = max(1, most // inside)
    tail = tuple(slice(0, size) for size in shape[whole:])
    for head in product(*(range(size) for size in shape[: whole - 1])):
        for start in range(0, shape[whole - 1], step):
            cut = slice(start, min(start + step, shape[whole - 1]))
            yield (*(slice(i, i + 1) for i in head), cut, *tail)
