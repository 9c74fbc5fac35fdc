"""The words of the schedule view: names of operations, times, and what a cell is and waits for."""

from __future__ import annotations

from app.i18n import tr, tr_text
from app.plots.gantt.cells import DRAIN, FIRST_CELL, MESSAGE, OUTSIDE, STEADY, WARM_UP, Cells
from model_core.schedule import LETTERS, OpKind, Schedule
from model_core.schedule.dependencies import dependencies
from model_core.schedule_plan import PlannedRun
from model_core.spec import ScheduleSpec
from model_core.units import SECONDS, format_quantity

PRIME = "\u2032"
PAIR_LETTERS = "F&B"


def time_text(seconds: float) -> str:
    """Write a time."""
    return format_quantity(seconds, SECONDS)


def operation_name(op: OpKind) -> str:
    """Name an operation."""
    return {
        OpKind.FORWARD: tr("forward"),
        OpKind.BACKWARD: tr("backward"),
        OpKind.BACKWARD_INPUT: tr("backward for input"),
        OpKind.BACKWARD_WEIGHT: tr("backward for weights"),
        OpKind.OVERLAPPED: tr("forward and backward overlapped"),
    }[op]


def letters(op: OpKind) -> str:
    """Return the letters of an operation as the papers write them."""
    return PAIR_LETTERS if op is OpKind.OVERLAPPED else LETTERS[op]


def idle_name(code: int) -> str:
    """Say why a rank idles."""
    return {
        WARM_UP: tr("idle: warm-up"),
        STEADY: tr("idle: waits in the steady phase"),
        DRAIN: tr("idle: drain"),
        MESSAGE: tr("waits for a message"),
        OUTSIDE: "",
    }[code]


def microbatch_text(schedule: Schedule, row: int, second: bool = False) -> str:
    """Write the number of a microbatch, with a prime in the reverse direction."""
    number = schedule.microbatch2[row] if second else schedule.microbatch[row]
    direction = schedule.direction2[row] if second else schedule.direction[row]
    return f"{number}{PRIME if direction else ''}"


def cell_text(schedule: Schedule, row: int) -> str:
    """Write an operation with its microbatch: ``F 7``, or ``F 7 & B 3′`` for a pair."""
    op = OpKind(int(schedule.op[row]))
    if op is OpKind.OVERLAPPED:
        return f"F {microbatch_text(schedule, row)} & B {microbatch_text(schedule, row, True)}"
    return f"{LETTERS[op]} {microbatch_text(schedule, row)}"


def parameters_text(spec: ScheduleSpec, run: PlannedRun) -> str:
    """Say which sizes and times a schedule has, and that its times are those entered."""
    parts = [
        tr("{count} ranks", count=f"{run.schedule.pp:,}"),
        tr("{count} microbatches", count=f"{run.schedule.microbatches:,}"),
    ]
    times = spec.pp / run.schedule.pp
    named = [("F", spec.forward), ("I", spec.backward_input), ("W", spec.backward_weight)]
    durations = [f"{letter} {time_text(value * times)}" for letter, value in named]
    if OpKind.OVERLAPPED in run.schedule.op:
        whole = spec.forward + spec.backward_input + spec.backward_weight
        pair = whole if spec.overlapped is None else spec.overlapped
        durations.append(f"{PAIR_LETTERS} {time_text(pair * times)}")
    if spec.point_to_point:
        durations.append(tr("message {time}", time=time_text(spec.point_to_point)))
    entered = tr(
        "durations as entered; not those of the design: {durations}", durations=" · ".join(durations)
    )
    parts.append(entered)
    return " · ".join(parts)


def card_lines(cells: Cells, segment: int, rank: int) -> tuple[str, ...]:
    """Describe a segment: a title, and lines of what there is to know about it."""
    code, row = int(cells.code[segment]), int(cells.row[segment])
    start, end = float(cells.start[segment]), min(float(cells.end[segment]), cells.makespan_s)
    span = tr(
        "{start} to {end}, for {time}",
        start=time_text(start),
        end=time_text(end),
        time=time_text(end - start),
    )
    place = tr("rank {rank}", rank=rank)
    if code < FIRST_CELL:
        lines = (f"{idle_name(code)} · {place}", span)
        following = tr("then {operation}", operation=cell_text(cells.schedule, row))
        return (*lines, following) if end < cells.makespan_s else lines
    schedule = cells.schedule
    op = OpKind(int(schedule.op[row]))
    held = float(cells.level[segment])
    return (
        f"{cell_text(schedule, row)} · {place}",
        operation_name(op),
        *_where(schedule, row),
        span,
        *_waits(schedule, row),
        tr("holds activations of {count} chunks", count=f"{held:g}"),
    )


def _where(schedule: Schedule, row: int) -> tuple[str, ...]:
    stage = str(schedule.stage[row])
    if schedule.stage2[row] >= 0 and schedule.stage2[row] != schedule.stage[row]:
        stage = f"{stage}, {schedule.stage2[row]}"
    found = [tr("stage {stage}", stage=stage)]
    if schedule.lane2[row] >= 0:
        return tuple(found)
    if schedule.layout.n_chunks > 1:
        found.append(tr("chunk {chunk}", chunk=int(schedule.chunk[row])))
    if schedule.layout.n_directions > 1:
        reverse = bool(schedule.direction[row])
        found.append(tr("reverse direction") if reverse else tr("forward direction"))
    return (", ".join(found),)


def _waits(schedule: Schedule, row: int) -> tuple[str, ...]:
    waits = dependencies(schedule)
    found = [
        tr(
            "{operation} on rank {rank}",
            operation=cell_text(schedule, other),
            rank=int(schedule.rank[other]),
        )
        for other in (int(waits.first[row]), int(waits.second[row]))
        if other < len(schedule)
    ]
    if row > schedule.offsets[schedule.rank[row]]:
        found.append(tr("{operation} before it", operation=cell_text(schedule, row - 1)))
    return (tr("waits for {operations}", operations=", ".join(dict.fromkeys(found))),) if found else ()


def formula_text(run: PlannedRun) -> tuple[str, ...]:
    """Write the published bubbles of a schedule beside the simulated one, and whether they apply to it."""
    lines = []
    for formula in run.formulas:
        simulation = run.simulation
        bubbles = simulation.iteration_bubble_s if formula.between_iterations else simulation.bubble_s
        stands = tr("holds here") if formula.holds else tr("out of its domain")
        lines.append(
            tr(
                "{title}: bubble {expression} = {value}, simulated {simulated}; {stands}: {domain}",
                title=run.title,
                expression=formula.expression,
                value=time_text(formula.value_s),
                simulated=time_text(float(bubbles.max())),
                stands=stands,
                domain=tr_text(formula.domain),
            )
        )
    return tuple(lines)
