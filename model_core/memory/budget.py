"""The memory budget of one chip, itemised from the tensors of its layer programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from model_core.arithmetic import Number, ceil_div, maximum, minimum
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
ALL_CHIPS = "split over all chips"
GROUP_LABELS = {
    "feedforward": "feedforward weights",
    "attention": "attention weights",
    "embedding": "embedding and output weights",
    "norm": "norm weights",
}


@formula("memory_weights")
def stored_weight_bytes(
    programs: Mapping[str, LayerProgram], sizes: Sizes, weight_bytes: Number, n_layers: Number, tied: bool
) -> dict[str, Number]:
    """Bytes of the stored weights on one chip, by parameter group.

    Formula: Σ over weights of elements per chip · bytes · (n_layers in the block, 1 outside)
    Source: Pope 2 and 3.2
    """
    groups: dict[str, Number] = {}
    for name, program in programs.items():
        if tied and name == "logits":
            continue
        count = n_layers if name == "block" else 1
        for tensor in program.weights:
            held = sizes.elements(tensor.sharding) * weight_bytes * count
            groups[tensor.group] = groups.get(tensor.group, 0.0) + held
    if tied:
        final = next(t for t in programs["logits"].weights if t.group == "norm")
        groups["norm"] = groups["norm"] + sizes.elements(final.sharding) * weight_bytes
    return groups


@formula("memory_kv")
def kv_cache_bytes(
    block: LayerProgram, sizes: Sizes, kv_bytes: Number, n_layers: Number, context: Number
) -> Number:
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
    held: Number = 0.0
    for tensor in block.caches:
        per_token: Number = 1
        for dim, axes in zip(tensor.sharding.dims, tensor.sharding.axes, strict=True):
            per_token = per_token * (1 if dim == "P" else sizes.local(dim, axes))
        held = held + per_token * context * kv_bytes
    return n_layers * held


@dataclass(frozen=True, slots=True)
class BudgetParts:
    """The parts of a design that its memory depends on.

    Of ``stages`` pipeline stages the fullest counts; it is taken to hold embedding and output.
    """

    model: ModelSpec
    cluster: ClusterSpec
    workload: WorkloadSpec
    plan: PlanSpec
    stages: Number = 1

    @property
    def n_layers(self) -> Number:
        """Layers of the fullest stage."""
        return ceil_div(self.model.n_layers, self.stages)


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
    best = Peak()
    for index, (activations, buffers) in enumerate(_live_bytes(program, sizes, element_bytes, looped)):
        if activations + buffers > best.total:
            best = Peak(activations, buffers, program.name, index)
    return best


def peak_bytes(
    programs: Iterable[LayerProgram], sizes: Sizes, element_bytes: Mapping[Role, Number], looped: bool
) -> Number:
    """Bytes alive at the fullest operation of all programs, elementwise; see `activation_peak`."""
    most: Number = 0.0
    for program in programs:
        for activations, buffers in _live_bytes(program, sizes, element_bytes, looped):
            most = maximum(most, activations + buffers)
    return most


def _live_bytes(
    program: LayerProgram, sizes: Sizes, element_bytes: Mapping[Role, Number], looped: bool
) -> Iterator[tuple[Number, Number]]:
    """Yield (activation, buffer) bytes alive during each operation."""
    held = _held_bytes(program, sizes, element_bytes, looped)
    activations: Number = 0.0
    buffers: Number = 0.0
    for tensor in program.inputs:
        activations = activations + held[tensor.name][0]
    for reused, output, freed in lifetimes(program):
        for name in reused:
            activations, buffers = activations - held[name][0], buffers - held[name][1]
        activations, buffers = activations + held[output][0], buffers + held[output][1]
        yield activations, buffers
        for name in freed:
            activations, buffers = activations - held[name][0], buffers - held[name][1]


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
    program: LayerProgram, sizes: Sizes, element_bytes: Mapping[Role, Number], looped: bool
) -> dict[str, tuple[Number, Number]]:
    """(activation, buffer) bytes that each tensor takes while it is alive."""
    held: dict[str, tuple[Number, Number]] = {}
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
        held[whole_tensor.name] = (minimum(two_shards, activation), minimum(two_shards, buffer))
    return held


def program_budget(
    parts: BudgetParts,
    programs: Mapping[str, LayerProgram],
    sizes: Sizes,
    element_bytes: Mapping[Role, float],
    parameters: ParameterCount,
) -> MemoryBudget:
    """Itemise the memory of one chip for a design with layer programs."""
    plan = parts.plan
    details = {
        "weights": f"{plan.weight_dtype}, ",
        "kv": f"{plan.kv_dtype}, context {parts.workload.max_context}",
    }
    items = [
        MemoryItem(name, held, kind, f"{details[kind]}{group}" if group != ALL_CHIPS else group)
        for name, kind, group, held in _stored(parts, programs, sizes, element_bytes, parameters)
    ]
    looped = plan.collective_overlap > 0
    peak = max(
        (activation_peak(p, sizes, element_bytes, looped) for p in programs.values()), key=lambda p: p.total
    )
    where = f"{peak.program}, operation {peak.index}"
    items.append(MemoryItem("activations at peak", peak.activations, "activations", where))
    if peak.buffers:
        items.append(MemoryItem("gathered weights", peak.buffers, "buffers", where))
    return _with_reserve(parts, items)


def program_bytes(
    parts: BudgetParts,
    programs: Mapping[str, LayerProgram],
    sizes: Sizes,
    element_bytes: Mapping[Role, Number],
    parameters: ParameterCount,
    looped: bool,
) -> Number:
    """Sum of the items of `program_budget`, elementwise."""
    total: Number = reserve_bytes(parts)
    for *_, held in _stored(parts, programs, sizes, element_bytes, parameters):
        total = total + held
    return total + peak_bytes(programs.values(), sizes, element_bytes, looped)


def _stored(
    parts: BudgetParts,
    programs: Mapping[str, LayerProgram],
    sizes: Sizes,
    element_bytes: Mapping[Role, Number],
    parameters: ParameterCount,
) -> Iterator[tuple[str, str, str, Number]]:
    """Yield what a chip holds throughout: name, kind, parameter group and bytes."""
    n_layers, width = parts.n_layers, element_bytes[Role.WEIGHT]
    weights = stored_weight_bytes(programs, sizes, width, n_layers, parts.model.tied_embedding)
    for group, held in weights.items():
        yield GROUP_LABELS[group], "weights", group, held
    small = [parameters.groups[group] for group in SMALL_GROUPS if group in parameters.groups]
    if small:
        yield "positions and biases", "weights", ALL_CHIPS, sum(small) * width / parts.cluster.n_chips
    context, kv_width = parts.workload.max_context, element_bytes[Role.KV]
    kv = kv_cache_bytes(programs["block"], sizes, kv_width, n_layers, context)
    yield "KV cache", "kv", "", kv * parts.plan.microbatches


def split_evenly_budget(parts: BudgetParts, parameters: ParameterCount, kv_per_token: float) -> MemoryBudget:
    """Itemise the memory of a design without layer programs: everything split over all chips."""
    chips = parts.cluster.n_chips
    width = DTYPE_BYTES[parts.plan.weight_dtype]
    items = [
        MemoryItem(f"{name} weights", count * width / chips, "weights", ALL_CHIPS)
        for name, count in parameters.groups.items()
    ]
    context = parts.workload.max_context
    kv = kv_per_token * parts.workload.batch * context / chips
    items.append(MemoryItem("KV cache", kv, "kv", f"{parts.plan.kv_dtype}, context {context}"))
    return _with_reserve(parts, items)


def reserve_bytes(parts: BudgetParts) -> Number:
    """Memory kept free."""
    return parts.cluster.chip.hbm_capacity * parts.plan.memory_reserve


def _with_reserve(parts: BudgetParts, items: list[MemoryItem]) -> MemoryBudget:
    share = parts.plan.memory_reserve
    reserve = MemoryItem("reserve", reserve_bytes(parts), "reserve", f"{share:.0%} of the memory")
    return MemoryBudget(parts.cluster.chip.hbm_capacity, (*items, reserve))
