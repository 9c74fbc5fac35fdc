"""The frontier tab: sweeps in a worker, and designs are found, compared and loaded with mouse and keys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QSizeF, Qt
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.plots.frontier.cloud import Cloud, NoCloud, Wish, best_of, sweep_cloud, swept_batches
from app.plots.frontier.page import FrontierPage
from app.plots.frontier.raster import cloud_image
from app.plots.frontier.scene import draw_frontier
from app.plots.frontier.words import difference_lines, short_title
from app.plots.scene import Dots
from app.theme import LIGHT
from app.theme.manager import ThemeManager
from model_core import evaluate
from model_core.spec import Design
from model_core.spec.base import replace_at
from presets import load_design

SMALL = frozenset(("batch", "weights"))


def never() -> bool:
    return False


def cloud_of(design: Design, swept: frozenset[str] = SMALL, y: str = "cost_chip_s_per_token") -> Cloud:
    found = sweep_cloud(Wish(design, swept, y), never)
    assert isinstance(found, Cloud)
    return found


@pytest.fixture
def page(document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot) -> Iterator[FrontierPage]:
    made = FrontierPage(document, theme_manager)
    qtbot.addWidget(made)
    made.resize(1000, 720)
    made.show()
    qtbot.waitExposed(made)
    qtbot.waitUntil(lambda: isinstance(made.cloud, Cloud), timeout=20_000)
    yield made
    made.stop()


def shown(page: FrontierPage) -> Cloud:
    assert isinstance(page.cloud, Cloud)
    return page.cloud


def front(page: FrontierPage, index: int) -> int:
    return int(shown(page).fronts[0].numbers[index])


def place(page: FrontierPage, number: int) -> QPoint:
    at = page.canvas.position_of(number)
    assert at is not None
    return at.toPoint()


# ---- the cloud -----------------------------------------------------------------------------


def test_that_points_have_the_numbers_of_their_evaluation(design: Design) -> None:
    cloud = cloud_of(design)
    for number in cloud.numbers[:: max(1, len(cloud.numbers) // 5)]:
        found = evaluate(cloud.result.design(int(number)))
        x, y = cloud.position(int(number))
        assert found.value("step_s") == pytest.approx(x, rel=1e-9)
        assert found.value("cost_chip_s_per_token") == pytest.approx(y, rel=1e-9)


def test_that_each_weight_format_has_its_own_frontier(design: Design) -> None:
    cloud = cloud_of(design)
    assert [front.common["plan.weight_dtype"] for front in cloud.fronts] == ["bfloat16", "int8"]
    for each in cloud.fronts:
        xs, ys = zip(*(cloud.position(int(n)) for n in each.numbers), strict=True)
        assert list(xs) == sorted(xs)
        assert list(ys) == sorted(ys, reverse=True)


def test_that_dragging_the_batch_or_the_target_needs_no_new_sweep(design: Design) -> None:
    wish = Wish(design)
    for path, value in (
        ("workload.batch", 97),
        ("workload.latency_target", 0.5),
        ("plan.weight_dtype", "bfloat16"),
    ):
        assert wish.same_designs(Wish(replace_at(design, path, value)))
    assert not wish.same_designs(Wish(replace_at(design, "workload.input_length", 512)))
    assert not wish.same_designs(Wish(design, y="mfu"))
    assert not wish.same_designs(Wish(design, SMALL))


def test_that_a_fixed_batch_is_part_of_what_is_swept(design: Design) -> None:
    wish = Wish(design, frozenset(("layout",)))
    assert not wish.same_designs(Wish(replace_at(design, "workload.batch", 97), wish.swept))


@pytest.mark.parametrize("batch", [1, 512, 3000])
def test_that_batches_reach_beyond_the_designs_own(design: Design, batch: int) -> None:
    reached = swept_batches(replace_at(design, "workload.batch", batch))
    assert reached[0] == 1
    assert reached[-1] >= 4 * batch
    wish = Wish(design)
    assert wish.same_designs(Wish(replace_at(design, "workload.batch", batch))) is (batch < 512)


def test_that_only_a_design_on_a_curve_is_on_the_frontier(design: Design) -> None:
    cloud = cloud_of(design)
    on = set(cloud.on_front().tolist())
    off = next(int(n) for n in cloud.numbers if int(n) not in on)
    x, y = cloud.position(next(iter(on)))
    assert cloud.is_on_front(x, y)
    assert not cloud.is_on_front(x, 1.1 * y)
    assert not cloud.is_on_front(*cloud.position(off))
    assert not cloud.is_on_front(100 * float(cloud.xs.max()), float(cloud.ys.min()))


def test_that_a_cancelled_sweep_returns_nothing(design: Design) -> None:
    assert sweep_cloud(Wish(design), lambda: True) is None


def test_that_a_model_that_fits_nowhere_says_so(design: Design) -> None:
    huge = replace_at(design, "model.n_layers", 5000)
    found = sweep_cloud(Wish(huge, SMALL), never)
    assert isinstance(found, NoCloud)
    scene = draw_frontier(found, evaluate(huge), QSizeF(800, 500)).scene
    assert any("fits" in text.plain for text in scene.texts())


def test_that_training_has_no_frontier_and_says_so() -> None:
    design = load_design("gpt3-175b-training-a100")
    found = sweep_cloud(Wish(design, SMALL), never)
    assert isinstance(found, NoCloud)
    assert "prefill and decode" in draw_frontier(found, None, QSizeF(800, 500)).scene.summary


def test_that_the_best_within_a_latency_is_the_cheapest_that_is_fast_enough(design: Design) -> None:
    cloud = cloud_of(design)
    limit = float(np.median(cloud.xs))
    best = cloud.best_within(limit)
    assert best is not None
    assert cloud.position(best)[1] == cloud.ys[cloud.xs <= limit].min()
    assert cloud.best_within(0.0) is None


def test_that_a_selection_lists_undominated_designs_first(design: Design) -> None:
    cloud = cloud_of(design)
    order = best_of(cloud, cloud.numbers)
    assert sorted(order) == sorted(cloud.numbers.tolist())
    assert order[0] in cloud.on_front()


# ---- the picture ---------------------------------------------------------------------------


def test_that_the_image_shows_every_design_inside(design: Design) -> None:
    cloud = cloud_of(design)
    picture = draw_frontier(cloud, evaluate(design), QSizeF(900, 500), dots=False)
    assert picture.area is not None
    image = cloud_image(cloud, picture.area, LIGHT)
    inside = [n for n in cloud.numbers if picture.area.inside(*cloud.position(int(n)))]
    assert inside
    for number in inside:
        x, y = picture.area.at(*cloud.position(int(number)))
        at = round(x - picture.area.rect.x), round(y - picture.area.rect.y)
        near = [(at[0] + dx, at[1] + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
        assert any(image.valid(*p) and image.pixelColor(*p).alpha() > 0 for p in near)


def test_that_an_export_draws_the_designs_as_dots(design: Design) -> None:
    scene = draw_frontier(cloud_of(design), evaluate(design), QSizeF(900, 500)).scene
    assert sum(len(item.points) for item in scene.items if isinstance(item, Dots)) > 0
    plain = " ".join(text.plain for text in scene.texts())
    for words in ("int8 weights", "bfloat16 weights", "current design", "target 30 ms"):
        assert words in plain


def test_that_names_of_lines_do_not_overlap(design: Design) -> None:
    for size in (QSizeF(520, 320), QSizeF(900, 500), QSizeF(1500, 850)):
        scene = draw_frontier(cloud_of(design, y="mfu"), evaluate(design), size).scene
        bold = [
            t for t in scene.texts() if t.runs[0][1].bold and t.plain in ("int8 weights", "bfloat16 weights")
        ]
        for i, first in enumerate(bold):
            assert not any(first.rect.overlaps(other.rect, 1) for other in bold[i + 1 :])


def test_that_differences_are_said_field_by_field(design: Design) -> None:
    other = replace_at(replace_at(design, "workload.batch", 256), "plan.ffn_layout", "weight_stationary_1d")
    assert difference_lines(design, other) == (
        "batch: 64 → 256",
        "layout: 2D weight-stationary → 1D weight-stationary",
    )
    assert difference_lines(design, design) == ("as the current design",)
    assert short_title(other).startswith("64 chips · batch 256 · 1D WS")


# ---- the page ------------------------------------------------------------------------------


def test_that_a_double_click_loads_a_design_as_one_undo_step(
    page: FrontierPage, document: DesignDocument, qtbot: QtBot
) -> None:
    before = document.design
    number = front(page, 3)
    wanted = shown(page).result.design(number)
    qtbot.mouseDClick(page.canvas, Qt.MouseButton.LeftButton, pos=place(page, number))
    assert document.design.workload == wanted.workload
    assert document.design.plan == wanted.plan
    assert document.design.cluster.topology == wanted.cluster.topology
    assert document.design.name == before.name
    assert document.undo_stack.count() == 1
    document.undo_stack.undo()
    assert document.design == before


def test_that_another_slice_is_named_by_its_shape(page: FrontierPage, document: DesignDocument) -> None:
    cloud = shown(page)
    other = next(int(n) for n in cloud.numbers if cloud.result.columns["n_chips"][n] != 64)
    page.load_design(other)
    assert document.design.cluster.shape_text in document.design.cluster.name


def test_that_enter_loads_what_the_arrows_walked_to(
    page: FrontierPage, document: DesignDocument, qtbot: QtBot
) -> None:
    page.canvas.setFocus()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Return):
        qtbot.keyClick(page.canvas, key)
    assert document.design.workload == shown(page).result.design(front(page, 1)).workload


def test_that_hovering_finds_the_design_under_the_pointer(page: FrontierPage, qtbot: QtBot) -> None:
    number = front(page, 5)
    qtbot.mouseMove(page.canvas, place(page, number))
    assert page.canvas.hovered is not None
    assert shown(page).position(page.canvas.hovered) == shown(page).position(number)
    qtbot.mouseMove(page.canvas, QPoint(3, 3))
    assert page.canvas.hovered is None


@pytest.mark.parametrize("modifier", [Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier])
def test_that_a_drag_lists_what_it_surrounds(
    page: FrontierPage, qtbot: QtBot, modifier: Qt.KeyboardModifier
) -> None:
    middle = place(page, front(page, 4))
    corners = [QPoint(-40, -40), QPoint(40, -40), QPoint(40, 40), QPoint(-40, 40)]
    if modifier == Qt.KeyboardModifier.NoModifier:
        corners = corners[::2]
    qtbot.mousePress(page.canvas, Qt.MouseButton.LeftButton, modifier, middle + corners[0])
    for corner in corners[1:]:
        qtbot.mouseMove(page.canvas, middle + corner)
    qtbot.mouseRelease(page.canvas, Qt.MouseButton.LeftButton, modifier, middle + corners[-1])
    listed = {entry.number for entry in page.model.entries if entry.number is not None}
    assert front(page, 4) in listed
    assert page.table.isVisible()
    assert all(
        abs(place(page, n).x() - middle.x()) <= 41 and abs(place(page, n).y() - middle.y()) <= 41
        for n in listed
        if n is not None
    )


def test_that_pins_are_compared_with_the_current_design(page: FrontierPage, qtbot: QtBot) -> None:
    page.pin(front(page, 0))
    page.pin(front(page, 5))
    assert [entry.mark for entry in page.model.entries] == ["◎", "A", "B"]
    latency = page.model.index(1, 1).data()
    assert "(" in latency
    assert "%" in latency or "×" in latency
    page.pin(front(page, 0))
    assert [pin.letter for pin in page.pins] == ["B"]
    page.clear_button.click()
    assert not page.pins
    assert not page.table.isVisible()


def test_that_pins_stay_when_the_cloud_changes(
    page: FrontierPage, document: DesignDocument, qtbot: QtBot
) -> None:
    page.pin(front(page, 0))
    before = page.cloud
    document.edit("workload.input_length", 512)
    document.evaluate_now()
    qtbot.waitUntil(lambda: page.cloud is not before, timeout=20_000)
    assert [pin.letter for pin in page.pins] == ["A"]
    scene = page.scene_for(QSizeF(900, 500))
    assert scene is not None
    assert any(text.plain == "A" for text in scene.texts())


def test_that_what_is_swept_can_be_chosen(page: FrontierPage, qtbot: QtBot) -> None:
    before = shown(page).total
    page.bar.check("weights").click()
    qtbot.waitUntil(lambda: isinstance(page.cloud, Cloud) and page.cloud.total < before, timeout=20_000)
    assert len(shown(page).fronts) == 1


def test_that_mfu_can_be_set_against_the_latency(page: FrontierPage, qtbot: QtBot) -> None:
    page.bar.measure.setCurrentIndex(page.bar.measure.findData("mfu"))
    page.bar.measure.activated.emit(page.bar.measure.currentIndex())
    qtbot.waitUntil(lambda: shown(page).y == "mfu", timeout=20_000)
    assert shown(page).higher_is_better


def test_that_the_target_is_the_workloads(page: FrontierPage, document: DesignDocument) -> None:
    page.bar.target.value_committed.emit(0.05)
    assert document.design.workload.latency_target == 0.05
    page.bar.target.value_cleared.emit()
    assert document.design.workload.latency_target is None


def test_that_a_hidden_page_does_not_sweep(
    page: FrontierPage, document: DesignDocument, qtbot: QtBot
) -> None:
    before = page.cloud
    page.hide()
    document.edit("workload.input_length", 512)
    document.evaluate_now()
    assert page.cloud is before
    page.show()
    qtbot.waitUntil(lambda: page.cloud is not before, timeout=20_000)


def test_that_a_screen_reader_hears_what_the_frontier_shows(page: FrontierPage) -> None:
    page.canvas.grab()
    assert "on the frontier" in page.canvas.accessibleDescription()
