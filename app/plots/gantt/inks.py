"""The inks of cells: colour for what is done, shade for the lane, a bar for the reverse direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from PySide6.QtGui import QColor

from app.plots.gantt.cells import DRAIN, MESSAGE, OUTSIDE, STEADY, WARM_UP, CellKind, Cells
from app.plots.paint import color
from app.plots.scene import Ink, Pattern
from app.theme import Role, Theme
from model_core.schedule import Layout, OpKind

ROLES: Final = {
    OpKind.FORWARD: Role.FORWARD,
    OpKind.BACKWARD: Role.BACKWARD,
    OpKind.BACKWARD_INPUT: Role.BACKWARD_INPUT,
    OpKind.BACKWARD_WEIGHT: Role.BACKWARD_WEIGHT,
}
IDLE: Final = {
    WARM_UP: Ink(Role.HIDDEN, 0.16),
    STEADY: Ink(Role.ERROR, 0.22),
    DRAIN: Ink(Role.HIDDEN, 0.16),
    MESSAGE: Ink(Role.COMMUNICATION, 0.4),
    OUTSIDE: Ink(Role.PANEL),
}
IDLE_PATTERNS: Final = {
    WARM_UP: Pattern.HATCH,
    STEADY: Pattern.CROSS,
    DRAIN: Pattern.BACK_HATCH,
    MESSAGE: Pattern.DOTS,
}
IDLE_MARKS: Final = Ink(Role.HIDDEN, 0.55)
LIGHTEST: Final = 0.56
"""How strong the palest lane is; each lane before it is stronger."""
_MIDDLE: Final = 1.05 * 0.056


@dataclass(frozen=True, slots=True)
class CellInks:
    """Inks of one kind of cell: its half or halves, and which halves have the bar of the reverse direction."""

    upper: Ink
    lower: Ink
    upper_bar: bool
    lower_bar: bool

    @property
    def is_pair(self) -> bool:
        """Whether it is an overlapped pair: two halves with a shared border."""
        return self.upper.role is not self.lower.role


def cell_inks(kind: CellKind, layout: Layout) -> CellInks:
    """Return the inks of a kind of cell."""
    reverse = kind.lane >= layout.n_chunks
    if kind.op is not OpKind.OVERLAPPED:
        ink = Ink(ROLES[kind.op], lane_strength(kind.lane, layout))
        return CellInks(ink, ink, False, reverse)
    upper = Ink(Role.FORWARD, lane_strength(kind.lane, layout))
    lower = Ink(Role.BACKWARD, lane_strength(kind.lane2, layout))
    return CellInks(upper, lower, reverse, kind.lane2 >= layout.n_chunks)


def inks_of(cells: Cells) -> tuple[CellInks, ...]:
    """Return the inks of all kinds of cells."""
    return tuple(cell_inks(kind, cells.schedule.layout) for kind in cells.kinds)


def lane_strength(lane: int, layout: Layout) -> float:
    """Return how strong the colour of a lane is: the first is full, the last palest."""
    return 1.0 - (1.0 - LIGHTEST) * lane / max(layout.n_lanes - 1, 1)


@lru_cache(maxsize=512)
def label_role(theme: str, ink: Ink) -> Role:
    """Return the ink of texts and bars on a cell: dark or light, whichever stands out more."""
    light = luminance(color(theme, ink))
    return Role.DARK_ON_CELL if (light + 0.05) ** 2 > _MIDDLE else Role.LIGHT_ON_CELL


def luminance(shown: QColor) -> float:
    """Return the relative luminance of a colour."""
    channels = (shown.redF(), shown.greenF(), shown.blueF())
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def border_color(theme: Theme) -> QColor:
    """Return the colour of the border that the halves of a pair share."""
    return theme.color(Role.TEXT)
