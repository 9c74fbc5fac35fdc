"""The table below the charts: what the schedules come to, their difference, and the published formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from app.i18n import tr
from app.plots.gantt.words import formula_text, time_text
from app.plots.header import muted
from app.plots.scene import Ink, Run, SceneBuilder
from app.plots.text import SMALL, TINY, text_at, width_of, wrapped
from app.theme import Role
from model_core.schedule_plan import PlannedRun, PlannedSchedules

ROW: Final = 19.0
LINE: Final = 15.0
GAP: Final = 22.0


class Row(NamedTuple):
    """One line of the table; ``verdict`` colours a difference: better, worse or neither."""

    cells: tuple[str, ...]
    verdicts: tuple[Role, ...] = ()


def table_rows(planned: PlannedSchedules) -> tuple[Row, ...]:
    """Return headings, a row for each schedule and, of two, one for their difference."""
    headings = (
        tr("Schedule"),
        tr("Step"),
        tr("Idle"),
        tr("Longest bubble"),
        tr("By formula"),
        tr("Peak activations"),
        tr("Parameters"),
    )
    rows = [Row(headings), *(Row(_values(run)) for run in planned.runs)]
    if len(planned.runs) == 2:
        rows.append(_difference(*planned.runs))
    return tuple(rows)


def comparison_text(planned: PlannedSchedules) -> str:
    """Say on what terms two schedules are compared."""
    own, other = planned.runs
    if planned.spec.compare_by == "devices":
        return tr("at equal devices: {count} ranks each", count=own.schedule.pp)
    return tr(
        "at equal memory for parameters: {own} ranks of {title}, {other} of {compared}; the same devices in all",
        own=own.schedule.pp,
        title=own.title,
        other=other.schedule.pp,
        compared=other.title,
    )


def _values(run: PlannedRun) -> tuple[str, ...]:
    simulation = run.simulation
    return (
        run.title,
        time_text(simulation.makespan_s),
        f"{simulation.bubble_fraction:.1%}",
        time_text(float(simulation.bubble_s.max())),
        _formula(run),
        _times(run.peak_activations),
        _times(run.parameters),
    )


def _formula(run: PlannedRun) -> str:
    """Return the published bubble, with a mark where the schedule is outside its domain."""
    if not run.formulas:
        return "–"
    formula = run.formulas[0]
    value = time_text(formula.value_s)
    return value if formula.holds else tr("{value}, out of domain", value=value)


def _times(value: float) -> str:
    return f"{value:.3g}×"


def _difference(own: PlannedRun, other: PlannedRun) -> Row:
    pairs = (
        (own.simulation.makespan_s, other.simulation.makespan_s),
        (own.simulation.bubble_fraction, other.simulation.bubble_fraction),
        (float(own.simulation.bubble_s.max()), float(other.simulation.bubble_s.max())),
        (own.peak_activations, other.peak_activations),
        (own.parameters, other.parameters),
    )
    cells, verdicts = [tr("difference")], [Role.TEXT_MUTED]
    for number, (before, after) in enumerate(pairs):
        change = after - before
        same = abs(change) <= 1e-9 * max(abs(before), abs(after), 1e-300)
        if same:
            cells.append(tr("equal"))
        elif number == 1:
            cells.append(tr("{points} points", points=f"{change * 100:+.1f}"))
        else:
            cells.append(f"{change / before:+.1%}" if before else "–")
        verdicts.append(Role.TEXT_MUTED if same else Role.GOOD if change < 0 else Role.ERROR)
        if number == 2:
            cells.append("")
            verdicts.append(Role.TEXT_MUTED)
    return Row(tuple(cells), tuple(verdicts))


def add_table(
    builder: SceneBuilder,
    planned: PlannedSchedules,
    x: float,
    y: float,
    width: float,
    with_notes: bool = True,
) -> float:
    """Draw the table and, with notes, the formulas; return the lower edge."""
    rows = table_rows(planned)
    columns = _columns(rows, width)
    for number, row in enumerate(rows):
        baseline = y + 14
        for index, (left, text) in enumerate(zip(columns, row.cells, strict=True)):
            builder.items.append(text_at(x + left, baseline, (_run(number, index, text, row),)))
        y += ROW
        if number == 0:
            builder.line((x, y - 1), (x + width, y - 1), ink=Ink(Role.BORDER))
    if not with_notes:
        return y + 4
    notes = [tr("× of an equal share of the model on each rank; activations of one microbatch")]
    notes += [line for run in planned.runs for line in formula_text(run)]
    for note in notes:
        for line in wrapped(note, TINY, width):
            builder.items.append(text_at(x, y + 13, muted(line, TINY)))
            y += LINE
    return y + 4


def _run(number: int, index: int, text: str, row: Row) -> Run:
    if number == 0:
        return Run(text, TINY, False, Role.TEXT_MUTED)
    return Run(text, SMALL, index == 0, row.verdicts[index] if row.verdicts else Role.TEXT)


def _columns(rows: Sequence[Row], width: float) -> list[float]:
    """Place the columns: as wide as their texts, and apart as far as there is room."""
    texts = zip(*(row.cells for row in rows), strict=True)
    widths = [max(width_of(text, SMALL, True) for text in column) for column in texts]
    free = (width - sum(widths)) / max(len(widths) - 1, 1)
    gap = max(8.0, min(free, 3 * GAP))
    places, at = [], 0.0
    for column in widths:
        places.append(at)
        at += column + gap
    return places
