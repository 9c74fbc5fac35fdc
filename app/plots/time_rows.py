"""The rows of the time drawing: one for every operation that takes time, grouped by program."""

from __future__ import annotations

from dataclasses import dataclass

from app.i18n import tr, tr_text
from app.plots.chart import Scale, bar, share_text
from app.plots.facts import op_name, seconds, short_name
from app.plots.header import muted
from app.plots.layout_header import PARTS, part_names, part_seconds
from app.plots.scene import Rect, Run, SceneBuilder
from app.plots.text import SMALL, TINY, axes_call, elided, named, notation, runs_width, text_at, width_of
from app.plots.time_parts import PART_ROLES, part_name, ruled
from app.theme import Role
from model_core.partition.program import Collective, Einsum
from model_core.partition.program import Role as TensorRole
from model_core.results import Evaluation, OpTime, TimeBudget
from model_core.stages import PIPELINE

ROW = 20.0
TALLEST_ROW = 26.0
GROUP = 22.0
NUMBERS = 130.0


@dataclass(frozen=True, slots=True)
class _Columns:
    """Horizontal layout of the rows."""

    bars: Scale
    time: float
    share: float


@dataclass(frozen=True, slots=True)
class _Group:
    """The rows of one program; ``rest`` are the operations too small for a row."""

    part: str
    shown: tuple[OpTime, ...]
    rest: tuple[OpTime, ...]


def operations(
    builder: SceneBuilder,
    evaluation: Evaluation,
    budget: TimeBudget,
    width: float,
    y: float,
    height: float,
) -> float:
    """Draw all rows; ``height`` is that of the whole drawing, and decides how many there is room for."""
    groups = _groups(budget, int(max(height - y - 40 - 3 * GROUP, 8 * ROW) / ROW))
    n_rows = sum(len(group.shown) + bool(group.rest) for group in groups)
    room = height - y - 40 - GROUP * len(groups)
    row = min(TALLEST_ROW, max(ROW, room / max(n_rows, 1)))
    left = min(330.0, max(210.0, width * 0.3))
    longest = max((_length(op) for group in groups for op in group.shown), default=1.0)
    named_room = max(width_of(part_name(role), TINY) for role in (*PART_ROLES, Role.HIDDEN)) + 10
    bars = Scale(left, width - left - NUMBERS - named_room, longest)
    columns = _Columns(bars, width - 66, width)
    builder.items.append(text_at(0, y + 12, (Run(tr("Operations, all layers together"), SMALL, True),)))
    builder.items.append(text_at(columns.time, y + 12, muted(tr("counted"), TINY), 1.0))
    builder.items.append(text_at(columns.share, y + 12, muted(tr("of the step"), TINY), 1.0))
    top = y = y + 20
    behind = len(builder.items)
    for group in groups:
        y = _group(builder, evaluation, budget, group, columns, row, y)
    grid = SceneBuilder()
    ruled(grid, bars, top + 2, y + 2)
    builder.items[behind:behind] = grid.items
    builder.items.append(text_at(0, y + 15, (Run(tr("Sum"), SMALL, True),)))
    builder.items.append(text_at(columns.time, y + 15, (Run(seconds(budget.step_s), SMALL, True),), 1.0))
    builder.items.append(text_at(columns.share, y + 15, (Run("100 %", SMALL, True),), 1.0))
    return y + 20


def _length(op: OpTime) -> float:
    return op.count * max(op.busy_s, op.communication_s)


def _weight(op: OpTime) -> float:
    """How much an operation deserves a row: what it adds to the step, and less what it hides."""
    return max(op.total_s, 0.25 * _length(op))


def _groups(budget: TimeBudget, most: int) -> list[_Group]:
    """Choose the rows: all operations that take time, or the largest where there is no room for all."""
    timed = [op for op in budget.ops if _length(op) > 0]
    rows = timed
    if len(timed) > most:
        rows = sorted(timed, key=_weight, reverse=True)[: max(most - len(PARTS), 6)]
    kept = {(op.program, op.index) for op in rows}
    groups = []
    for part in (*PARTS, PIPELINE):
        own = [op for op in timed if op.program == part]
        shown = tuple(op for op in own if (op.program, op.index) in kept)
        rest = tuple(op for op in own if (op.program, op.index) not in kept)
        if len(rest) == 1:
            shown, rest = tuple(own), ()
        if own:
            groups.append(_Group(part, shown, rest))
    return groups


def _group(
    builder: SceneBuilder,
    evaluation: Evaluation,
    budget: TimeBudget,
    group: _Group,
    columns: _Columns,
    row: float,
    y: float,
) -> float:
    total = part_seconds(evaluation, group.part)
    name = part_names(evaluation)[group.part]
    builder.items.append(text_at(0, y + 16, (Run(name, SMALL, True),)))
    builder.items.append(text_at(columns.time, y + 16, (Run(seconds(total), SMALL, True),), 1.0))
    share = share_text(total, budget.step_s)
    builder.items.append(text_at(columns.share, y + 16, (Run(share, SMALL, True),), 1.0))
    y += GROUP
    for op in group.shown:
        _row(builder, evaluation, budget, op, columns, row, y)
        y += row
    if group.rest:
        text = tr("other ({count} operations)", count=len(group.rest))
        counted = sum(op.total_s for op in group.rest)
        base = y + row / 2 + 4
        builder.items.append(text_at(30, base, muted(text, SMALL)))
        builder.items.append(text_at(columns.time, base, muted(_counted(counted), SMALL), 1.0))
        builder.items.append(
            text_at(columns.share, base, muted(share_text(counted, budget.step_s), SMALL), 1.0)
        )
        y += row
    return y


def _row(
    builder: SceneBuilder,
    evaluation: Evaluation,
    budget: TimeBudget,
    op: OpTime,
    columns: _Columns,
    row: float,
    y: float,
) -> None:
    base = y + row / 2 + 4
    number = (Run(str(op.index + 1), TINY, False, Role.TEXT_MUTED),)
    builder.items.append(text_at(22, base, number, 1.0))
    runs = _label(evaluation, op, columns.bars.x - 44)
    builder.items.append(text_at(30, base, runs))
    end = _bars(builder, columns.bars, op, y + row / 2)
    binding = _binding(op)
    builder.items.append(text_at(end + 6, base - 0.5, muted(part_name(binding), TINY)))
    builder.items.append(text_at(columns.time, base, (Run(_counted(op.total_s), SMALL),), 1.0))
    share = share_text(op.total_s, budget.step_s)
    builder.items.append(text_at(columns.share, base, muted(share, SMALL), 1.0))
    title = "".join(run.text for run in runs)
    key = f"op/{op.program}/{op.index}"
    builder.target(Rect(0, y, columns.share, row), key, title, *_words(op), radius=3)


def _counted(value: float) -> str:
    return seconds(value) if value else "0"


def _label(evaluation: Evaluation, op: OpTime, room: float) -> tuple[Run, ...]:
    program = evaluation.programs.get(op.program)
    step = program.ops[op.index] if program is not None else None
    if isinstance(step, Collective):
        runs = axes_call(str(step.kind), step.axes)
        extra = step.input
    elif isinstance(step, Einsum):
        weight = next((t for t in step.inputs if t.role is TensorRole.WEIGHT), None)
        cross = Run("×  ", SMALL, True, Role.EINSUM)
        if weight is None:
            return (cross, Run(elided(op_name(step), SMALL, room - 16), SMALL))
        runs, extra = (cross, *named(short_name(weight))), weight
    else:
        name = tr_text(op.name) if step is None else op_name(step)
        return (Run(elided(name, SMALL, room), SMALL),)
    longer = (*runs, Run("  ", SMALL), *notation(extra.sharding.as_printed(), SMALL, False, Role.TEXT_MUTED))
    return longer if runs_width(longer) <= room else runs


def _bars(builder: SceneBuilder, scale: Scale, op: OpTime, middle: float) -> float:
    """Draw the bars of an operation and return where the longest ends."""
    n = op.count
    if op.communication_s:
        exposed, whole = scale.at(n * op.exposed_s), scale.at(n * op.communication_s)
        if op.exposed_s:
            bar(builder, Rect(scale.x, middle - 4, exposed - scale.x, 8), Role.COMMUNICATION)
        if whole - exposed > 0.5:
            bar(builder, Rect(exposed, middle - 4, whole - exposed, 8), Role.HIDDEN)
        return whole
    if op.compute_s:
        bar(builder, Rect(scale.x, middle - 6.5, scale.at(n * op.compute_s) - scale.x, 6), Role.COMPUTE)
    weights, loading = scale.at(n * op.weight_s), scale.at(n * (op.weight_s + op.kv_s))
    if op.weight_s:
        bar(builder, Rect(scale.x, middle + 0.5, weights - scale.x, 6), Role.WEIGHT)
    if op.kv_s:
        bar(builder, Rect(weights, middle + 0.5, loading - weights, 6), Role.KV)
    if op.activation_s:
        moved = scale.at(n * op.loading_s)
        bar(builder, Rect(loading, middle + 0.5, moved - loading, 6), Role.ACTIVATION)
    busy, end = scale.at(n * (op.busy_s - op.fixed_s)), scale.at(n * op.busy_s)
    if op.fixed_s:
        bar(builder, Rect(busy, middle - 4, end - busy, 8), Role.LOCAL)
    return end


def _binding(op: OpTime) -> Role:
    if op.communication_s:
        return Role.COMMUNICATION if op.exposed_s > 0.5 * op.communication_s else Role.HIDDEN
    if op.fixed_s > op.busy_s / 2:
        return Role.LOCAL
    if op.compute_s >= op.loading_s:
        return Role.COMPUTE
    loads = {Role.WEIGHT: op.weight_s, Role.KV: op.kv_s, Role.ACTIVATION: op.activation_s}
    return max(loads, key=lambda role: loads[role])


def _words(op: OpTime) -> list[str]:
    values = (
        (Role.COMPUTE, op.compute_s),
        (Role.WEIGHT, op.weight_s),
        (Role.KV, op.kv_s),
        (Role.ACTIVATION, op.activation_s),
        (Role.LOCAL, op.fixed_s),
        (Role.COMMUNICATION, op.exposed_s),
        (Role.HIDDEN, op.communication_s - op.exposed_s),
    )
    words = [f"{part_name(role)} {seconds(op.count * value)}" for role, value in values if value > 0]
    return [*words, tr("{count} times in a step", count=op.count)]
