"""The layout drawing: one layer program, as it says, step by step.

The drawing is cut into bands that are set like words into lines; the line length is the one that shows the
program largest in the space there is.
"""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QSizeF

from app.i18n import tr, tr_text
from app.plots import route
from app.plots.arrange import BAND_GAP, SHELF_GAP, Placed, Rows, Space, arranged, row_width
from app.plots.card_words import FULL, SHORT, CardStyle, CardWriter
from app.plots.cards import CardPainter
from app.plots.facts import ProgramFacts
from app.plots.flow import BEFORE_SECTIONS, Band, producers
from app.plots.header import muted
from app.plots.layout_header import LayoutHeader
from app.plots.scene import Ink, Run, Scene, SceneBuilder
from app.plots.text import HEADING, text_at, width_of
from app.theme import Role
from model_core.results import Evaluation

# A drawing is at least as wide as its head reads well, but a narrow space may have a narrow one.
NARROWEST, NARROW = 560.0, 900.0
# A step needs about this much space for its small print to be readable; with less, cards are drawn in short.
SPACE_OF_STEP = 13_500.0
READABLE = 0.6
# The block with experts is what a model that has one is about.
BLOCKS = ("moe_block", "block")
LARGEST_SCALE = 1.4


def make_scene(
    evaluation: Evaluation,
    baseline: Evaluation | None,
    size: QSizeF,
    part: str = BLOCKS[0],
    short: bool | None = None,
) -> Scene:
    """Draw one program of an evaluation for a space of a given size.

    Args:
        evaluation: what to draw.
        baseline: not shown in this drawing.
        size: the space; decides where rows break.
        part: ``"embedding"``, ``"block"``, ``"moe_block"`` or ``"logits"``; of the blocks, the one there is.
        short: leave shapes, bytes and volumes to the tooltips; by default where they would be too small.
    """
    del baseline
    if part in BLOCKS and part not in evaluation.programs:
        part = next((block for block in BLOCKS if block in evaluation.programs), part)
    if part not in evaluation.programs:
        return empty_scene(tr("There is no layout to draw; see Problems."), size)
    facts = ProgramFacts(evaluation, part)
    if short is not None:
        return _drawn(_arranged(evaluation, facts, SHORT if short else FULL, size))
    if size.width() * size.height() >= SPACE_OF_STEP * len(facts.program.ops):
        full = _arranged(evaluation, facts, FULL, size)
        if full.scale >= READABLE:
            return _drawn(full)
    return _drawn(_arranged(evaluation, facts, SHORT, size))


class _Arranged(NamedTuple):
    facts: ProgramFacts
    style: CardStyle
    header: LayoutHeader
    writer: CardWriter
    rows: Rows
    width: float
    scale: float


def _arranged(evaluation: Evaluation, facts: ProgramFacts, style: CardStyle, size: QSizeF) -> _Arranged:
    header = LayoutHeader(evaluation, facts, style.short)
    writer = CardWriter(facts, producers(facts.program), style)
    narrowest = max(min(max(NARROWEST, size.width() / LARGEST_SCALE), NARROW), header.least_width)
    space = Space(size.width(), size.height(), narrowest)
    rows = arranged(facts.program, style, space, writer.width, _title_width)
    width = max(narrowest, *(row_width(row) for row in rows))
    height = header.height(width) + sum(max(p.height for p in row) + BAND_GAP for row in rows)
    scale = min(space.width / width, space.height / height)
    return _Arranged(facts, style, header, writer, rows, width, scale)


def _drawn(made: _Arranged) -> Scene:
    builder = SceneBuilder()
    facts, style, header, writer, rows, width, _ = made
    painter = CardPainter(builder, facts, writer, style)
    y = header.draw(builder, width)
    for row in rows:
        x = 0.0
        for placed in row:
            _draw_band(builder, painter, placed, style, x, y)
            x += placed.width + SHELF_GAP
        y += max(placed.height for placed in row) + BAND_GAP
    summary = _summary(facts, header.title)
    return builder.scene(width, y - BAND_GAP, header.title, summary, style.short)


def empty_scene(text: str, size: QSizeF) -> Scene:
    """A drawing that says why there is none."""
    builder = SceneBuilder()
    width, height = max(size.width(), 200.0), max(size.height(), 60.0)
    builder.items.append(text_at(width / 2, height / 2, muted(text), 0.5))
    return builder.scene(width, height, text, text)


# ---- bands ---------------------------------------------------------------------------------


def _band_title(band: Band) -> str:
    title = tr("Input") if band.title == BEFORE_SECTIONS else tr_text(band.title)
    return title if band.first else tr("{title} (cont.)", title=title)


def _title_width(band: Band) -> float:
    return width_of(_band_title(band), HEADING, True)


def _draw_band(
    builder: SceneBuilder, painter: CardPainter, placed: Placed, style: CardStyle, x: float, y: float
) -> None:
    geometry = route.geometry(placed.band, placed.plan, placed.widths, style.cell, style.lane_gap)
    role = Role.TEXT if placed.band.first else Role.TEXT_MUTED
    heading = Run(_band_title(placed.band), HEADING, True, role)
    builder.items.append(text_at(x, y + 11, (heading,)))
    for points in geometry.arrows:
        moved = tuple((px + x, py + y) for px, py in points)
        builder.line(*moved, ink=Ink(Role.TENSOR), width=1.1, arrow=True)
    for (column, lane), cell in placed.band.cells.items():
        painter.draw(cell, x + geometry.x[column], y + geometry.y[lane], geometry.w[column])


def _summary(facts: ProgramFacts, title: str) -> str:
    count = len(facts.program.ops)
    collectives = sum(1 for _ in facts.program.collectives())
    axes = ", ".join(f"{axis} = {size}" for axis, size in facts.mesh.items())
    return tr(
        "{title}: {count} steps, {collectives} of them collectives, on the mesh {axes}",
        title=title,
        count=count,
        collectives=collectives,
        axes=axes or "1",
    )
