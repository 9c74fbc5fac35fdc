"""The layouts, context and reproduce tabs, and the card of single changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSizeF, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.figures.render import VIEWS, render_view
from app.panels.effects import EffectsPanel
from app.plots import context, switches
from app.plots.computed_page import ComputedPage
from app.plots.paper.catalogue import ITEM_IDS, item_named, items
from app.plots.paper.data import compute
from app.plots.paper.page import ReproducePage, draw_item
from app.plots.paper.tables import row_name
from app.plots.scene import Rect, Scene, SceneBuilder, Text
from app.plots.xy import Marker, PlotLine, plot_of
from app.plots.xy_axis import axis_over, compact
from app.theme import Role
from app.theme.manager import ThemeManager
from app.windows.main_window import MainWindow
from model_core.search.layouts import best_layout
from model_core.spec import Design, FfnLayout
from model_core.spec.base import replace_at
from presets import load_design, load_model, load_published

SIZES = (QSizeF(600, 380), QSizeF(1000, 560), QSizeF(1550, 820))
QUICK = ("fig3", "fig6", "fig7", "fig8", "fig9-20-8", "table1", "table2", "table3")


def never() -> bool:
    return False


def plain(scene: Scene) -> str:
    return "\n".join(text.plain for text in scene.texts())


def layouts_of(design: Design) -> switches.LayoutData:
    found = switches.compute_layouts(design, never)
    assert found is not None
    return found


def context_of(design: Design) -> context.ContextData:
    found = context.compute_context(design, never)
    assert found is not None
    return found


def overlapping(scene: Scene) -> list[tuple[str, str]]:
    """Texts that lie on each other by more than a pixel."""
    texts: list[Text] = list(scene.texts())
    return [
        (first.plain, other.plain)
        for i, first in enumerate(texts)
        for other in texts[i + 1 :]
        if first.rect.overlaps(other.rect, 2.0)
    ]


# ---- axes and lines ------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(1.0, 2.0), (3.0, 7e5), (0.9e-3, 1.1e-3), (1.0, 1e12)])
def test_that_a_logarithmic_axis_has_round_ticks_inside(low: float, high: float) -> None:
    axis = axis_over((low, high), "x", str)
    ticks = axis.ticks(7)
    assert 1 <= len(ticks) <= 7
    assert all(axis.low <= tick <= axis.high for tick in ticks)
    assert all(0 <= axis.share(tick) <= 1 for tick in ticks)
    assert axis.value(axis.share(ticks[0])) == pytest.approx(ticks[0])


def test_that_a_linear_axis_begins_at_zero() -> None:
    axis = axis_over((0.2, 0.76), "MFU", str, log=False)
    assert axis.ticks(6)[0] == 0.0
    assert axis.high > 0.76


@pytest.mark.parametrize(
    ("value", "text"), [(64, "64"), (65536, "65,536"), (1e5, "100 k"), (2e6, "2 M"), (16777216, "16,777,216")]
)
def test_that_large_counts_are_short(value: float, text: str) -> None:
    assert compact(value) == text


def test_that_names_without_a_place_go_into_a_legend_above() -> None:
    points = tuple((float(2**k), float(2**k)) for k in range(6))
    lines = [
        PlotLine(f"a line with a rather long name {n}", points, Role.AXIS_X, Marker.CIRCLE) for n in range(6)
    ]
    axis = axis_over([p[0] for p in points], "x", compact)
    builder = SceneBuilder()
    area = plot_of(builder, Rect(0, 0, 420, 300), axis, axis, lines)
    named = {t.plain: t for t in builder.items if isinstance(t, Text) and t.plain.startswith("a line")}
    assert len(named) == 6
    above = [t for t in named.values() if t.rect.bottom < area.rect.y]
    assert above
    assert all(t.rect.y >= -1 for t in named.values())


# ---- layouts -------------------------------------------------------------------------------


def test_that_the_layouts_view_tells_best_runner_up_and_switch(design: Design) -> None:
    scene = switches.draw_layouts(layouts_of(design), SIZES[1])
    choice = best_layout(design)
    assert choice.margin is not None
    assert f"loses by {choice.margin:.1%}" in scene.summary
    text = plain(scene)
    for expected in ("18,434", "110,596", "1,327,104", "now: 64", "2D weight-stationary (this design)"):
        assert expected in text


def test_that_layouts_that_are_the_same_on_a_mesh_share_a_line() -> None:
    scene = switches.draw_layouts(layouts_of(load_design("llama-3.1-70b-h100")), SIZES[1])
    assert "1D WS = 2D WS = X WG = XY WG" in plain(scene)


def test_that_models_without_a_dense_feedforward_layer_have_times_only() -> None:
    data = layouts_of(load_design("deepseek-v3-decode"))
    assert data.volumes is None
    assert data.times
    assert "time of a step" in plain(switches.draw_layouts(data, SIZES[1]))


def test_that_the_times_are_those_of_the_evaluation(design: Design) -> None:
    from model_core import evaluate

    data = layouts_of(design)
    index = data.tokens.tolist().index(64.0)
    found = [
        evaluate(replace_at(design, "plan.attention_sharding", sharding)).value("step_s")
        for sharding in ("heads", "batch")
    ]
    best = min(value for value in found if value is not None)
    assert data.times[FfnLayout.WEIGHT_STATIONARY_2D][index] == pytest.approx(best)


# ---- context -------------------------------------------------------------------------------


def test_that_multiquery_over_batch_holds_the_longest_context(design: Design) -> None:
    found = {v.label: v.longest for v in context_of(design).variants}
    assert set(found) == {"multihead, over heads", "multiquery, over heads", "multiquery, over batch"}
    batch, heads = found["multiquery, over batch"], found["multiquery, over heads"]
    assert batch is not None
    assert heads is not None
    assert batch > 30 * heads


def test_that_the_context_view_marks_where_the_memory_is_full(design: Design) -> None:
    scene = context.draw_context(context_of(design), SIZES[1])
    assert "memory full at" in plain(scene)
    assert "now: 2,048" in plain(scene)


def test_that_a_multihead_model_has_no_second_multihead() -> None:
    design = load_design("palm-540b-decode-low-latency").replace(model=load_model("mt-nlg-530b"))
    assert [v.label for v in context_of(design).variants] == [
        "multihead, over heads",
        "multihead, over batch",
    ]


@pytest.mark.parametrize(
    "name", ["palm-540b-decode-low-latency", "palm-540b-prefill-low-latency", "llama-3.1-70b-h100"]
)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_that_charts_have_no_overlapping_words(name: str, size: QSizeF, qapp: object) -> None:
    design = load_design(name)
    tall = QSizeF(size.width(), max(size.height(), switches.least_height(int(size.width()))))
    assert not overlapping(switches.draw_layouts(layouts_of(design), tall))
    assert not overlapping(context.draw_context(context_of(design), size))


# ---- pages ---------------------------------------------------------------------------------


def page_of(
    identifier: str, document: DesignDocument, themes: ThemeManager, compute_: object, draw: object
) -> ComputedPage:
    return ComputedPage(identifier, compute_, draw, switches.least_height, document, themes)  # type: ignore[arg-type]


@pytest.fixture
def layouts_page(
    document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot
) -> Iterator[ComputedPage]:
    made = page_of("layouts", document, theme_manager, switches.compute_layouts, switches.draw_layouts)
    qtbot.addWidget(made)
    made.resize(1000, 640)
    made.show()
    qtbot.waitExposed(made)
    qtbot.waitUntil(lambda: made.chart.scene is not None, timeout=20_000)
    yield made
    made.stop()


def test_that_a_computed_page_follows_the_document(
    layouts_page: ComputedPage, document: DesignDocument, qtbot: QtBot
) -> None:
    before = layouts_page.chart.scene
    document.edit("workload.batch", 512)
    document.evaluate_now()
    qtbot.waitUntil(lambda: layouts_page.chart.scene is not before, timeout=20_000)
    scene = layouts_page.scene_for(SIZES[1])
    assert scene is not None
    assert "now: 512" in plain(scene)


def test_that_tab_goes_through_the_points_of_a_chart(layouts_page: ComputedPage, qtbot: QtBot) -> None:
    chart = layouts_page.chart
    scene = chart.scene
    assert scene is not None
    chart.setFocus()
    qtbot.keyClick(chart, Qt.Key.Key_Tab)
    qtbot.keyClick(chart, Qt.Key.Key_Tab)
    assert scene.targets[1].title in chart.accessibleDescription()
    assert chart.accessibleName() == scene.title


def test_that_a_narrow_page_scrolls_instead_of_squeezing(layouts_page: ComputedPage) -> None:
    layouts_page.resize(620, 420)
    assert layouts_page.chart.minimumHeight() == switches.least_height(620)
    assert layouts_page.chart.height() >= switches.least_height(620)


# ---- papers --------------------------------------------------------------------------------


def test_that_every_figure_of_the_paper_has_published_rows() -> None:
    ids = [row.id for row in load_published("pope-2022").rows]
    assert tuple(item.id for item in items()) == ITEM_IDS
    for item in items():
        assert any(i.startswith(item.rows) if item.is_table else i == item.rows for i in ids), item.id


def test_that_every_row_of_the_paper_is_shown_somewhere() -> None:
    shown = {
        row.id for item in items() for row in load_published("pope-2022").rows if _holds(item.id, row.id)
    }
    assert shown == {row.id for row in load_published("pope-2022").rows}


def _holds(item: str, row: str) -> bool:
    from app.plots.paper.data import _belongs

    return _belongs(item_named(item), row)


@pytest.mark.parametrize("identifier", QUICK)
def test_that_a_figure_is_drawn_without_overlapping_words(identifier: str, qapp: object) -> None:
    item = item_named(identifier)
    rows = compute(item, never)
    assert rows
    for size in SIZES:
        scene = draw_item(item, rows, size)
        assert not overlapping(scene)
        assert scene.width <= max(size.width(), 620)
    curve = rows[0].predicted.curve
    if curve is not None:
        assert len(scene.targets) == sum(len(series.points) for series in curve.series)


def test_that_a_table_sets_published_beside_ours(qapp: object) -> None:
    item = item_named("table1")
    rows = compute(item, never)
    assert rows
    scene = draw_item(item, rows, SIZES[1])
    assert row_name(item, rows[0])[0] == "multihead, batch 128"
    assert "43,000" in plain(scene)
    assert f"{rows[0].predicted.known:,.0f}" in plain(scene)


def test_that_a_computation_stops_when_cancelled() -> None:
    assert compute(item_named("fig1-left"), lambda: True) is None


def test_that_the_page_recomputes_once_and_keeps_it(theme_manager: ThemeManager, qtbot: QtBot) -> None:
    page = ReproducePage(theme_manager)
    qtbot.addWidget(page)
    page.resize(1000, 640)
    page.show_item("fig3")
    page.show()
    qtbot.waitUntil(lambda: page.is_ready, timeout=30_000)
    first = page.chart.scene
    assert first is not None
    page.show_item("table1")
    qtbot.waitUntil(lambda: page.is_ready, timeout=30_000)
    page.show_item("fig3")
    assert page.is_ready
    assert page.chart.scene is not None
    assert page.chart.scene.title == first.title == "Figure 3"
    page.stop()


# ---- the window ----------------------------------------------------------------------------


def test_that_one_click_in_the_menu_opens_a_figure(
    main_window: Callable[[Design], MainWindow], design: Design, qtbot: QtBot
) -> None:
    window = main_window(design)
    window.registry.action("paper.fig3").trigger()
    assert window.current_view_id() == "reproduce"
    page = window.pages["reproduce"].page
    assert isinstance(page, ReproducePage)
    assert page.current.id == "fig3"
    qtbot.waitUntil(lambda: page.is_ready, timeout=30_000)


def test_that_a_search_view_is_exported_as_it_is(
    main_window: Callable[[Design], MainWindow], design: Design, qtbot: QtBot
) -> None:
    window = main_window(design)
    window.registry.action("view.show_layouts").trigger()
    assert window.current_page() is window.pages["layouts"]
    qtbot.waitUntil(lambda: window.pages["layouts"].scene_for(SIZES[1]) is not None, timeout=30_000)
    window.registry.action("figure.copy").trigger()
    assert "clipboard" in window.statusBar().currentMessage()


@pytest.mark.parametrize("view", ["frontier", "layouts", "context", "paper:fig3", "paper:table2"])
def test_that_search_views_are_rendered_from_the_command_line(
    view: str, tmp_path: Path, design: Design
) -> None:
    assert view in VIEWS
    for suffix in ("png", "svg"):
        out = tmp_path / f"picture.{suffix}"
        render_view(design, view, out, size=(1000, 600))
        assert out.stat().st_size > 5000


# ---- single changes ------------------------------------------------------------------------


@pytest.fixture
def effects(document: DesignDocument, qtbot: QtBot) -> Iterator[EffectsPanel]:
    made = EffectsPanel(document)
    qtbot.addWidget(made)
    made.resize(300, 400)
    made.show()
    qtbot.waitUntil(lambda: bool(made.rows), timeout=20_000)
    yield made
    made.stop()


def test_that_single_changes_are_sorted_by_what_they_save(effects: EffectsPanel) -> None:
    good = [row for row in effects.rows if not row.problem]
    assert [row.gain for row in good] == sorted(row.gain for row in good)
    assert effects.rows[: len(good)] == tuple(good)


def test_that_a_change_is_made_as_one_undo_step(effects: EffectsPanel, document: DesignDocument) -> None:
    before, wanted = document.design, effects.rows[0].design
    effects.list.clicked.emit(effects.list.model().index(0, 0))
    assert document.design == wanted
    assert document.undo_stack.count() == 1
    document.undo_stack.undo()
    assert document.design == before


def test_that_a_change_that_does_not_fit_cannot_be_made(
    effects: EffectsPanel, document: DesignDocument, qtbot: QtBot
) -> None:
    document.edit("workload.batch", 512)
    document.evaluate_now()
    qtbot.waitUntil(lambda: any(row.problem for row in effects.rows), timeout=20_000)
    bad = [i for i, row in enumerate(effects.rows) if row.problem]
    assert effects.rows[bad[0]].problem == "does not fit"
    effects.apply(bad[0])
    assert document.undo_stack.count() == 1
    assert effects.rows[bad[0]].problem in effects.rows[bad[0]].spoken


def test_that_the_card_follows_the_design(
    effects: EffectsPanel, document: DesignDocument, qtbot: QtBot
) -> None:
    before = effects.rows
    document.edit("workload.batch", 512)
    document.evaluate_now()
    qtbot.waitUntil(lambda: effects.rows is not before, timeout=20_000)
    assert isinstance(effects.list, QWidget)
