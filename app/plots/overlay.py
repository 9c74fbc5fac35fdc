"""What lies over a picture: the veil of an old one, and the text of a tooltip."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.i18n import tr
from app.plots.scene import Target
from app.plots.text import SMALL, font
from app.theme import Role, Theme

VEIL = 0.62


def paint_stale(painter: QPainter, area: QRectF, theme: Theme) -> None:
    """Grey a picture that the design has moved on from, and say so."""
    veil = theme.color(Role.PANEL)
    veil.setAlphaF(VEIL)
    painter.fillRect(area, veil)
    text = tr("The design has errors. This is the last picture that could be drawn; see Problems.")
    painter.setFont(font(SMALL, True))
    room = QRectF(0, 0, area.width() - 48.0, area.height())
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    bounds = painter.boundingRect(room, flags, text)
    note = QRectF(0, 0, bounds.width() + 32.0, bounds.height() + 16.0)
    note.moveCenter(area.center())
    note.moveBottom(area.bottom() - 14.0)
    painter.setPen(QPen(theme.color(Role.WARNING), 1.2))
    painter.setBrush(theme.color(Role.CARD))
    painter.drawRoundedRect(note, 6, 6)
    painter.setPen(theme.color(Role.TEXT))
    painter.drawText(note, flags, text)


def tooltip(target: Target) -> str:
    """Return a target's tooltip as rich text."""
    lines = "".join(f"<br>{escape(line)}" for line in target.lines)
    return f"<b>{escape(target.title)}</b>{lines}"
