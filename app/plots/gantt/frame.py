"""Where everything of the schedule view lies, and the parts that stay still: headings, legend and table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from app.i18n import tr
from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import Cells, Ints
from app.plots.gantt.legend import legend_marks
from app.plots.gantt.table import add_table, comparison_text
from app.plots.gantt.words import parameters_text, time_text
from app.plots.header import legend, muted, title_runs
from app.plots.scene import Rect, Run, Scene, SceneBuilder
from app.plots.text import HEADING, SMALL, elided, runs_width, text_at
from model_core.schedule_plan import PlannedSchedules

GUTTER: Final = 44.0
SIDE: Final = 92.0
NARROW: Final = 620.0
RULER: Final = 20.0
LARGEST_ROW: Final = 62.0
SMALLEST_CHART: Final = 80.0
COMFORT: Final = 210.0
MEMORY: Final = (34.0, 120.0)
MEMORY_HEADING: Final = 16.0
BETWEEN: Final = 10.0
ABOVE: Final = 16.0


class Rows(NamedTuple):
    """Which ranks are seen in a chart, and their lines of pixels; ``tops`` may lie above the chart."""

    ranks: Ints
    tops: Ints
    bottoms: Ints


@dataclass(frozen=True, slots=True)
class ChartPlace:
    """One schedule's place: its cells, and below them the ruler and the memory curve."""

    cells: Cells
    area: Rect
    memory: Rect
    has_side: bool

    def x_of(self, time_s: float, camera: TimeCamera) -> float:
        """Return where a time is."""
        return self.area.x + (time_s - camera.start_s) / camera.span_s * self.area.w

    def time_of(self, x: float, camera: TimeCamera) -> float:
        """Return which time is at a place."""
        return camera.start_s + (x - self.area.x) / self.area.w * camera.span_s

    def row_height(self, camera: TimeCamera) -> float:
        """Return the height of a rank's row."""
        return self.area.h * camera.rows / self.cells.pp

    def rank_at(self, y: float, camera: TimeCamera) -> int:
        """Return the rank at a height."""
        part = camera.top + (y - self.area.y) / self.area.h / camera.rows
        return min(max(int(part * self.cells.pp), 0), self.cells.pp - 1)

    def row(self, rank: int, camera: TimeCamera) -> Rect:
        """Return the row of a rank; it may lie outside the area."""
        height = self.row_height(camera)
        top = self.area.y + rank * height - camera.top * camera.rows * self.area.h
        return Rect(self.area.x, top, self.area.w, height)

    def rows(self, camera: TimeCamera, ratio: float = 1.0) -> Rows:
        """Return the ranks in view with their lines, in pixels of a device with ``ratio`` pixels a unit."""
        lines = max(1, round(self.area.h * ratio))
        height = lines * camera.rows / self.cells.pp
        offset = camera.top * camera.rows * lines
        if height < 1.0:
            line = np.arange(lines)
            rank = np.minimum(((line + 0.5 + offset) / height).astype(np.int64), self.cells.pp - 1)
            return Rows(rank, line, line + 1)
        first = int(offset / height + 1e-9)
        last = min(int(np.ceil((offset + lines) / height - 1e-9)), self.cells.pp)
        edges = np.round(np.arange(first, last + 1) * height - offset).astype(np.int64)
        return Rows(np.arange(first, last), edges[:-1], np.minimum(edges[1:], lines))


@dataclass(frozen=True, slots=True)
class Frame:
    """The whole view: the parts that stay still as a scene, the places of the charts, the lower edge."""

    scene: Scene
    charts: tuple[ChartPlace, ...]
    bottom: float


def make_frame(planned: PlannedSchedules, charts: tuple[Cells, ...], width: float, height: float) -> Frame:
    """Lay the view out for a space; where it is low, it is made taller than asked for.

    Args:
        planned: the schedules with their numbers.
        charts: the same as cells.
        width: of the space.
        height: of the space.
    """
    builder = SceneBuilder()
    top = _add_heading(builder, planned, 0, 0.0, width)
    side = SIDE if width >= NARROW else 0.0
    top = legend(builder, legend_marks(charts), 0.0, top + 2, width) + ABOVE
    free = {notes: _free(planned, width, height - top, notes) for notes in (True, False)}
    with_notes = free[True] >= COMFORT
    heights = [_heights(cells, free[with_notes]) for cells in charts]
    places = []
    for number, (cells, (chart, memory)) in enumerate(zip(charts, heights, strict=True)):
        if number:
            top = _add_heading(builder, planned, number, top + BETWEEN, width) + ABOVE - 4
        area = Rect(GUTTER, top, width - GUTTER - side, chart)
        below = area.bottom + RULER + (MEMORY_HEADING if memory else 0.0)
        places.append(ChartPlace(cells, area, Rect(area.x, below, area.w, memory), side > 0))
        top = below + memory + BETWEEN
    bottom = add_table(builder, planned, 0.0, top, width, with_notes)
    title, summary = _words(planned)
    return Frame(builder.scene(width, max(height, bottom), title, summary), tuple(places), bottom)


def _free(planned: PlannedSchedules, width: float, height: float, notes: bool) -> float:
    """Return the height that is left for each chart with its ruler and its memory curve."""
    measured, count = SceneBuilder(), len(planned.runs)
    table = add_table(measured, planned, 0.0, 0.0, width, notes)
    headings = sum(_add_heading(measured, planned, n, 0.0, width) + ABOVE for n in range(1, count))
    return (height - table - headings - 2 * BETWEEN * count) / count


def _heights(cells: Cells, free: float) -> tuple[float, float]:
    """Share the height between cells and memory curve; there is none where cells would have too little."""
    room = free - RULER
    if room < SMALLEST_CHART + MEMORY[0] + MEMORY_HEADING:
        return float(round(max(room, SMALLEST_CHART))), 0.0
    room -= MEMORY_HEADING
    memory = min(max(room * 0.18, MEMORY[0]), MEMORY[1])
    chart = max(min(room - memory, LARGEST_ROW * cells.pp), SMALLEST_CHART)
    return float(round(chart)), float(round(min(max(room - chart, memory), MEMORY[1])))


def _add_heading(
    builder: SceneBuilder, planned: PlannedSchedules, number: int, y: float, width: float
) -> float:
    run = planned.runs[number]
    title = title_runs(run.title) if number == 0 else (Run(run.title, HEADING, True),)
    baseline = y + 18
    builder.items.append(text_at(0.0, baseline, title))
    text = parameters_text(planned.spec, run)
    if number:
        text = f"{comparison_text(planned)} · {text}"
    left = runs_width(title) + 12
    builder.items.append(text_at(left, baseline, muted(elided(text, SMALL, width - left), SMALL)))
    return y + 26


def _words(planned: PlannedSchedules) -> tuple[str, str]:
    titles = tr(" and ").join(run.title for run in planned.runs)
    told = [
        tr(
            "{title}: {parameters}; step {time}, idle {idle}, peak {peak} activations",
            title=run.title,
            parameters=parameters_text(planned.spec, run),
            time=time_text(run.simulation.makespan_s),
            idle=f"{run.simulation.bubble_fraction:.1%}",
            peak=f"{run.peak_activations:.3g}",
        )
        for run in planned.runs
    ]
    return tr("Pipeline schedule {titles}", titles=titles), ". ".join(told)
