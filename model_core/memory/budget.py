"""The memory budget of one chip, itemised from the tensors of its layer programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from model_core.partition.cost import tensor_bytes
from model_core.partition.program import CollectiveKind, LayerProgram, Local, Role
from model_core.partition.sizes import Sizes
from model_core.quantities import formula
from model_core.results import MemoryBudget, MemoryItem, ParameterCount
from model_core.spec.cluster import ClusterSpec
from model_core.spec.model import ModelSpec
from model_core.spec.plan import DTYPE_BYTES, PlanSpec
from model_core.spec.workload import WorkloadSpec

SMALL_GROUPS = ("positions", "biases")
GROUP_LABELS = {
    "feedforward": "feedforward weights",
    "attention": "attention weights",
    "embedding": "embedding and output weights",
    "norm": "norm weights",
}


@formula("memory_weights")
def stored_weight_bytes(
    programs: Mapping[str, LayerProgram], sizes: Sizes, weight_bytes: float, n_layers: int, tied: bool
) -> dict[str, float]:
    """Bytes of the stored weights on one chip, by parameter group.

    Formula: Σ over weights of elements per chip · bytes · (n_layers in the block, 1 outside)
    Source: Pope 2 and 3.2
    """
    groups: dict[str, float] = {}
    for name, program in programs.items():
        if tied and name == "logits":
            continue
        count = n_layers if name == "block" else 1
        for tensor in program.weights:
            held = sizes.elements(tensor.sharding) * weight_bytes * count
            groups[tensor.group] = groups.get(tensor.group, 0.0) + held
    if tied:
        final = next(t for t in programs["logits"].weights if t.group == "norm")
        groups["norm"] += sizes.elements(final.sharding) * weight_bytes
    return groups


@formula("memory_kv")
def kv_cache_bytes(block: LayerProgram, sizes: Sizes, kv_bytes: float, n_layers: int, context: int) -> float:
    """Bytes of the key/value cache on one chip.

    Formula: n_layers · Σ over keys and values of elements per chip and token · context · bytes
    Source: Pope 3.3
    Args:
        block: the block's program, whose caches are counted.
        sizes: sizes; the letter P counts the context.
        kv_bytes: bytes of one element.
        n_layers: layers.
        context: tokens per sequence.
    """
    held = 0.0
    for tensor in block.caches:
        per_token = 1
        for dim, axes in zip(tensor.sharding.dims, tensor.sharding.axes, strict=True):
            per_token = per_token * (1 if dim == "P" else sizes.local(dim, axes))
        held += per_token * context * kv_bytes
    return n_layers * held


@dataclass(frozen=True, slots=True)
class BudgetParts:
    """The parts of a design that its memory depends on."""

    model: ModelSpec
    cluster: ClusterSpec
    workload: WorkloadSpec
    plan: PlanSpec


@dataclass(frozen=True, slots=True)
class Peak:
    """Live bytes at the fullest moment of a program, and where it is."""

    activations: float = 0.0
    buffers: float = 0.0
    program: str = ""
    index: int = 0

    @property
    def total(self) -> float:
        """Activations and buffers."""
        return self.activations + self.buffers


@formula("memory_activations")
def activation_peak(
    program: LayerProgram, sizes: Sizes, element_bytes: Mapping[Role, float], looped: bool
) -> Peak:
    """Activations and gathered weights alive at the fullest operation of a program.

    Formula: max over operations of Σ bytes of tensors made before and still needed
    Source: counted from the layer program; Pope 3.5 for the looped collectives
    Args:
        program: the layer program.
        sizes: sizes.
        element_bytes: bytes of one element by role.
        looped: Looped CollectiveEinsum holds two shards of what it gathers or scatters, never the whole.
    Assumes: attention scores stay on the chip; elementwise work and the growth of the cache are in place
    """
    held = _held_bytes(program, sizes, element_bytes, looped)
    now_activations = sum(held[t.name][0] for t in program.inputs)
    now_buffers = 0.0
    best = Peak()
    for index, (reused, output, freed) in enumerate(lifetimes(program)):
        for name in reused:
            now_activations -= held[name][0]
            now_buffers -= held[name][1]
        now_activations += held[output][0]
        now_buffers += held[output][1]
        if now_activations + now_buffers > best.total:
            best = Peak(now_activations, now_buffers, program.name, index)
        for name in freed:
            now_activations -= held[name][0]
            now_buffers -= held[name][1]
    return best


@lru_cache(maxsize=512)
def lifetimes(program: LayerProgram) -> tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...]:
    """Per operation: tensors whose memory its output takes over, the output, tensors freed after it."""
    last_use = {tensor.name: index for index, op in enumerate(program.ops) for tensor in op.inputs}
    last_use |= {tensor.name: len(program.ops) for tensor in program.outputs}
    made = {tensor.name for tensor in program.inputs}
    events = []
    for index, op in enumerate(program.ops):
        dying = tuple({t.name for t in op.inputs if t.name in made and last_use[t.name] == index})
        unused = (op.output.name,) if op.output.name not in last_use else ()
        made.add(op.output.name)
        in_place = isinstance(op, Local)
        events.append((dying if in_place else (), op.output.name, unused if in_place else dying + unused))
    return tuple(events)


def _held_bytes(
    program: LayerProgram, sizes: Sizes, element_bytes: Mapping[Role, float], looped: bool
) -> dict[str, tuple[float, float]]:
    """(activation, buffer) bytes that each tensor takes while it is alive."""
    held: dict[str, tuple[float, float]] = {}
    for tensor in (*program.inputs, *(op.output for op in program.ops)):
        whole = 0.0 if tensor.role in (Role.ON_CHIP, Role.KV) else tensor_bytes(tensor, sizes, element_bytes)
        held[tensor.name] = (0.0, whole) if tensor.role is Role.WEIGHT else (whole, 0.0)
    for _, op in program.collectives():
        if not (looped and op.hides_behind):
            continue
        gathers = op.kind is CollectiveKind.ALL_GATHER
        whole_tensor, shard = (op.output, op.input) if gathers else (op.input, op.output)
        two_shards = 2 * tensor_bytes(shard, sizes, element_bytes)
        activation, buffer = held[whole_tensor.name]
        held[whole_tensor.name] = (min(two_shards, activation), min(two_shards, buffer))
    return held


def program_budget(
    parts: BudgetParts,
    programs: Mapping[str, LayerProgram],
    sizes: Sizes,
    element_bytes: Mapping[Role, float],
    parameters: ParameterCount,
) -> MemoryBudget:
    """Itemise the memory of one chip for a design with layer programs."""
    model, plan = parts.model, parts.plan
    weights = stored_weight_bytes(
        programs, sizes, element_bytes[Role.WEIGHT], model.n_layers, model.tied_embedding
    )
    items = [
        MemoryItem(GROUP_LABELS[group], held, "weights", f"{plan.weight_dtype}, {group}")
        for group, held in weights.items()
    ]
    small = sum(parameters.groups.get(g, 0) for g in SMALL_GROUPS) * element_bytes[Role.WEIGHT]
    if small:
        items.append(
            MemoryItem(
                "positions and biases", small / parts.cluster.n_chips, "weights", "split over all chips"
            )
        )
    context = parts.workload.max_context
    kv = kv_cache_bytes(programs["block"], sizes, element_bytes[Role.KV], model.n_layers, context)
    items.append(MemoryItem("KV cache", kv, "kv", f"{plan.kv_dtype}, context {context}"))
    looped = plan.collective_overlap > 0
    peak = max(
        (activation_peak(p, sizes, element_bytes, looped) for p in programs.values()), key=lambda p: p.total
    )
    items.append(
        MemoryItem(
            "activations at peak", peak.activations, "activations", f"{peak.program}, operation {peak.index}"
        )
    )
    if peak.buffers:
        items.append(
            MemoryItem("gathered weights", peak.buffers, "buffers", f"{peak.program}, operation {peak.index}")
        )
    return _with_reserve(parts, items)


def split_evenly_budget(parts: BudgetParts, parameters: ParameterCount, kv_per_token: float) -> MemoryBudget:
    """Itemise the memory of a design without layer programs: everything split over all chips."""
    chips = parts.cluster.n_chips
    width = DTYPE_BYTES[parts.plan.weight_dtype]
    items = [
        MemoryItem(f"{name} weights", count * width / chips, "weights", "split over all chips")
        for name, count in parameters.groups.items()
    ]
    context = parts.workload.max_context
    kv = kv_per_token * parts.workload.batch * context / chips
    items.append(MemoryItem("KV cache", kv, "kv", f"{parts.plan.kv_dtype}, context {context}"))
    return _with_reserve(parts, items)


def _with_reserve(parts: BudgetParts, items: list[MemoryItem]) -> MemoryBudget:
    capacity = parts.cluster.chip.hbm_capacity
    share = parts.plan.memory_reserve
    reserve = MemoryItem("reserve", capacity * share, "reserve", f"{share:.0%} of the memory")
    return MemoryBudget(capacity, (*items, reserve))
