"""The texts of the layout drawing's cards and the widths they need, in full and in short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from app.i18n import tr
from app.plots.facts import ProgramFacts, op_name, seconds, short_name
from app.plots.flow import Cell, CellKind
from app.plots.scene import Run
from app.plots.text import SMALL, TINY, axes_call, named, notation, runs_width, short_notation
from app.theme import Role
from model_core.partition.program import Collective, Einsum, Local, Tensor

GAP: Final = Run("  ", TINY)
Runs = tuple[Run, ...]


class CardStyle(NamedTuple):
    """Measures of a card. ``short`` leaves shapes, bytes and volumes to the tooltip, for small spaces."""

    short: bool
    cell: float
    head: float
    port: float
    circle: float
    lane_gap: float


FULL: Final = CardStyle(short=False, cell=78.0, head=32.0, port=45.0, circle=22.0, lane_gap=10.0)
SHORT: Final = CardStyle(short=True, cell=52.0, head=20.0, port=31.0, circle=18.0, lane_gap=8.0)
PAD: Final = 4.0
SIDE: Final = 7.0
NUMBER_ROOM: Final = 22.0


@dataclass(frozen=True, slots=True)
class CardWords:
    """The lines of one card: two in its head (the second may be empty), two in its body."""

    head: tuple[Runs, Runs]
    tensor: Runs
    held: Runs
    width: float


class CardWriter:
    """Writes the texts of one program's cards."""

    def __init__(self, facts: ProgramFacts, made_by: dict[str, int], style: CardStyle) -> None:
        self._facts = facts
        self._made_by = made_by
        self._style = style
        self._written: dict[int, CardWords] = {}

    def width(self, cell: Cell) -> float:
        """Return the width that a card needs."""
        return self.words(cell).width

    def words(self, cell: Cell) -> CardWords:
        """Return the texts of a card."""
        found = self._written.get(id(cell))
        if found is None:
            head = self._head(cell) if cell.op is not None else ((), ())
            tensor = self._step_tensor(cell) if cell.kind is CellKind.STEP else self._source_tensor(cell)
            held = () if self._style.short else self._held(cell)
            found = CardWords(head, tensor, held, self._needed(cell, head, tensor, held))
            self._written[id(cell)] = found
        return found

    def source_step(self, tensor: Tensor) -> int | None:
        """Return the index of the step that makes a tensor; none for one that is given."""
        return self._made_by.get(tensor.name)

    def _needed(self, cell: Cell, head: tuple[Runs, Runs], tensor: Runs, held: Runs) -> float:
        step = cell.kind is CellKind.STEP
        body = max(runs_width(tensor) + (NUMBER_ROOM if step else 0.0), runs_width(held)) + 2 * SIDE
        if not step:
            return body
        beside = self._style.circle + 14 if isinstance(cell.op, Einsum) else 18
        return max(body, max(runs_width(head[0]), runs_width(head[1])) + 2 * PAD + beside)

    # ---- body ------------------------------------------------------------------------------

    def _step_tensor(self, cell: Cell) -> Runs:
        printed = cell.tensor.sharding.as_printed()
        if not self._style.short:
            return notation(printed)
        time = self._facts.time_of(cell.index)
        if time is None or not time.communication_s:
            return short_notation(printed)
        return (*short_notation(printed), GAP, *_remark(seconds(time.communication_s)))

    def _source_tensor(self, cell: Cell) -> Runs:
        name = named(short_name(cell.tensor), SMALL, Role.TEXT_MUTED)
        source = self.source_step(cell.tensor)
        if self._style.short and source is not None:
            return (*name, GAP, *_remark(f"← {source + 1}"))
        return (*name, GAP, *notation(cell.tensor.sharding.as_printed()))

    def _held(self, cell: Cell) -> Runs:
        source = self.source_step(cell.tensor)
        if cell.kind is CellKind.PORT and source is not None:
            return _remark(_from(source))
        return _remark(self._facts.held(cell.tensor))

    # ---- head ------------------------------------------------------------------------------

    def _head(self, cell: Cell) -> tuple[Runs, Runs]:
        op = cell.op
        if isinstance(op, Collective):
            time = None if self._style.short else self._facts.time_of(cell.index)
            return axes_call(str(op.kind), op.axes), () if time is None else (
                Run(self._facts.sent(time), TINY),
            )
        if isinstance(op, Einsum):
            return self._product_head(op, cell.operand)
        return self._local_head(op, cell.operand) if op is not None else ((), ())

    def _product_head(self, op: Einsum, operand: Tensor | None) -> tuple[Runs, Runs]:
        if operand is None:
            text = short_name(op.output) if self._style.short else op_name(op)
            return (Run(text, SMALL),), ()
        name = named(short_name(operand))
        source = self.source_step(operand)
        if self._style.short and source is not None:
            return (*name, GAP, *_remark(f"← {source + 1}")), ()
        first = (*name, GAP, *notation(operand.sharding.as_printed(), SMALL))
        if self._style.short:
            return first, ()
        return first, _remark(self._facts.held(operand) if source is None else _from(source))

    def _local_head(self, op: Local, operand: Tensor | None) -> tuple[Runs, Runs]:
        title = Run(op_name(op), SMALL, True)
        if operand is None:
            return (title,), ()
        name = named(short_name(operand), TINY)
        source = self.source_step(operand)
        if self._style.short:
            where = () if source is None else _remark(f" ← {source + 1}")
            return (title, GAP, *name, *where), ()
        if source is None:
            return (title,), (*name, GAP, *notation(operand.sharding.as_printed(), TINY))
        return (title,), (*name, GAP, *_remark(_from(source)))


def _from(source: int) -> str:
    return tr("from step {number}", number=source + 1)


def _remark(text: str) -> Runs:
    return (Run(text, TINY, False, Role.TEXT_MUTED),)
