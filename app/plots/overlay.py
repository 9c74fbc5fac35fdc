"""What lies over a picture: marks of hover, focus and selection, the veil of an old one, and tooltips."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.i18n import tr
from app.plots.camera import Camera
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


def paint_mark(painter: QPainter, camera: Camera, target: Target, pen: QPen, grow: float) -> None:
    """Outline a target, a little outside of it."""
    rect = QRectF(*camera.to_widget(target.rect)).adjusted(-grow, -grow, grow, grow)
    radius = target.radius * camera.scale + grow
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(rect, radius, radius)


def tooltip(target: Target) -> str:
    """Return a target's tooltip as rich text."""
    lines = "".join(f"<br>{escape(line)}" for line in target.lines)
    return f"<b>{escape(target.title)}</b>{lines}"
