"""Paints the schedule view: what stays still from a picture, cells from a look-up of every pixel."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QPainter, QPixmap

from app.i18n import tr
from app.plots.gantt.axes import add_axes, add_memory, fullest
from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import Floats
from app.plots.gantt.follow import Followed, add_followed
from app.plots.gantt.frame import ChartPlace, Frame, make_frame
from app.plots.gantt.labels import MOST_MOVING, MOST_STILL, paint_labels
from app.plots.gantt.lookup import LookedUp, look_up
from app.plots.gantt.overlay import paint_idle_patterns, qrect
from app.plots.gantt.picture import SchedulePicture
from app.plots.gantt.raster import Tables, make_tables
from app.plots.paint import paint
from app.plots.scene import SceneBuilder
from app.plots.text import TINY, font, width_of
from app.theme import Role, Theme

VEIL = 0.72
HINT = 16.0


class Canvas:
    """One picture at one size in one theme, seen through a camera."""

    def __init__(self, picture: SchedulePicture, size: QSizeF, theme: Theme, ratio: float) -> None:
        self.picture = picture
        self.theme = theme
        self.size = size
        self.ratio = ratio
        self.frame: Frame = make_frame(picture.planned, picture.charts, size.width(), size.height())
        self._tables: list[Tables] = [make_tables(cells, theme) for cells in picture.charts]
        self._still: QPixmap | None = None
        self._view: tuple[float, ...] = ()
        self._charts: dict[int, LookedUp] = {}

    @property
    def places(self) -> tuple[ChartPlace, ...]:
        """The places of the charts."""
        return self.frame.charts

    def paint(
        self,
        painter: QPainter,
        camera: TimeCamera,
        followed: tuple[int, Followed] | None,
        ranks: list[int],
        moving: bool,
    ) -> None:
        """Paint everything but what goes with the pointer.

        Args:
            painter: on the widget.
            camera: what is seen.
            followed: the chart and the microbatch that stand out.
            ranks: for each chart the rank whose memory is drawn; -1: the fullest.
            moving: leave out texts where there are many; they come when the view rests.
        """
        painter.drawPixmap(QPointF(0, 0), self._still_picture())
        for number, place in enumerate(self.places):
            chart = self._chart(number, place, camera)
            painter.drawImage(QPointF(place.area.x, place.area.y), chart.picture)
            painter.save()
            painter.setClipRect(qrect(place.area))
            paint_idle_patterns(painter, place, camera, self.theme)
            most = MOST_MOVING if moving else MOST_STILL
            paint_labels(painter, place, camera, self.theme, self.ratio, most)
            if followed is not None and followed[0] == number:
                self._paint_followed(painter, place, camera, followed[1])
            painter.restore()
            rank = fullest(place.cells) if ranks[number] < 0 else ranks[number]
            self._paint_axes(painter, place, camera, rank, chart.band)

    def _still_picture(self) -> QPixmap:
        if self._still is None:
            width, height = self.size.width(), self.size.height()
            self._still = QPixmap(round(width * self.ratio), round(height * self.ratio))
            self._still.setDevicePixelRatio(self.ratio)
            self._still.fill(self.theme.color(Role.PANEL))
            painter = QPainter(self._still)
            paint(self.frame.scene, painter, self.theme, static=True)
            painter.end()
        return self._still

    def _chart(self, number: int, place: ChartPlace, camera: TimeCamera) -> LookedUp:
        view = (camera.start_s, camera.end_s, camera.rows, camera.top)
        if self._view != view:
            self._view = view
            self._charts.clear()
        if number not in self._charts:
            self._charts[number] = look_up(place, self._tables[number], camera, self.ratio)
        return self._charts[number]

    def _paint_followed(
        self, painter: QPainter, place: ChartPlace, camera: TimeCamera, followed: Followed
    ) -> None:
        veil = self.theme.color(Role.PANEL)
        veil.setAlphaF(VEIL)
        painter.fillRect(qrect(place.area), veil)
        builder = SceneBuilder()
        add_followed(builder, place, camera, followed, self.theme)
        paint(builder.scene(0, 0, "", ""), painter, self.theme, static=True)

    def _paint_axes(
        self,
        painter: QPainter,
        place: ChartPlace,
        camera: TimeCamera,
        rank: int,
        band: tuple[Floats, Floats],
    ) -> None:
        builder = SceneBuilder()
        add_axes(builder, place, camera)
        add_memory(builder, place, camera, rank, band)
        paint(builder.scene(0, 0, "", ""), painter, self.theme, static=True)


def paint_hint(painter: QPainter, canvas: Canvas) -> None:
    """Say how to move, where there is room for it."""
    text = tr(
        "wheel: zoom · Ctrl+wheel: zoom ranks · drag: pan · Shift+drag: zoom to selection · click: follow a microbatch · F: fit"
    )
    room = canvas.size.height() - canvas.frame.bottom
    if room >= HINT and width_of(text, TINY) <= canvas.size.width():
        painter.setFont(font(TINY, False))
        painter.setPen(canvas.theme.color(Role.TEXT_MUTED))
        painter.drawText(QPointF(0, canvas.size.height()), text)


def paint_note(painter: QPainter, area: QRectF, text: str, theme: Theme) -> None:
    """Say in the middle why nothing is drawn."""
    painter.fillRect(area, theme.color(Role.PANEL))
    painter.setPen(theme.color(Role.TEXT_MUTED))
    painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, text)
