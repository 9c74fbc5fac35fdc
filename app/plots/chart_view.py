"""A widget for charts that come from a computation of their own: drawn for its size, with hover and keyboard."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QScrollArea, QToolTip, QWidget

from app.plots.camera import MARGIN, Camera
from app.plots.overlay import tooltip
from app.plots.paint import paint
from app.plots.scene import Scene, Target
from app.theme import Role
from app.theme.manager import ThemeManager

Draw = Callable[[QSizeF], Scene]


def scrolled(chart: QWidget, parent: QWidget) -> QScrollArea:
    """Put a chart where it scrolls up and down once its least height does not fit."""
    area = QScrollArea(parent)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(chart)
    return area


class ChartView(QWidget):
    """Shows the scene that a function draws for its size. ``activated`` carries the key of a clicked target."""

    activated = Signal(str)

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._themes = themes
        self._draw: Draw | None = None
        self._scene: Scene | None = None
        self._layer: QPixmap | None = None
        self._camera = Camera()
        self._hovered: Target | None = None
        self._focused = -1
        themes.theme_changed.connect(self._on_theme_changed)

    @property
    def scene(self) -> Scene | None:
        """The scene shown."""
        if self._scene is None and self._draw is not None:
            room = QSizeF(self.width() - 2 * MARGIN, self.height() - 2 * MARGIN)
            self._scene = self._draw(room)
            self._focused = min(self._focused, len(self._scene.targets) - 1)
            self._hovered = None
            self._camera.fit(self._scene.width, self._scene.height, self.width(), self.height())
            self.setAccessibleName(self._scene.title)
            self._describe()
        return self._scene

    def show_drawing(self, draw: Draw | None) -> None:
        """Show what another function draws."""
        self._draw = draw
        self._scene = self._layer = None
        self.update()

    def scene_for(self, size: QSizeF) -> Scene | None:
        """Return the drawing for another space, as for an export."""
        return None if self._draw is None else self._draw(size)

    def sizeHint(self) -> QSize:
        """Prefer room for a chart with its labels."""
        return QSize(900, 600)

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size at which a chart can be read."""
        return QSize(360, 240)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the chart, the highlight and the focus."""
        painter = QPainter(self)
        theme = self._themes.theme
        scene = self.scene
        if scene is None:
            painter.fillRect(self.rect(), theme.color(Role.PANEL))
            return
        if self._layer is None or self._layer.devicePixelRatioF() != self.devicePixelRatioF():
            self._layer = self._painted(scene)
        painter.drawPixmap(0, 0, self._layer)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._hovered is not None:
            painter.setPen(QPen(theme.color(Role.ACCENT), 1.6))
            self._outline(painter, self._hovered)
        if self.hasFocus() and 0 <= self._focused < len(scene.targets):
            painter.setPen(QPen(theme.color(Role.TEXT), 1.6, Qt.PenStyle.DashLine))
            self._outline(painter, scene.targets[self._focused])

    def _painted(self, scene: Scene) -> QPixmap:
        ratio = self.devicePixelRatioF()
        layer = QPixmap(round(self.width() * ratio), round(self.height() * ratio))
        layer.setDevicePixelRatio(ratio)
        layer.fill(self._themes.theme.color(Role.PANEL))
        painter = QPainter(layer)
        painter.translate(self._camera.dx, self._camera.dy)
        painter.scale(self._camera.scale, self._camera.scale)
        paint(scene, painter, self._themes.theme, static=True)
        painter.end()
        return layer

    def _outline(self, painter: QPainter, target: Target) -> None:
        rect = QRectF(*self._camera.to_widget(target.rect)).adjusted(-1, -1, 1, 1)
        radius = target.radius * self._camera.scale
        painter.drawRoundedRect(rect, radius, radius)

    # ---- size, mouse and keyboard ----------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw for the new space."""
        super().resizeEvent(event)
        self._scene = self._layer = None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Highlight what is under the pointer."""
        self._hover(self._target_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Announce what was clicked."""
        target = self._target_at(event.position())
        if target is not None and target.key and event.button() == Qt.MouseButton.LeftButton:
            self.activated.emit(target.key)

    def leaveEvent(self, _event: QEvent) -> None:
        """End the highlight."""
        self._hover(None)

    def event(self, event: QEvent) -> bool:
        """Show the tooltip of what is under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            target = self._target_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), "" if target is None else tooltip(target), self)
            return True
        return super().event(event)

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: N802
        """Let Tab go through the points of the chart before it leaves."""
        scene = self.scene
        step = 1 if forward else -1
        count = 0 if scene is None else len(scene.targets)
        following = count - 1 if self._focused < 0 and step < 0 else self._focused + step
        inside = 0 <= following < count
        self._focused = following if inside else -1
        self._describe()
        self.update()
        return inside or super().focusNextPrevChild(forward)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Hide the focus mark."""
        super().focusOutEvent(event)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Announce the focused target with Enter."""
        scene = self._scene
        chosen = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
        if chosen and scene is not None and 0 <= self._focused < len(scene.targets):
            if scene.targets[self._focused].key:
                self.activated.emit(scene.targets[self._focused].key)
        else:
            super().keyPressEvent(event)

    def _describe(self) -> None:
        scene = self._scene
        if scene is not None:
            focused = scene.targets[self._focused].spoken if 0 <= self._focused < len(scene.targets) else ""
            self.setAccessibleDescription(". ".join(filter(None, (focused, scene.summary))))

    def _target_at(self, position: QPointF) -> Target | None:
        scene = self.scene
        return None if scene is None else scene.target_at(*self._camera.to_scene(position.x(), position.y()))

    def _hover(self, target: Target | None) -> None:
        if target is not self._hovered:
            self._hovered = target
            pointing = target is not None and bool(target.key)
            self.setCursor(Qt.CursorShape.PointingHandCursor if pointing else Qt.CursorShape.ArrowCursor)
            self.update()

    def _on_theme_changed(self, _theme: object) -> None:
        self._layer = None
        self.update()
