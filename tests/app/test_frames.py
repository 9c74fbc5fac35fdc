"""Pictures made in the evaluation worker: the same as on the main thread, and only where they are seen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QObject, QPoint, Qt, QThread, Signal, Slot
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.evaluation import Round
from app.plots.camera import Camera
from app.plots.frame import Frame, Setting
from app.plots.per_thread import per_thread
from app.plots.scene import Scene
from app.plots.scene_view import SceneView
from app.plots.text import font
from app.plots.views import ViewSpec, view_named
from app.theme import DARK, LIGHT
from app.theme.manager import ThemeManager
from model_core import evaluate
from model_core.spec import Design


class Draughtsman:
    """The layout view, which notes the threads that draw it."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        spec = view_named("layout")
        self._make = spec.make_scene
        self.spec = ViewSpec(spec.id, spec.title, self._draw, spec.parts)

    def _draw(self, *arguments: object) -> Scene:
        self.threads.append(threading.get_ident())
        return self._make(*arguments)


@pytest.fixture
def draughtsman() -> Draughtsman:
    return Draughtsman()


@pytest.fixture
def view(
    draughtsman: Draughtsman, document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot
) -> SceneView:
    """The layout view in a window of its own, painted."""
    made = SceneView(draughtsman.spec, document, theme_manager)
    qtbot.addWidget(made)
    made.resize(900, 640)
    made.show()
    qtbot.waitExposed(made)
    made.grab()
    draughtsman.threads.clear()
    return made


def edit(document: DesignDocument, qtbot: QtBot, batch: int) -> None:
    with qtbot.waitSignal(document.evaluation_changed):
        document.edit("workload.batch", batch)


def setting(document: DesignDocument, ratio: float = 1.0, width: int = 900) -> Setting:
    return Setting(view_named("layout"), "block", None, document.baseline, width, 640, ratio, LIGHT, Camera())


def test_that_a_visible_view_is_drawn_by_the_worker(
    view: SceneView, draughtsman: Draughtsman, document: DesignDocument, qtbot: QtBot
) -> None:
    edit(document, qtbot, 96)
    shown = view.grab().toImage()
    assert len(draughtsman.threads) == 1
    assert threading.get_ident() not in draughtsman.threads
    document.evaluate_now()
    assert view.grab().toImage() == shown
    assert draughtsman.threads[-1] == threading.get_ident()


def test_that_a_hidden_view_is_drawn_when_it_is_shown(
    view: SceneView, draughtsman: Draughtsman, document: DesignDocument, qtbot: QtBot
) -> None:
    view.hide()
    edit(document, qtbot, 96)
    assert draughtsman.threads == []
    view.show()
    view.grab()
    assert draughtsman.threads == [threading.get_ident()]
    assert view.scene is not None
    assert any("96" in text.plain for text in view.scene.texts())


@pytest.mark.parametrize(
    "change",
    [
        lambda view, _document: view.resize(700, 500),
        lambda view, _document: view.show_part("logits"),
        lambda _view, document: document.pin_baseline(),
    ],
)
def test_that_what_changes_while_the_worker_draws_is_drawn_anew(
    change: Callable[[SceneView, DesignDocument], object],
    view: SceneView,
    draughtsman: Draughtsman,
    document: DesignDocument,
    qtbot: QtBot,
) -> None:
    with qtbot.waitSignal(document.evaluation_changed):
        document.edit("workload.batch", 96)
        change(view, document)
    shown = view.grab().toImage()
    assert draughtsman.threads[-1] == threading.get_ident()
    document.evaluate_now()
    assert view.grab().toImage() == shown


def test_that_theme_and_zoom_of_the_moment_count(
    view: SceneView, document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(document.evaluation_changed):
        document.edit("workload.batch", 96)
        theme_manager.choose("dark")
        view.zoom_by(1.5)
    shown = view.grab().toImage()
    document.evaluate_now()
    assert view.grab().toImage() == shown


def test_that_an_error_leaves_the_picture_as_it_is(
    view: SceneView, draughtsman: Draughtsman, document: DesignDocument, qtbot: QtBot
) -> None:
    before = view.scene
    with qtbot.waitSignal(document.evaluation_changed):
        document.edit("plan.mesh", {"x": ("nowhere",)})
    view.grab()
    assert document.stale
    assert view.scene is before
    assert draughtsman.threads == []


def test_that_the_highlight_stays_on_what_it_was_on(
    view: SceneView, document: DesignDocument, qtbot: QtBot
) -> None:
    assert view.scene is not None
    found = next(target for target in view.scene.targets if target.key == "tensor/block/W_in")
    rect = view.camera.to_widget(found.rect)
    qtbot.mouseMove(view, QPoint(round(rect.x + rect.w / 2), round(rect.y + rect.h / 2)))
    plain = setting(document).image(view.scene)
    edit(document, qtbot, 96)
    assert view.cursor().shape() == Qt.CursorShape.PointingHandCursor
    assert view.grab().toImage() != plain


def test_that_a_picture_has_the_pixels_of_the_device(document: DesignDocument) -> None:
    assert document.evaluation is not None
    scene = setting(document).scene(document.evaluation)
    image = setting(document, ratio=2.0).image(scene)
    assert (image.width(), image.height(), image.devicePixelRatioF()) == (1800, 1280, 2.0)
    once = setting(document).image(scene)
    assert (once.width(), once.height()) == (900, 640)


def test_that_pictures_are_told_apart(document: DesignDocument) -> None:
    one = setting(document)
    assert one.same_image(setting(document))
    assert not one.same_scene(setting(document, width=901))
    assert not one.same_image(setting(document, ratio=2.0))
    assert one.same_scene(setting(document, ratio=2.0))
    assert not one.same_image(replace(one, theme=DARK))
    assert not one.same_image(replace(one, camera=Camera(2.0, 0.0, 0.0, False)))


class Easel(QObject):
    """Draws a frame in a thread of its own."""

    begun = Signal(object)
    done = Signal()

    @Slot(object)
    def draw(self, round_: Round) -> None:
        round_.follow_up()
        self.done.emit()


def test_that_both_threads_may_draw_at_once(document: DesignDocument, design: Design, qtbot: QtBot) -> None:
    evaluation = evaluate(design)
    chosen = setting(document)
    expected = chosen.image(chosen.scene(evaluation))
    thread, easel = QThread(), Easel()
    easel.moveToThread(thread)
    easel.begun.connect(easel.draw, Qt.ConnectionType.QueuedConnection)
    thread.start()
    for _ in range(5):
        round_ = Round(design)
        round_.evaluate(lambda _: evaluation)
        frame = Frame(chosen, round_)
        mine: list[QImage] = []
        with qtbot.waitSignal(easel.done):
            easel.begun.emit(round_)
            mine += [chosen.image(chosen.scene(evaluation)) for _ in range(3)]
        assert all(image == expected for image in mine)
        assert frame.image == expected
    thread.quit()
    thread.wait()


def test_that_fonts_are_kept_for_every_thread_apart(qapp: QApplication) -> None:
    assert font(12, False) is font(12, False)
    made: list[object] = []
    other = threading.Thread(target=lambda: made.append(font(12, False)))
    other.start()
    other.join()
    assert made[0] == font(12, False)
    assert made[0] is not font(12, False)


def test_that_an_error_in_what_is_kept_comes_out() -> None:
    @per_thread(maxsize=4)
    def fail(name: str) -> str:
        raise AttributeError(name)

    for _ in range(2):
        with pytest.raises(AttributeError, match="cached"):
            fail("cached")
