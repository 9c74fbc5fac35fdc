"""The time of a training step as rows that add up to it: those of the busiest rank of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_core.results import OpTime, TimeBudget
from model_core.stages import PIPELINE, time_budget
from model_core.training.costs import Pass
from model_core.training.inputs import TrainingInputs
from model_core.training.step import TrainingTimes

KIND = "training"
TITLES = {
    "embedding": "embedding",
    "block": "dense blocks",
    "moe_block": "expert blocks",
    "mtp": "prediction module",
    "logits": "head",
}
PASSES = {"forward": "forward", "inward": "backward for input", "outward": "backward for weights"}
BUBBLE, REDUCE, OPTIMIZER = "pipeline bubble", "gradient reduction", "optimizer step"
GATHER, SCATTER = "gathering of shared weights", "gradient reduction of each microbatch"


def busiest_rank(times: TrainingTimes) -> int:
    """Return the rank that computes longest."""
    return int(np.argmax(times.simulation.busy_s))


def training_rows(inputs: TrainingInputs, times: TrainingTimes) -> tuple[OpTime, ...]:
    """Return the parts of a step on the busiest rank: work, exposed communication, bubble and what follows.

    Assumes: what the schedule and the weight gradients hide is taken from all communication alike
    """
    schedule, rank = times.simulation.schedule, busiest_rank(times)
    stages = schedule.layout.stage_of[:, rank]
    each = inputs.layout.microbatches // schedule.layout.n_directions
    counts: dict[str, int] = {}
    for stage in stages:
        for name, count in inputs.contents[int(stage)].programs.items():
            counts[name] = counts.get(name, 0) + count * each
    rows = [row for name, n in counts.items() for row in _program_rows(name, n, times)]
    rows += _sharing_rows(stages, each, times)
    busy = float(times.simulation.busy_s[rank])
    work = sum(row.count * row.busy_s for row in rows)
    talk = sum(row.count * row.communication_s for row in rows)
    share = min(1.0, max(0.0, (busy - work) / talk)) if talk else 0.0
    rows = [_exposed(row, share) for row in rows]
    rows += _after(times, busy, rank)
    return tuple(replace(row, index=index) for index, row in enumerate(rows))


def _program_rows(name: str, count: int, times: TrainingTimes) -> Iterator[OpTime]:
    passes = times.passes[name]
    for attribute, title in PASSES.items():
        one: Pass = getattr(passes, attribute)
        label = f"{title}, {TITLES[name]}"
        if one.arithmetic_s or one.fixed_s:
            yield _row(label, count, compute_s=one.arithmetic_s, fixed_s=one.fixed_s, flops=one.flops)
        if one.weight_s or one.activation_s:
            yield _row(f"{label}: loading", count, weight_s=one.weight_s, activation_s=one.activation_s)
        if one.collective_s:
            yield _row(f"{label}: collectives", count, communication_s=one.collective_s)
        if one.routed_s:
            yield _row(f"{label}: dispatch and combine", count, communication_s=one.routed_s)


def _sharing_rows(stages: NDArray[np.integer[Any]], each: int, times: TrainingTimes) -> Iterator[OpTime]:
    """Yield what sharing of weights and gradients costs with each microbatch: weights are gathered twice."""
    for name, count, seconds in (
        (GATHER, 2 * each, float(times.stages.gather_s[stages].sum())),
        (SCATTER, each, float(times.stages.scatter_s[stages].sum())),
    ):
        if seconds:
            yield _row(name, count, communication_s=seconds)


def _after(times: TrainingTimes, busy: float, rank: int) -> list[OpTime]:
    makespan = times.simulation.makespan_s
    begin = float(times.step.optimizer_start_s[rank])
    reducing = float(times.reduce_s[times.simulation.schedule.layout.stage_of[:, rank]].sum())
    updating = times.step_s - begin
    waiting = max(0.0, begin - makespan)
    return [
        _row(BUBBLE, 1, fixed_s=makespan - busy),
        _row(REDUCE, 1, communication_s=max(reducing, waiting), exposed_s=waiting),
        _row(OPTIMIZER, 1, weight_s=updating),
    ]


def _row(
    name: str,
    count: int,
    *,
    flops: float = 0.0,
    compute_s: float = 0.0,
    weight_s: float = 0.0,
    activation_s: float = 0.0,
    fixed_s: float = 0.0,
    communication_s: float = 0.0,
    exposed_s: float = 0.0,
) -> OpTime:
    return OpTime(
        PIPELINE,
        0,
        name,
        KIND,
        count,
        flops=float(flops),
        compute_s=float(compute_s),
        weight_s=float(weight_s),
        activation_s=float(activation_s),
        fixed_s=float(fixed_s),
        communication_s=float(communication_s),
        exposed_s=float(exposed_s),
    )


def _exposed(row: OpTime, share: float) -> OpTime:
    return replace(row, exposed_s=share * row.communication_s)


def training_budget_of_time(inputs: TrainingInputs, times: TrainingTimes, calibrated: bool) -> TimeBudget:
    """Add the rows of a step up."""
    return time_budget(training_rows(inputs, times), 1, calibrated)
