"""The schedules of a plan, simulated and cut into cells."""

from __future__ import annotations

from dataclasses import dataclass

from app.plots.gantt.cells import Cells, make_cells
from model_core.schedule_plan import PlannedSchedules, run_planned
from model_core.spec import ScheduleSpec


@dataclass(frozen=True, slots=True, eq=False)
class SchedulePicture:
    """The schedules of a plan, ready to be drawn; no charts where the plan's own cannot be run."""

    planned: PlannedSchedules
    charts: tuple[Cells, ...]


def make_picture(spec: ScheduleSpec) -> SchedulePicture:
    """Simulate the schedules of a plan and cut them into cells."""
    planned = run_planned(spec)
    timed = all(run.simulation.makespan_s > 0 for run in planned.runs)
    charts = tuple(make_cells(run) for run in planned.runs) if timed else ()
    for cells in charts:
        # The charts' first look-up is for all segments: make what it needs here.
        cells.prepare()
    return SchedulePicture(planned, charts)
