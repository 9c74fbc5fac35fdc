"""Writes pages as PNG, SVG and PDF, and puts them on the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QIODevice,
    QMarginsF,
    QMimeData,
    QRectF,
    QSaveFile,
    QSize,
    QSizeF,
)
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator

from app.figures.page import Page, paint_page
from app.plots.text import family
from app.theme import Theme

DPI: Final = 96
POINTS_PER_PIXEL: Final = 72 / DPI
LARGEST_PIXELS: Final = 120_000_000
PROGRAM: Final = "Meshwright"
FALLBACK_FAMILIES: Final = "Noto Sans CJK SC, sans-serif"


class RenderError(ValueError):
    """A figure cannot be made as asked for; the message says why and what can be."""


def write_figure(page: Page, path: Path, theme: Theme, scale: float = 1.0) -> None:
    """Write a page to a file; its suffix chooses the format. An existing file is replaced only by a whole one.

    Raises:
        RenderError: the suffix is not one of `FORMATS`, the picture is too large, or the file cannot be written.
    """
    writer = FORMATS.get(path.suffix.lower())
    if writer is None:
        raise RenderError(f"{path.name}: a figure is a file that ends in {', '.join(FORMATS)}")
    save(writer(page, theme, scale), path)


def save(data: QByteArray, path: Path) -> None:
    """Write bytes to a file in one go.

    Raises:
        RenderError: the file cannot be written.
    """
    file = QSaveFile(str(path))
    if not file.open(QIODevice.OpenModeFlag.WriteOnly):
        raise RenderError(f"cannot write {path}: {file.errorString()}")
    file.write(data)
    if not file.commit():
        raise RenderError(f"cannot write {path}: {file.errorString()}")


def copy_figure(page: Page, theme: Theme) -> None:
    """Put a page on the clipboard as SVG and as an image of double resolution."""
    data = QMimeData()
    data.setData("image/svg+xml", svg_of(page, theme))
    data.setImageData(image_of(page, theme, 2.0))
    QGuiApplication.clipboard().setMimeData(data)


def image_of(page: Page, theme: Theme, scale: float = 1.0) -> QImage:
    """Paint a page as an image; ``scale`` is its device pixel ratio.

    Raises:
        RenderError: the image would be too large.
    """
    image = blank_image(page.width, page.height, scale)
    painter = QPainter(image)
    paint_page(page, painter, theme)
    painter.end()
    return image


def blank_image(width: float, height: float, scale: float) -> QImage:
    """Make an image of a page's size.

    Raises:
        RenderError: it would be too large.
    """
    columns, rows = round(width * scale), round(height * scale)
    if columns < 1 or rows < 1 or columns * rows > LARGEST_PIXELS:
        raise RenderError(
            f"a picture of {columns} x {rows} pixels is not possible: between 1 and {LARGEST_PIXELS:,} pixels are"
        )
    image = QImage(columns, rows, QImage.Format.Format_ARGB32_Premultiplied)
    if image.isNull():
        raise RenderError(f"there is no memory for a picture of {columns} x {rows} pixels")
    image.setDevicePixelRatio(scale)
    return image


def png_of(page: Page, theme: Theme, scale: float = 1.0) -> QByteArray:
    """Return a page as a PNG file."""
    return png_bytes(image_of(page, theme, scale), page.title, page.footer)


def png_bytes(image: QImage, title: str, description: str) -> QByteArray:
    """Return an image as a PNG file that carries its title."""
    image.setText("Title", title)
    image.setText("Description", description)
    image.setText("Software", PROGRAM)
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return data


def svg_of(page: Page, theme: Theme, scale: float = 1.0) -> QByteArray:
    """Return a page as an SVG file with its text as text."""
    return svg_bytes(
        page.width, page.height, scale, page.title, _described(page), lambda p: paint_page(page, p, theme)
    )


def svg_bytes(
    width: float,
    height: float,
    scale: float,
    title: str,
    description: str,
    draw: Callable[[QPainter], None],
) -> QByteArray:
    """Return what a function paints as an SVG file."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    # The default version, Tiny 1.2, drops clip paths.
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)
    generator.setOutputDevice(buffer)
    generator.setResolution(DPI)
    generator.setSize(QSize(round(width * scale), round(height * scale)))
    generator.setViewBox(QRectF(0, 0, width, height))
    generator.setTitle(title)
    generator.setDescription(description)
    painter = QPainter(generator)
    draw(painter)
    painter.end()
    return data.replace(_family(family()), _family(f"{family()}, {FALLBACK_FAMILIES}"))


def _family(names: str) -> QByteArray:
    return QByteArray(f'font-family="{names}"'.encode())


def pdf_of(page: Page, theme: Theme, scale: float = 1.0) -> QByteArray:
    """Return a page as a PDF file whose paper has the size of the figure."""
    return pdf_bytes(page.width, page.height, scale, page.title, lambda p: paint_page(page, p, theme))


def pdf_bytes(
    width: float, height: float, scale: float, title: str, draw: Callable[[QPainter], None]
) -> QByteArray:
    """Return what a function paints as a PDF file."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(DPI)
    points = QSizeF(width, height) * (scale * POINTS_PER_PIXEL)
    writer.setPageSize(
        QPageSize(points, QPageSize.Unit.Point, "figure", QPageSize.SizeMatchPolicy.ExactMatch)
    )
    writer.setPageMargins(QMarginsF(0, 0, 0, 0))
    writer.setTitle(title)
    writer.setCreator(PROGRAM)
    painter = QPainter(writer)
    painter.scale(scale, scale)
    draw(painter)
    painter.end()
    return data


def _described(page: Page) -> str:
    return f"{page.scene.summary}. {page.footer}"


FORMATS: Final[dict[str, Callable[[Page, Theme, float], QByteArray]]] = {
    ".png": png_of,
    ".svg": svg_of,
    ".pdf": pdf_of,
}
