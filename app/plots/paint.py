"""Paints a scene with QPainter: on a widget, an image, an SVG or a PDF page alike."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QPen,
    QPolygonF,
    QStaticText,
    QTransform,
)

from app.plots.patterns import marks
from app.plots.per_thread import per_thread
from app.plots.scene import Box, Dots, Ink, Line, Pattern, Run, Scene, Text
from app.plots.text import font
from app.theme import Theme, theme_named

ARROW_LENGTH = 6.5
ARROW_HALF = 3.2
DOT = 0.85


def paint(scene: Scene, painter: QPainter, theme: Theme, static: bool = False) -> None:
    """Paint every item.

    Args:
        scene: what to paint.
        painter: set to the scene's coordinates.
        theme: gives the roles their colours.
        static: use cached glyph runs. Faster on screen; a vector file needs text that stays text.
    """
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    draw_text = _static_text if static else _live_text
    for item in scene.items:
        if isinstance(item, Text):
            draw_text(item, painter, theme.name)
        elif isinstance(item, Box):
            _box(item, painter, theme.name)
        elif isinstance(item, Dots):
            _dots(item, painter, theme.name)
        else:
            _line(item, painter, theme.name)


@lru_cache(maxsize=512)
def color(theme: str, ink: Ink) -> QColor:
    """Return the colour of an ink in a theme."""
    named = theme_named(theme)
    return named.color(ink.role) if ink.strength >= 1 else named.tint(ink.role, ink.strength)


@lru_cache(maxsize=512)
def _brush(theme: str, ink: Ink | None) -> QBrush:
    return QBrush(Qt.BrushStyle.NoBrush) if ink is None else QBrush(color(theme, ink))


@lru_cache(maxsize=512)
def _pen(theme: str, ink: Ink | None, width: float, dashed: bool = False) -> QPen:
    if ink is None:
        return QPen(Qt.PenStyle.NoPen)
    pen = QPen(color(theme, ink), width)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    if dashed:
        pen.setDashPattern([3.0, 2.5])
    return pen


def _box(item: Box, painter: QPainter, theme: str) -> None:
    rect = QRectF(*item.rect)
    if item.stroke is None and item.fill is not None and not item.radius:
        painter.fillRect(rect, color(theme, item.fill))
        _pattern(item, painter, theme)
        return
    painter.setPen(_pen(theme, item.stroke, item.width, item.dashed))
    painter.setBrush(_brush(theme, item.fill))
    if item.radius:
        painter.drawRoundedRect(rect, item.radius, item.radius)
    else:
        painter.drawRect(rect)
    _pattern(item, painter, theme)


def _pattern(item: Box, painter: QPainter, theme: str) -> None:
    if item.pattern is not Pattern.SOLID:
        lines, dots = marks(item.rect, item.pattern)
        painter.setPen(_pen(theme, item.marks, 1.2))
        if lines:
            painter.drawLines([QLineF(*line) for line in lines])
        if dots:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(_brush(theme, item.marks))
            painter.drawRects([QRectF(x - DOT, y - DOT, 2 * DOT, 2 * DOT) for x, y in dots])


def _dots(item: Dots, painter: QPainter, theme: str) -> None:
    pen = QPen(color(theme, item.ink), item.size)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    painter.drawPoints(QPolygonF([QPointF(x, y) for x, y in item.points]))


def _line(item: Line, painter: QPainter, theme: str) -> None:
    points = [QPointF(x, y) for x, y in item.points]
    painter.setPen(_pen(theme, item.ink, item.width, item.dashed))
    if item.arrow:
        head = _arrow_head(item.points[-2], item.points[-1])
        points[-1] = (head[1] + head[2]) / 2
        painter.drawPolyline(points)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_brush(theme, item.ink))
        painter.drawPolygon(QPolygonF(head))
    elif len(points) == 2:
        painter.drawLine(points[0], points[1])
    else:
        painter.drawPolyline(points)


def _arrow_head(before: tuple[float, float], tip: tuple[float, float]) -> list[QPointF]:
    dx, dy = tip[0] - before[0], tip[1] - before[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    bx, by = tip[0] - ux * ARROW_LENGTH, tip[1] - uy * ARROW_LENGTH
    return [
        QPointF(*tip),
        QPointF(bx - uy * ARROW_HALF, by + ux * ARROW_HALF),
        QPointF(bx + uy * ARROW_HALF, by - ux * ARROW_HALF),
    ]


@per_thread(maxsize=4096)
def _glyphs(theme: str, run: Run) -> tuple[QStaticText, QFont, QPen, float]:
    """Everything that painting a run needs, in one look-up; the number is the height above its baseline."""
    chosen = font(run.size, run.bold)
    prepared = QStaticText(run.text)
    prepared.setTextFormat(Qt.TextFormat.PlainText)
    prepared.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
    prepared.prepare(QTransform(), chosen)
    return prepared, chosen, _pen(theme, Ink(run.role), 1.0), _ascent(run.size, run.bold) + run.rise


@lru_cache(maxsize=64)
def _ascent(size: int, bold: bool) -> float:
    return QFontMetricsF(font(size, bold)).ascent()


def _static_text(item: Text, painter: QPainter, theme: str) -> None:
    x, y = item.x, item.y
    for offset, run in item.runs:
        prepared, chosen, pen, above = _glyphs(theme, run)
        painter.setFont(chosen)
        painter.setPen(pen)
        painter.drawStaticText(QPointF(x + offset, y - above), prepared)


def _live_text(item: Text, painter: QPainter, theme: str) -> None:
    for offset, run in item.runs:
        painter.setFont(font(run.size, run.bold))
        painter.setPen(_pen(theme, Ink(run.role), 1.0))
        painter.drawText(QPointF(item.x + offset, item.y - run.rise), run.text)
