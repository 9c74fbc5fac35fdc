"""What the cost reader needs to know of each operation of a program, found once per program.

A product is a matrix product of rows (tokens) with columns, contracted over the depth, done once for
every element of the batch dimensions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from model_core.arithmetic import Number
from model_core.partition.program import Collective, Einsum, LayerProgram, Op, Role, Tensor
from model_core.partition.sizes import Sizes

Split = tuple[tuple[str, str], ...]
"""Dimension letters, each with the mesh axes that split it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a product on one chip."""

    batch: Number
    rows: Number
    columns: Number
    depth: Number

    @property
    def flops(self) -> Number:
        """FLOPs, two per multiply-and-add."""
        return 2.0 * self.batch * self.rows * self.columns * self.depth


@dataclass(frozen=True, slots=True)
class Product:
    """The dimensions of an einsum by their part in the product.

    ``sharers``: query heads that share a key head; they are among the rows.
    """

    batch: Split
    rows: Split
    columns: Split
    depth: Split
    sharers: Split

    def shape(self, sizes: Sizes) -> Shape:
        """Bind the dimensions to sizes."""
        return Shape(*(_size(split, sizes) for split in (self.batch, self.rows, self.columns, self.depth)))

    def sharing_heads(self, sizes: Sizes) -> Number:
        """Return how many query heads of the chip share a key head."""
        return _size(self.sharers, sizes)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one operation moves: tensors by role, its product, and the group that hides collectives.

    ``masked``: attention scores of all queries and keys, half of which causality masks. ``readers``: products that read the same cache; a fused attention kernel loads it once for all of them.
    """

    weights: tuple[Tensor, ...]
    cache: tuple[Tensor, ...]
    activations: tuple[Tensor, ...]
    product: Product | None
    touches_cache: bool
    group: str
    readers: int = 1
    masked: bool = False


@lru_cache(maxsize=512)
def readings(program: LayerProgram) -> tuple[Reading, ...]:
    """Return the reading of every operation of a program, in order."""
    read = Counter(t.name for op in program.ops if isinstance(op, Einsum) for t in op.inputs)
    return tuple(_reading(op, read) for op in program.ops)


def _reading(op: Op, read: Counter[str]) -> Reading:
    moved = () if isinstance(op, Collective) else (*op.inputs, op.output)
    is_product = isinstance(op, Einsum)
    return Reading(
        weights=_of(op.inputs, Role.WEIGHT) if is_product else (),
        cache=_of(op.inputs, Role.KV) if is_product else (),
        activations=_of(moved, Role.ACTIVATION),
        product=_product(op) if isinstance(op, Einsum) else None,
        touches_cache=any(t.role in (Role.KV, Role.ON_CHIP) for t in moved),
        group=(op.fused or op.output.name) if isinstance(op, Einsum) else "",
        masked=is_product
        and any(t.role is Role.ON_CHIP and {"L", "M"} <= set(t.sharding.dims) for t in moved),
        readers=max((read[t.name] for t in op.inputs if t.role is Role.KV), default=1) if is_product else 1,
    )


def _of(tensors: tuple[Tensor, ...], role: Role) -> tuple[Tensor, ...]:
    return tuple(tensor for tensor in tensors if tensor.role is role)


def _product(op: Einsum) -> Product:
    left, right, kept = op.left.sharding, op.right.sharding, op.output.sharding.dims
    letters = dict(zip(left.dims, left.axes, strict=True)) | dict(zip(right.dims, right.axes, strict=True))

    def split(dims: str) -> Split:
        return tuple((dim, letters[dim]) for dim in dims)

    shared = [dim for dim in left.dims if dim in right.dims]
    rows = [dim for dim in left.dims if dim not in right.dims]
    return Product(
        batch=split("".join(dim for dim in shared if dim in kept)),
        rows=split("".join(rows)),
        columns=split("".join(dim for dim in right.dims if dim not in left.dims)),
        depth=split("".join(dim for dim in shared if dim not in kept)),
        sharers=split("".join(dim for dim in rows if dim in "HG")),
    )


def _size(split: Split, sizes: Sizes) -> Number:
    product: Number = 1
    for dim, axes in split:
        product = product * sizes.local(dim, axes)
    return product
