"""Builds the quantities of an evaluation: each headline number with the terms of its formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from model_core import metrics
from model_core.hardware.calibration import Choice, choose_calibration, efficiency_of
from model_core.quantities import FORMULAS, Quantity, Term
from model_core.results import MemoryBudget, ParameterCount, TimeBudget
from model_core.spec.base import Evidence
from model_core.spec.cluster import ChipSpec
from model_core.spec.design import Design
from model_core.spec.plan import DTYPE_BYTES
from model_core.spec.workload import Phase
from model_core.stages import Layout, kv_per_context_token, kv_per_token
from model_core.units import (
    BYTES,
    BYTES_PER_S,
    CHIP_SECONDS,
    COUNT,
    ENERGY,
    FLOPS,
    FLOPS_PER_S,
    POWER,
    PRICE,
    RATIO,
    SECONDS,
    TOKEN_PRICE,
    TOKENS_PER_S,
    Dimension,
)

BOUND_NOTE = "A bound at peak rates: no calibration of this chip is applied."
BANDED = (
    "step_s",
    "latency_s",
    "mfu",
    "tokens_per_s",
    "cost_chip_s_per_token",
    "usd_per_million_tokens",
    "joules_per_token",
)
"""Numbers that the error band of a calibration holds for; parts of a step are less certain than the sum."""
EVEN_SPLIT_NOTE = "A fallback: every weight and the cache are taken as split evenly over all chips."


def headline_quantities(
    design: Design,
    layout: Layout | None,
    parameters: ParameterCount,
    memory: MemoryBudget | None,
    time: TimeBudget | None,
) -> dict[str, Quantity]:
    """Return the headline numbers by key; those of the memory or time are missing where there is none."""
    found = [*_model_sizes(design, parameters)]
    if memory is not None:
        found += _chip_sizes(design, layout, memory)
    if time is not None:
        choice = choose_calibration(design.cluster.chip, design.plan.calibration)
        trust = _trust_in(choice)
        found += [*_times(design, time, choice, trust), *_rates(design, parameters, time, trust)]
    return {quantity.key: quantity for quantity in found}


@dataclass(frozen=True, slots=True)
class _Trust:
    """How far times can be trusted: the note on them, their evidence and their error band."""

    note: str = BOUND_NOTE
    evidence: Evidence = Evidence.MODELLED
    error_band: float = 0.0

    def timed(
        self,
        key: str,
        label: str,
        value: float,
        dimension: Dimension,
        terms: tuple[Term, ...],
        evidence: Evidence = Evidence.MODELLED,
    ) -> Quantity:
        """Make a quantity that rests on a time, and on other fields with their own evidence."""
        return Quantity(
            key,
            label,
            float(value),
            dimension,
            FORMULAS[key],
            terms,
            self.evidence if evidence is Evidence.MODELLED else evidence,
            self.note,
            self.error_band if key in BANDED else 0.0,
        )


def _trust_in(choice: Choice) -> _Trust:
    """Say that times are calibrated, and how well; assumed if the calibration is of another chip."""
    calibration = choice.calibration
    if calibration is None:
        return _Trust()
    note = f"Calibrated: {calibration.stack}, ± {calibration.error_band:.0%}."
    evidence = Evidence.ASSUMED if choice.foreign else Evidence.MODELLED
    return _Trust(note, evidence, calibration.error_band)


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


def _model_sizes(design: Design, parameters: ParameterCount) -> Iterator[Quantity]:
    groups = tuple(Term(name, "parameters", count, COUNT) for name, count in parameters.groups.items())
    yield _quantity("parameters_total", "Parameters", parameters.total, COUNT, groups)
    yield _quantity(
        "parameters_active", "Active parameters", parameters.active, COUNT, groups, parameters.convention
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


def _chip_sizes(design: Design, layout: Layout | None, memory: MemoryBudget) -> Iterator[Quantity]:
    note = "" if layout is not None else EVEN_SPLIT_NOTE
    evidence = Evidence.MODELLED if layout is not None else Evidence.ASSUMED
    items = tuple(Term(item.name, item.detail, item.bytes, BYTES) for item in memory.items)
    total = memory.per_chip_bytes
    yield _quantity("memory_per_chip_bytes", "Memory per chip", total, BYTES, items, note, evidence)
    capacity, share = design.cluster.chip.hbm_capacity, design.plan.kv_memory_share
    on_chip = kv_per_context_token(design, layout)
    free = capacity - sum(item.bytes for item in memory.items if item.kind != "kv")
    limit = design.model.max_context
    on_chip_term = Term("KV bytes", "per context token on a chip", on_chip, BYTES)
    yield _quantity(
        "max_context",
        "Longest context",
        metrics.longest_context(free, on_chip, limit),
        COUNT,
        (
            Term("free", "memory left for the KV cache", free, BYTES),
            on_chip_term,
            Term("limit", "positions of the model; 0: not stated", limit, COUNT),
        ),
        note,
        evidence,
    )
    yield _quantity(
        "max_context_of_share",
        "Longest context in the KV share",
        metrics.max_context(share * capacity, on_chip),
        COUNT,
        (
            Term("share", "of the memory for the KV cache", share, RATIO),
            Term("HBM", "memory of a chip", capacity, BYTES),
            on_chip_term,
        ),
        note,
        evidence,
    )


def _times(design: Design, time: TimeBudget, choice: Choice, trust: _Trust) -> Iterator[Quantity]:
    chip = design.cluster.chip
    hidden = design.plan.collective_overlap * efficiency_of(choice.calibration).hidden_share
    fixed = sum(op.count * op.fixed_s for op in time.ops)
    is_decode = design.workload.phase is Phase.DECODE
    steps = design.workload.n_steps
    parts = (
        Term("T_compute", "arithmetic", time.compute_s, SECONDS),
        Term("T_memory", "weight and KV loading", time.memory_s, SECONDS),
        Term("T_exposed", "exposed communication", time.exposed_communication_s, SECONDS),
        *((Term("T_fixed", "fixed costs", fixed, SECONDS),) if fixed else ()),
    )
    label = "Latency per token" if is_decode else "Latency" if steps == 1 else "Latency per chunk"
    yield trust.timed("step_s", label, metrics.step_s(time.step_s), SECONDS, parts)
    yield trust.timed(
        "latency_s",
        "Latency of the phase",
        metrics.latency_s(time.step_s, steps),
        SECONDS,
        (
            Term("step", "one forward pass", time.step_s, SECONDS),
            Term("steps", "forward passes", steps, COUNT),
        ),
    )
    flops = sum(op.count * op.flops for op in time.ops)
    yield trust.timed(
        "compute_s",
        "Compute time",
        time.compute_s,
        SECONDS,
        (
            Term("FLOPs", "per chip and step, attention included", flops, FLOPS),
            Term("rate", "of the chip, bfloat16", chip.peak_bf16, FLOPS_PER_S),
            *_reached(time, flops, chip.peak_bf16, time.compute_s),
        ),
    )
    loaded = sum(op.count * (op.weight_bytes + op.kv_bytes) for op in time.ops)
    yield trust.timed(
        "memory_s",
        "Memory time",
        time.memory_s,
        SECONDS,
        (
            Term("bytes", "weights and KV cache per chip and step", loaded, BYTES),
            Term("bandwidth", "of the memory", chip.hbm_bandwidth, BYTES_PER_S),
            *_reached(time, loaded, chip.hbm_bandwidth, time.memory_s),
        ),
    )
    sent = sum(op.count * op.collective_bytes for op in time.ops)
    hops = sum(op.count * op.latency_part_s for op in time.ops)
    hop_term = Term("hops", "time of the hops of all collectives", hops, SECONDS)
    yield trust.timed(
        "communication_s",
        "Communication time",
        time.communication_s,
        SECONDS,
        (Term("bytes", "received per chip and step", sent, BYTES), hop_term),
    )
    yield trust.timed(
        "exposed_communication_s",
        "Exposed communication",
        time.exposed_communication_s,
        SECONDS,
        (
            Term("T_comm", "all collectives", time.communication_s, SECONDS),
            Term("h", "share that can be hidden", hidden, RATIO),
        ),
    )


def _reached(time: TimeBudget, work: float, rate: float, seconds: float) -> tuple[Term, ...]:
    """Return the share of a peak rate that a calibrated time amounts to."""
    if not (time.calibrated and seconds):
        return ()
    return (Term("η", "share of it reached, on average", work / (rate * seconds), RATIO),)


def _rates(design: Design, parameters: ParameterCount, time: TimeBudget, trust: _Trust) -> Iterator[Quantity]:
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
    yield trust.timed(
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
    )
    throughput = metrics.tokens_per_s(tokens, seconds)
    yield trust.timed("tokens_per_s", "Throughput", throughput, TOKENS_PER_S, shared)
    cost = metrics.cost_chip_s_per_token(cluster.n_chips, seconds, tokens)
    yield trust.timed("cost_chip_s_per_token", "Cost per token", cost, CHIP_SECONDS, (chips, *shared))
    yield from _money_and_energy(cluster.chip, cost, trust)


def _money_and_energy(chip: ChipSpec, cost: float, trust: _Trust) -> Iterator[Quantity]:
    """Yield what a token costs in money and energy, where the chip says its price and power."""
    chip_seconds = Term("chip·s", "chip-seconds per token", cost, CHIP_SECONDS)
    if chip.price_per_hour is not None:
        usd = metrics.usd_per_million_tokens(cost, chip.price_per_hour)
        price = Term("price", "of one chip for an hour", chip.price_per_hour, PRICE)
        evidence = _evidence_with(chip, "price_per_hour")
        label = "Cost per million tokens"
        terms = (chip_seconds, price)
        yield trust.timed("usd_per_million_tokens", label, usd, TOKEN_PRICE, terms, evidence)
    if chip.power is not None:
        joules = metrics.joules_per_token(cost, chip.power)
        power = Term("power", "of one chip", chip.power, POWER)
        evidence = _evidence_with(chip, "power")
        terms = (chip_seconds, power)
        yield trust.timed("joules_per_token", "Energy per token", joules, ENERGY, terms, evidence)


def _evidence_with(chip: ChipSpec, field: str) -> Evidence:
    """Return the evidence of a number that rests on a field of the chip: an assumption stays one."""
    assumed = chip.source_of(field).evidence is Evidence.ASSUMED
    return Evidence.ASSUMED if assumed else Evidence.MODELLED
