"""Builds the quantities of an evaluation: each headline number with the terms of its formula."""

from __future__ import annotations

from collections.abc import Iterator

from model_core import metrics
from model_core.quantities import FORMULAS, Quantity, Term
from model_core.results import MemoryBudget, ParameterCount, TimeBudget
from model_core.spec.base import Evidence
from model_core.spec.design import Design
from model_core.spec.plan import DTYPE_BYTES
from model_core.spec.workload import Phase
from model_core.stages import Layout, kv_per_context_token, kv_per_token
from model_core.units import (
    BYTES,
    BYTES_PER_S,
    CHIP_SECONDS,
    COUNT,
    FLOPS,
    FLOPS_PER_S,
    RATIO,
    SECONDS,
    TOKENS_PER_S,
    Dimension,
)

BOUND_NOTE = "A bound at peak rates: no calibration of this chip is applied."
EVEN_SPLIT_NOTE = "A fallback: every weight and the cache are taken as split evenly over all chips."


def headline_quantities(
    design: Design,
    layout: Layout | None,
    parameters: ParameterCount,
    memory: MemoryBudget,
    time: TimeBudget | None,
) -> dict[str, Quantity]:
    """Return the headline numbers by key; those of the time are missing where there is none."""
    found = [*_sizes(design, layout, parameters, memory)]
    if time is not None:
        found += [*_times(design, time), *_rates(design, parameters, time)]
    return {quantity.key: quantity for quantity in found}


def _quantity(
    key: str,
    label: str,
    value: float,
    dimension: Dimension,
    terms: tuple[Term, ...],
    note: str = "",
    evidence: Evidence = Evidence.MODELLED,
) -> Quantity:
    formula = FORMULAS.get(key) or FORMULAS["parameters_total"]
    return Quantity(key, label, float(value), dimension, formula, terms, evidence, note)


def _sizes(
    design: Design, layout: Layout | None, parameters: ParameterCount, memory: MemoryBudget
) -> Iterator[Quantity]:
    note = "" if layout is not None else EVEN_SPLIT_NOTE
    groups = tuple(Term(name, "parameters", count, COUNT) for name, count in parameters.groups.items())
    yield _quantity("parameters_total", "Parameters", parameters.total, COUNT, groups)
    yield _quantity(
        "parameters_active", "Active parameters", parameters.active, COUNT, groups, parameters.convention
    )
    items = tuple(Term(item.name, item.detail, item.bytes, BYTES) for item in memory.items)
    yield _quantity(
        "memory_per_chip_bytes",
        "Memory per chip",
        memory.per_chip_bytes,
        BYTES,
        items,
        note,
        Evidence.MODELLED if layout is not None else Evidence.ASSUMED,
    )
    model, plan = design.model, design.plan
    per_token = kv_per_token(model, plan)
    width = DTYPE_BYTES[plan.kv_dtype]
    yield _quantity(
        "kv_bytes_per_token",
        "KV cache per token",
        per_token,
        BYTES,
        (
            Term("n_layers", "layers", model.n_layers, COUNT),
            Term("elements", "per layer and token", per_token / model.n_layers / width, COUNT),
            Term("bytes", "of one element", width, BYTES),
        ),
    )
    capacity = design.cluster.chip.hbm_capacity
    on_chip = kv_per_context_token(design, layout)
    longest = metrics.max_context(plan.kv_memory_share * capacity, on_chip)
    yield _quantity(
        "max_context",
        "Longest context",
        longest,
        COUNT,
        (
            Term("share", "of the memory for the KV cache", plan.kv_memory_share, RATIO),
            Term("HBM", "memory of a chip", capacity, BYTES),
            Term("KV bytes", "per context token on a chip", on_chip, BYTES),
        ),
        note,
    )


def _times(design: Design, time: TimeBudget) -> Iterator[Quantity]:
    chip = design.cluster.chip
    is_decode = design.workload.phase is Phase.DECODE
    steps = design.workload.output_length if is_decode else 1
    parts = (
        Term("T_compute", "arithmetic", time.compute_s, SECONDS),
        Term("T_memory", "weight and KV loading", time.memory_s, SECONDS),
        Term("T_exposed", "exposed communication", time.exposed_communication_s, SECONDS),
    )
    label = "Latency per token" if is_decode else "Latency"
    yield _quantity("step_s", label, metrics.step_s(time.step_s), SECONDS, parts, BOUND_NOTE)
    yield _quantity(
        "latency_s",
        "Latency of the phase",
        metrics.latency_s(time.step_s, steps),
        SECONDS,
        (
            Term("step", "one forward pass", time.step_s, SECONDS),
            Term("steps", "forward passes", steps, COUNT),
        ),
        BOUND_NOTE,
    )
    flops = sum(op.count * op.flops for op in time.ops)
    yield _quantity(
        "compute_s",
        "Compute time",
        time.compute_s,
        SECONDS,
        (
            Term("FLOPs", "per chip and step, attention included", flops, FLOPS),
            Term("rate", "of the chip, bfloat16", chip.peak_bf16, FLOPS_PER_S),
        ),
        BOUND_NOTE,
    )
    loaded = sum(op.count * (op.weight_bytes + op.kv_bytes) for op in time.ops)
    yield _quantity(
        "memory_s",
        "Memory time",
        time.memory_s,
        SECONDS,
        (
            Term("bytes", "weights and KV cache per chip and step", loaded, BYTES),
            Term("bandwidth", "of the memory", chip.hbm_bandwidth, BYTES_PER_S),
        ),
        BOUND_NOTE,
    )
    sent = sum(op.count * op.collective_bytes for op in time.ops)
    hops = sum(op.count * op.latency_part_s for op in time.ops)
    hop_term = Term("hops", "time of the hops of all collectives", hops, SECONDS)
    yield _quantity(
        "communication_s",
        "Communication time",
        time.communication_s,
        SECONDS,
        (Term("bytes", "received per chip and step", sent, BYTES), hop_term),
        BOUND_NOTE,
    )
    yield _quantity(
        "exposed_communication_s",
        "Exposed communication",
        time.exposed_communication_s,
        SECONDS,
        (
            Term("T_comm", "all collectives", time.communication_s, SECONDS),
            Term("h", "share that can be hidden", design.plan.collective_overlap, RATIO),
        ),
        BOUND_NOTE,
    )


def _rates(design: Design, parameters: ParameterCount, time: TimeBudget) -> Iterator[Quantity]:
    workload, cluster = design.workload, design.cluster
    tokens = workload.batch * workload.tokens_per_sequence
    seconds = time.latency_s
    shared = (
        Term("tokens", "all sequences", tokens, COUNT),
        Term("time", "of the phase", seconds, SECONDS),
    )
    chips = Term("n_chips", "chips", cluster.n_chips, COUNT)
    peak = cluster.chip.peak_bf16
    utilization = metrics.mfu(parameters.mfu, tokens, cluster.n_chips, peak, seconds)
    yield _quantity(
        "mfu",
        "MFU",
        utilization,
        RATIO,
        (
            Term("N", "active parameters without head padding", parameters.mfu, COUNT),
            *shared,
            chips,
            Term("peak", "bfloat16", peak, FLOPS_PER_S),
        ),
        BOUND_NOTE,
    )
    throughput = metrics.tokens_per_s(tokens, seconds)
    yield _quantity("tokens_per_s", "Throughput", throughput, TOKENS_PER_S, shared, BOUND_NOTE)
    cost = metrics.cost_chip_s_per_token(cluster.n_chips, seconds, tokens)
    yield _quantity(
        "cost_chip_s_per_token", "Cost per token", cost, CHIP_SECONDS, (chips, *shared), BOUND_NOTE
    )
