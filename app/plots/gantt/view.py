"""The schedule view: pan, zoom, hover, follow a microbatch, with mouse and keyboard."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, QTimer
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from app.background import Background, Ticket
from app.document import DesignDocument
from app.i18n import tr
from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.canvas import Canvas, paint_hint, paint_note
from app.plots.gantt.empty import EmptySchedule
from app.plots.gantt.follow import Followed, followed_at, name_of, span_of
from app.plots.gantt.frame import ChartPlace
from app.plots.gantt.keys import KEY_PAN, move_by_key
from app.plots.gantt.overlay import paint_band, paint_card, paint_spot
from app.plots.gantt.picture import SchedulePicture, make_picture
from app.plots.gantt.pointer import Spot, spot_at, step_from, zoom_to
from app.plots.gantt.words import card_lines
from app.plots.overlay import paint_stale
from app.theme import Role, Theme
from app.theme.manager import ThemeManager
from model_core.spec import Design, ScheduleSpec

MARGIN: Final = 14.0
WHEEL_ZOOM: Final = 1.2
REST_MS: Final = 120
FOLLOW_MARGIN: Final = 0.06
FIGURE_5: Final = ScheduleSpec()


class ScheduleView(QWidget):
    """Shows the schedule of the document's plan and keeps up with it."""

    def __init__(
        self, document: DesignDocument, theme_manager: ThemeManager, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._themes = theme_manager
        self._background = Background(self)
        self._spec: ScheduleSpec | None = None
        self._picture: SchedulePicture | None = None
        self._stale = False
        self._canvas: Canvas | None = None
        self._camera = TimeCamera()
        self._followed: tuple[int, Followed] | None = None
        self._hovered: Spot | None = None
        self._focused: Spot | None = None
        self._pressed: QPointF | None = None
        self._band: QRectF | None = None
        self._dragging = False
        self._pointer = QPointF()
        self.setObjectName("view_schedule")
        self.setAccessibleName(tr("Schedule"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self.update)
        self._empty = EmptySchedule(self)
        self._empty.figure_requested.connect(self.show_figure_5)
        self._empty.schedule_requested.connect(self._add_plain)
        self._background.finished.connect(self._on_made)
        document.design_changed.connect(self._on_design_changed)
        theme_manager.theme_changed.connect(self._on_theme_changed)
        self._on_design_changed(document.design)

    # ---- what is shown ---------------------------------------------------------------------

    @property
    def picture(self) -> SchedulePicture | None:
        """The schedules shown; none before the first."""
        return self._picture

    @property
    def camera(self) -> TimeCamera:
        """Which stretch of time and which ranks are seen."""
        return self._camera

    @property
    def places(self) -> tuple[ChartPlace, ...]:
        """Where the charts are, from the margin on."""
        return () if self._canvas is None else self._canvas.places

    @property
    def followed(self) -> Followed | None:
        """The microbatch that stands out."""
        return None if self._followed is None else self._followed[1]

    @property
    def focused(self) -> Spot | None:
        """The operation that the keyboard is at."""
        return self._focused

    def show_now(self) -> None:
        """Simulate on this thread: for pictures without an event loop, and for tests."""
        if self._spec is not None:
            self._on_made(make_picture(self._spec))

    def stop(self) -> None:
        """End the worker thread; the view is not used after this."""
        self._rest.stop()
        self._background.stop()

    def fit(self) -> None:
        """Show all of the schedule and keep it so."""
        self._camera.fit()
        self._moved()

    def zoom_by(self, factor: float) -> None:
        """Zoom about the middle."""
        self._camera.zoom(factor, (self._camera.start_s + self._camera.end_s) / 2)
        self._moved()

    def show_figure_5(self) -> None:
        """Give the plan the schedule of Figure 5 of the DeepSeek-V3 report."""
        self._set_schedule(FIGURE_5, tr("Figure 5 of the DeepSeek-V3 report"))
        self.fit()

    def sizeHint(self) -> QSize:
        """Prefer a space in which eight ranks can be read."""
        return QSize(900, 640)

    def minimumSizeHint(self) -> QSize:
        """Allow narrow windows."""
        return QSize(240, 180)

    def _add_plain(self) -> None:
        self._set_schedule(ScheduleSpec(kind="1f1b"), tr("Add a schedule"))

    def _set_schedule(self, spec: ScheduleSpec, text: str) -> None:
        design = self._document.design
        self._document.push(design.replace(plan=design.plan.replace(schedule=spec)), text)

    def _on_design_changed(self, design: Design) -> None:
        spec = design.plan.schedule
        self._empty.setVisible(spec is None)
        if spec == self._spec:
            return
        self._spec = spec
        if spec is None:
            self._picture = self._canvas = None
            self._clear_marks()
        elif self.isVisible():
            self._background.start(partial(_simulated, spec))
        self.update()

    def _on_made(self, picture: SchedulePicture) -> None:
        if picture.planned.spec is not self._spec:
            return
        self._stale = not picture.charts
        if picture.charts:
            self._picture, self._canvas = picture, None
            self._clear_marks()
            self._camera.show_whole(max(cells.makespan_s for cells in picture.charts))
        self.update()

    def _on_theme_changed(self, _theme: Theme) -> None:
        self._canvas = None
        self.update()

    def _clear_marks(self) -> None:
        self._followed = self._hovered = self._focused = None

    def _moved(self) -> None:
        self._hovered = None
        self._rest.start()
        self.update()

    # ---- painting --------------------------------------------------------------------------

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the charts and what lies over them."""
        painter = QPainter(self)
        theme = self._themes.theme
        canvas = self._ready_canvas()
        if canvas is None:
            text = "" if self._spec is None else tr("This schedule cannot be run; see Problems.")
            simulating = self._spec is not None and not self._stale
            paint_note(painter, QRectF(self.rect()), tr("Simulating…") if simulating else text, theme)
            return
        painter.fillRect(self.rect(), theme.color(Role.PANEL))
        painter.translate(MARGIN, MARGIN)
        ranks, moving = self._memory_ranks(canvas), self._rest.isActive()
        canvas.paint(painter, self._camera, self._followed, ranks, moving)
        paint_hint(painter, canvas)
        self._paint_marks(painter, canvas)
        painter.resetTransform()
        if self._stale:
            paint_stale(painter, QRectF(self.rect()), theme)

    def _ready_canvas(self) -> Canvas | None:
        if self._picture is None:
            return None
        size = QSizeF(self.width() - 2 * MARGIN, self.height() - 2 * MARGIN)
        ratio = self.devicePixelRatioF()
        canvas = self._canvas
        if canvas is None or canvas.size != size or canvas.ratio != ratio:
            canvas = self._canvas = Canvas(self._picture, size, self._themes.theme, ratio)
            self.setAccessibleDescription(canvas.frame.scene.summary)
        return canvas

    def _memory_ranks(self, canvas: Canvas) -> list[int]:
        ranks = [-1] * len(canvas.places)
        for spot in (self._focused, self._hovered):
            if spot is not None:
                ranks[spot.chart] = spot.rank
        return ranks

    def _paint_marks(self, painter: QPainter, canvas: Canvas) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = canvas.theme
        if self._focused is not None and self.hasFocus():
            paint_spot(painter, canvas.places, self._camera, self._focused, theme, strong=True)
        if self._hovered is not None:
            paint_spot(painter, canvas.places, self._camera, self._hovered, theme, strong=False)
        if self._band is not None:
            paint_band(painter, self._band, theme)
        elif self._hovered is not None and not self._dragging:
            cells = canvas.places[self._hovered.chart].cells
            lines = card_lines(cells, self._hovered.segment, self._hovered.rank)
            bounds = QRectF(0, 0, canvas.size.width(), canvas.size.height())
            paint_card(painter, lines, self._pointer.x(), self._pointer.y(), bounds, theme)

    # ---- size and mouse --------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        """Simulate what was not needed while hidden."""
        super().showEvent(event)
        made = None if self._picture is None else self._picture.planned.spec
        if self._spec is not None and made is not self._spec:
            self._background.start(partial(_simulated, self._spec))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the offers in the middle."""
        super().resizeEvent(event)
        self._empty.setGeometry(self.rect().adjusted(20, 20, -20, -20))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom in time at the pointer; with Ctrl zoom the ranks; with Shift or sideways pan."""
        position = event.position() - QPointF(MARGIN, MARGIN)
        place = self._place_at(position)
        delta = event.angleDelta()
        steps = (delta.y() or delta.x()) / 120.0
        event.accept()
        if place is None or not steps:
            return
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            at = min(max((position.y() - place.area.y) / place.area.h, 0.0), 1.0)
            self._camera.zoom_rows(WHEEL_ZOOM**steps, at)
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier or not delta.y():
            self._camera.pan(-steps * KEY_PAN * self._camera.span_s, 0.0)
        else:
            self._camera.zoom(WHEEL_ZOOM**steps, place.time_of(position.x(), self._camera))
        self._moved()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click, a drag or, with Shift, a selection."""
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._pressed = event.position() - QPointF(MARGIN, MARGIN)
            self._dragging = False
            if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self._band = QRectF(self._pressed, self._pressed)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan or widen the selection while dragging; else show what is under the pointer."""
        position = event.position() - QPointF(MARGIN, MARGIN)
        self._pointer = position
        if self._pressed is None:
            self._hovered = spot_at(self.places, self._camera, position)
            self.update()
        elif self._band is not None:
            self._band = QRectF(self._pressed, position).normalized()
            self.update()
        else:
            self._drag_to(position)

    def _drag_to(self, position: QPointF) -> None:
        assert self._pressed is not None
        moved = position - self._pressed
        if not self._dragging and moved.manhattanLength() < QApplication.startDragDistance():
            return
        self._dragging = True
        self.setCursor(Qt.CursorShape.ClosedHandCursor)
        place = self._place_at(self._pressed) or (self.places[0] if self.places else None)
        self._pressed = position
        if place is not None:
            shift = -moved.x() / place.area.w * self._camera.span_s
            self._camera.pan(shift, -moved.y() / place.area.h)
            self._moved()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Follow what was clicked, or zoom to what was selected."""
        position = self._pointer = event.position() - QPointF(MARGIN, MARGIN)
        clicked = self._pressed is not None and not self._dragging and self._band is None
        band, self._band, self._pressed, self._dragging = self._band, None, None, False
        self.unsetCursor()
        if band is not None:
            self._zoom_to(band)
        elif clicked and event.button() == Qt.MouseButton.LeftButton:
            self._click(position)
        self._hovered = spot_at(self.places, self._camera, position)
        self.update()

    def leaveEvent(self, _event: QEvent) -> None:
        """Take the card away."""
        self._hovered = None
        self.update()

    def _place_at(self, position: QPointF) -> ChartPlace | None:
        for place in self.places:
            if place.area.y - 30 <= position.y() <= place.memory.bottom:
                return place
        return None

    def _zoom_to(self, band: QRectF) -> None:
        place = self._place_at(band.center())
        if place is None or band.width() < 4:
            return
        zoom_to(place, self._camera, band)

    def _click(self, position: QPointF) -> None:
        spot = spot_at(self.places, self._camera, position)
        if spot is None or not spot.is_cell(self.places):
            self._followed = self._focused = None
            return
        place = self.places[spot.chart]
        row = place.row(spot.rank, self._camera)
        lower = position.y() > row.y + row.h / 2
        self._follow(spot, lower)

    def _follow(self, spot: Spot, lower_half: bool) -> None:
        cells = self.places[spot.chart].cells
        followed = followed_at(cells.schedule, int(cells.row[spot.segment]), lower_half)
        same = self._followed == (spot.chart, followed)
        self._followed = None if same else (spot.chart, followed)
        self._focused = spot
        self._describe(spot)

    def _describe(self, spot: Spot) -> None:
        cells = self.places[spot.chart].cells
        told = [*card_lines(cells, spot.segment, spot.rank)]
        if self._followed is not None:
            name = name_of(cells.schedule, self._followed[1])
            told.append(tr("following microbatch {name}", name=name))
        self.setAccessibleDescription(". ".join(told))

    # ---- keyboard --------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move with W A S D and arrows, fit with F or 0, step through operations with full stop and comma."""
        key = Qt.Key(event.key())
        usable = self.places and not event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if usable and move_by_key(self._camera, key):
            self._moved()
        elif not (usable and self._mark_by_key(key)):
            super().keyPressEvent(event)

    def _mark_by_key(self, key: Qt.Key) -> bool:
        if key == Qt.Key.Key_F:
            self._fit_followed()
        elif key in (Qt.Key.Key_Period, Qt.Key.Key_Comma):
            self._step(1 if key == Qt.Key.Key_Period else -1)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self._focused is not None:
            self._follow(self._focused, lower_half=False)
        elif key == Qt.Key.Key_Escape and (self._followed or self._focused):
            self._clear_marks()
        else:
            return False
        self.update()
        return True

    def _fit_followed(self) -> None:
        """Show the microbatch that is followed; if it is shown already, everything."""
        if self._followed is None:
            self.fit()
            return
        start, end = span_of(self.places[self._followed[0]].cells, self._followed[1])
        margin = FOLLOW_MARGIN * (end - start)
        before = (self._camera.start_s, self._camera.end_s)
        self._camera.show(start - margin, end + margin)
        if before == (self._camera.start_s, self._camera.end_s):
            self._camera.fit()
        self._moved()

    def _step(self, direction: int) -> None:
        spot = step_from(self.places, self._focused, self._camera, direction)
        cells = self.places[spot.chart].cells
        self._focused = spot
        self._camera.reveal(float(cells.start[spot.segment]), float(cells.end[spot.segment]))
        self._camera.reveal_rows(spot.rank / cells.pp, (spot.rank + 1) / cells.pp)
        self._describe(spot)
        self._moved()


def _simulated(spec: ScheduleSpec, _ticket: Ticket) -> SchedulePicture:
    """Make a picture in the worker thread."""
    return make_picture(spec)
