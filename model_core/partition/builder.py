"""Writes layer programs: every operation is checked against the sharding of its inputs as it is added."""

from __future__ import annotations

from dataclasses import replace

from model_core.partition import rules
from model_core.partition.notation import Sharding, ShardingError
from model_core.partition.program import (
    LINEAR_KINDS,
    Collective,
    CollectiveKind,
    Einsum,
    LayerProgram,
    Local,
    LocalKind,
    Op,
    Role,
    Routing,
    Tensor,
)


class ProgramBuilder:
    """Collects operations. Collectives over no axes are left out, so that one text serves every mesh."""

    def __init__(self, name: str, mesh_axes: str) -> None:
        self.name = name
        self.mesh_axes = mesh_axes
        self._inputs: list[Tensor] = []
        self._weights: list[Tensor] = []
        self._caches: list[Tensor] = []
        self._ops: list[Op] = []
        self._sections: list[tuple[str, int]] = []
        self._names: set[str] = set()

    def _tensor(self, name: str, sharding: Sharding, role: Role, group: str = "") -> Tensor:
        unique, number = name, 2
        while unique in self._names:
            unique, number = f"{name}.{number}", number + 1
        self._names.add(unique)
        return Tensor(unique, sharding, role, group)

    def input(self, name: str, sharding: Sharding, role: Role = Role.ACTIVATION) -> Tensor:
        """Declare a tensor that the program is given."""
        tensor = self._tensor(name, sharding, role)
        self._inputs.append(tensor)
        return tensor

    def weight(self, name: str, sharding: Sharding, group: str) -> Tensor:
        """Declare a stored weight of a parameter group."""
        tensor = self._tensor(name, sharding, Role.WEIGHT, group)
        self._weights.append(tensor)
        return tensor

    def cache(self, name: str, sharding: Sharding) -> Tensor:
        """Declare a stored key or value cache."""
        tensor = self._tensor(name, sharding, Role.KV)
        self._caches.append(tensor)
        return tensor

    def section(self, title: str) -> None:
        """Begin a part of the drawing."""
        self._sections.append((title, len(self._ops)))

    def einsum(
        self,
        left: Tensor,
        right: Tensor,
        dims: str,
        name: str,
        fused: str = "",
        role: Role = Role.ACTIVATION,
        of_partial: bool = False,
    ) -> Tensor:
        """Add a product with the output dimensions ``dims``; see `rules.einsum_sharding`."""
        sharding = rules.einsum_sharding(left.sharding, right.sharding, dims, of_partial)
        output = self._tensor(name, sharding, role)
        self._ops.append(Einsum(left, right, output, fused))
        return output

    def all_gather(
        self, tensor: Tensor, moves: rules.Moves, hides_behind: str = "", fused: str = ""
    ) -> Tensor:
        """Add an all-gather of the given (dimension, axes)."""
        moves = _without_empty(moves)
        sharding = rules.all_gather_sharding(tensor.sharding, moves)
        return self._collective(CollectiveKind.ALL_GATHER, tensor, sharding, moves, hides_behind, fused)

    def reduce_scatter(
        self, tensor: Tensor, moves: rules.Moves, hides_behind: str = "", fused: str = ""
    ) -> Tensor:
        """Add a reduce-scatter into the given (dimension, axes)."""
        moves = _without_empty(moves)
        sharding = rules.reduce_scatter_sharding(tensor.sharding, moves)
        return self._collective(CollectiveKind.REDUCE_SCATTER, tensor, sharding, moves, hides_behind, fused)

    def all_reduce(self, tensor: Tensor, axes: str, fused: str = "") -> Tensor:
        """Add an all-reduce over axes of which the tensor is a partial sum."""
        sharding = rules.all_reduce_sharding(tensor.sharding, axes)
        return self._collective(CollectiveKind.ALL_REDUCE, tensor, sharding, (("", axes),), "", fused)

    def all_to_all(self, tensor: Tensor, source: str, target: str, axes: str, fused: str = "") -> Tensor:
        """Add an all-to-all that moves axes from one dimension to another."""
        if not axes:
            return tensor
        sharding = rules.all_to_all_sharding(tensor.sharding, source, target, axes)
        moves = ((source, axes), (target, axes))
        return self._collective(CollectiveKind.ALL_TO_ALL, tensor, sharding, moves, "", fused)

    def _collective(
        self,
        kind: CollectiveKind,
        tensor: Tensor,
        sharding: Sharding,
        moves: rules.Moves,
        hides_behind: str,
        fused: str,
    ) -> Tensor:
        axes = moves[0][1] if kind is CollectiveKind.ALL_TO_ALL else "".join(a for _, a in moves)
        if not axes:
            return tensor
        output = self._tensor(tensor.name.partition(".")[0], sharding, tensor.role, tensor.group)
        self._ops.append(Collective(kind, tensor, output, axes, moves, hides_behind, fused))
        return output

    def dispatch(self, tensor: Tensor, routing: Routing, name: str = "expert tokens") -> Tensor:
        """Send a copy of every token to each expert slot that it visits: BLE to XTE."""
        sharding = rules.dispatched_sharding(tensor.sharding)
        return self._routed(CollectiveKind.DISPATCH, tensor, sharding, routing, name)

    def combine(self, tensor: Tensor, routing: Routing, name: str = "combined") -> Tensor:
        """Send the results back and sum them, weighted, for every token: XTE to BLE."""
        sharding = routing.weights.sharding.renamed("X", "E")
        return self._routed(CollectiveKind.COMBINE, tensor, sharding, routing, name)

    def _routed(
        self, kind: CollectiveKind, tensor: Tensor, sharding: Sharding, routing: Routing, name: str
    ) -> Tensor:
        role = Role.DISPATCHED if kind is CollectiveKind.DISPATCH else Role.ACTIVATION
        output = self._tensor(name, sharding, role)
        self._ops.append(Collective(kind, tensor, output, self.mesh_axes, (), routing=routing))
        return output

    def slice(self, tensor: Tensor, dim: str, axes: str) -> Tensor:
        """Let every chip keep its own part of a replicated dimension."""
        if not axes:
            return tensor
        sharding = rules.slice_sharding(tensor.sharding, dim, axes)
        return self.local(
            LocalKind.SLICE, (tensor,), sharding, tensor.name.partition(".")[0], tensor.role, axes
        )

    def local(
        self,
        kind: LocalKind,
        inputs: tuple[Tensor, ...],
        sharding: Sharding,
        name: str,
        role: Role = Role.ACTIVATION,
        axes: str = "",
    ) -> Tensor:
        """Add work on each chip's own shard.

        Raises:
            ShardingError: a nonlinear operation is given a partial sum.
        """
        for tensor in inputs:
            if tensor.sharding.partial and kind not in LINEAR_KINDS:
                raise ShardingError(
                    f"{kind} of {tensor.sharding}: sum it over {tensor.sharding.partial} first"
                )
        output = self._tensor(name, sharding, role)
        self._ops.append(Local(kind, inputs, output, axes))
        return output

    def add(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """Add two tensors of equal sharding; two partial sums over the same axes may be added.

        Raises:
            ShardingError: the shardings differ.
        """
        a, b = left.sharding, right.sharding
        if (a.dims, a.axes, set(a.partial)) != (b.dims, b.axes, set(b.partial)):
            raise ShardingError(f"cannot add {a} and {b}")
        return self.local(LocalKind.ADD, (left, right), a, name)

    def replay(self, op: Op, inputs: tuple[Tensor, ...]) -> Tensor:
        """Add an operation of another program again, on the same tensors in this one."""
        output = self._tensor(op.output.name, op.output.sharding, op.output.role, op.output.group)
        if isinstance(op, Einsum):
            self._ops.append(replace(op, left=inputs[0], right=inputs[1], output=output))
        elif isinstance(op, Collective):
            self._ops.append(replace(op, input=inputs[0], output=output))
        else:
            self._ops.append(replace(op, inputs=inputs, output=output))
        return output

    def pad(self, tensor: Tensor, dim: str, axes: str) -> Tensor:
        """Let every chip put its own part of a dimension among zeros: a partial sum of the whole."""
        sharding = rules.pad_sharding(tensor.sharding, dim, axes)
        return self.local(
            LocalKind.PAD, (tensor,), sharding, tensor.name.partition(".")[0], tensor.role, axes
        )

    def finish(self, *outputs: Tensor) -> LayerProgram:
        """Return the program."""
        return LayerProgram(
            self.name,
            self.mesh_axes,
            tuple(self._inputs),
            tuple(self._weights),
            tuple(self._caches),
            tuple(self._ops),
            outputs,
            tuple(self._sections),
        )


def _without_empty(moves: rules.Moves) -> rules.Moves:
    return tuple((dim, axes) for dim, axes in moves if axes)
