"""The widget that shows a view: zoom, pan, hover, choice with mouse and keyboard, and what a screen reader says."""

from __future__ import annotations

from copy import copy

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QEnterEvent,
    QFocusEvent,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from app.document import DesignDocument
from app.evaluation import Round
from app.plots.camera import Camera
from app.plots.frame import Frame, Setting
from app.plots.overlay import paint_mark, paint_stale, tooltip
from app.plots.scene import Scene, Target
from app.plots.views import ViewSpec, shown_title
from app.theme import Role
from app.theme.manager import ThemeManager
from model_core.results import Evaluation

PART = "part/"
KEY_ZOOM = 1.25
KEY_PAN = 48.0
# A drawing in short gains its details when it is zoomed to here, and loses them again when zoomed out to there.
DETAIL_SCALE = 1.15
SHORT_SCALE = 0.6


class SceneView(QWidget):
    """Shows one view of the document's picture and keeps up with it.

    The painted scene is kept as an image; hover, focus and selection are drawn over it. While the view can be
    seen, the evaluation worker makes both; what changes otherwise (size, part, baseline) is drawn here.
    """

    def __init__(
        self,
        view: ViewSpec,
        document: DesignDocument,
        theme_manager: ThemeManager,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._view = view
        self._document = document
        self._themes = theme_manager
        self._part = view.parts[0] if view.parts else ""
        self._scene: Scene | None = None
        self._image: QImage | None = None
        self._drawn: Evaluation | None = None
        self._ahead: Frame | None = None
        self._camera = Camera()
        self._short: bool | None = None
        self._hovered: Target | None = None
        self._focused = -1
        self._pressed: QPointF | None = None
        self._dragging = False
        self.setObjectName(f"view_{view.id}")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(shown_title(view))
        document.evaluation_started.connect(self._on_evaluation_started)
        document.evaluation_changed.connect(self._on_evaluation_changed)
        document.baseline_changed.connect(self._on_changed)
        document.stale_changed.connect(self._on_overlay_changed)
        document.selection_changed.connect(self._on_selection_changed)
        theme_manager.theme_changed.connect(self._on_theme_changed)

    # ---- what is shown ---------------------------------------------------------------------

    @property
    def scene(self) -> Scene | None:
        """The scene shown; made when it is first needed."""
        if self._scene is None:
            self._make_scene()
        return self._scene

    @property
    def camera(self) -> Camera:
        """Zoom and shift."""
        return self._camera

    @property
    def part(self) -> str:
        """The part of the view that is shown; empty where it has none."""
        return self._part

    def show_part(self, part: str) -> None:
        """Show another part of the view."""
        if part in self._view.parts and part != self._part:
            self._part = part
            self._camera.fitted = True
            self._on_changed()

    def fit(self) -> None:
        """Show all of the picture and keep it so."""
        self._camera.fitted = True
        if self._short is not None:
            self._short = None
            self._scene = None
        elif self._scene is not None:
            self._fit_camera(self._scene)
        self._on_camera_changed()

    def zoom_by(self, factor: float) -> None:
        """Zoom about the middle."""
        self._zoom_at(factor, QPointF(self.width() / 2, self.height() / 2))

    def sizeHint(self) -> QSize:
        """Prefer a space in which a whole block can be read."""
        return QSize(900, 640)

    def minimumSizeHint(self) -> QSize:
        """Allow narrow windows; the picture then shrinks."""
        return QSize(240, 180)

    def _setting(self) -> Setting:
        return Setting(
            self._view,
            self._part,
            self._short,
            self._document.baseline,
            self.width(),
            self.height(),
            self.devicePixelRatioF(),
            self._themes.theme,
            copy(self._camera),
        )

    def _make_scene(self) -> None:
        evaluation = self._document.picture
        if evaluation is None:
            return
        setting, frame = self._setting(), self._ahead
        if frame is None or frame.evaluation is not evaluation or not frame.setting.same_scene(setting):
            self._show(setting.scene(evaluation), None, evaluation)
        elif frame.scene is not None:
            image = frame.image if frame.setting.same_image(setting) else None
            self._show(frame.scene, image, evaluation)

    def _show(self, scene: Scene, image: QImage | None, evaluation: Evaluation) -> None:
        hovered = self._hovered.key if self._hovered else ""
        self._scene, self._image, self._drawn = scene, image, evaluation
        self._hovered = next((target for target in scene.targets if hovered and target.key == hovered), None)
        self._focused = min(self._focused, len(scene.targets) - 1)
        self._describe()
        if self._camera.fitted:
            self._fit_camera(scene)

    def _fit_camera(self, scene: Scene) -> None:
        self._camera.fit(scene.width, scene.height, self.width(), self.height())

    def _describe(self) -> None:
        scene = self._scene
        if scene is None:
            return
        focused = scene.targets[self._focused].spoken if self._focused >= 0 else ""
        self.setAccessibleDescription(". ".join(filter(None, (focused, scene.summary))))

    def _on_changed(self, _value: object = None) -> None:
        self._scene = None
        self.update()

    def _on_evaluation_started(self, round_: Round) -> None:
        self._ahead = Frame(self._setting(), round_) if self.isVisible() else None

    def _on_evaluation_changed(self, _evaluation: object) -> None:
        if self._document.picture is not self._drawn:
            self._on_changed()

    def _on_overlay_changed(self, _value: object = None) -> None:
        self.update()

    def _on_selection_changed(self, key: str) -> None:
        kind, _, rest = key.partition("/")
        if kind in ("op", "tensor"):
            self.show_part(rest.partition("/")[0])
        self.update()

    def _on_theme_changed(self, _theme: object) -> None:
        self._image = None
        self.update()

    def _on_camera_changed(self) -> None:
        self._image = None
        self.update()

    # ---- painting --------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the picture and what lies over it."""
        painter = QPainter(self)
        scene = self.scene
        if scene is None:
            painter.fillRect(self.rect(), self._themes.theme.color(Role.PANEL))
            return
        if self._image is None or self._image.devicePixelRatioF() != self.devicePixelRatioF():
            self._image = self._setting().image(scene)
        painter.drawImage(0, 0, self._image)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._document.stale:
            paint_stale(painter, QRectF(self.rect()), self._themes.theme)
        self._paint_marks(painter, scene)

    def _paint_marks(self, painter: QPainter, scene: Scene) -> None:
        theme = self._themes.theme
        marks = (
            (self._document.selection, QPen(theme.color(Role.ACCENT), 2.2)),
            (self._hovered.key if self._hovered else "", QPen(theme.color(Role.ACCENT), 1.2)),
        )
        for key, pen in marks:
            for target in scene.targets if key else ():
                if target.key == key:
                    paint_mark(painter, self._camera, target, pen, 1.0)
        if self.hasFocus() and 0 <= self._focused < len(scene.targets):
            pen = QPen(theme.color(Role.TEXT), 1.6, Qt.PenStyle.DashLine)
            paint_mark(painter, self._camera, scene.targets[self._focused], pen, 3.0)

    # ---- size and mouse --------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw for the new space."""
        super().resizeEvent(event)
        self._on_changed()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom at the pointer."""
        steps = event.angleDelta().y() / 120.0
        if steps:
            self._zoom_at(1.15**steps, event.position())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a drag."""
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._pressed = event.position()
            self._dragging = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan while dragging; else highlight what is under the pointer."""
        if self._pressed is None:
            self._hover(self._target_at(event.position()))
            return
        moved = event.position() - self._pressed
        if self._dragging or moved.manhattanLength() >= QApplication.startDragDistance():
            self._dragging = True
            self._pressed = event.position()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._camera.pan(moved.x(), moved.y())
            self._on_camera_changed()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose what was clicked."""
        clicked = self._pressed is not None and not self._dragging
        self._pressed, self._dragging = None, False
        self.unsetCursor()
        target = self._target_at(event.position())
        if clicked and target is not None and event.button() == Qt.MouseButton.LeftButton:
            self._choose(target)
        self._hover(target)

    def enterEvent(self, event: QEnterEvent) -> None:
        """Highlight at once what the pointer comes in over."""
        self._hover(self._target_at(event.position()))

    def leaveEvent(self, _event: QEvent) -> None:
        """End the highlight."""
        self._hover(None)

    def event(self, event: QEvent) -> bool:
        """Show the tooltip of what is under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            target = self._target_at(QPointF(event.pos()))
            text = "" if target is None else tooltip(target)
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    def _target_at(self, position: QPointF) -> Target | None:
        scene = self.scene
        if scene is None:
            return None
        return scene.target_at(*self._camera.to_scene(position.x(), position.y()))

    def _hover(self, target: Target | None) -> None:
        if target is not self._hovered:
            self._hovered = target
            if target is None:
                self.unsetCursor()
            else:
                self.setCursor(Qt.CursorShape.PointingHandCursor)
            self.update()

    def _zoom_at(self, factor: float, position: QPointF) -> None:
        self._camera.zoom(factor, position.x(), position.y())
        scene = self._scene
        if scene is not None and scene.short and self._camera.scale >= DETAIL_SCALE:
            self._change_detail(False, position)
        elif self._short is False and self._camera.scale < SHORT_SCALE:
            self._change_detail(None, position)
        self._on_camera_changed()

    def _change_detail(self, short: bool | None, position: QPointF) -> None:
        """Draw with other detail, and keep what is under a position there."""
        drawn = self._scene
        before = None if drawn is None else drawn.nearest(*self._camera.to_scene(position.x(), position.y()))
        self._short = short
        self._scene = None
        scene = self.scene
        if scene is None or before is None:
            return
        same = next((target for target in scene.targets if target.key == before.key), None)
        if same is not None:
            shown = self._camera.to_widget(same.rect)
            dx, dy = position.x() - shown.x - shown.w / 2, position.y() - shown.y - shown.h / 2
            self._camera.pan(dx, dy)

    def _choose(self, target: Target) -> None:
        if self._scene is not None and target in self._scene.targets:
            self._focused = self._scene.targets.index(target)
            self._describe()
        if target.key.startswith(PART):
            self.show_part(target.key.removeprefix(PART))
        elif target.key:
            self._document.select(target.key)
        self.update()

    # ---- keyboard --------------------------------------------------------------------------

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: N802
        """Let Tab go through the items of the picture before it leaves."""
        scene = self.scene
        if scene is not None and self._step_focus(scene, 1 if forward else -1):
            return True
        self._focused = -1
        self._describe()
        return super().focusNextPrevChild(forward)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Hide the focus mark."""
        super().focusOutEvent(event)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom with + and −, fit with 0, pan with arrows, choose with Enter."""
        pans = {
            Qt.Key.Key_Left: (KEY_PAN, 0.0),
            Qt.Key.Key_Right: (-KEY_PAN, 0.0),
            Qt.Key.Key_Up: (0.0, KEY_PAN),
            Qt.Key.Key_Down: (0.0, -KEY_PAN),
        }
        key = Qt.Key(event.key())
        if key in pans:
            self._camera.pan(*pans[key])
            self._on_camera_changed()
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(KEY_ZOOM)
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self.zoom_by(1 / KEY_ZOOM)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home):
            self.fit()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._choose_focused()
        else:
            super().keyPressEvent(event)

    def _choose_focused(self) -> None:
        if self._scene is not None and 0 <= self._focused < len(self._scene.targets):
            self._choose(self._scene.targets[self._focused])

    def _step_focus(self, scene: Scene, step: int) -> bool:
        start = len(scene.targets) if self._focused < 0 and step < 0 else self._focused
        following = start + step
        if not 0 <= following < len(scene.targets):
            return False
        self._focused = following
        target = scene.targets[following]
        before = (self._camera.dx, self._camera.dy)
        self._camera.reveal(target.rect, self.width(), self.height())
        if before != (self._camera.dx, self._camera.dy):
            self._on_camera_changed()
        self._describe()
        self.update()
        return True
