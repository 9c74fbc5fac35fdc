"""Binds the letters of a program to sizes, and tells how much of a tensor one chip holds."""

from __future__ import annotations

from collections.abc import Mapping

from model_core.arithmetic import Number, ceil_div
from model_core.partition.notation import Sharding


class Sizes:
    """Sizes of dimension letters and mesh axes; numbers or arrays of one shape.

    A dimension that does not divide is padded, as frameworks do: a chip holds the quotient rounded up.
    """

    def __init__(self, values: Mapping[str, Number]) -> None:
        self.values = values
        self._local: dict[tuple[str, str], Number] = {}
        # By identity, which is much faster than the hash of a sharding; the sharding is kept beside it.
        self._elements: dict[int, tuple[Sharding, Number]] = {}

    def ways(self, axes: str) -> Number:
        """Return the number of parts that axes split into."""
        product: Number = 1
        for axis in axes:
            product = product * self.values[axis]
        return product

    def local(self, dim: str, axes: str) -> Number:
        """Return the part of a dimension that one chip holds when it is split over axes."""
        key = (dim, axes)
        found = self._local.get(key)
        if found is None:
            size = self.values[dim]
            found = ceil_div(size, self.ways(axes)) if axes else size
            self._local[key] = found
        return found

    def elements(self, sharding: Sharding) -> Number:
        """Return the number of elements of one chip's shard."""
        found = self._elements.get(id(sharding))
        if found is None:
            elements: Number = 1
            for dim, axes in zip(sharding.dims, sharding.axes, strict=True):
                elements = elements * self.local(dim, axes)
            found = self._elements[id(sharding)] = (sharding, elements)
        return found[1]

    def shape(self, sharding: Sharding) -> tuple[int, ...]:
        """Return the shape of one chip's shard, padding included."""
        return tuple(int(self.local(d, a)) for d, a in zip(sharding.dims, sharding.axes, strict=True))
