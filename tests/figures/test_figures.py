"""Figures as files: formats, sizes, text as text, and errors that say what is possible."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PySide6.QtCore import QSizeF
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtSvg import QSvgRenderer

from app.figures.page import MARGIN, Page, make_page
from app.figures.render import RenderError, render_view
from app.figures.write import copy_figure, image_of, svg_of, write_figure
from app.i18n import language
from app.plots import views
from app.plots.views import view_named
from app.theme import DARK, LIGHT, PRINT, Role, Theme
from model_core import Design, Evaluation

SVG = "{http://www.w3.org/2000/svg}"
# A schedule is only drawn for a design that has one: see test_schedule_figure.py.
DRAWINGS = tuple(view.id for view in views.VIEWS)
SEARCHES = ("frontier", "layouts", "context")
# The others of the paper take seconds; all of them are drawn by the same two functions.
PAPER = ("paper:fig3", "paper:fig8", "paper:table2")


@pytest.fixture
def page(evaluation: Evaluation) -> Page:
    return make_page(view_named("layout"), evaluation, QSizeF(1200, 800))


def painted_share(image: QImage, theme: Theme) -> float:
    """Share of sampled pixels that are not background."""
    background = theme.color(Role.PANEL).rgb()
    points = [(x, y) for x in range(0, image.width(), 5) for y in range(0, image.height(), 5)]
    return sum(image.pixel(x, y) != background for x, y in points) / len(points)


@pytest.mark.parametrize("theme", [LIGHT, DARK, PRINT], ids=lambda theme: str(theme.name))
@pytest.mark.parametrize("view", [*DRAWINGS, *SEARCHES, *PAPER])
def test_that_a_png_has_its_size_and_a_drawing(
    design: Design, tmp_path: Path, view: str, theme: Theme
) -> None:
    out = tmp_path / "figure.png"
    render_view(design, view, out, theme=theme.name, size=(900, 600), scale=2.0)
    image = QImage(str(out))
    assert (image.width(), image.height()) == (1800, 1200)
    assert 0.03 < painted_share(image, theme) < 0.9
    assert image.pixel(2, 2) == theme.color(Role.PANEL).rgb()
    assert image.text("Title")


@pytest.mark.parametrize("view", [*DRAWINGS, *SEARCHES])
def test_that_an_svg_has_text_title_and_description(design: Design, tmp_path: Path, view: str) -> None:
    out = tmp_path / "figure.svg"
    render_view(design, view, out, size=(1200, 800))
    root = ET.parse(out).getroot()
    assert root.get("version") == "1.1"
    assert root.get("viewBox") == "0 0 1200 800"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert title.text
    assert description is not None
    assert design.model.name in (description.text or "")
    texts = "".join("".join(element.itertext()) for element in root.iter(f"{SVG}text"))
    assert design.name in texts
    assert "± 15% modelled" in texts
    assert "<image" not in out.read_text(encoding="utf-8")


def test_that_every_text_of_a_scene_is_text_in_the_svg(page: Page) -> None:
    root = ET.fromstring(bytes(svg_of(page, LIGHT).data()))
    written = "".join("".join("".join(e.itertext()).split()) for e in root.iter(f"{SVG}text"))
    for text in page.scene.texts():
        assert "".join(text.plain.split()) in written


def test_that_an_svg_reads_back_as_the_same_picture(page: Page) -> None:
    direct = image_of(page, LIGHT)
    renderer = QSvgRenderer(svg_of(page, LIGHT))
    assert renderer.isValid()
    assert (renderer.viewBox().width(), renderer.viewBox().height()) == (direct.width(), direct.height())


def test_that_a_pdf_has_the_page_size_of_the_figure(design: Design, tmp_path: Path) -> None:
    out = tmp_path / "figure.pdf"
    render_view(design, "memory", out, size=(960, 480))
    data = out.read_bytes()
    assert data.startswith(b"%PDF-")
    assert b"/MediaBox [0 0 720" in data.replace(b".000000", b"")


def test_that_the_footer_names_what_the_figure_shows(design: Design, evaluation: Evaluation) -> None:
    footer = make_page(view_named("time"), evaluation, QSizeF(1200, 800)).footer
    for part in (design.name, design.model.name, design.cluster.name, "batch 64", "int8", "modelled"):
        assert part in footer


@pytest.mark.parametrize("size", [(300, 240), (640, 2000), (2600, 400)])
def test_that_a_drawing_stays_on_its_page(evaluation: Evaluation, size: tuple[int, int]) -> None:
    for view in DRAWINGS:
        page = make_page(view_named(view), evaluation, QSizeF(*size))
        image = image_of(page, LIGHT)
        background = LIGHT.color(Role.PANEL).rgb()
        edge = round(MARGIN) - 4
        columns = (*range(edge), *range(image.width() - edge, image.width()))
        assert all(image.pixel(x, y) == background for x in columns for y in range(0, image.height(), 3))


def test_that_the_language_of_a_figure_is_its_own(design: Design, tmp_path: Path) -> None:
    out = tmp_path / "figure.svg"
    render_view(design, "memory", out, lang="zh_CN")
    assert "单芯片内存" in out.read_text(encoding="utf-8")
    assert language() == "en"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"view": "sideways"}, "layout, memory, time"),
        ({"out": "figure.bmp"}, ".png, .svg, .pdf"),
        ({"out": "figure"}, ".png, .svg, .pdf"),
        ({"size": (0, 600)}, "240 to 16384"),
        ({"size": (100_000, 600)}, "240 to 16384"),
        ({"scale": 0.0}, "0.1 to 16"),
        ({"scale": float("nan")}, "0.1 to 16"),
        ({"size": (16_000, 16_000), "scale": 1.0}, "120,000,000"),
        ({"theme": "pink"}, "light, dark, print"),
        ({"lang": "fr"}, "en, zh_CN"),
        ({"out": "missing/folder/figure.png"}, "cannot write"),
    ],
)
def test_that_what_is_not_possible_is_refused_in_words(
    design: Design, tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    options: dict[str, object] = {"view": "memory", "out": "figure.png"} | changes
    options["out"] = tmp_path / str(options["out"])
    with pytest.raises(RenderError, match=words.replace(".", r"\.")):
        render_view(design, **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_that_a_figure_that_fails_leaves_the_old_file(page: Page, tmp_path: Path) -> None:
    out = tmp_path / "figure.png"
    out.write_bytes(b"old")
    with pytest.raises(RenderError):
        write_figure(page, out, LIGHT, scale=1000.0)
    assert out.read_bytes() == b"old"


def test_that_the_clipboard_gets_an_image_and_an_svg(page: Page) -> None:
    copy_figure(page, LIGHT)
    data = QGuiApplication.clipboard().mimeData()
    assert data.hasImage()
    assert bytes(data.data("image/svg+xml").data()).startswith(b"<?xml")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_that_the_window_can_be_rendered(
    design: Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    out = tmp_path / f"window{suffix}"
    render_view(design, "window", out, theme="dark", size=(1280, 800))
    assert out.stat().st_size > 20_000
    if suffix == ".png":
        image = QImage(str(out))
        assert (image.width(), image.height()) == (1280, 800)
        assert painted_share(image, DARK) > 0.1
