"""Sets the bands of a program into rows: the line length that shows it largest in the space there is.

How a program is cut and routed depends on the widths of its columns only. Widths are rounded up to whole
steps, so that the rows stay as they are, and need not be sought again, while numbers change a little.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.plots import flow, route
from app.plots.card_words import CardStyle
from app.plots.flow import Band, Cell, Section
from model_core.partition.program import LayerProgram

SHELF_GAP: Final = 28.0
BAND_GAP: Final = 13.0
WIDTH_STEP: Final = 6.0
LINE_LENGTHS: Final = tuple(110.0 * number for number in range(4, 20))
# What the head of a drawing and the ports of a band take, near enough to choose by.
HEADER: Final = 64.0
PORT_ROOM: Final = {False: 130.0, True: 84.0}
# A drawing need not be larger than this; then fewer cuts count more.
LARGE_ENOUGH: Final = 1.05
CUT: Final = 0.008
_REMEMBERED: Final = 64

Cut = tuple[int, int, int]
Cuts = tuple[tuple[Cut, ...], ...]
Widths = tuple[tuple[float, ...], ...]


class Space(NamedTuple):
    """The space that a drawing is made for, and how narrow it may become."""

    width: float
    height: float
    narrowest: float


class Placed(NamedTuple):
    """A band with the widths of its columns and the space it takes."""

    band: Band
    plan: route.Plan
    widths: tuple[float, ...]
    width: float
    height: float


Rows = list[list[Placed]]


@dataclass(slots=True)
class Cutting:
    """What is remembered of a program: its sections, the bands made of their columns, and the rows chosen."""

    program: LayerProgram
    sections: tuple[Section, ...]
    bands: dict[Cut, tuple[Band, route.Plan]] = field(default_factory=dict)
    choices: dict[tuple[Widths, CardStyle, Space], Cuts] = field(default_factory=dict)

    def band(self, cut: Cut) -> tuple[Band, route.Plan]:
        """Return the band of the columns ``cut[1]`` to ``cut[2]`` of section ``cut[0]``, and its arrows."""
        found = self.bands.get(cut)
        if found is None:
            number, start, end = cut
            section = self.sections[number]
            band = flow.band(self.program, section.title, start == 0, section.columns[start:end])
            found = self.bands[cut] = (band, route.plan(band))
        return found

    def rows(self, widths: Widths, style: CardStyle, space: Space) -> Cuts:
        """Return the cuts of every row that show the program largest."""
        key = (widths, style, space)
        found = self.choices.get(key)
        if found is None:
            if len(self.choices) >= _REMEMBERED:
                self.choices.clear()
            found = self.choices[key] = self._choose(widths, style, space)
        return found

    def _choose(self, widths: Widths, style: CardStyle, space: Space) -> Cuts:
        best: tuple[float, Cuts] | None = None
        for target in LINE_LENGTHS:
            rows = self._shelves(_cuts(widths, target, PORT_ROOM[style.short]), widths, style, target)
            if best is not None and rows == best[1]:
                continue
            lengths = [sum(self._length(cut, widths, style) for cut in row) for row in rows]
            needed = max(
                space.narrowest, *(x + SHELF_GAP * (len(r) - 1) for x, r in zip(lengths, rows, strict=True))
            )
            tall = HEADER + sum(max(self._height(cut, style) for cut in row) + BAND_GAP for row in rows)
            scale = min(space.width / needed, space.height / tall, LARGE_ENOUGH)
            score = scale - CUT * sum(len(row) for row in rows)
            if best is None or score > best[0]:
                best = (score, rows)
        return () if best is None else best[1]

    def _shelves(self, cuts: list[Cut], widths: Widths, style: CardStyle, target: float) -> Cuts:
        rows: list[list[Cut]] = [[]]
        used = 0.0
        for cut in cuts:
            length = self._length(cut, widths, style)
            if rows[-1] and used + SHELF_GAP + length > target:
                rows.append([])
                used = -SHELF_GAP
            rows[-1].append(cut)
            used += length + SHELF_GAP
        return tuple(tuple(row) for row in rows)

    def _length(self, cut: Cut, widths: Widths, style: CardStyle) -> float:
        number, start, end = cut
        return PORT_ROOM[style.short] + sum(widths[number][start:end])

    def _height(self, cut: Cut, style: CardStyle) -> float:
        band, chosen = self.band(cut)
        return route.height(band, chosen, style.cell, style.lane_gap)


_cuttings: dict[int, Cutting] = {}


def cutting(program: LayerProgram) -> Cutting:
    """Return what is remembered of a program. By identity: programs are shared, and slow to compare."""
    found = _cuttings.get(id(program))
    if found is None or found.program is not program:
        if len(_cuttings) >= _REMEMBERED:
            _cuttings.clear()
        found = _cuttings[id(program)] = Cutting(program, flow.sections(program))
    return found


def arranged(
    program: LayerProgram,
    style: CardStyle,
    space: Space,
    width_of: Callable[[Cell], float],
    title_width: Callable[[Band], float],
) -> Rows:
    """Set a program into rows for a space.

    Args:
        program: the layer program.
        style: measures of the cards.
        space: what there is.
        width_of: width that the card of a cell needs.
        title_width: width of a band's title.
    """
    remembered = cutting(program)
    widths = tuple(
        tuple(_stepped(max(width_of(cell) for cell in column)) + route.GUTTER for column in section.columns)
        for section in remembered.sections
    )
    rows = remembered.rows(widths, style, space)
    return [[_placed(remembered, cut, style, width_of, title_width) for cut in row] for row in rows]


def _placed(
    remembered: Cutting,
    cut: Cut,
    style: CardStyle,
    width_of: Callable[[Cell], float],
    title_width: Callable[[Band], float],
) -> Placed:
    band, chosen = remembered.band(cut)
    needed = [0.0] * band.n_columns
    for (column, _), cell in band.cells.items():
        needed[column] = max(needed[column], width_of(cell))
    needed[0] = max(needed[0], title_width(band))
    widths = tuple(_stepped(width) for width in needed)
    height = route.height(band, chosen, style.cell, style.lane_gap)
    return Placed(band, chosen, widths, route.width(chosen, widths), height)


def _stepped(width: float) -> float:
    return math.ceil(width / WIDTH_STEP) * WIDTH_STEP


def _cuts(columns: Widths, target: float, port: float) -> list[Cut]:
    """Cut every section where a line is full."""
    cuts: list[Cut] = []
    for number, widths in enumerate(columns):
        start, used = 0, port
        for column, needed in enumerate(widths):
            if column > start and used + needed > target:
                cuts.append((number, start, column))
                start, used = column, port
            used += needed
        cuts.append((number, start, len(widths)))
    return cuts


def row_width(row: list[Placed]) -> float:
    """Return the width of a row."""
    return sum(placed.width for placed in row) + SHELF_GAP * (len(row) - 1)
