"""The schedule view: segments, pixels, camera, mouse, keyboard, panel and actions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.panels.schedule import SchedulePanel
from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import DRAIN, FIRST_CELL, MESSAGE, STEADY, WARM_UP, Cells
from app.plots.gantt.follow import follow
from app.plots.gantt.labels import labels
from app.plots.gantt.lookup import look_up
from app.plots.gantt.picture import make_picture
from app.plots.gantt.raster import edges, make_tables, sample, sample_edges
from app.plots.gantt.view import ScheduleView
from app.plots.gantt.words import card_lines
from app.theme import DARK, LIGHT, Theme
from app.theme.manager import ThemeManager
from app.widgets.choices import ChoiceBox
from app.widgets.quantity_edit import NumberEdit
from app.windows.main_window import MainWindow
from model_core.schedule import OpKind
from model_core.spec import Design, ScheduleSpec
from tests.app.stage import Stage, part, pick, visible, write

WAIT_MS = 20_000
CASES: tuple[dict[str, object], ...] = (
    {},
    {"kind": "1f1b", "point_to_point": 3e-4},
    {"kind": "zb-v", "backward_input": 1.4e-3},
    {"overlapped": 2.3e-3, "point_to_point": 1e-4},
    {"kind": "interleaved", "pp": 4, "microbatches": 12},
    {"kind": "gpipe", "pp": 1, "microbatches": 3},
)


def cells_of(fields: dict[str, object]) -> Cells:
    return make_picture(ScheduleSpec.model_validate(fields)).charts[0]


def with_schedule(design: Design, **fields: object) -> Design:
    spec = ScheduleSpec.model_validate(fields)
    return design.replace(plan=design.plan.replace(schedule=spec))


@pytest.fixture
def view(
    document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot
) -> Iterator[Callable[..., ScheduleView]]:
    made: list[ScheduleView] = []

    def make(**fields: object) -> ScheduleView:
        document.push(with_schedule(document.design, **fields), "test")
        shown = ScheduleView(document, theme_manager)
        made.append(shown)
        qtbot.addWidget(shown)
        shown.resize(1000, 640)
        with qtbot.waitExposed(shown):
            shown.show()
        qtbot.waitUntil(lambda: shown.picture is not None, timeout=WAIT_MS)
        shown.grab()
        return shown

    yield make
    for shown in made:
        shown.stop()


def at(view: ScheduleView, rank: int, time_s: float, height: float = 0.5) -> QPoint:
    """Return the widget position of a rank at a time."""
    place = view.places[0]
    row = place.row(rank, view.camera)
    return QPoint(round(14 + place.x_of(time_s, view.camera)), round(14 + row.y + row.h * height))


def schedule_of(document: DesignDocument) -> ScheduleSpec | None:
    return document.design.plan.schedule


def is_following(view: ScheduleView) -> bool:
    return view.followed is not None


# ---- segments and pixels -------------------------------------------------------------------


@pytest.mark.parametrize("fields", CASES)
def test_that_every_operation_is_a_segment_and_idle_times_are_the_bubbles(fields: dict[str, object]) -> None:
    cells = cells_of(fields)
    rank = np.repeat(np.arange(cells.pp), np.diff(cells.offsets))
    length = np.where(np.isinf(cells.end), 0.0, cells.end - cells.start)
    assert np.array_equal(cells.row[cells.code >= FIRST_CELL], np.arange(len(cells.schedule)))
    causes = cells.run.causes
    for code, expected in (
        (WARM_UP, causes.warm_up_s),
        (STEADY, causes.steady_s),
        (DRAIN, causes.drain_s),
        (MESSAGE, causes.communication_s),
    ):
        drawn = np.bincount(rank, weights=np.where(cells.code == code, length, 0.0), minlength=cells.pp)
        assert drawn == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("fields", CASES)
def test_that_columns_hold_what_a_search_finds(fields: dict[str, object]) -> None:
    cells = cells_of(fields)
    ranks = np.arange(cells.pp)
    start, end = 0.13 * cells.makespan_s, 0.71 * cells.makespan_s
    found = sample(cells, ranks, start, end, 97)
    for rank in ranks.tolist():
        expected = [cells.at(rank, time) for time in found.time_s.tolist()]
        assert found.segment[rank].tolist() == expected


def test_that_an_overview_gives_the_colours_of_the_cells_themselves() -> None:
    cells = cells_of({"kind": "1f1b", "pp": 32, "microbatches": 1200, "point_to_point": 1e-5})
    assert cells.overview is not None
    whole, columns, ranks = cells.makespan_s, 600, np.arange(32)
    number = edges(cells, 0.0, whole, columns)
    assert number is not None
    blend = make_tables(cells, LIGHT).blend
    quick = blend.mean_at(ranks, number).view(np.uint8).astype(float)
    exact = blend.mean(sample_edges(cells, ranks, 0.0, whole, columns)).view(np.uint8).astype(float)
    # Half a step of the overview against two columns.
    assert np.abs(quick - exact).mean() < 4


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: str(theme.name))
def test_that_a_pixel_has_the_colour_of_its_operation(
    view: Callable[..., ScheduleView], theme: Theme
) -> None:
    place = view().places[0]
    cells, camera = place.cells, view().camera
    tables = make_tables(cells, theme)
    picture: QImage = look_up(place, tables, camera, 1.0).picture
    simulation = cells.run.simulation
    for row in range(0, len(cells.schedule), 7):
        middle = float(simulation.start_s[row] + simulation.end_s[row]) / 2
        x = int(place.x_of(middle, camera) - place.area.x)
        rank = place.row(int(cells.schedule.rank[row]), camera)
        code = int(cells.code[cells.segment_of(row)])
        upper = QImage.pixel(picture, x, int(rank.y - place.area.y + 0.25 * rank.h))
        assert upper in tables.colors[:, code].tolist()


def test_that_low_rows_and_many_ranks_are_drawn_too() -> None:
    from app.plots.gantt.frame import make_frame

    for spec in (ScheduleSpec(kind="1f1b", pp=700, microbatches=8), ScheduleSpec(kind="gpipe", pp=1)):
        picture = make_picture(spec)
        place = make_frame(picture.planned, picture.charts, 700, 400).charts[0]
        whole = picture.charts[0].makespan_s
        image = look_up(place, make_tables(place.cells, LIGHT), TimeCamera(whole, 0, whole), 2.0).picture
        assert (image.width(), image.height()) == (2 * place.area.w, 2 * place.area.h)


def test_that_labels_say_operation_and_microbatch(view: Callable[..., ScheduleView]) -> None:
    shown = view()
    shown.camera.show(0.020, 0.045)
    place = shown.places[0]
    texts = [label.text for label in labels(place, shown.camera) if label.rank == 0]
    assert texts[:4] == ["F 4′", "B 0", "F 8", "B 4′"]


# ---- following -----------------------------------------------------------------------------


def test_that_a_followed_microbatch_goes_through_every_rank_and_back() -> None:
    schedule = cells_of({}).schedule
    followed = follow(schedule, direction=1, microbatch=3)
    ranks = [int(schedule.rank[row]) for row in followed.rows]
    assert set(ranks) == set(range(8))
    forward = [r for r, _ in followed.links[:7]]
    assert [int(schedule.rank[row]) for row in forward] == [7, 6, 5, 4, 3, 2, 1]
    assert len(followed.links) == 14
    weights = [row for row in followed.rows if schedule.op[row] == OpKind.BACKWARD_WEIGHT]
    inputs = [row for row in followed.rows if schedule.op[row] == OpKind.BACKWARD_INPUT]
    assert len(weights) == len(inputs)


def test_that_a_click_follows_and_a_second_one_ends_it(
    view: Callable[..., ScheduleView], qtbot: QtBot
) -> None:
    shown = view()
    qtbot.mouseClick(shown, Qt.MouseButton.LeftButton, pos=at(shown, 0, 0.0242, 0.2))
    assert shown.followed is not None
    assert (shown.followed.direction, shown.followed.microbatch) == (1, 4)
    assert "following microbatch 4′" in shown.accessibleDescription()
    plain = shown.grab().toImage()
    qtbot.mouseClick(shown, Qt.MouseButton.LeftButton, pos=at(shown, 0, 0.0242, 0.2))
    assert not is_following(shown)
    assert shown.grab().toImage() != plain


def test_that_the_lower_half_of_a_pair_follows_the_backward(
    view: Callable[..., ScheduleView], qtbot: QtBot
) -> None:
    shown = view()
    qtbot.mouseClick(shown, Qt.MouseButton.LeftButton, pos=at(shown, 0, 0.0242, 0.8))
    assert shown.followed is not None
    assert (shown.followed.direction, shown.followed.microbatch) == (0, 0)


def test_that_a_card_says_what_an_operation_waits_for() -> None:
    cells = cells_of({"point_to_point": 2e-4})
    row = cells.schedule.row(3, "FB0.5/1.1")
    lines = card_lines(cells, cells.segment_of(row), 3)
    assert lines[0] == "F 5 & B 1′ · rank 3"
    assert any("waits for" in line and "rank 2" in line for line in lines)
    assert any("holds activations of 9 chunks" in line for line in lines)
    idle = card_lines(cells, int(cells.offsets[3]), 3)
    assert idle[0].startswith("idle: warm-up")


# ---- moving --------------------------------------------------------------------------------


def test_that_keys_zoom_pan_and_fit(view: Callable[..., ScheduleView], qtbot: QtBot) -> None:
    shown = view()
    whole = shown.camera.span_s
    qtbot.keyClick(shown, Qt.Key.Key_W)
    assert shown.camera.span_s == pytest.approx(whole / 1.25)
    before = shown.camera.start_s
    qtbot.keyClick(shown, Qt.Key.Key_D)
    assert shown.camera.start_s > before
    qtbot.keyClick(shown, Qt.Key.Key_A)
    assert shown.camera.start_s == pytest.approx(before)
    qtbot.keyClick(shown, Qt.Key.Key_S)
    qtbot.keyClick(shown, Qt.Key.Key_F)
    assert (shown.camera.start_s, shown.camera.span_s) == (0.0, whole)


def test_that_f_shows_the_followed_microbatch_and_then_all(
    view: Callable[..., ScheduleView], qtbot: QtBot
) -> None:
    shown = view()
    qtbot.mouseClick(shown, Qt.MouseButton.LeftButton, pos=at(shown, 0, 0.0005))
    qtbot.keyClick(shown, Qt.Key.Key_F)
    assert shown.camera.end_s < 0.5 * shown.camera.whole_s
    qtbot.keyClick(shown, Qt.Key.Key_F)
    assert shown.camera.fitted


def test_that_full_stop_and_comma_step_through_operations(
    view: Callable[..., ScheduleView], qtbot: QtBot
) -> None:
    shown = view()
    cells = shown.places[0].cells
    rows = []
    for key in (Qt.Key.Key_Period, Qt.Key.Key_Period, Qt.Key.Key_Period, Qt.Key.Key_Comma):
        qtbot.keyClick(shown, key)
        assert shown.focused is not None
        rows.append(int(cells.row[shown.focused.segment]))
    assert rows == [0, 1, 2, 1]
    qtbot.keyClick(shown, Qt.Key.Key_Return)
    assert shown.followed is not None
    assert shown.followed.microbatch == 1
    qtbot.keyClick(shown, Qt.Key.Key_Escape)
    assert not is_following(shown)


def test_that_a_selection_is_zoomed_to(view: Callable[..., ScheduleView], qtbot: QtBot) -> None:
    shown = view()
    shift = Qt.KeyboardModifier.ShiftModifier
    qtbot.mousePress(shown, Qt.MouseButton.LeftButton, shift, at(shown, 2, 0.010))
    qtbot.mouseMove(shown, at(shown, 5, 0.030))
    qtbot.mouseRelease(shown, Qt.MouseButton.LeftButton, shift, at(shown, 5, 0.030))
    assert shown.camera.start_s == pytest.approx(0.010, abs=2e-4)
    assert shown.camera.end_s == pytest.approx(0.030, abs=2e-4)
    assert shown.camera.rows == pytest.approx(8 / 3, rel=0.05)


def test_that_dragging_pans(view: Callable[..., ScheduleView], qtbot: QtBot) -> None:
    shown = view()
    shown.zoom_by(4)
    before = shown.camera.start_s
    qtbot.mousePress(shown, Qt.MouseButton.LeftButton, pos=QPoint(500, 200))
    qtbot.mouseMove(shown, QPoint(440, 200))
    qtbot.mouseRelease(shown, Qt.MouseButton.LeftButton, pos=QPoint(440, 200))
    assert shown.camera.start_s > before
    assert shown.followed is None


def test_that_the_camera_stays_on_the_schedule() -> None:
    camera = TimeCamera(10.0, 0.0, 10.0)
    camera.zoom(4, 5.0)
    for _ in range(50):
        camera.pan(2.0, 0.4)
    assert camera.end_s <= 10.5
    camera.zoom(1e9, 3.0)
    assert camera.span_s > 0
    camera.zoom(1e-9, 3.0)
    assert camera.span_s <= 10.5
    camera.zoom_rows(8, 0.5)
    assert camera.top == pytest.approx(0.5 - 0.5 / 8)


def test_that_two_schedules_share_their_time(view: Callable[..., ScheduleView]) -> None:
    shown = view(compare="1f1b")
    first, second = shown.places
    assert shown.camera.whole_s == second.cells.makespan_s > first.cells.makespan_s
    assert first.x_of(0.03, shown.camera) == second.x_of(0.03, shown.camera)
    assert second.area.y > first.memory.bottom
    assert "1F1B" in shown.accessibleDescription()


# ---- document, panel and actions -----------------------------------------------------------


def test_that_a_size_that_cannot_be_run_keeps_the_last_picture(
    view: Callable[..., ScheduleView], document: DesignDocument, qtbot: QtBot
) -> None:
    shown = view()
    good, plain = shown.picture, shown.grab().toImage()
    document.push(with_schedule(document.design, microbatches=19), "test")
    qtbot.waitUntil(lambda: shown.grab().toImage() != plain, timeout=WAIT_MS)
    assert shown.picture is good
    document.undo_stack.undo()
    qtbot.waitUntil(lambda: shown.grab().toImage() == plain, timeout=WAIT_MS)


def test_that_the_view_offers_schedules_where_there_is_none(
    document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot
) -> None:
    shown = ScheduleView(document, theme_manager)
    qtbot.addWidget(shown)
    shown.grab()
    shown.show_figure_5()
    assert schedule_of(document) == ScheduleSpec()
    document.undo_stack.undo()
    assert schedule_of(document) is None
    shown.stop()


def test_that_the_panel_shows_what_a_kind_has(document: DesignDocument, qtbot: QtBot) -> None:
    stage = Stage(qtbot, document)
    panel = stage.show(SchedulePanel)
    kind = part(panel, "plan.schedule.kind", ChoiceBox)
    assert not visible(panel, "plan.schedule.pp")
    pick(kind, "interleaved")
    assert schedule_of(document) == ScheduleSpec(kind="interleaved")
    assert visible(panel, "plan.schedule.virtual_stages")
    assert not visible(panel, "plan.schedule.overlapped")
    pick(part(panel, "plan.schedule.compare", ChoiceBox), "dualpipe")
    assert visible(panel, "plan.schedule.compare_by")
    assert visible(panel, "plan.schedule.overlapped")
    pick(kind, "")
    assert schedule_of(document) is None


def test_that_the_panel_names_the_nearest_sizes(document: DesignDocument, qtbot: QtBot) -> None:
    document.push(with_schedule(document.design), "test")
    stage = Stage(qtbot, document)
    panel = stage.show(SchedulePanel)
    write(qtbot, part(panel, "plan.schedule.microbatches", NumberEdit), "19")
    document.evaluate_now()
    said = panel.error("plan.schedule.microbatches")
    assert "cannot run 19 microbatches" in said
    assert "pp=8 microbatches=18; pp=8 microbatches=20" in said


def test_that_the_window_shows_figure_5_at_one_click_and_exports_it(
    main_window: Callable[[Design], MainWindow], design: Design, tmp_path: Path, qtbot: QtBot
) -> None:
    window = main_window(design)
    window.registry.action("schedule.figure_5").trigger()
    assert window.current_view_id() == "schedule"
    assert window.document.design.plan.schedule == ScheduleSpec()
    qtbot.waitUntil(lambda: window.schedule.view.picture is not None, timeout=WAIT_MS)
    trace, figure = tmp_path / "trace.json", tmp_path / "figure.svg"
    _save(window, "schedule.export_perfetto", "schedule_dialog", trace)
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    picture = window.schedule.view.picture
    assert picture is not None
    assert sum(event["ph"] == "X" for event in events) == len(picture.charts[0].schedule)
    _save(window, "figure.export", "export_dialog", figure)
    assert 'id="chart-0-rank-7"' in figure.read_text(encoding="utf-8")


def test_that_the_schedule_is_written_for_pytorch_or_refused_with_the_reason(
    main_window: Callable[[Design], MainWindow], design: Design, tmp_path: Path, qtbot: QtBot
) -> None:
    window = main_window(with_schedule(design, kind="dualpipev", microbatches=20))
    window.registry.action("view.show_schedule").trigger()
    qtbot.waitUntil(lambda: window.schedule.view.picture is not None, timeout=WAIT_MS)
    out = tmp_path / "schedule.csv"
    _save(window, "schedule.export_csv", "schedule_dialog", out)
    assert len(out.read_text(encoding="utf-8").splitlines()) == 8


def _save(window: MainWindow, action: str, dialog_name: str, path: Path) -> None:
    window.registry.action(action).trigger()
    dialog = window.findChild(QFileDialog, dialog_name)
    assert dialog is not None
    dialog.fileSelected.emit(str(path))
    dialog.close()
    dialog.setObjectName("")
