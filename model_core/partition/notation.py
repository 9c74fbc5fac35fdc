"""Sharding notation as data: ``BLE_xyz``, ``E_xF_yz``, ``BLE_yz(partialsum-x)``.

A capital letter is a dimension of the tensor; the small letters after its underscore are the mesh
axes it is split over, major axis first; a mesh axis that is named nowhere holds a replica (Pope 3.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_TENSOR = re.compile(r"((?:[A-Z](?:_[a-z]+)?)+)(?:\(partialsum-([a-z]+)\))?")
_DIM = re.compile(r"([A-Z])(?:_([a-z]+))?")

DIMENSION_NAMES = {
    "B": "batch",
    "L": "sequence length",
    "E": "d_model",
    "F": "d_ff",
    "H": "query heads",
    "K": "key and value heads",
    "G": "query heads per key head",
    "D": "d_head",
    "M": "context length",
    "P": "past context",
    "V": "vocabulary",
    "S": "norm statistics",
    "Q": "query latent",
    "C": "key and value latent",
    "N": "head width without position",
    "R": "rotary width",
    "U": "value head width",
    "Y": "routed experts",
    "X": "expert slots",
    "T": "tokens of an expert slot",
    "I": "d_ff of an expert",
    "J": "d_ff of the shared experts",
    "Z": "hidden state beside embedding",
}


class ShardingError(ValueError):
    """A notation cannot be read, or a sharding does not fit its tensor or mesh."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """The dimensions of a tensor, the mesh axes each is split over, and axes still to be summed."""

    dims: str
    axes: tuple[str, ...]
    partial: str = ""

    def __post_init__(self) -> None:
        used = "".join(self.axes) + self.partial
        twice = sorted({axis for axis in used if used.count(axis) > 1})
        if twice:
            raise ShardingError(f"{self} uses mesh axis {twice[0]} twice")
        if len(set(self.dims)) != len(self.dims):
            raise ShardingError(f"{self} names a dimension twice")

    @classmethod
    def parse(cls, text: str) -> Sharding:
        """Read a notation.

        Raises:
            ShardingError: says what was expected.
        """
        match = _TENSOR.fullmatch(text.strip())
        if match is None:
            raise ShardingError(
                f"{text[:60]!r} is not a sharding: write capital letters for dimensions, each with the mesh "
                "axes it is split over, such as E_xF_yz or BLE_yz(partialsum-x)"
            )
        parts = _DIM.findall(match[1])
        return cls("".join(d for d, _ in parts), tuple(a for _, a in parts), match[2] or "")

    def __str__(self) -> str:
        return self.text(sort=False)

    def as_printed(self) -> str:
        """Write it as the papers do: axes of a dimension in alphabetical order."""
        return _printed(self)

    def text(self, sort: bool) -> str:
        """Write it, axes as stored (major first) or sorted."""
        order = sorted if sort else list
        body = "".join(
            f"{d}_{''.join(order(a))}" if a else d for d, a in zip(self.dims, self.axes, strict=True)
        )
        return body + (f"(partialsum-{''.join(order(self.partial))})" if self.partial else "")

    def axes_of(self, dim: str) -> str:
        """Return the axes a dimension is split over.

        Raises:
            ShardingError: the tensor has no such dimension.
        """
        if dim not in self.dims:
            raise ShardingError(f"{self} has no dimension {dim}")
        return self.axes[self.dims.index(dim)]

    def with_axes(self, dim: str, axes: str) -> Sharding:
        """Return the sharding with a dimension split over other axes."""
        index = self.dims.index(dim)
        return Sharding(self.dims, (*self.axes[:index], axes, *self.axes[index + 1 :]), self.partial)

    def with_partial(self, partial: str) -> Sharding:
        """Return the sharding with other axes still to be summed."""
        return Sharding(self.dims, self.axes, partial)

    def renamed(self, dim: str, to: str) -> Sharding:
        """Return the sharding with another letter for a dimension."""
        return Sharding(self.dims.replace(dim, to), self.axes, self.partial)

    def replicated_axes(self, mesh_axes: str) -> str:
        """Return the mesh axes over which every chip holds the same data (partial sums excluded)."""
        used = set("".join(self.axes) + self.partial)
        return "".join(axis for axis in mesh_axes if axis not in used)

    def per_chip_shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of one chip's shard.

        Formula: [size / product of axes, …] for every dimension
        Source: Pope 3.1
        Args:
            sizes: size of every dimension letter and mesh axis.

        Raises:
            ShardingError: names the dimension and the axes it does not divide by.
        """
        shape = []
        for dim, axes in zip(self.dims, self.axes, strict=True):
            ways = 1
            for axis in axes:
                ways *= sizes[axis]
            if sizes[dim] % ways:
                raise ShardingError(
                    f"{self}: dimension {dim} ({DIMENSION_NAMES.get(dim, dim)}) = {sizes[dim]} does not divide by "
                    f"{axes} = {' x '.join(str(sizes[a]) for a in axes)} = {ways}"
                )
            shape.append(sizes[dim] // ways)
        return tuple(shape)


@lru_cache(maxsize=4096)
def _printed(sharding: Sharding) -> str:
    return sharding.text(sort=True)
