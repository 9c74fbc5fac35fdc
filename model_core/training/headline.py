"""The quantities of a training step, each with its card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from model_core import metrics
from model_core.hardware.calibration import choose_calibration
from model_core.headline import BOUND_NOTE, headline_quantities
from model_core.quantities import FORMULAS, Quantity, Term, formula
from model_core.results import ParameterCount, TimeBudget
from model_core.spec.base import Evidence
from model_core.spec.design import Design
from model_core.training.evaluation import TrainingResult
from model_core.training.flops import chip_hours_per_trillion, training_hfu, training_mfu
from model_core.training.rows import BUBBLE
from model_core.training.step import TrainingTimes
from model_core.units import (
    BYTES,
    CHIP_SECONDS,
    COUNT,
    FLOPS,
    FLOPS_PER_S,
    RATIO,
    SECONDS,
    TOKENS_PER_S,
    Dimension,
)

BANDED = (
    "step_s",
    "latency_s",
    "mfu",
    "hfu",
    "tokens_per_s",
    "cost_chip_s_per_token",
    "gpu_hours_per_trillion_tokens",
)


@formula("training_step")
def step_s(pipeline: float, reducing: float, optimizer: float) -> float:
    """Time of one training step.

    Formula: makespan of the simulated pipeline + gradients that are reduced after it + optimizer
    Source: DeepSeek-V3 report, 3.2.1; the schedule is simulated operation by operation
    Args:
        pipeline: makespan.
        reducing: time from there to the end of the last reduction.
        optimizer: time of the slowest rank.
    Assumes: every microbatch takes the same time; reading data and logging take none
    """
    return pipeline + reducing + optimizer


@formula("training_bubble")
def bubble_fraction(idle: float, all_time: float) -> float:
    """Idle part of the pipeline: of all ranks' time until the last one ends.

    Formula: Σ over ranks of idle time / (ranks · makespan)
    Source: DSV3 Table 2; Qi et al. 2023; simulated, with uneven stages
    """
    return idle / all_time


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the quantities that rest on a time, all with one note, evidence and error band."""

    note: str
    evidence: Evidence
    band: float

    def make(
        self, key: str, card: str, label: str, value: float, dimension: Dimension, terms: tuple[Term, ...]
    ) -> Quantity:
        """Make one, with the card of a formula."""
        band = self.band if key in BANDED else 0.0
        return Quantity(
            key, label, float(value), dimension, FORMULAS[card], terms, self.evidence, self.note, band
        )


def _maker(design: Design) -> _Maker:
    choice = choose_calibration(design.cluster.chip, design.plan.calibration, "training")
    if choice.calibration is None:
        return _Maker(BOUND_NOTE, Evidence.MODELLED, 0.0)
    note = f"Calibrated: {choice.calibration.stack}, ± {choice.calibration.error_band:.0%}."
    evidence = Evidence.ASSUMED if choice.foreign else Evidence.MODELLED
    return _Maker(note, evidence, choice.calibration.error_band)


def training_quantities(
    design: Design, result: TrainingResult, parameters: ParameterCount
) -> dict[str, Quantity]:
    """Return the numbers of a training step by key."""
    found = headline_quantities(design, None, parameters, None, None)
    made = [*_memory(design, result)]
    if result.times is not None and result.time is not None:
        maker = _maker(design)
        made += [
            *_times(maker, result.times, result.time),
            *_rates(maker, design, result, result.times.step_s),
        ]
    return {**found, **{quantity.key: quantity for quantity in made}}


def _memory(design: Design, result: TrainingResult) -> Iterator[Quantity]:
    if result.memory is None:
        return
    items = tuple(Term(item.name, item.detail, item.bytes, BYTES) for item in result.memory.items)
    card = FORMULAS["training_memory"]
    total = result.memory.per_chip_bytes
    evidence = Evidence.MODELLED
    yield Quantity("memory_per_chip_bytes", "Memory of the fullest rank", total, BYTES, card, items, evidence)
    held = tuple(
        term for term, item in zip(items, result.memory.items, strict=True) if item.kind == "activations"
    )
    kept = sum(term.value for term in held)
    card = FORMULAS["training_activations"]
    yield Quantity("activation_bytes", "Activations of the fullest rank", kept, BYTES, card, held, evidence)
    if result.host_bytes:
        card, chips = FORMULAS["training_ema"], Term("n_chips", "chips", design.cluster.n_chips, COUNT)
        label = "Host memory of the moving average, a rank"
        yield Quantity("host_memory_bytes", label, result.host_bytes, BYTES, card, (chips,), evidence)


def _times(maker: _Maker, times: TrainingTimes, time: TimeBudget) -> Iterator[Quantity]:
    simulation = times.simulation
    makespan, updating = simulation.makespan_s, float(times.optimizer_s.max())
    reducing = times.step_s - makespan - updating
    parts = (
        Term("pipeline", "makespan of the simulated schedule", makespan, SECONDS),
        Term("reduction", "of gradients, after the pipeline", reducing, SECONDS),
        Term("optimizer", "slowest rank", updating, SECONDS),
    )
    value = step_s(makespan, reducing, updating)
    yield maker.make("step_s", "training_step", "Time of a step", value, SECONDS, parts)
    yield maker.make("latency_s", "training_step", "Latency: one whole step", value, SECONDS, parts)
    idle, whole = float(simulation.bubble_s.sum()), makespan * simulation.schedule.pp
    terms = (
        Term("idle", "all ranks", idle, SECONDS),
        Term("ranks", "of the pipeline", simulation.schedule.pp, COUNT),
        Term("makespan", "of the schedule", makespan, SECONDS),
    )
    fraction = bubble_fraction(idle, whole) if whole else 0.0
    yield maker.make("bubble_fraction", "training_bubble", "Pipeline bubble", fraction, RATIO, terms)
    yield from _stage_quantities(maker, times)
    yield from _sums(maker, time)


def _stage_quantities(maker: _Maker, times: TrainingTimes) -> Iterator[Quantity]:
    """Yield F, I and W of the slowest stage, and F&B of the slowest rank."""
    stages = times.stages
    slowest = int((stages.forward_s + stages.input_s + stages.weight_s).argmax())
    where = Term("stage", "that takes longest", slowest, COUNT)
    named = (
        ("forward_s", "F: forward of the slowest stage", float(stages.forward_s[slowest])),
        ("backward_input_s", "I: backward for input of the slowest stage", float(stages.input_s[slowest])),
        (
            "backward_weight_s",
            "W: backward for weights of the slowest stage",
            float(stages.weight_s[slowest]),
        ),
    )
    for key, label, value in named:
        yield maker.make(key, "training_stage_times", label, value, SECONDS, (where,))
    if stages.pair_s is not None:
        rank = Term("rank", "that takes longest", int(stages.pair_s.argmax()), COUNT)
        label = "F&B: overlapped pair of the slowest rank"
        yield maker.make(
            "pair_s", "training_stage_times", label, float(stages.pair_s.max()), SECONDS, (rank,)
        )


def _sums(maker: _Maker, time: TimeBudget) -> Iterator[Quantity]:
    """Yield the sums that the drawing of the time shows, each with its rows as terms."""
    work = [op for op in time.ops if op.name != BUBBLE]
    named = (
        ("compute_s", "Compute time", "compute_s", time.compute_s),
        ("memory_s", "Memory time", "loading_s", time.memory_s),
        ("communication_s", "Communication time", "communication_s", time.communication_s),
        ("exposed_communication_s", "Exposed communication", "exposed_s", time.exposed_communication_s),
    )
    for key, label, attribute, value in named:
        terms = tuple(
            Term(op.name, "on the busiest rank", op.count * getattr(op, attribute), SECONDS)
            for op in work
            if getattr(op, attribute)
        )
        yield maker.make(key, "training_stage_times", label, value, SECONDS, terms)


def _rates(maker: _Maker, design: Design, result: TrainingResult, seconds: float) -> Iterator[Quantity]:
    workload, cluster = design.workload, design.cluster
    tokens, chips, peak = workload.batch * workload.input_length, cluster.n_chips, cluster.chip.peak_bf16
    shared = (
        Term("tokens", "of a step", tokens, COUNT),
        Term("step", "time of a step", seconds, SECONDS),
    )
    machine = (Term("n_chips", "chips", chips, COUNT), Term("peak", "bfloat16", peak, FLOPS_PER_S))
    model, hardware = result.model_flops_per_token, result.hardware_flops
    needed = Term("FLOPs", "model FLOPs of a token", model, FLOPS)
    done = Term("FLOPs", "hardware FLOPs of a step", hardware, FLOPS)
    used = training_mfu(model, tokens, chips, peak, seconds)
    yield maker.make("mfu", "training_mfu", "MFU", used, RATIO, (needed, *shared, *machine))
    used = training_hfu(hardware, chips, peak, seconds)
    yield maker.make("hfu", "training_hfu", "HFU", used, RATIO, (done, *shared[1:], *machine))
    yield maker.make(
        "tokens_per_s",
        "tokens_per_s",
        "Throughput",
        metrics.tokens_per_s(tokens, seconds),
        TOKENS_PER_S,
        shared,
    )
    cost = metrics.cost_chip_s_per_token(chips, seconds, tokens)
    terms = (machine[0], *shared)
    yield maker.make(
        "cost_chip_s_per_token", "cost_chip_s_per_token", "Cost per token", cost, CHIP_SECONDS, terms
    )
    hours = chip_hours_per_trillion(chips, seconds, tokens)
    label = "Chip-hours per trillion tokens"
    yield maker.make(
        "gpu_hours_per_trillion_tokens", "gpu_hours_per_trillion_tokens", label, hours, COUNT, terms
    )
    yield maker.make(
        "model_flops_per_token", "training_model_flops", "Model FLOPs per token", model, FLOPS, ()
    )
