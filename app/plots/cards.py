"""The cards of the layout drawing: a step with the tensor that it makes, a port, a stored weight.

A step is one frame: above, what is done (a pill for a collective, a circle for a product with its weight
beside it, a box for local work); below, the tensor that comes out, with its shape on one chip. The strip at
the lower edge has one field per mesh axis: filled where the tensor is split, hatched where it is still
a partial sum, hollow where every chip holds the same.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from app.plots.card_words import PAD, SIDE, CardStyle, CardWriter
from app.plots.facts import ProgramFacts, op_name, short_name
from app.plots.flow import Cell, CellKind
from app.plots.scene import Ink, Pattern, Rect, Run, SceneBuilder
from app.plots.text import AXIS_ROLE, TINY, text_at
from app.theme import Role
from model_core.partition.program import Collective, Einsum, Tensor
from model_core.partition.program import Role as TensorRole

STRIP: Final = 3.5
TITLE_ROOM: Final = 17.0
TENSOR_INK: Final = {TensorRole.WEIGHT: Role.WEIGHT, TensorRole.KV: Role.KV}
FRAME: Final = Ink(Role.FIELD_BORDER)


class CardPainter:
    """Adds the cards of one program to a drawing."""

    def __init__(
        self, builder: SceneBuilder, facts: ProgramFacts, writer: CardWriter, style: CardStyle
    ) -> None:
        self._builder = builder
        self._facts = facts
        self._writer = writer
        self._style = style

    def draw(self, cell: Cell, x: float, y: float, width: float) -> None:
        """Draw a cell into its place."""
        if cell.kind is CellKind.STEP:
            self._step(cell, Rect(x, y, width, self._style.cell))
        else:
            # Its arrow leaves at the middle of the lane; above it is room for the title of the band.
            top = y + TITLE_ROOM
            self._source(cell, Rect(x, top, width, self._style.port))

    def _step(self, cell: Cell, rect: Rect) -> None:
        b = self._builder
        b.box(rect, fill=Ink(Role.PANEL), stroke=FRAME, radius=8)
        head = Rect(rect.x + PAD, rect.y + PAD, rect.w - 2 * PAD, self._style.head)
        title = f"{cell.index + 1}  {op_name(cell.op)}" if cell.op is not None else ""
        words = partial(self._facts.work_words, cell.index)
        b.target_told(rect, self._facts.op_key(cell.index), title, words, radius=8)
        if isinstance(cell.op, Collective):
            self._pill(cell, head)
        elif isinstance(cell.op, Einsum):
            self._product(cell, head)
        else:
            self._local(cell, head)
        self._body(cell, rect)

    def _pill(self, cell: Cell, head: Rect) -> None:
        b = self._builder
        b.box(head, Ink(Role.COLLECTIVE, 0.16), Ink(Role.COLLECTIVE), radius=self._style.head / 2)
        self._two_lines(cell, head, 0.5, head.x + head.w / 2)
        time = self._facts.time_of(cell.index)
        if time is None or not time.communication_s:
            return
        bar = Rect(head.x + 12, head.bottom + 2, head.w - 24, 3.0)
        shown = max(0.0, min(1.0, time.exposed_s / time.communication_s)) * bar.w
        b.box(bar, Ink(Role.COLLECTIVE, 0.16), Ink(Role.COLLECTIVE, 0.6), width=0.6)
        if shown > 0.5:
            b.box(Rect(bar.x, bar.y, shown, bar.h), Ink(Role.COLLECTIVE))

    def _product(self, cell: Cell, head: Rect) -> None:
        b = self._builder
        size = self._style.circle
        circle = Rect(head.x + 1, head.y + (head.h - size) / 2, size, size)
        beside = Rect(circle.right + 6, head.y, head.right - circle.right - 6, head.h)
        if cell.operand is not None:
            ink = TENSOR_INK.get(cell.operand.role, Role.TENSOR)
            b.box(beside, Ink(ink, 0.12), Ink(ink, 0.55), radius=5)
            b.line((beside.x, head.y + head.h / 2), (circle.right, head.y + head.h / 2), ink=Ink(Role.EINSUM))
            if not self._style.short:
                self._strip(cell.operand, Rect(beside.x + 4, beside.bottom - 3.2, beside.w - 8, 2.0))
            self._tensor_target(cell.operand, beside)
        b.box(circle, Ink(Role.EINSUM, 0.16), Ink(Role.EINSUM), radius=size / 2)
        cx, cy, arm = circle.x + size / 2, circle.y + size / 2, size * 0.18
        b.line((cx - arm, cy - arm), (cx + arm, cy + arm), ink=Ink(Role.EINSUM), width=1.6)
        b.line((cx - arm, cy + arm), (cx + arm, cy - arm), ink=Ink(Role.EINSUM), width=1.6)
        self._two_lines(cell, beside, 0.0, beside.x + (5 if cell.operand else 0))

    def _local(self, cell: Cell, head: Rect) -> None:
        self._builder.box(head, Ink(Role.LOCAL, 0.14), Ink(Role.LOCAL, 0.6), radius=5)
        self._two_lines(cell, head, 0.5, head.x + head.w / 2)
        if cell.operand is not None:
            lower = head if self._style.short else Rect(head.x, head.y + head.h / 2, head.w, head.h / 2)
            self._tensor_target(cell.operand, lower)

    def _two_lines(self, cell: Cell, rect: Rect, align: float, x: float) -> None:
        first, second = self._writer.words(cell).head
        items = self._builder.items
        if not second:
            items.append(text_at(x, rect.y + rect.h / 2 + 4, first, align))
            return
        items.append(text_at(x, rect.y + 12.5, first, align))
        items.append(text_at(x, rect.y + 25.5, second, align))

    def _body(self, cell: Cell, rect: Rect) -> None:
        b = self._builder
        first = rect.y + PAD + self._style.head + 17
        b.items.append(text_at(rect.x + SIDE, first, self._writer.words(cell).tensor))
        number = (Run(str(cell.index + 1), TINY, False, Role.TEXT_MUTED),)
        b.items.append(text_at(rect.right - SIDE, first, number, 1.0))
        if not self._style.short:
            b.items.append(text_at(rect.x + SIDE, first + 14, self._writer.words(cell).held))
        self._strip(cell.tensor, Rect(rect.x + SIDE, rect.bottom - 3 - STRIP, rect.w - 2 * SIDE, STRIP))
        top = rect.y + PAD + self._style.head + 6
        self._tensor_target(cell.tensor, Rect(rect.x, top, rect.w, rect.bottom - top))

    def _source(self, cell: Cell, rect: Rect) -> None:
        b = self._builder
        port = cell.kind is CellKind.PORT and self._writer.source_step(cell.tensor) is not None
        ink = TENSOR_INK.get(cell.tensor.role, Role.TENSOR)
        fill = Ink(Role.PANEL) if port else Ink(ink, 0.1)
        b.box(rect, fill, Ink(ink, 0.8), radius=6, dashed=port)
        b.items.append(text_at(rect.x + SIDE, rect.y + 17, self._writer.words(cell).tensor))
        if not self._style.short:
            b.items.append(text_at(rect.x + SIDE, rect.y + 31.5, self._writer.words(cell).held))
        self._strip(cell.tensor, Rect(rect.x + SIDE, rect.bottom - 3 - STRIP, rect.w - 2 * SIDE, STRIP))
        self._tensor_target(cell.tensor, rect)

    def _tensor_target(self, tensor: Tensor, rect: Rect) -> None:
        title = f"{short_name(tensor)} {tensor.sharding.as_printed()}"
        words = partial(self._facts.tensor_words, tensor)
        self._builder.target_told(rect, self._facts.tensor_key(tensor), title, words)

    def _strip(self, tensor: Tensor, rect: Rect) -> None:
        axes = tuple(self._facts.mesh)
        if axes:
            gap = 2.0
            each = (rect.w - gap * (len(axes) - 1)) / len(axes)
            split = "".join(tensor.sharding.axes)
            for number, axis in enumerate(axes):
                state = "split" if axis in split else "partial" if axis in tensor.sharding.partial else ""
                field = Rect(rect.x + number * (each + gap), rect.y, each, rect.h)
                axis_field(self._builder, field, axis, state)


def axis_field(builder: SceneBuilder, rect: Rect, axis: str, state: str) -> None:
    """Draw the field of a mesh axis: filled (split), hatched (partial sum) or hollow (replicated)."""
    role = AXIS_ROLE[axis]
    if state == "split":
        builder.box(rect, Ink(role))
    elif state == "partial":
        builder.box(rect, Ink(role, 0.15), Ink(role, 0.9), width=0.7, pattern=Pattern.HATCH, marks=Ink(role))
    else:
        builder.box(rect, None, Ink(Role.FIELD_BORDER), width=0.7)
