"""The schedule of a plan, run: main schedule and the one it is compared with, simulated and measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from model_core.diagnostics import Diagnostic
from model_core.memo import memoised
from model_core.schedule import (
    KINDS,
    ActivationMemory,
    BubbleCauses,
    BubbleFormula,
    Schedule,
    Simulation,
    activation_memory,
    bubble_causes,
    bubble_formulas,
    parameter_share,
    schedule,
    simulate,
)
from model_core.schedule.compare import Share
from model_core.schedule.registry import MAX_OPERATIONS
from model_core.spec.schedule import ScheduleName, ScheduleSpec

PATH: Final = "plan.schedule"


@dataclass(frozen=True, slots=True, eq=False)
class PlannedRun:
    """One schedule of a plan.

    ``peak_activations`` and ``parameters`` are of the fullest rank, in shares: what one rank of the
    plan's own pipeline would hold of one microbatch, or of the model, if all held the same.
    """

    title: str
    simulation: Simulation
    memory: ActivationMemory
    causes: BubbleCauses
    formulas: tuple[BubbleFormula, ...]
    peak_activations: float
    parameters: float

    @property
    def schedule(self) -> Schedule:
        """The operations."""
        return self.simulation.schedule


@dataclass(frozen=True, slots=True, eq=False)
class PlannedSchedules:
    """What a plan's schedule comes to. ``runs`` holds the plan's own first; empty where it cannot be run."""

    spec: ScheduleSpec
    runs: tuple[PlannedRun, ...]
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _Size:
    """What is asked for: ``shorter`` is how many times fewer ranks than the plan's own pipeline it has."""

    kind: ScheduleName
    pp: int
    microbatches: int
    shorter: float
    path: str


@memoised(capacity=4)
def run_planned(spec: ScheduleSpec) -> PlannedSchedules:
    """Simulate a plan's schedule, and the one that it is compared with."""
    runs: list[PlannedRun] = []
    problems: list[Diagnostic] = []
    for size in _sizes(spec):
        run, found = _run(spec, size)
        problems += found
        if run is not None:
            runs.append(run)
        elif not runs:
            break
    return PlannedSchedules(spec, tuple(runs), tuple(problems))


def planned_problems(spec: ScheduleSpec | None) -> tuple[Diagnostic, ...]:
    """Return why a plan's schedule, or the one compared with it, cannot have its size."""
    if spec is None:
        return ()
    return tuple(problem for size in _sizes(spec) for problem in _misfit(spec, size))


def _misfit(spec: ScheduleSpec, size: _Size) -> Iterable[Diagnostic]:
    kind = KINDS[size.kind]
    chunks = spec.virtual_stages if size.kind == "interleaved" else kind.n_chunks
    small = 2 * size.pp * size.microbatches * chunks <= MAX_OPERATIONS
    if small and kind.fits(size.pp, size.microbatches, spec.virtual_stages):
        return ()
    _, found = schedule(size.kind, size.pp, size.microbatches, spec.virtual_stages)
    return _placed(found, size)


def _sizes(spec: ScheduleSpec) -> tuple[_Size, ...]:
    own = _Size(spec.kind, spec.pp, spec.microbatches, 1.0, "")
    if spec.compare is None:
        return (own,)
    if spec.compare_by == "devices":
        return own, _Size(spec.compare, spec.pp, spec.microbatches, 1.0, "compare")
    # Two directions hold everything twice: half the ranks of one direction hold as much each. The same
    # devices then make twice the pipelines, and each takes half the microbatches.
    copies, own_copies = KINDS[spec.compare].n_directions, KINDS[spec.kind].n_directions
    pp = max(1, spec.pp * copies // own_copies)
    microbatches = max(1, spec.microbatches * copies // own_copies)
    return own, _Size(spec.compare, pp, microbatches, spec.pp / pp, "compare")


def _run(spec: ScheduleSpec, size: _Size) -> tuple[PlannedRun | None, tuple[Diagnostic, ...]]:
    made, found = schedule(size.kind, size.pp, size.microbatches, spec.virtual_stages)
    if made is None:
        return None, _placed(found, size)
    chunks = made.layout.n_chunks
    simulation, found = simulate(made, _share(spec, size.shorter).durations(chunks))
    if simulation is None:
        return None, _placed(found, size)
    memory = activation_memory(made)
    run = PlannedRun(
        KINDS[size.kind].title,
        simulation,
        memory,
        bubble_causes(simulation),
        bubble_formulas(made, simulation.durations),
        float(memory.peak.max()) / chunks * size.shorter,
        parameter_share(made) * spec.pp,
    )
    return run, ()


def _share(spec: ScheduleSpec, times: float) -> Share:
    return Share(
        spec.forward * times,
        spec.backward_input * times,
        spec.backward_weight * times,
        None if spec.overlapped is None else spec.overlapped * times,
        spec.point_to_point,
    )


def _placed(found: Iterable[Diagnostic], size: _Size) -> tuple[Diagnostic, ...]:
    """Give diagnostics the paths of the plan's fields."""
    return tuple(replace(d, path=f"{PATH}.{size.path or d.path or 'kind'}") for d in found)
