"""What follows the pipeline in a training step: gradient all-reduce and optimizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from model_core.schedule.operations import Floats, OpKind
from model_core.schedule.simulate import Simulation


@dataclass(frozen=True, slots=True, eq=False)
class StepTimes:
    """One training step. The all-reduce goes by stage [stages], the optimizer by rank [pp]."""

    reduce_start_s: Floats
    reduce_end_s: Floats
    optimizer_start_s: Floats
    optimizer_end_s: Floats

    @property
    def step_s(self) -> float:
        """From the first operation to the end of the last optimizer step."""
        return float(self.optimizer_end_s.max())


def step_times(
    simulation: Simulation,
    all_reduce_s: ArrayLike = 0.0,
    optimizer_s: ArrayLike = 0.0,
    wait_for_all: bool = True,
) -> StepTimes:
    """Return when gradients are reduced and parameters updated.

    A stage's gradients are reduced once all ranks that hold it have computed its last one, beside what
    these ranks compute meanwhile; a rank reduces one stage after another.

    Assumes: the all-reduce does not slow the computation that it overlaps.

    Args:
        simulation: the pipeline.
        all_reduce_s: a number, or one for each stage: over all copies of its parameters.
        optimizer_s: a number, or one for each rank.
        wait_for_all: no optimizer step starts before all gradients are reduced, as clipping by the global
            gradient norm needs; otherwise each rank goes on by itself (post-validation).
    """
    layout = simulation.schedule.layout
    duration = np.broadcast_to(np.asarray(all_reduce_s, np.float64), (layout.n_stages,))
    ready = _gradients_ready_s(simulation)
    free = np.zeros(layout.pp)
    start, end = np.zeros(layout.n_stages), np.zeros(layout.n_stages)
    for stage in np.argsort(ready, kind="stable"):
        holders = layout.rank_of[:, stage]
        start[stage] = max(ready[stage], free[holders].max())
        end[stage] = start[stage] + duration[stage]
        free[holders] = end[stage]
    last_rows = simulation.schedule.offsets[1:] - 1
    reduced = np.maximum(end[layout.stage_of].max(axis=0), simulation.end_s[last_rows])
    begin = np.full(layout.pp, reduced.max()) if wait_for_all else reduced
    return StepTimes(start, end, begin, begin + np.asarray(optimizer_s, np.float64))


def _gradients_ready_s(simulation: Simulation) -> Floats:
    """Return when the last gradient of each stage is there."""
    schedule = simulation.schedule
    gives = (schedule.op != OpKind.FORWARD) & (schedule.op != OpKind.BACKWARD_INPUT)
    ready = np.zeros(schedule.layout.n_stages)
    np.maximum.at(ready, schedule.backward_stage[gives], simulation.end_s[gives])
    return ready
