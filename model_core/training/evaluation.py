"""Evaluates a training design: memory of the fullest rank, time of a simulated step, quantities with cards."""

from __future__ import annotations

from dataclasses import dataclass, replace

from model_core.diagnostics import Diagnostic, has_errors
from model_core.hardware.calibration import BOUND
from model_core.memo import memoised
from model_core.memory.training_budget import TrainingParts, ema_bytes, training_budget
from model_core.results import MemoryBudget, ParameterCount, TimeBudget
from model_core.spec.cluster import ClusterSpec
from model_core.spec.design import Design
from model_core.spec.model import ModelSpec
from model_core.spec.plan import PlanSpec
from model_core.spec.workload import WorkloadSpec
from model_core.training.costs import all_passes, training_rates
from model_core.training.flops import hardware_flops, model_flops_per_token
from model_core.training.inputs import TrainingInputs, memory_parts, training_inputs
from model_core.training.rows import training_budget_of_time
from model_core.training.step import TrainingTimes, training_times


@dataclass(frozen=True, slots=True, eq=False)
class TrainingResult:
    """A training step evaluated; memory and time are empty where degrees do not fit or no schedule can be had.

    ``memory`` is that of the fullest ``rank`` of a pipeline, ``ranks`` of all of them.
    """

    inputs: TrainingInputs
    diagnostics: tuple[Diagnostic, ...]
    memory: MemoryBudget | None = None
    ranks: tuple[MemoryBudget, ...] = ()
    rank: int = 0
    host_bytes: float = 0.0
    times: TrainingTimes | None = None
    time: TimeBudget | None = None
    model_flops_per_token: float = 0.0
    hardware_flops: float = 0.0


@memoised(16)
def training_stage(
    model: ModelSpec, cluster: ClusterSpec, workload: WorkloadSpec, plan: PlanSpec, parameters: ParameterCount
) -> TrainingResult:
    """Evaluate a training step."""
    inputs = training_inputs(model, cluster, workload, plan)
    if inputs.schedule is None or has_errors(inputs.layout.diagnostics):
        return TrainingResult(inputs, inputs.diagnostics)
    design = Design(name="", model=model, cluster=cluster, workload=workload, plan=plan)
    parts = memory_parts(design, inputs, inputs.schedule, parameters)
    ranks = training_budget(parts)
    fullest = max(range(len(ranks)), key=lambda rank: ranks[rank].per_chip_bytes)
    rates, found = training_rates(design, inputs)
    passes = all_passes(design, inputs, rates)
    # MFU counts the masked half of the attention too: HFU must, to be comparable.
    whole = replace(rates, skip_masked=False)
    times = training_times(inputs, inputs.schedule, passes, rates, parts.small)
    return TrainingResult(
        inputs=inputs,
        diagnostics=(*inputs.diagnostics, *found),
        memory=ranks[fullest],
        ranks=ranks,
        rank=fullest,
        host_bytes=_host_bytes(parts),
        times=times,
        time=training_budget_of_time(inputs, times, rates.efficiency is not BOUND),
        model_flops_per_token=model_flops_per_token(model, workload.input_length),
        hardware_flops=float(hardware_flops(inputs, all_passes(design, inputs, whole))),
    )


def _host_bytes(parts: TrainingParts) -> float:
    return max(float(ema_bytes(parts, rank)) for rank in range(parts.schedule.pp))
