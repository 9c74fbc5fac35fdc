"""Reads a layer program as work: FLOPs, bytes loaded and bytes sent per chip, and the time of each.

Everything is elementwise: sizes, rates and bandwidths may be numbers or arrays. The live view and the
sweep call these same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from model_core.arithmetic import Number, maximum, minimum
from model_core.hardware.calibration import (
    BOUND,
    Efficiency,
    collective_start_s,
    derated_network,
    matmul_efficiency,
)
from model_core.hardware.collectives import group_size, hops_s, transfer_s, volume_bytes
from model_core.hardware.expert_traffic import ExpertRates
from model_core.hardware.network import Level, Network
from model_core.partition.products import Reading, Shape, readings
from model_core.partition.program import Collective, CollectiveKind, LayerProgram, Role, Tensor
from model_core.partition.sizes import Sizes
from model_core.quantities import formula


@dataclass(frozen=True, slots=True)
class Rates:
    """What a chip does per second, and the bytes of an element of each role.

    ``matmul_flops_per_s``: products with weights; ``attention_flops_per_s``: products with the cache.
    ``hidden_share``: share of a collective that its product can hide (Looped CollectiveEinsum).
    ``efficiency``: how much of these rates the software reaches. ``large_k``: approximate (K − 1)/K as 1.
    ``experts``: how tokens travel to and from experts, where there are any. ``skip_masked``: attention does not
    compute scores that causality masks.
    """

    matmul_flops_per_s: Number
    attention_flops_per_s: Number
    hbm_bytes_per_s: Number
    element_bytes: Mapping[Role, Number]
    hidden_share: Number = 1.0
    efficiency: Efficiency = BOUND
    large_k: bool = False
    experts: ExpertRates | None = None
    skip_masked: bool = False


@dataclass(slots=True)
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
    activation_s: Number = 0.0
    fixed_s: Number = 0.0
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
        return maximum(self.compute_s, self.weight_s + self.kv_s + self.activation_s) + self.fixed_s


@dataclass(slots=True)
class _Group:
    """A product with the collectives that may run behind it."""

    busy_s: Number = 0.0
    communication_s: Number = 0.0
    members: list[OpCost] = field(default_factory=list)


def tensor_bytes(tensor: Tensor, sizes: Sizes, element_bytes: Mapping[Role, Number]) -> Number:
    """Bytes of one chip's shard of a tensor."""
    return sizes.elements(tensor.sharding) * element_bytes[tensor.role]


def collective_buffer_bytes(op: Collective, sizes: Sizes, element_bytes: Mapping[Role, Number]) -> Number:
    """D of Pope A.1: an all-gather's output, otherwise the input, in bytes per chip."""
    gathers = op.kind is CollectiveKind.ALL_GATHER
    return tensor_bytes(op.output if gathers else op.input, sizes, element_bytes)


def program_costs(program: LayerProgram, sizes: Sizes, rates: Rates, network: Network) -> list[OpCost]:
    """Cost of every operation of a program, in order.

    Source: Pope 2 (compute and memory time), 3.5 (overlap), A.1 (communication)
    Assumes: attention is computed for the full rectangle of queries and keys, as the program says, unless masked
        scores are skipped;
        without a calibration, activations stay on the chip between operations and nothing else costs time
    """
    costs: list[OpCost] = []
    groups: dict[str, _Group] = {}
    sent: set[str] = set()
    network = derated_network(network, rates.efficiency)
    for index, (op, reading) in enumerate(zip(program.ops, readings(program), strict=True)):
        if isinstance(op, Collective):
            cost = _collective_cost(index, op, sizes, rates, network.of(op.axes), op.fused in sent)
            if op.fused:
                sent.add(op.fused)
            if op.hides_behind:
                group = groups.setdefault(op.hides_behind, _Group())
                group.communication_s = group.communication_s + cost.communication_s
                group.members.append(cost)
        elif reading.product is not None:
            cost = _product_cost(index, reading, reading.product.shape(sizes), sizes, rates)
            group = groups.setdefault(reading.group, _Group())
            group.busy_s = group.busy_s + cost.busy_s
        else:
            cost = OpCost(index, "local", activation_s=_activation_s(reading, sizes, rates))
        costs.append(cost)
    for group in groups.values():
        _hide(group, rates.hidden_share * rates.efficiency.hidden_share)
    if rates.efficiency is not BOUND:
        costs[-1].fixed_s = fixed_s(program, rates.efficiency)
    return costs


@formula("fixed_cost")
def fixed_s(program: LayerProgram, efficiency: Efficiency) -> Number:
    """Fixed cost of one execution of a program.

    Formula: T_fixed = layer cost for a block, step cost for the logits and the sampling after them
    Source: fitted; kernel starts, norms, sampling and the host take time whatever the size
    """
    if program.name.startswith("block"):
        return efficiency.layer_s
    return efficiency.step_s if program.name == "logits" else 0.0


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


def _hide(group: _Group, hidden_share: Number) -> None:
    if not group.members:
        return
    share = exposed_share(group.communication_s, group.busy_s, hidden_share)
    for cost in group.members:
        cost.exposed_s = cost.communication_s * share


def _product_cost(index: int, reading: Reading, shape: Shape, sizes: Sizes, rates: Rates) -> OpCost:
    e, hbm = rates.efficiency, rates.hbm_bytes_per_s
    flops = shape.flops * unmasked_share(sizes) if reading.masked and rates.skip_masked else shape.flops
    weights, kv = _bytes(reading.weights, sizes, rates), _bytes(reading.cache, sizes, rates) / reading.readers
    rate = rates.attention_flops_per_s if reading.touches_cache else rates.matmul_flops_per_s
    if e is BOUND:
        return OpCost(
            index,
            "einsum",
            flops=flops,
            weight_bytes=weights,
            kv_bytes=kv,
            compute_s=flops / rate,
            weight_s=weights / hbm,
            kv_s=kv / hbm,
        )
    share = matmul_efficiency(shape.rows, shape.columns, shape.depth, e)
    reads = 1.0 + e.kv_rereads * (_sharing_heads(reading, sizes) - 1)
    return OpCost(
        index,
        "einsum",
        flops=flops,
        weight_bytes=weights,
        kv_bytes=kv,
        compute_s=flops / (rate * share),
        weight_s=weights / (hbm * e.hbm_share),
        kv_s=kv * reads / (hbm * e.kv_share),
        activation_s=_activation_s(reading, sizes, rates),
    )


@formula("unmasked_share")
def unmasked_share(sizes: Sizes) -> Number:
    """Share of the attention scores that causality leaves.

    Formula: 1 − (L − 1) / (2 · M)
    Source: Dao et al. 2022 (FlashAttention): blocks of scores that are masked are skipped
    """
    return 1 - (sizes.values["L"] - 1) / (2 * sizes.values["M"])


def _sharing_heads(reading: Reading, sizes: Sizes) -> Number:
    if reading.product is None or not reading.cache:
        return 1
    return reading.product.sharing_heads(sizes)


def _bytes(tensors: tuple[Tensor, ...], sizes: Sizes, rates: Rates) -> Number:
    total: Number = 0.0
    for tensor in tensors:
        total = total + tensor_bytes(tensor, sizes, rates.element_bytes)
    return total


def _activation_s(reading: Reading, sizes: Sizes, rates: Rates) -> Number:
    e = rates.efficiency
    if e is BOUND:
        return 0.0
    moved = e.activation_traffic * _bytes(reading.activations, sizes, rates)
    return moved / (rates.hbm_bytes_per_s * e.hbm_share)


def _collective_cost(
    index: int,
    op: Collective,
    sizes: Sizes,
    rates: Rates,
    levels: tuple[Level, ...],
    same_message: bool,
) -> OpCost:
    if op.routing is not None and rates.experts is not None:
        return _routed_cost(index, op, sizes, rates, rates.experts, levels)
    buffer = collective_buffer_bytes(op, sizes, rates.element_bytes)
    transfer = transfer_s(op.kind, buffer, levels, rates.large_k)
    hops = 0.0 if same_message else hops_s(op.kind, levels) + collective_start_s(levels, rates.efficiency)
    return OpCost(
        index,
        str(op.kind),
        collective_bytes=volume_bytes(op.kind, buffer, group_size(levels), rates.large_k),
        transfer_s=transfer,
        hops_s=hops,
        exposed_s=transfer + hops,
    )


def _routed_cost(
    index: int, op: Collective, sizes: Sizes, rates: Rates, experts: ExpertRates, levels: tuple[Level, ...]
) -> OpCost:
    dispatches = op.kind is CollectiveKind.DISPATCH
    tokens = op.input if dispatches else op.output
    width = experts.dispatch_bytes if dispatches else experts.combine_bytes
    message = experts.message(sizes.elements(tokens.sharding) * width, levels)
    hops = message.hops_s + rates.efficiency.dispatch_start_s
    return OpCost(
        index,
        str(op.kind),
        collective_bytes=message.bytes,
        transfer_s=message.transfer_s,
        hops_s=hops,
        exposed_s=message.transfer_s + hops,
    )
