"""What lies over the charts on screen: the card at the pointer, the rubber band, patterns of idle times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QPainter, QPen

from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import DRAIN, FIRST_CELL, MESSAGE, OUTSIDE, STEADY, WARM_UP
from app.plots.gantt.frame import ChartPlace
from app.plots.gantt.inks import IDLE_MARKS
from app.plots.gantt.labels import cell_rect, rects, wide_segments
from app.plots.gantt.pointer import Spot
from app.plots.paint import color
from app.plots.scene import Rect
from app.plots.text import SMALL, font, width_of
from app.theme import Role, Theme

CARD_WIDTH: Final = 380.0
LINE: Final = 16.0
PAD: Final = 9.0
AWAY: Final = 16.0
HATCHED: Final = 9.0
MOST_HATCHED: Final = 500
SMALLEST_ROW: Final = 7.0
_BRUSHES: Final = {
    WARM_UP: Qt.BrushStyle.BDiagPattern,
    STEADY: Qt.BrushStyle.DiagCrossPattern,
    DRAIN: Qt.BrushStyle.FDiagPattern,
    MESSAGE: Qt.BrushStyle.Dense6Pattern,
}


def qrect(rect: Rect) -> QRectF:
    """Return a rectangle as Qt's."""
    return QRectF(*rect)


def paint_idle_patterns(painter: QPainter, place: ChartPlace, camera: TimeCamera, theme: Theme) -> None:
    """Hatch idle times by cause where they are wide enough, unless there are very many."""
    if place.row_height(camera) < SMALLEST_ROW:
        return
    segments, ranks = wide_segments(place, camera, HATCHED)
    codes = place.cells.code[segments]
    idle = (codes < FIRST_CELL) & (codes != OUTSIDE)
    if int(idle.sum()) > MOST_HATCHED:
        return
    brushes = {code: QBrush(color(theme.name, IDLE_MARKS), style) for code, style in _BRUSHES.items()}
    for rect, code in zip(
        rects(place, camera, segments[idle], ranks[idle]), codes[idle].tolist(), strict=True
    ):
        if rect.w > 1:
            # The first column belongs to the border of a pair.
            painter.fillRect(qrect(rect).adjusted(1, 0, 0, 0), brushes[code])


def paint_card(
    painter: QPainter, lines: Sequence[str], x: float, y: float, bounds: QRectF, theme: Theme
) -> None:
    """Paint a card beside a point, within bounds: a title and what belongs to it."""
    room = CARD_WIDTH - 2 * PAD
    shown = [(line, number == 0) for number, line in enumerate(lines)]
    height = sum(_height(line, bold, room) for line, bold in shown) + 2 * PAD
    width = min(max(width_of(line, SMALL, bold) for line, bold in shown) + 2 * PAD, CARD_WIDTH)
    left = x + AWAY if x + AWAY + width <= bounds.right() else x - AWAY - width
    top = y + AWAY if y + AWAY + height <= bounds.bottom() else y - AWAY - height
    card = QRectF(max(left, bounds.left() + 4), max(top, bounds.top() + 4), width, height)
    painter.setPen(QPen(theme.color(Role.FIELD_BORDER), 1.0))
    painter.setBrush(theme.color(Role.CARD))
    painter.drawRoundedRect(card, 6, 6)
    at = card.top() + PAD
    for line, bold in shown:
        painter.setFont(font(SMALL, bold))
        painter.setPen(theme.color(Role.TEXT if bold else Role.TEXT_MUTED))
        needed = _height(line, bold, room)
        box = QRectF(card.left() + PAD, at, card.width() - 2 * PAD, needed)
        painter.drawText(box, Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignVCenter, line)
        at += needed


def _height(line: str, bold: bool, room: float) -> float:
    rows = max(1, -(-int(width_of(line, SMALL, bold) * 1.06) // int(room)))
    return LINE * rows


def paint_band(painter: QPainter, band: QRectF, theme: Theme) -> None:
    """Paint the rubber band of a selection."""
    fill = theme.color(Role.ACCENT)
    fill.setAlphaF(0.16)
    painter.fillRect(band, fill)
    painter.setPen(QPen(theme.color(Role.ACCENT), 1.2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(band)


def paint_spot(
    painter: QPainter,
    places: Sequence[ChartPlace],
    camera: TimeCamera,
    spot: Spot,
    theme: Theme,
    strong: bool,
) -> None:
    """Outline the segment under the pointer, or strongly the one that the keyboard is at."""
    rect = cell_rect(places[spot.chart], camera, spot.segment, spot.rank)
    if rect.w <= 0:
        return
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for role, width in ((Role.PANEL, 4.0), (Role.ACCENT, 2.4)) if strong else ((Role.ACCENT, 1.8),):
        painter.setPen(QPen(theme.color(role), width))
        painter.drawRect(qrect(rect).adjusted(-1, -1, 1, 1))
