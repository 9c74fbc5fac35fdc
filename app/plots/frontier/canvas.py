"""The plot of the frontier on screen: hover, choice, selection by dragging, and the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from app.i18n import tr
from app.plots.camera import MARGIN
from app.plots.frontier.card import design_card
from app.plots.frontier.cloud import Cloud, NoCloud
from app.plots.frontier.raster import cloud_image
from app.plots.frontier.scene import Picture, Pin, draw_frontier, shares
from app.plots.overlay import paint_stale
from app.plots.paint import paint
from app.plots.scene import Scene
from app.plots.text import TINY, elided, font, width_of
from app.plots.xy_axis import PlotArea
from app.theme import Role
from app.theme.manager import ThemeManager
from model_core.results import Evaluation
from model_core.search.arrays import Rows

NEAR: Final = 14.0
NEAR_FRONT: Final = 9.0
MOST_SELECTED: Final = 500
_RING: Final = 7.0


@dataclass(slots=True)
class _Drag:
    """A drag over the plot: a rectangle, or with Shift a free line round the points."""

    start: QPointF
    free: bool
    points: list[QPointF] = field(default_factory=list)
    moved: bool = False


class FrontierCanvas(QWidget):
    """Shows a cloud. ``hovered``, ``chosen`` and ``load_requested`` carry numbers of designs."""

    chosen = Signal(int)
    load_requested = Signal(int)
    pin_requested = Signal(int)
    selected = Signal(object)

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("frontier_canvas")
        self.setAccessibleName(tr("Frontier"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._themes = themes
        self._cloud: Cloud | NoCloud | None = None
        self._evaluation: Evaluation | None = None
        self._pins: tuple[Pin, ...] = ()
        self._marked: tuple[int, ...] = ()
        self._current: int | None = None
        self._hovered: int | None = None
        self._stale = False
        self._picture: Picture | None = None
        self._layer: QPixmap | None = None
        self._places: tuple[Rows, Rows] | None = None
        self._card: tuple[int, Scene] | None = None
        self._image: tuple[object, QImage] | None = None
        self._drag: _Drag | None = None
        themes.theme_changed.connect(self._on_theme_changed)

    # ---- what is shown ---------------------------------------------------------------------

    @property
    def cloud(self) -> Cloud | NoCloud | None:
        """The designs shown."""
        return self._cloud

    @property
    def current(self) -> int | None:
        """The chosen design."""
        return self._current

    @property
    def hovered(self) -> int | None:
        """The design under the pointer."""
        return self._hovered

    def show_cloud(self, cloud: Cloud | NoCloud) -> None:
        """Show other designs; what was chosen among the old ones is forgotten."""
        self._cloud, self._image = cloud, None
        self._marked, self._current, self._hovered = (), None, None
        self._redraw()

    def show_evaluation(self, evaluation: Evaluation | None, stale: bool) -> None:
        """Mark the current design."""
        self._evaluation, self._stale = evaluation, stale
        self._redraw()

    def set_pins(self, pins: Sequence[Pin]) -> None:
        """Mark pinned designs."""
        self._pins = tuple(pins)
        self._redraw()

    def mark(self, numbers: Sequence[int], current: int | None) -> None:
        """Mark the selected designs, one of them as the chosen one."""
        self._marked, self._current = tuple(numbers), current
        self.update()

    def scene_for(self, size: QSizeF, dots: bool = True) -> Scene | None:
        """Return the picture for a space, as for an export."""
        if self._cloud is None:
            return None
        return draw_frontier(self._cloud, self._evaluation, size, self._pins, dots).scene

    def position_of(self, number: int) -> QPointF | None:
        """Return where a design is on the widget."""
        picture = self._made()
        if picture is None or picture.area is None or not isinstance(self._cloud, Cloud):
            return None
        x, y = picture.area.at(*self._cloud.position(number))
        return QPointF(x + MARGIN, y + MARGIN)

    def sizeHint(self) -> QSize:
        """Prefer room for a plot with its labels."""
        return QSize(900, 520)

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size at which the axes can be read."""
        return QSize(420, 290)

    def _redraw(self) -> None:
        self._picture = self._layer = self._places = self._card = None
        self.update()

    def _on_theme_changed(self, _theme: object) -> None:
        self._layer = self._card = None
        self.update()

    def _made(self) -> Picture | None:
        if self._picture is None and self._cloud is not None:
            room = QSizeF(self.width() - 2 * MARGIN, self.height() - 2 * MARGIN)
            self._picture = draw_frontier(self._cloud, self._evaluation, room, self._pins, dots=False)
            self.setAccessibleDescription(self._picture.scene.summary)
        return self._picture

    # ---- painting --------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the plot and what lies over it."""
        painter = QPainter(self)
        picture = self._made()
        if picture is None:
            painter.fillRect(self.rect(), self._themes.theme.color(Role.PANEL))
            return
        if self._layer is None or self._layer.devicePixelRatioF() != self.devicePixelRatioF():
            self._layer = self._painted(picture)
        painter.drawPixmap(0, 0, self._layer)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._stale:
            paint_stale(painter, QRectF(self.rect()), self._themes.theme)
        self._paint_hint(painter)
        self._paint_marks(painter)
        self._paint_drag(painter)
        self._paint_card(painter)

    def _painted(self, picture: Picture) -> QPixmap:
        ratio, theme = self.devicePixelRatioF(), self._themes.theme
        layer = QPixmap(round(self.width() * ratio), round(self.height() * ratio))
        layer.setDevicePixelRatio(ratio)
        layer.fill(theme.color(Role.PANEL))
        painter = QPainter(layer)
        painter.translate(MARGIN, MARGIN)
        if picture.area is not None and isinstance(self._cloud, Cloud):
            image = self._image_of(self._cloud, picture.area, ratio)
            painter.drawImage(QRectF(*picture.area.rect), image)
        paint(picture.scene, painter, theme, static=True)
        painter.end()
        return layer

    def _image_of(self, cloud: Cloud, area: PlotArea, ratio: float) -> QImage:
        """Return the image of the designs; the one before where only what is marked has changed."""
        theme = self._themes.theme
        limits = (area.x.low, area.x.high, area.y.low, area.y.high)
        key = (id(cloud), area.rect, limits, theme.name, ratio)
        if self._image is None or self._image[0] != key:
            self._image = (key, cloud_image(cloud, area, theme, ratio))
        return self._image[1]

    def _paint_hint(self, painter: QPainter) -> None:
        """Say what the mouse does, on the line of the axis title; an export does not need it."""
        area = None if self._picture is None else self._picture.area
        if area is None:
            return
        text = tr("drag: select · Shift-drag: lasso · double-click: load · P: pin")
        room = area.rect.w - width_of(area.x.title, TINY, True) - 24
        painter.setFont(font(TINY, False))
        painter.setPen(self._themes.theme.color(Role.TEXT_MUTED))
        at = QPointF(MARGIN + area.rect.x, MARGIN + area.rect.bottom + 34)
        painter.drawText(at, elided(text, TINY, room))

    def _paint_marks(self, painter: QPainter) -> None:
        theme = self._themes.theme
        painter.setBrush(Qt.BrushStyle.NoBrush)
        shown = self._marked[:MOST_SELECTED]
        for numbers, pen, grow in (
            (shown, QPen(theme.color(Role.ACCENT), 1.2), -2.0),
            ((self._hovered,), QPen(theme.color(Role.ACCENT), 1.6), 0.0),
            ((self._current,), QPen(theme.color(Role.ACCENT), 2.6), 2.0),
        ):
            painter.setPen(pen)
            for number in numbers:
                at = None if number is None else self.position_of(number)
                if at is not None:
                    painter.drawEllipse(at, _RING + grow, _RING + grow)

    def _paint_drag(self, painter: QPainter) -> None:
        if self._drag is None or not self._drag.moved:
            return
        theme = self._themes.theme
        painter.setPen(QPen(theme.color(Role.ACCENT), 1.2, Qt.PenStyle.DashLine))
        painter.setBrush(theme.tint(Role.ACCENT, 0.12))
        painter.setOpacity(0.6)
        painter.drawPolygon(self._outline(self._drag))
        painter.setOpacity(1.0)

    def _paint_card(self, painter: QPainter) -> None:
        number = self._hovered
        if number is None or self._drag is not None or not isinstance(self._cloud, Cloud):
            return
        if self._card is None or self._card[0] != number:
            current = None if self._evaluation is None else self._evaluation.design
            self._card = (number, design_card(self._cloud, number, current))
        at, card = self.position_of(number), self._card[1]
        if at is None:
            return
        x = at.x() + 14 if at.x() + 20 + card.width < self.width() else at.x() - 14 - card.width
        y = min(max(at.y() - card.height / 2, 6), self.height() - card.height - 6)
        painter.translate(max(x, 4), y)
        paint(card, painter, self._themes.theme, static=True)
        painter.resetTransform()

    def _outline(self, drag: _Drag) -> QPolygonF:
        if drag.free:
            return QPolygonF(drag.points)
        return QPolygonF(QRectF(drag.start, drag.points[-1]).normalized())

    # ---- finding designs -------------------------------------------------------------------

    def _found_places(self) -> tuple[Rows, Rows] | None:
        picture = self._made()
        if picture is None or picture.area is None or not isinstance(self._cloud, Cloud):
            return None
        if self._places is None:
            across, up = shares(self._cloud, picture.area)
            rect = picture.area.rect
            self._places = (MARGIN + rect.x + across * rect.w, MARGIN + rect.bottom - up * rect.h)
        return self._places

    def design_at(self, position: QPointF) -> int | None:
        """Return the design near a position; one on a frontier before others."""
        places = self._found_places()
        if places is None or not isinstance(self._cloud, Cloud):
            return None
        away = np.hypot(places[0] - position.x(), places[1] - position.y())
        near = np.flatnonzero(away <= NEAR)
        if not len(near):
            return None
        numbers = self._cloud.numbers[near]
        weight = away[near] - (NEAR - NEAR_FRONT) * np.isin(numbers, self._cloud.on_front())
        return int(numbers[np.argmin(weight)])

    def _inside(self, outline: QPolygonF) -> Rows:
        """Return the numbers of the designs inside a polygon."""
        places = self._found_places()
        assert isinstance(self._cloud, Cloud)
        assert places is not None
        x, y = places
        inside = np.zeros(len(x), np.bool_)
        corners = [(outline.at(i).x(), outline.at(i).y()) for i in range(outline.count())]
        for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
            if y0 != y1:
                crosses = (y0 > y) != (y1 > y)
                inside ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
        found: Rows = self._cloud.numbers[inside]
        return found

    # ---- mouse and keyboard ----------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw for the new space."""
        super().resizeEvent(event)
        self._redraw()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a selection."""
        if event.button() == Qt.MouseButton.LeftButton and isinstance(self._cloud, Cloud):
            free = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._drag = _Drag(event.position(), free, [event.position()])

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Draw the selection while dragging; else show what is under the pointer."""
        if self._drag is None:
            self._hover(self.design_at(event.position()))
            return
        moved = event.position() - self._drag.start
        if self._drag.moved or moved.manhattanLength() >= QApplication.startDragDistance():
            self._drag.moved = True
            self._drag.points.append(event.position())
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose what was clicked, or select what was surrounded."""
        drag, self._drag = self._drag, None
        if drag is None or event.button() != Qt.MouseButton.LeftButton:
            return
        if drag.moved:
            self.selected.emit([int(n) for n in self._inside(self._outline(drag))])
        else:
            number = self.design_at(event.position())
            if number is not None:
                self.chosen.emit(number)
            else:
                self.selected.emit([])
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Load the design under the pointer."""
        number = self.design_at(event.position())
        if number is not None:
            self.load_requested.emit(number)

    def leaveEvent(self, _event: QEvent) -> None:
        """End the highlight."""
        self._hover(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk along the frontiers with arrows, load with Enter, pin with P, forget with Escape."""
        key = Qt.Key(event.key())
        steps = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}
        if key in steps:
            self._walk(steps[key])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._current is not None:
            self.load_requested.emit(self._current)
        elif key == Qt.Key.Key_P and self._current is not None:
            self.pin_requested.emit(self._current)
        elif key == Qt.Key.Key_Escape and (self._marked or self._current is not None):
            self.selected.emit([])
        else:
            super().keyPressEvent(event)

    def _walk(self, step: int) -> None:
        if not isinstance(self._cloud, Cloud):
            return
        order = [int(n) for front in self._cloud.fronts for n in front.numbers]
        if order:
            at = order.index(self._current) + step if self._current in order else 0
            number = order[at % len(order)]
            self.chosen.emit(number)
            self._hover(number)

    def _hover(self, number: int | None) -> None:
        if number != self._hovered:
            self._hovered = number
            self.setCursor(
                Qt.CursorShape.ArrowCursor if number is None else Qt.CursorShape.PointingHandCursor
            )
            self.update()
