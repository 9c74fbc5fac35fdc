"""Renders a view of a design to a file, with or without a display; what ``meshwright render`` calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QByteArray, QCoreApplication, QPoint, QSizeF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication

from app.display import has_display
from app.figures.page import make_page
from app.figures.search import SEARCH_VIEWS, make_search_page
from app.figures.write import (
    FORMATS,
    LARGEST_PIXELS,
    RenderError,
    blank_image,
    pdf_bytes,
    png_bytes,
    save,
    svg_bytes,
    write_figure,
)
from app.i18n import LANGUAGES, language, set_language
from app.plots import views
from app.theme import Theme, theme_named
from model_core import evaluate
from model_core.spec import Design

if TYPE_CHECKING:
    from app.windows.main_window import MainWindow

WINDOW: Final = "window"
_SHOWN: Final = (*views.VIEWS, views.SCHEDULE)
VIEWS: Final = (*(view.id for view in _SHOWN), *SEARCH_VIEWS, WINDOW)
SMALLEST_SIDE: Final = 240
LARGEST_SIDE: Final = 16_384
SETTLE_ROUNDS: Final = 5

__all__ = ["VIEWS", "RenderError", "render_view"]


def render_view(
    design: Design,
    view: str,
    out: Path,
    theme: str = "light",
    size: tuple[int, int] = (1600, 900),
    scale: float = 1.0,
    lang: str = "en",
) -> str:
    """Draw a view of a design into a PNG, SVG or PDF file.

    Args:
        design: what to show.
        view: one of `VIEWS`.
        out: the file; its suffix chooses the format.
        theme: ``"light"``, ``"dark"`` or ``"print"``.
        size: width and height in pixels of the screen.
        scale: device pixels per pixel; a vector file is enlarged by it.
        lang: language of the texts.

    Returns:
        A remark about the file, mostly empty.

    Raises:
        RenderError: something asked for is not possible; the message says what is.
    """
    chosen = _checked(view, out, theme, size, scale, lang)
    application()
    with _language(lang):
        if view == WINDOW:
            _render_window(design, out, chosen, size, scale)
        elif view == views.SCHEDULE.id:
            return _render_schedule(design, out, chosen, size, scale)
        elif view in SEARCH_VIEWS:
            write_figure(make_search_page(view, design, QSizeF(*size)), out, chosen, scale)
        else:
            page = make_page(views.view_named(view), evaluate(design), QSizeF(*size))
            write_figure(page, out, chosen, scale)
    return ""


def _render_schedule(design: Design, out: Path, theme: Theme, size: tuple[int, int], scale: float) -> str:
    from app.figures.schedule import image_note, make_schedule_figure, write_schedule

    figure = make_schedule_figure(design, evaluate(design), QSizeF(*size))
    write_schedule(figure, out, theme, scale)
    return image_note(figure, out)


def application() -> QCoreApplication:
    """Return the application object, made for work without a display where there is none."""
    found = QApplication.instance()
    if found is not None:
        return found
    if not has_display():
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    return QApplication(["meshwright"])


def _checked(view: str, out: Path, theme: str, size: tuple[int, int], scale: float, lang: str) -> Theme:
    if view not in VIEWS:
        raise RenderError(f"there is no view {view!r}; choose from {', '.join(VIEWS)}")
    if out.suffix.lower() not in FORMATS:
        raise RenderError(f"{out.name}: a figure is a file that ends in {', '.join(FORMATS)}")
    if lang not in LANGUAGES:
        raise RenderError(f"there is no language {lang!r}; choose from {', '.join(LANGUAGES)}")
    if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in size):
        raise RenderError(
            f"{size[0]} x {size[1]} is not a size: each side has {SMALLEST_SIDE} to {LARGEST_SIDE} pixels"
        )
    if not 0.1 <= scale <= 16 or size[0] * size[1] * scale * scale > LARGEST_PIXELS:
        raise RenderError(
            f"scale {scale:g} is not possible: it is 0.1 to 16, and the picture has at most "
            f"{LARGEST_PIXELS:,} pixels"
        )
    try:
        return theme_named(theme)
    except KeyError as error:
        raise RenderError(str(error.args[0])) from None


@contextmanager
def _language(name: str) -> Iterator[None]:
    before = language()
    set_language(name)
    try:
        yield
    finally:
        set_language(before)


# ---- the window ----------------------------------------------------------------------------


def _render_window(design: Design, out: Path, theme: Theme, size: tuple[int, int], scale: float) -> None:
    image = _grabbed(design, theme, size, scale)
    title = f"Meshwright: {design.name}"
    width, height = size

    def draw(painter: QPainter) -> None:
        painter.drawImage(QPoint(0, 0), image)

    made: dict[str, Callable[[], QByteArray]] = {
        ".png": lambda: png_bytes(image, title, ""),
        ".svg": lambda: svg_bytes(width, height, scale, title, "", draw),
        ".pdf": lambda: pdf_bytes(width, height, scale, title, draw),
    }
    save(made[out.suffix.lower()](), out)


def _grabbed(design: Design, theme: Theme, size: tuple[int, int], scale: float) -> QImage:
    """Build the main window out of sight, wait until it is complete, and paint it."""
    from app.document import DesignDocument
    from app.theme.manager import ThemeManager
    from app.windows.main_window import MainWindow

    app = application()
    assert isinstance(app, QApplication)
    themes = ThemeManager(app, "dark" if theme.dark else "light")
    document = DesignDocument(design)
    window = MainWindow(document, themes)
    try:
        window.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        window.resize(*size)
        window.show()
        document.evaluate_now()
        return _painted(window, size, scale)
    finally:
        window.leave()
        document.close()
        window.deleteLater()
        themes.deleteLater()
        document.deleteLater()


def _painted(window: MainWindow, size: tuple[int, int], scale: float) -> QImage:
    for _ in range(SETTLE_ROUNDS):
        QApplication.processEvents()
    image = blank_image(*size, scale)
    painter = QPainter(image)
    window.render(painter, QPoint(0, 0))
    painter.end()
    return image
