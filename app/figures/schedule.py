"""Figures of pipeline schedules: shapes grouped by rank up to a number of cells, beyond it an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from PySide6.QtCore import QByteArray, QMimeData, QPointF, QRectF, QSizeF
from PySide6.QtGui import QGuiApplication, QImage, QPainter

from app.figures.page import FOOTER, LARGEST, MARGIN, Page, footer_text, paint_page
from app.figures.write import FORMATS, RenderError, blank_image, pdf_bytes, png_bytes, save, svg_bytes
from app.i18n import tr
from app.plots.gantt.axes import add_axes, add_memory, fullest
from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.frame import ChartPlace, make_frame
from app.plots.gantt.lookup import look_up
from app.plots.gantt.picture import SchedulePicture, make_picture
from app.plots.gantt.raster import make_tables
from app.plots.gantt.vector import MOST_CELLS, rank_layers, visible_operations
from app.plots.paint import paint
from app.plots.scene import Rect, Scene, SceneBuilder
from app.theme import LIGHT, Theme
from model_core.results import Evaluation
from model_core.spec import Design

VECTOR: Final = (".svg", ".pdf")
IMAGE_RATIO: Final = 2.0


class Layer(NamedTuple):
    """A part of a figure that lies over its page: a group of an SVG, cut to the chart's area."""

    name: str
    clip: Rect
    draw: Callable[[QPainter], None]


@dataclass(frozen=True, slots=True)
class ScheduleFigure:
    """A page with all but the cells, and what the cells are drawn from."""

    page: Page
    places: tuple[ChartPlace, ...]
    camera: TimeCamera

    @property
    def cells(self) -> int:
        """Operations in view."""
        return sum(visible_operations(place, self.camera) for place in self.places)

    @property
    def as_image(self) -> bool:
        """Whether there are too many cells for shapes."""
        return self.cells > MOST_CELLS

    @property
    def scale(self) -> float:
        """By how much the page shrinks its drawing."""
        room_x = self.page.width - 2 * MARGIN
        room_y = self.page.height - 2 * MARGIN - FOOTER
        return min(room_x / self.page.scene.width, room_y / self.page.scene.height, LARGEST)

    @property
    def left(self) -> float:
        """Where the drawing begins on the page."""
        room = self.page.width - 2 * MARGIN
        return MARGIN + (room - self.page.scene.width * self.scale) / 2


def make_schedule_figure(
    design: Design, evaluation: Evaluation, size: QSizeF, camera: TimeCamera | None = None
) -> ScheduleFigure:
    """Draw the schedule of a design for a page.

    Args:
        design: its plan holds the schedule.
        evaluation: for the line below the drawing.
        size: of the page.
        camera: what is in view; by default everything.

    Raises:
        RenderError: the plan has no schedule, or one that cannot be run.
    """
    spec = design.plan.schedule
    if spec is None:
        raise RenderError(
            "the design has no pipeline schedule; set plan.schedule.kind, for instance to dualpipe"
        )
    picture = make_picture(spec)
    if not picture.charts:
        reason = "; ".join(f"{d.message}. {d.hint}" for d in picture.planned.diagnostics)
        raise RenderError(reason or "all operations of the schedule take no time")
    return figure_of(picture, evaluation, size, camera)


def figure_of(
    picture: SchedulePicture, evaluation: Evaluation, size: QSizeF, camera: TimeCamera | None = None
) -> ScheduleFigure:
    """Draw schedules that have been run already."""
    whole = max(cells.makespan_s for cells in picture.charts)
    seen = replace(camera) if camera is not None else TimeCamera(whole, 0.0, whole)
    room = QSizeF(size.width() - 2 * MARGIN, size.height() - 2 * MARGIN - FOOTER)
    frame = make_frame(picture.planned, picture.charts, room.width(), room.height())
    builder = SceneBuilder(list(frame.scene.items))
    for place in frame.charts:
        add_axes(builder, place, seen)
        band = look_up(place, make_tables(place.cells, LIGHT), seen, 1.0).band
        add_memory(builder, place, seen, fullest(place.cells), band)
    scene = builder.scene(frame.scene.width, frame.scene.height, frame.scene.title, frame.scene.summary)
    page = Page(scene, footer_text(evaluation), size.width(), size.height())
    return ScheduleFigure(page, frame.charts, seen)


def write_schedule(figure: ScheduleFigure, path: Path, theme: Theme, scale: float = 1.0) -> None:
    """Write a figure to a file; its suffix chooses the format.

    Raises:
        RenderError: the suffix is unknown, the picture is too large, or the file cannot be written.
    """
    makers = {".png": png_of, ".svg": svg_of, ".pdf": pdf_of}
    maker = makers.get(path.suffix.lower())
    if maker is None:
        raise RenderError(f"{path.name}: a figure is a file that ends in {', '.join(FORMATS)}")
    save(maker(figure, theme, scale), path)


def image_note(figure: ScheduleFigure, path: Path) -> str:
    """Say that cells are an image in a vector file, where they are."""
    if not figure.as_image or path.suffix.lower() not in VECTOR:
        return ""
    return tr(
        "{count} cells are drawn as an image; up to {limit} are shapes: zoom in for fewer, or use PNG",
        count=f"{figure.cells:,}",
        limit=f"{MOST_CELLS:,}",
    )


def copy_schedule(figure: ScheduleFigure, theme: Theme) -> None:
    """Put a figure on the clipboard as SVG and as an image of double resolution."""
    data = QMimeData()
    data.setData("image/svg+xml", svg_of(figure, theme))
    image = blank_image(figure.page.width, figure.page.height, 2.0)
    _paint_on(image, figure, theme, 2.0)
    data.setImageData(image)
    QGuiApplication.clipboard().setMimeData(data)


def png_of(figure: ScheduleFigure, theme: Theme, scale: float = 1.0) -> QByteArray:
    """Return a figure as a PNG file."""
    image = blank_image(figure.page.width, figure.page.height, scale)
    _paint_on(image, figure, theme, scale)
    return png_bytes(image, figure.page.title, figure.page.footer)


def pdf_of(figure: ScheduleFigure, theme: Theme, scale: float = 1.0) -> QByteArray:
    """Return a figure as a PDF file."""
    page = figure.page

    def draw(painter: QPainter) -> None:
        _paint(painter, figure, theme, IMAGE_RATIO)

    return pdf_bytes(page.width, page.height, scale, page.title, draw)


def svg_of(figure: ScheduleFigure, theme: Theme, scale: float = 1.0) -> QByteArray:
    """Return a figure as an SVG file whose ranks are groups, each cut to the chart."""
    page = figure.page
    description = f"{page.scene.summary}. {page.footer}"
    whole = _svg(
        page.width, page.height, scale, page.title, description, lambda p: paint_page(page, p, theme)
    )
    parts = [_group(figure, layer) for layer in layers(figure, theme, IMAGE_RATIO)]
    # Clip paths stand among the definitions, as readers that do not know them draw them elsewhere.
    head, defined, rest = whole.partition("</defs>")
    body, _, tail = rest.rpartition("</svg>")
    return QByteArray("".join([head, *_clips(figure), defined, body, *parts, "</svg>", tail]).encode())


def layers(figure: ScheduleFigure, theme: Theme, ratio: float) -> Iterator[Layer]:
    """Yield the cells: a layer for each rank, or an image of a chart that has too many."""
    for number, place in enumerate(figure.places):
        if figure.as_image:
            yield Layer(f"chart-{number}-image", place.area, _image_drawer(place, figure, theme, ratio))
            continue
        for rank, items, _ in rank_layers(place, figure.camera, theme):
            scene = Scene(items, (), 0.0, 0.0, "")
            yield Layer(f"chart-{number}-rank-{rank}", place.area, _scene_drawer(scene, theme))


def _scene_drawer(scene: Scene, theme: Theme) -> Callable[[QPainter], None]:
    return lambda painter: paint(scene, painter, theme)


def _image_drawer(
    place: ChartPlace, figure: ScheduleFigure, theme: Theme, ratio: float
) -> Callable[[QPainter], None]:
    def draw(painter: QPainter) -> None:
        picture = look_up(place, make_tables(place.cells, theme), figure.camera, ratio).picture
        painter.drawImage(QRectF(*place.area), picture)

    return draw


def _paint_on(image: QImage, figure: ScheduleFigure, theme: Theme, ratio: float) -> None:
    painter = QPainter(image)
    _paint(painter, figure, theme, ratio)
    painter.end()


def _paint(painter: QPainter, figure: ScheduleFigure, theme: Theme, ratio: float) -> None:
    paint_page(figure.page, painter, theme)
    painter.translate(QPointF(figure.left, MARGIN))
    painter.scale(figure.scale, figure.scale)
    for layer in layers(figure, theme, ratio):
        painter.save()
        painter.setClipRect(QRectF(*layer.clip))
        layer.draw(painter)
        painter.restore()


def _svg(
    width: float, height: float, scale: float, title: str, description: str, draw: Callable[[QPainter], None]
) -> str:
    return bytes(svg_bytes(width, height, scale, title, description, draw).data()).decode()


def _clips(figure: ScheduleFigure) -> Iterator[str]:
    for number, place in enumerate(figure.places):
        x, y, width, height = place.area
        rect = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
        yield f'<clipPath id="chart-{number}">{rect}</clipPath>\n'


def _group(figure: ScheduleFigure, layer: Layer) -> str:
    """Return a layer as a group. Qt's generator knows no groups: each is drawn alone and its content taken."""
    drawn = _svg(figure.page.width, figure.page.height, 1.0, "", "", layer.draw)
    content = drawn.partition("</defs>")[2].rpartition("</svg>")[0]
    chart = "-".join(layer.name.split("-")[:2])
    place = f"translate({figure.left:g},{MARGIN:g}) scale({figure.scale:g})"
    return f'<g id="{layer.name}" transform="{place}"><g clip-path="url(#{chart})">{content}</g></g>\n'
