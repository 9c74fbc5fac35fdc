"""The numeric axes of a space: each becomes a dimension of every array that depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from model_core.search.arrays import Rows
from model_core.search.axes import BATCH, Axis
from model_core.search.space import Space
from model_core.spec.base import Spec

S = TypeVar("S", bound=Spec)


@dataclass(frozen=True, slots=True)
class NumericAxes:
    """The numeric axes without the batch, which goes with the rows because it decides what divides."""

    axes: tuple[Axis, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, space: Space) -> NumericAxes:
        """Collect the numeric axes of a space."""
        axes = tuple(axis for axis in space.axes if axis.is_numeric and axis.path != BATCH)
        return cls(axes, tuple(space.strides[axis.path] for axis in axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def dimensions(self) -> int:
        """Dimensions of the arrays: rows first."""
        return 1 + len(self.axes)

    def apply(self, part: str, spec: S) -> S:
        """Return a part of the design with its numeric fields as arrays."""
        for index, axis in enumerate(self.axes):
            if axis.part == part:
                shape = [1] * self.dimensions
                shape[1 + index] = len(axis.values)
                array = np.array(axis.values, np.float64).reshape(shape)
                spec = _with_array(spec, axis.path.split(".")[1:], array)
        return spec

    def numbers(self, window: tuple[slice, ...]) -> Rows:
        """Return what the numeric axes contribute to the numbers of the designs in a window."""
        total = np.zeros((1,) * self.dimensions, np.int64)
        for index, (cut, stride) in enumerate(zip(window, self.strides, strict=True)):
            shape = [1] * self.dimensions
            shape[1 + index] = cut.stop - cut.start
            total = total + (np.arange(cut.start, cut.stop) * stride).reshape(shape)
        return total


def _with_array(spec: S, names: Sequence[str], array: Rows) -> S:
    value = array if len(names) == 1 else _with_array(getattr(spec, names[0]), names[1:], array)
    return spec.model_copy(update={names[0]: value})
