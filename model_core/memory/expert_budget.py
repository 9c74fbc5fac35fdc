"""The memory budget of one chip of a model with experts or latent attention: the fullest chip, itemised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from model_core.arithmetic import Number
from model_core.memory.budget import GROUP_LABELS, BudgetParts, activation_peak, kv_cache_bytes, reserve_bytes
from model_core.partition.cost import tensor_bytes
from model_core.partition.program import LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.quantities import formula
from model_core.results import MemoryBudget, MemoryItem

LABELS = {
    **GROUP_LABELS,
    "routed experts": "routed expert weights",
    "shared experts": "shared expert weights",
    "gate": "gate weights",
}


@dataclass(frozen=True, slots=True)
class HeldPrograms:
    """Programs with how many layers of each a chip holds, and how many microbatches it works on at once."""

    programs: Mapping[str, LayerProgram]
    layers: Mapping[str, int]
    sizes: Sizes
    microbatches: int


@formula("memory_expert_weights")
def expert_weight_bytes(held: HeldPrograms, weight_bytes: Number, tied: bool) -> dict[str, Number]:
    """Bytes of the stored weights on the fullest chip, by parameter group.

    Formula: Σ over weights of elements per chip · bytes · layers of that kind; experts: ⌈slots / chips⌉ per layer
    Source: DeepSeek-V3 report, 3.4.1: 9 slots per GPU with 32 redundant experts
    """
    groups: dict[str, Number] = {}
    for name, program in held.programs.items():
        for tensor in program.weights:
            if tied and name == "logits" and tensor.group == "embedding":
                continue
            size = held.sizes.elements(tensor.sharding) * weight_bytes * held.layers[name]
            groups[tensor.group] = groups.get(tensor.group, 0.0) + size
    return groups


@formula("memory_dispatch")
def dispatch_buffer_bytes(held: HeldPrograms, element_bytes: Mapping[Role, Number]) -> Number:
    """Bytes of the buffers that tokens arrive in, one for every microbatch.

    Formula: microbatches · slots per chip · tokens of a slot · d_model · bytes of a dispatched number
    Source: DeepSeek-V3 report, 3.4.1: two microbatches are under way
    Assumes: buffers hold the tokens of a balanced step; kernels that reserve for the worst case hold more
    """
    total: Number = 0.0
    for program in held.programs.values():
        for op in program.ops:
            if op.output.role is Role.DISPATCHED:
                total = total + tensor_bytes(op.output, held.sizes, element_bytes)
    return held.microbatches * total


def expert_budget(
    parts: BudgetParts, held: HeldPrograms, element_bytes: Mapping[Role, float]
) -> MemoryBudget:
    """Itemise the memory of the fullest chip."""
    plan, context = parts.plan, parts.workload.max_context
    weights = expert_weight_bytes(held, element_bytes[Role.WEIGHT], parts.model.tied_embedding)
    items = [
        MemoryItem(LABELS[group], float(size), "weights", f"{plan.weight_dtype}, {group}")
        for group, size in weights.items()
    ]
    kv = held.microbatches * sum(
        kv_cache_bytes(program, held.sizes, element_bytes[Role.KV], held.layers[name], context)
        for name, program in held.programs.items()
        if program.caches
    )
    items.append(MemoryItem("KV cache", float(kv), "kv", f"{plan.kv_dtype}, context {context}"))
    items += _working(held, element_bytes)
    share = plan.memory_reserve
    items.append(MemoryItem("reserve", reserve_bytes(parts), "reserve", f"{share:.0%} of the memory"))
    return MemoryBudget(parts.cluster.chip.hbm_capacity, tuple(items))


def _working(held: HeldPrograms, element_bytes: Mapping[Role, float]) -> list[MemoryItem]:
    """Activations of the microbatch at work, what the others carry, and the buffers of all."""
    apart = {**element_bytes, Role.DISPATCHED: 0.0}
    peak = max(
        (activation_peak(program, held.sizes, apart, looped=False) for program in held.programs.values()),
        key=lambda found: found.total,
    )
    carried = max(tensor_bytes(p.outputs[0], held.sizes, element_bytes) for p in held.programs.values())
    activations = peak.activations + (held.microbatches - 1) * carried
    where = f"{peak.program}, operation {peak.index}"
    items = [MemoryItem("activations at peak", float(activations), "activations", where)]
    buffers = float(dispatch_buffer_bytes(held, element_bytes))
    if buffers:
        items.append(MemoryItem("dispatch buffers", buffers, "buffers", "tokens on their way to experts"))
    return items
