"""Figures of schedules: Figure 5 of the DeepSeek-V3 report cell by cell, groups, formats and limits."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PySide6.QtCore import QSizeF
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtSvg import QSvgRenderer

from app.figures.render import RenderError, render_view
from app.figures.schedule import (
    ScheduleFigure,
    copy_schedule,
    image_note,
    make_schedule_figure,
    svg_of,
    write_schedule,
)
from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.vector import MOST_CELLS, rank_layers
from app.plots.text import width_of
from app.theme import DARK, LIGHT, PRINT, Role, Theme
from model_core import Design, evaluate
from model_core.schedule import ops_text, schedule
from model_core.spec import ScheduleSpec

SVG = "{http://www.w3.org/2000/svg}"
WIDE = QSizeF(2600, 900)


def with_schedule(design: Design, **fields: object) -> Design:
    spec = ScheduleSpec.model_validate(fields)
    return design.replace(plan=design.plan.replace(schedule=spec))


def figure(design: Design, size: QSizeF = WIDE, **fields: object) -> ScheduleFigure:
    changed = with_schedule(design, **fields)
    return make_schedule_figure(changed, evaluate(changed), size)


def groups(data: bytes) -> dict[str, ET.Element]:
    return {g.get("id", ""): g for g in ET.fromstring(data).iter(f"{SVG}g") if "rank" in g.get("id", "")}


def read_back(group: ET.Element) -> list[str]:
    """Return the operations that the texts of a rank's group spell, in the notation of the reference."""
    found = []
    for text in group.iter(f"{SVG}text"):
        words = "".join(text.itertext())
        size = int(float(text.get("font-size", "0")))
        x, y = float(text.get("x", "nan")), float(text.get("y", "nan"))
        found.append((round(x + width_of(words, size) / 2, 1), y, words))
    cells: dict[float, list[str]] = {}
    for x, _, words in sorted(found):
        near = next((other for other in cells if abs(other - x) < 1), x)
        cells.setdefault(near, []).append(words)
    return [_operation(words) for _, words in sorted(cells.items())]


def _operation(words: list[str]) -> str:
    parts = [re.fullmatch(r"([FBIW]) (\d+)(′?)", word) for word in words]
    assert all(parts), words
    named = [(p[1], f"{1 if p[3] else 0}.{p[2]}") for p in parts if p]
    if len(named) == 1:
        return "".join(named[0])
    assert [letter for letter, _ in named] == ["F", "B"]
    return f"FB{named[0][1]}/{named[1][1]}"


@pytest.mark.parametrize("theme", [LIGHT, DARK, PRINT], ids=lambda theme: str(theme.name))
def test_that_figure_5_is_that_of_the_report_cell_by_cell(design: Design, theme: Theme) -> None:
    made, _ = schedule("dualpipe", 8, 20)
    assert made is not None
    ranks = ops_text(made).splitlines()
    drawn = groups(bytes(svg_of(figure(design), theme).data()))
    assert list(drawn) == [f"chart-0-rank-{rank}" for rank in range(8)]
    assert [read_back(group) for group in drawn.values()] == [line.split() for line in ranks]


@pytest.mark.parametrize("kind", ["1f1b", "zb-v", "dualpipev", "chimera", "interleaved"])
def test_that_every_operation_is_drawn_once(design: Design, kind: str) -> None:
    made = figure(design, kind=kind, microbatches=24, point_to_point=1e-4)
    (place,) = made.places
    layers = rank_layers(place, made.camera, LIGHT)
    assert sum(layer.operations for layer in layers) == len(place.cells.schedule)
    assert [layer.rank for layer in layers] == list(range(8))


def test_that_groups_are_cut_to_the_chart(design: Design) -> None:
    made = figure(design)
    whole_s = made.places[0].cells.makespan_s
    changed = with_schedule(design)
    camera = TimeCamera(whole_s, 0.25 * whole_s, 0.5 * whole_s, fitted=False)
    part = make_schedule_figure(changed, evaluate(changed), WIDE, camera)
    root = ET.fromstring(bytes(svg_of(part, LIGHT).data()))
    clips = {c.get("id") for c in root.iter(f"{SVG}clipPath")}
    drawn = groups(bytes(svg_of(part, LIGHT).data()))
    assert clips == {"chart-0"}
    assert all(g[0].get("clip-path") == "url(#chart-0)" for g in drawn.values())
    assert 0 < part.cells < made.cells


def test_that_two_schedules_have_groups_of_their_own(design: Design) -> None:
    drawn = groups(bytes(svg_of(figure(design, compare="1f1b", compare_by="memory"), LIGHT).data()))
    assert len([name for name in drawn if name.startswith("chart-0")]) == 8
    assert len([name for name in drawn if name.startswith("chart-1")]) == 4


def test_that_title_legend_and_parameters_are_texts_of_the_picture(design: Design) -> None:
    data = bytes(svg_of(figure(design, compare="1f1b"), LIGHT).data())
    texts = "".join("".join(t.itertext()) for t in ET.fromstring(data).iter(f"{SVG}text")).replace(" ", "")
    for words in ("DualPipe", "8 ranks · 20 microbatches", "backward for weights", "1F1B", "+22.7%"):
        assert words.replace(" ", "") in texts
    assert design.name in texts


@pytest.mark.parametrize("theme", [LIGHT, DARK, PRINT], ids=lambda theme: str(theme.name))
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_that_the_command_writes_every_format(
    design: Design, tmp_path: Path, suffix: str, theme: Theme
) -> None:
    out = tmp_path / f"figure{suffix}"
    assert render_view(with_schedule(design), "schedule", out, theme=theme.name, size=(900, 600)) == ""
    assert out.stat().st_size > 5_000
    if suffix == ".png":
        image = QImage(str(out))
        assert (image.width(), image.height()) == (900, 600)
        assert image.pixel(2, 2) == theme.color(Role.PANEL).rgb()
    elif suffix == ".svg":
        assert QSvgRenderer(str(out)).isValid()


def test_that_a_png_has_any_scale(design: Design, tmp_path: Path) -> None:
    out = tmp_path / "figure.png"
    write_schedule(figure(design, QSizeF(800, 500)), out, LIGHT, 2.5)
    assert (QImage(str(out)).width(), QImage(str(out)).height()) == (2000, 1250)


def test_that_shapes_and_image_show_the_same_colours(design: Design, monkeypatch: pytest.MonkeyPatch) -> None:
    made = figure(design, QSizeF(1200, 700))
    shapes = QSvgRenderer(svg_of(made, LIGHT))
    monkeypatch.setattr("app.figures.schedule.MOST_CELLS", 10)
    assert made.as_image
    data = bytes(svg_of(made, LIGHT).data())
    assert b"<image" in data
    assert shapes.isValid()
    assert "cells are drawn as an image" in image_note(made, Path("a.svg"))
    assert image_note(made, Path("a.png")) == ""


def test_that_very_many_cells_become_an_image(design: Design, tmp_path: Path) -> None:
    many = with_schedule(design, kind="1f1b", pp=16, microbatches=MOST_CELLS // 16)
    out = tmp_path / "figure.svg"
    assert "cells are drawn as an image" in render_view(many, "schedule", out, size=(900, 600))
    assert out.stat().st_size < 3_000_000


def test_that_a_design_without_a_schedule_is_refused_with_advice(design: Design, tmp_path: Path) -> None:
    with pytest.raises(RenderError, match=r"plan\.schedule\.kind"):
        render_view(design, "schedule", tmp_path / "a.png")
    with pytest.raises(RenderError, match="pp=8 microbatches=18"):
        render_view(with_schedule(design, microbatches=19), "schedule", tmp_path / "a.png")


def test_that_the_clipboard_gets_picture_and_svg(design: Design) -> None:
    copy_schedule(figure(design, QSizeF(900, 600)), LIGHT)
    data = QGuiApplication.clipboard().mimeData()
    assert data.hasImage()
    assert b"chart-0-rank-7" in bytes(data.data("image/svg+xml").data())
