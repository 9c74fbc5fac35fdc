"""The view widget: follows the document, zooms, pans, and is used with mouse and keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.plots.scene import Scene, Target
from app.plots.scene_view import SceneView
from app.plots.views import VIEWS, view_named
from app.theme import DARK, LIGHT, Role
from app.theme.manager import ThemeManager
from model_core.spec import Design


@pytest.fixture
def view(document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot) -> SceneView:
    """The layout view in a window of its own."""
    made = SceneView(view_named("layout"), document, theme_manager)
    qtbot.addWidget(made)
    made.resize(1000, 680)
    made.show()
    qtbot.waitExposed(made)
    return made


def scene_of(view: SceneView) -> Scene:
    assert view.scene is not None
    return view.scene


def target(view: SceneView, key: str) -> Target:
    return next(found for found in scene_of(view).targets if found.key == key)


def middle(view: SceneView, found: Target) -> QPoint:
    rect = view.camera.to_widget(found.rect)
    return QPoint(round(rect.x + rect.w / 2), round(rect.y + rect.h / 2))


def wheel(view: SceneView, position: QPointF, delta: int) -> None:
    event = QWheelEvent(
        position,
        view.mapToGlobal(position),
        QPoint(),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view, event)


@pytest.mark.parametrize("spec", VIEWS, ids=lambda spec: str(spec.id))
def test_that_every_view_fits_its_widget(
    spec: object, document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot
) -> None:
    made = SceneView(spec, document, theme_manager)  # type: ignore[arg-type]
    qtbot.addWidget(made)
    for size in ((640, 460), (1000, 680), (1900, 1200)):
        made.resize(*size)
        image = made.grab().toImage()
        scene = scene_of(made)
        assert scene.width * made.camera.scale <= size[0]
        assert scene.height * made.camera.scale <= size[1]
        background = LIGHT.color(Role.PANEL).rgb()
        points = [(x, y) for x in range(0, size[0], 7) for y in range(0, size[1], 7)]
        assert sum(image.pixel(x, y) != background for x, y in points) > 0.03 * len(points)


def test_that_a_click_selects_what_is_under_the_pointer(
    view: SceneView, document: DesignDocument, qtbot: QtBot
) -> None:
    found = target(view, "tensor/block/W_in")
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=middle(view, found))
    assert document.selection == "tensor/block/W_in"


def test_that_a_drag_pans_and_selects_nothing(
    view: SceneView, document: DesignDocument, qtbot: QtBot
) -> None:
    before = (view.camera.dx, view.camera.dy)
    start = middle(view, target(view, "tensor/block/W_in"))
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(view, start + QPoint(20, 0))
    qtbot.mouseMove(view, start + QPoint(60, 25))
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=start + QPoint(60, 25))
    assert (view.camera.dx - before[0], view.camera.dy - before[1]) == pytest.approx((60, 25))
    assert document.selection == ""


def test_that_the_wheel_zooms_at_the_pointer(view: SceneView) -> None:
    position = QPointF(300, 200)
    before = view.camera.to_scene(300, 200)
    scale = view.camera.scale
    wheel(view, position, 120)
    assert view.camera.scale > scale
    assert view.camera.to_scene(300, 200) == pytest.approx(before)
    view.fit()
    assert view.camera.scale == pytest.approx(scale)


def test_that_a_short_drawing_gains_its_details_under_the_pointer(view: SceneView) -> None:
    view.resize(640, 460)
    assert scene_of(view).short
    found = target(view, "op/block/13")
    position = QPointF(middle(view, found))
    for _ in range(5):
        wheel(view, position, 120)
    assert not scene_of(view).short
    shown = view.camera.to_widget(target(view, "op/block/13").rect)
    assert shown.contains(position.x(), position.y())
    for _ in range(8):
        wheel(view, position, -120)
    assert scene_of(view).short
    view.fit()
    assert view.camera.fitted


def test_that_tab_goes_through_the_items_and_enter_selects(
    view: SceneView, document: DesignDocument, qtbot: QtBot
) -> None:
    view.setFocus()
    targets = scene_of(view).targets
    for _ in range(5):
        qtbot.keyClick(view, Qt.Key.Key_Tab)
    assert targets[4].title in view.accessibleDescription()
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert document.selection == targets[4].key
    qtbot.keyClick(view, Qt.Key.Key_Backtab)
    assert targets[3].title in view.accessibleDescription()


def test_that_tab_leaves_after_the_last_item(view: SceneView, qtbot: QtBot) -> None:
    view.setFocus()
    moves = [view.focusNextPrevChild(True) for _ in scene_of(view).targets]
    assert all(moves)
    view.focusNextPrevChild(True)
    assert view.accessibleDescription() == scene_of(view).summary


@pytest.mark.parametrize(
    ("key", "moved"),
    [
        (Qt.Key.Key_Left, (1, 0)),
        (Qt.Key.Key_Right, (-1, 0)),
        (Qt.Key.Key_Up, (0, 1)),
        (Qt.Key.Key_Down, (0, -1)),
    ],
)
def test_that_arrow_keys_pan(view: SceneView, qtbot: QtBot, key: Qt.Key, moved: tuple[int, int]) -> None:
    before = (view.camera.dx, view.camera.dy)
    qtbot.keyClick(view, key)
    step = (view.camera.dx - before[0], view.camera.dy - before[1])
    assert (step[0] * moved[0] >= 0, step[1] * moved[1] >= 0) == (True, True)
    assert step != (0, 0)


def test_that_plus_minus_and_zero_zoom(view: SceneView, qtbot: QtBot) -> None:
    scale = view.camera.scale
    qtbot.keyClick(view, Qt.Key.Key_Plus)
    assert view.camera.scale == pytest.approx(scale * 1.25)
    qtbot.keyClick(view, Qt.Key.Key_Minus)
    assert view.camera.scale == pytest.approx(scale)
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert not view.camera.fitted
    qtbot.keyClick(view, Qt.Key.Key_0)
    assert view.camera.fitted


def test_that_the_parts_of_the_model_can_be_chosen(
    view: SceneView, document: DesignDocument, qtbot: QtBot
) -> None:
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=middle(view, target(view, "part/logits")))
    assert view.part == "logits"
    assert "Logits" in scene_of(view).title
    assert document.selection == ""
    document.select("op/embedding/0")
    assert view.part == "embedding"


def test_that_the_picture_follows_the_document(view: SceneView, document: DesignDocument) -> None:
    before = scene_of(view)
    document.edit("plan.ffn_layout", "weight_gathered_xy")
    document.evaluate_now()
    assert "XY-weight-gathered" in scene_of(view).title
    assert scene_of(view) is not before


def test_that_a_zoomed_picture_stays_where_it_is_when_numbers_change(
    view: SceneView, document: DesignDocument
) -> None:
    view.zoom_by(1.5)
    before = (view.camera.scale, view.camera.dx, view.camera.dy)
    document.edit("workload.batch", 128)
    document.evaluate_now()
    view.grab()
    assert (view.camera.scale, view.camera.dx, view.camera.dy) == before


def test_that_a_bad_design_keeps_the_last_picture_and_says_so(
    view: SceneView, document: DesignDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = view.grab().toImage()
    monkeypatch.setattr(type(document), "stale", property(lambda _self: True))
    document.stale_changed.emit(True)
    stale = view.grab().toImage()
    assert stale != fresh
    assert scene_of(view).targets


def test_that_the_theme_changes_the_colours(view: SceneView, theme_manager: ThemeManager) -> None:
    assert view.grab().toImage().pixelColor(2, 2) == LIGHT.color(Role.PANEL)
    theme_manager.choose("dark")
    assert view.grab().toImage().pixelColor(2, 2) == DARK.color(Role.PANEL)


@pytest.mark.qt_log_ignore(r"This plugin does not support raise\(\)")
def test_that_the_tooltip_names_what_is_under_the_pointer(view: SceneView) -> None:
    found = target(view, "tensor/block/W_in")
    position = middle(view, found)
    event = QHelpEvent(QEvent.Type.ToolTip, position, view.mapToGlobal(position))
    QApplication.sendEvent(view, event)
    assert "W_in E_xF_yz" in QToolTip.text()
    assert "4608" in QToolTip.text()
    QToolTip.hideText()


def test_that_a_screen_reader_hears_what_the_picture_shows(view: SceneView) -> None:
    scene_of(view)
    assert view.accessibleName() == "Layout"
    assert "31 steps" in view.accessibleDescription()
    assert view.focusPolicy() == Qt.FocusPolicy.StrongFocus


def test_that_a_view_without_an_evaluation_is_blank(
    design: Design, theme_manager: ThemeManager, qtbot: QtBot
) -> None:
    document = DesignDocument(design)
    made = SceneView(view_named("time"), document, theme_manager)
    qtbot.addWidget(made)
    assert made.scene is None
    assert made.grab().toImage().pixelColor(5, 5) == LIGHT.color(Role.PANEL)
    document.close()
