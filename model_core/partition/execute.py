"""Runs a layer program on a virtual mesh of NumPy arrays, chip by chip, and counts what the chips send.

Every chip holds only its own shard. Collectives move blocks between the shards of a group and the
elements that a chip receives from others are counted as they are copied, so the count owes nothing
to the formulas of the cost reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_core.partition.execute_experts import EXPERT_COLLECTIVES, EXPERT_WORK
from model_core.partition.gradients import EPSILON, GRADIENTS
from model_core.partition.notation import Sharding, ShardingError
from model_core.partition.program import (
    Collective,
    CollectiveKind,
    Einsum,
    LayerProgram,
    Local,
    LocalKind,
    Tensor,
)

Array = NDArray[Any]
Coordinates = tuple[int, ...]
Shards = dict[Coordinates, Array]


@dataclass(frozen=True, slots=True)
class VirtualMesh:
    """Chips at integer coordinates along named axes."""

    axes: str
    sizes: tuple[int, ...]

    def chips(self) -> Iterator[Coordinates]:
        """Yield the coordinates of every chip."""
        return product(*(range(size) for size in self.sizes))

    def size(self, axes: str) -> int:
        """Return the number of chips along some axes."""
        result = 1
        for axis in axes:
            result *= self.sizes[self.axes.index(axis)]
        return result

    def position(self, chip: Coordinates, axes: str) -> int:
        """Return a chip's place along axes, the first one major."""
        place = 0
        for axis in axes:
            index = self.axes.index(axis)
            place = place * self.sizes[index] + chip[index]
        return place

    def group(self, chip: Coordinates, axes: str) -> list[Coordinates]:
        """Return the chips that differ from one only along axes, in order of position."""
        free = [range(s) if a in axes else (c,) for a, s, c in zip(self.axes, self.sizes, chip, strict=True)]
        return sorted(product(*free), key=lambda member: self.position(member, axes))


@dataclass(slots=True)
class Execution:
    """The tensors of a run and, per operation, the mean number of elements a chip received.

    ``crossed``: of the copies of tokens that the last dispatch or combine sent, those over the network.
    """

    mesh: VirtualMesh
    sizes: Mapping[str, int]
    tensors: dict[str, Shards] = field(default_factory=dict)
    received: dict[int, float] = field(default_factory=dict)
    crossed: int = 0

    def whole(self, tensor: Tensor) -> Array:
        """Assemble a tensor from its shards; partial sums are added up.

        Raises:
            ShardingError: two chips that should hold the same data do not.
        """
        return assemble(self.tensors[tensor.name], tensor.sharding, self.mesh)


def _block(array: Array, axis: int, index: int, ways: int) -> Array:
    size = array.shape[axis] // ways
    selection = [slice(None)] * array.ndim
    selection[axis] = slice(index * size, (index + 1) * size)
    return array[tuple(selection)]


def scatter(whole: Array, sharding: Sharding, mesh: VirtualMesh) -> Shards:
    """Give every chip its shard of a tensor.

    Raises:
        ShardingError: a dimension does not divide, or the tensor has another number of dimensions.
    """
    if whole.ndim != len(sharding.dims):
        raise ShardingError(f"{sharding} has {len(sharding.dims)} dimensions, the array {whole.ndim}")
    for size, dim, axes in zip(whole.shape, sharding.dims, sharding.axes, strict=True):
        if size % mesh.size(axes):
            raise ShardingError(f"{sharding}: {dim} = {size} does not divide by {axes} = {mesh.size(axes)}")
    shards: Shards = {}
    for chip in mesh.chips():
        part = whole
        for axis, axes in enumerate(sharding.axes):
            part = _block(part, axis, mesh.position(chip, axes), mesh.size(axes))
        shards[chip] = part.copy()
    return shards


def assemble(shards: Shards, sharding: Sharding, mesh: VirtualMesh) -> Array:
    """Put a tensor together from its shards; partial sums are added up.

    Raises:
        ShardingError: replicas differ.
    """
    first = next(iter(shards.values()))
    shape = [n * mesh.size(a) for n, a in zip(first.shape, sharding.axes, strict=True)]
    whole = np.zeros(shape, first.dtype)
    filled: dict[tuple[int, ...], Array] = {}
    for chip in mesh.chips():
        places = tuple(mesh.position(chip, axes) for axes in sharding.axes)
        summand = mesh.position(chip, sharding.partial)
        key = (*places, summand)
        if key in filled:
            if not np.array_equal(filled[key], shards[chip]):
                raise ShardingError(f"replicas of {sharding} differ")
            continue
        filled[key] = shards[chip]
        target = tuple(slice(p * n, (p + 1) * n) for p, n in zip(places, first.shape, strict=True))
        whole[target] += shards[chip]
    return whole


def execute(
    program: LayerProgram, mesh: VirtualMesh, sizes: Mapping[str, int], values: Mapping[str, Array | Shards]
) -> Execution:
    """Run a program.

    Args:
        program: the layer program.
        mesh: a virtual mesh with the program's axes.
        sizes: sizes of the dimension letters; E and D are needed for norms and scores.
        values: every input, weight and cache by name: whole arrays, or shards of an earlier run.

    Raises:
        ShardingError: an array does not fit its sharding.
        KeyError: an array is missing.
    """
    run = Execution(mesh, sizes)
    for tensor in (*program.inputs, *program.weights, *program.caches):
        value = values[tensor.name]
        shards = value if isinstance(value, dict) else scatter(value, tensor.sharding, mesh)
        run.tensors[tensor.name] = shards
    for index, op in enumerate(program.ops):
        if isinstance(op, Einsum):
            result = _einsum(op, run)
        elif isinstance(op, Collective):
            result, elements = _COLLECTIVES[op.kind](op, run)
            run.received[index] = elements / len(result)
        else:
            result = {chip: _local(op, chip, run) for chip in mesh.chips()}
        run.tensors[op.output.name] = result
    return run


def _einsum(op: Einsum, run: Execution) -> Shards:
    left, right = run.tensors[op.left.name], run.tensors[op.right.name]
    return {c: np.einsum(op.equation, left[c], right[c], optimize=True) for c in run.mesh.chips()}


# ---- collectives: each returns the new shards and the elements received by all chips together ----


def _all_gather(op: Collective, run: Execution) -> tuple[Shards, float]:
    shards, received = run.tensors[op.input.name], 0
    for dim, axes in op.moves:
        axis = op.input.sharding.dims.index(dim)
        gathered: Shards = {}
        for chip in run.mesh.chips():
            members = run.mesh.group(chip, axes)
            received += sum(shards[m].size for m in members if m != chip)
            gathered[chip] = np.concatenate([shards[m] for m in members], axis=axis)
        shards = gathered
    return shards, received


def _reduce_scatter(op: Collective, run: Execution) -> tuple[Shards, float]:
    shards, received = run.tensors[op.input.name], 0
    for dim, axes in op.moves:
        axis, ways = op.input.sharding.dims.index(dim), run.mesh.size(axes)
        scattered: Shards = {}
        for chip in run.mesh.chips():
            own = run.mesh.position(chip, axes)
            parts = {m: _block(shards[m], axis, own, ways) for m in run.mesh.group(chip, axes)}
            received += sum(part.size for m, part in parts.items() if m != chip)
            scattered[chip] = np.sum(list(parts.values()), axis=0)
        shards = scattered
    return shards, received


def _all_reduce(op: Collective, run: Execution) -> tuple[Shards, float]:
    """Reduce-scatter and all-gather of the flattened buffer, in parts that may be uneven."""
    shards, received = run.tensors[op.input.name], 0
    ways = run.mesh.size(op.axes)
    reduced: Shards = {}
    for chip in run.mesh.chips():
        own = run.mesh.position(chip, op.axes)
        members = run.mesh.group(chip, op.axes)
        parts = [np.array_split(shards[m].reshape(-1), ways)[own] for m in members]
        received += sum(part.size for m, part in zip(members, parts, strict=True) if m != chip)
        reduced[chip] = np.sum(parts, axis=0)
    result: Shards = {}
    for chip in run.mesh.chips():
        members = run.mesh.group(chip, op.axes)
        received += sum(reduced[m].size for m in members if m != chip)
        flat = np.concatenate([reduced[m] for m in members])
        result[chip] = flat.reshape(shards[chip].shape)
    return result, received


def _all_to_all(op: Collective, run: Execution) -> tuple[Shards, float]:
    shards, received = run.tensors[op.input.name], 0
    (source, axes), (target, _) = op.moves
    dims = op.input.sharding.dims
    joined, split, ways = dims.index(source), dims.index(target), run.mesh.size(axes)
    result: Shards = {}
    for chip in run.mesh.chips():
        own = run.mesh.position(chip, axes)
        members = run.mesh.group(chip, axes)
        parts = [_block(shards[m], split, own, ways) for m in members]
        received += sum(part.size for m, part in zip(members, parts, strict=True) if m != chip)
        result[chip] = np.concatenate(parts, axis=joined)
    return result, received


_COLLECTIVES: dict[CollectiveKind, Callable[[Collective, Execution], tuple[Shards, float]]] = {
    CollectiveKind.ALL_GATHER: _all_gather,
    CollectiveKind.REDUCE_SCATTER: _reduce_scatter,
    CollectiveKind.ALL_REDUCE: _all_reduce,
    CollectiveKind.ALL_TO_ALL: _all_to_all,
    **EXPERT_COLLECTIVES,
}


# ---- local work ---------------------------------------------------------------------------------


def _local(op: Local, chip: Coordinates, run: Execution) -> Array:
    inputs = [run.tensors[t.name][chip] for t in op.inputs]
    if op.kind is LocalKind.SLICE:
        before, after = op.inputs[0].sharding, op.output.sharding
        axis = next(i for i, (a, b) in enumerate(zip(before.axes, after.axes, strict=True)) if a != b)
        return _block(inputs[0], axis, run.mesh.position(chip, op.axes), run.mesh.size(op.axes))
    if op.kind is LocalKind.PAD:
        return _pad(op, inputs[0], chip, run)
    if op.kind is LocalKind.LOOKUP:
        place = run.mesh.position(chip, op.inputs[1].sharding.axes_of("V"))
        return _look_up(inputs[0], inputs[1], place)
    if op.kind is LocalKind.CACHE_APPEND:
        return np.concatenate(inputs, axis=op.inputs[0].sharding.dims.index("P"))
    if op.kind is LocalKind.LAST_TOKEN:
        return _last_token(op, inputs[0], chip, run)
    return _ELEMENTWISE[op.kind](inputs, run.sizes)


def _last_token(op: Local, x: Array, chip: Coordinates, run: Execution) -> Array:
    """Take the last position; where positions are split, chips without it contribute zeros."""
    sharding = op.inputs[0].sharding
    axes = sharding.axes_of("L")
    last: Array = np.take(x, -1, axis=sharding.dims.index("L"))
    holds_it = run.mesh.position(chip, axes) == run.mesh.size(axes) - 1
    return last if holds_it else np.zeros_like(last)


def _pad(op: Local, part: Array, chip: Coordinates, run: Execution) -> Array:
    before, after = op.inputs[0].sharding, op.output.sharding
    axis = next(i for i, (a, b) in enumerate(zip(before.axes, after.axes, strict=True)) if a != b)
    shape = list(part.shape)
    shape[axis] *= run.mesh.size(op.axes)
    whole = np.zeros(shape, part.dtype)
    _block(whole, axis, run.mesh.position(chip, op.axes), run.mesh.size(op.axes))[...] = part
    return whole


def _look_up(tokens: Array, table: Array, place: int) -> Array:
    rows = tokens.astype(np.int64) - place * table.shape[0]
    mine = (rows >= 0) & (rows < table.shape[0])
    found: Array = np.where(mine[..., None], table[np.clip(rows, 0, table.shape[0] - 1)], 0)
    return found.astype(table.dtype)


def _norm_statistic(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    (x,) = inputs
    squares = np.sum(x * x, axis=-1, keepdims=True)
    return (
        squares if sizes["S"] == 1 else np.concatenate([np.sum(x, axis=-1, keepdims=True), squares], axis=-1)
    )


def _norm(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    x, statistic, scale = inputs
    moments = statistic / sizes["E"]
    mean = moments[..., :1] if sizes["S"] == 2 else np.zeros_like(moments[..., :1])
    result: Array = (x - mean) / np.sqrt(moments[..., -1:] - mean * mean + EPSILON) * scale
    return result


def _softmax(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    (scores,) = inputs
    length, context = scores.shape[-2:]
    position = np.arange(context - length, context)[:, None]
    masked = np.where(np.arange(context)[None, :] <= position, scores / np.sqrt(sizes["D"]), -np.inf)
    weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
    result: Array = weights / weights.sum(axis=-1, keepdims=True)
    return result


def _gelu(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    (x,) = inputs
    result: Array = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return result


def _gated(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    gate, x = inputs
    result: Array = gate / (1 + np.exp(-gate)) * x
    return result


def _add(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    result: Array = inputs[0] + inputs[1]
    return result


def _same(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    return inputs[0]


_ELEMENTWISE: dict[LocalKind, Callable[[list[Array], Mapping[str, int]], Array]] = {
    LocalKind.NORM_STATISTIC: _norm_statistic,
    LocalKind.NORM: _norm,
    LocalKind.SOFTMAX: _softmax,
    LocalKind.ACTIVATION: _gelu,
    LocalKind.GATED_ACTIVATION: _gated,
    LocalKind.ADD: _add,
    LocalKind.AS_KEYS: _same,
    **EXPERT_WORK,
    **GRADIENTS,
}
