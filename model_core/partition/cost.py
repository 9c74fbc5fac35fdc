"""Reads a layer program as work: FLOPs, bytes loaded and bytes sent per chip, and the time of each.

Everything is elementwise: sizes, rates and bandwidths may be numbers or arrays. The live view and the
sweep call these same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from model_core.arithmetic import Number, maximum, minimum
from model_core.hardware.collectives import group_size, hops_s, transfer_s, volume_bytes
from model_core.hardware.network import Network
from model_core.partition.program import Collective, CollectiveKind, Einsum, LayerProgram, Role, Tensor
from model_core.partition.sizes import Sizes
from model_core.quantities import formula


@dataclass(frozen=True, slots=True)
class Rates:
    """What a chip does per second, and the bytes of an element of each role.

    ``matmul_flops_per_s``: products with weights; ``attention_flops_per_s``: products with the cache.
    ``hidden_share``: share of a collective that its product can hide (Looped CollectiveEinsum).
    """

    matmul_flops_per_s: Number
    attention_flops_per_s: Number
    hbm_bytes_per_s: Number
    element_bytes: Mapping[Role, Number]
    hidden_share: Number = 1.0


@dataclass(frozen=True, slots=True)
class OpCost:
    """Work and time of one operation on one chip; see `results.OpTime` for the meaning of the fields."""

    index: int
    kind: str
    flops: Number = 0.0
    weight_bytes: Number = 0.0
    kv_bytes: Number = 0.0
    collective_bytes: Number = 0.0
    compute_s: Number = 0.0
    weight_s: Number = 0.0
    kv_s: Number = 0.0
    transfer_s: Number = 0.0
    hops_s: Number = 0.0
    exposed_s: Number = 0.0

    @property
    def communication_s(self) -> Number:
        """Transfer and hops."""
        return self.transfer_s + self.hops_s

    @property
    def busy_s(self) -> Number:
        """Arithmetic and loading overlap inside one operation: the slower one counts."""
        return maximum(self.compute_s, self.weight_s + self.kv_s)


@dataclass(slots=True)
class _Group:
    """A product with the collectives that may run behind it."""

    busy_s: Number = 0.0
    communication_s: Number = 0.0
    members: list[int] = field(default_factory=list)


def einsum_flops(op: Einsum, sizes: Sizes) -> Number:
    """FLOPs of a product on one chip, two per multiply-and-add.

    Formula: 2 · Π of the local sizes of all letters
    Source: Pope 2
    """
    letters = dict(zip(op.left.sharding.dims, op.left.sharding.axes, strict=True))
    letters |= dict(zip(op.right.sharding.dims, op.right.sharding.axes, strict=True))
    product: Number = 2.0
    for dim, axes in letters.items():
        product = product * sizes.local(dim, axes)
    return product


def tensor_bytes(tensor: Tensor, sizes: Sizes, element_bytes: Mapping[Role, Number]) -> Number:
    """Bytes of one chip's shard of a tensor."""
    return sizes.elements(tensor.sharding) * element_bytes[tensor.role]


def collective_buffer_bytes(op: Collective, sizes: Sizes, element_bytes: Mapping[Role, Number]) -> Number:
    """D of Pope A.1: an all-gather's output, otherwise the input, in bytes per chip."""
    gathers = op.kind is CollectiveKind.ALL_GATHER
    return tensor_bytes(op.output if gathers else op.input, sizes, element_bytes)


def program_costs(
    program: LayerProgram, sizes: Sizes, rates: Rates, network: Network, large_k: bool = False
) -> list[OpCost]:
    """Cost of every operation of a program, in order.

    Source: Pope 2 (compute and memory time), 3.5 (overlap), A.1 (communication)
    Assumes: activations stay on the chip between operations; attention is computed for the full
        rectangle of queries and keys, as the program says
    """
    costs: list[OpCost] = []
    groups: dict[str, _Group] = {}
    sent: set[str] = set()
    for index, op in enumerate(program.ops):
        if isinstance(op, Einsum):
            cost = _einsum_cost(index, op, sizes, rates)
            group = groups.setdefault(op.fused or op.output.name, _Group())
            group.busy_s = group.busy_s + cost.busy_s
        elif isinstance(op, Collective):
            cost = _collective_cost(index, op, sizes, rates, network, op.fused in sent, large_k)
            if op.fused:
                sent.add(op.fused)
            if op.hides_behind:
                group = groups.setdefault(op.hides_behind, _Group())
                group.communication_s = group.communication_s + cost.communication_s
                group.members.append(index)
        else:
            cost = OpCost(index, "local")
        costs.append(cost)
    for group in groups.values():
        _hide(costs, group, rates.hidden_share)
    return costs


@formula("exposed_time")
def exposed_share(communication: Number, busy: Number, hidden_share: Number) -> Number:
    """Share of the communication around a product that is not hidden behind it.

    Formula: 1 − min(h · T_comm, T_product) / T_comm
    Source: Pope 3.5 (Looped CollectiveEinsum)
    Args:
        communication: T_comm, all collectives that run with the product, seconds.
        busy: T_product, seconds.
        hidden_share: h, share of a collective that can be hidden at all.
    """
    return 1.0 - minimum(hidden_share * communication, busy) / communication


def _hide(costs: list[OpCost], group: _Group, hidden_share: Number) -> None:
    if not group.members:
        return
    share = exposed_share(group.communication_s, group.busy_s, hidden_share)
    for index in group.members:
        costs[index] = replace(costs[index], exposed_s=costs[index].communication_s * share)


def _einsum_cost(index: int, op: Einsum, sizes: Sizes, rates: Rates) -> OpCost:
    flops = einsum_flops(op, sizes)
    weights = _loaded(op, Role.WEIGHT, sizes, rates)
    kv = _loaded(op, Role.KV, sizes, rates)
    touches_cache = any(t.role in (Role.KV, Role.ON_CHIP) for t in (*op.inputs, op.output))
    rate = rates.attention_flops_per_s if touches_cache else rates.matmul_flops_per_s
    return OpCost(
        index,
        "einsum",
        flops=flops,
        weight_bytes=weights,
        kv_bytes=kv,
        compute_s=flops / rate,
        weight_s=weights / rates.hbm_bytes_per_s,
        kv_s=kv / rates.hbm_bytes_per_s,
    )


def _loaded(op: Einsum, role: Role, sizes: Sizes, rates: Rates) -> Number:
    total: Number = 0.0
    for tensor in op.inputs:
        if tensor.role is role:
            total = total + tensor_bytes(tensor, sizes, rates.element_bytes)
    return total


def _collective_cost(
    index: int,
    op: Collective,
    sizes: Sizes,
    rates: Rates,
    network: Network,
    same_message: bool,
    large_k: bool,
) -> OpCost:
    levels = network.of(op.axes)
    buffer = collective_buffer_bytes(op, sizes, rates.element_bytes)
    transfer = transfer_s(op.kind, buffer, levels, large_k)
    hops = 0.0 if same_message else hops_s(op.kind, levels)
    return OpCost(
        index,
        str(op.kind),
        collective_bytes=volume_bytes(op.kind, buffer, group_size(levels), large_k),
        transfer_s=transfer,
        hops_s=hops,
        exposed_s=transfer + hops,
    )
