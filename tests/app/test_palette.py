"""The command palette: matching, and use by keyboard alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QListView
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.windows.fuzzy import fuzzy_match
from app.windows.main_window import MainWindow
from app.windows.palette import CommandPalette
from model_core.spec import Design

Make = Callable[[Design], MainWindow]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("zoom", "Zoom to fit"),
        ("ztf", "Zoom to fit"),
        ("62b", "Model: PaLM 62B"),
        ("palm 62", "Model: PaLM 62B"),
        ("62 palm", "Model: PaLM 62B"),
        ("", "anything"),
        ("模型", "模型：PaLM 62B"),
    ],
)
def test_that_parts_of_a_name_find_it(query: str, text: str) -> None:
    assert fuzzy_match(query, text) is not None


@pytest.mark.parametrize(("query", "text"), [("zoon", "Zoom to fit"), ("62b palm x", "Model: PaLM 62B")])
def test_that_other_letters_do_not_find_it(query: str, text: str) -> None:
    assert fuzzy_match(query, text) is None


def score(query: str, text: str) -> int:
    match = fuzzy_match(query, text)
    assert match is not None
    return match.score


def test_that_better_fits_score_higher() -> None:
    assert score("save", "Save") > score("save", "Search all visible entries")
    assert score("time", "Show view: Time") > score("time", "Sentiment engine")
    assert score("open", "Open…") > score("open", "Open design: palm-540b-decode-low-latency")


def test_that_the_letters_hit_are_reported() -> None:
    match = fuzzy_match("pl", "PaLM")
    assert match is not None
    assert match.positions == (0, 2)


@pytest.fixture
def palette(main_window: Make, design: Design) -> CommandPalette:
    window = main_window(design)
    window.show_palette()
    found = window.findChild(CommandPalette)
    assert isinstance(found, CommandPalette)
    return found


def line(palette: CommandPalette) -> QLineEdit:
    found = palette.findChild(QLineEdit, "palette_line")
    assert isinstance(found, QLineEdit)
    return found


def rows(palette: CommandPalette) -> list[str]:
    view = palette.findChild(QListView, "palette_list")
    assert isinstance(view, QListView)
    model = view.model()
    return [str(model.index(row, 0).data()) for row in range(model.rowCount())]


def test_that_typing_and_return_run_a_command(
    palette: CommandPalette, document: DesignDocument, qtbot: QtBot
) -> None:
    assert palette.isVisible()
    QTest.keyClicks(line(palette), "palm 62b")
    assert rows(palette)[0] == "Model: PaLM 62B"
    QTest.keyClick(line(palette), Qt.Key.Key_Return)
    assert document.design.model.name == "PaLM 62B"
    assert document.undo_stack.count() == 1
    assert not palette.isVisible()


def test_that_arrows_go_round(palette: CommandPalette, qtbot: QtBot) -> None:
    view = palette.findChild(QListView, "palette_list")
    assert isinstance(view, QListView)
    QTest.keyClick(line(palette), Qt.Key.Key_Up)
    assert view.currentIndex().row() == len(rows(palette)) - 1
    QTest.keyClick(line(palette), Qt.Key.Key_Down)
    assert view.currentIndex().row() == 0
    QTest.keyClick(line(palette), Qt.Key.Key_PageDown)
    assert view.currentIndex().row() > 1


def test_that_escape_gives_the_focus_back(main_window: Make, design: Design, qtbot: QtBot) -> None:
    window = main_window(design)
    window.activateWindow()
    window.focus_field("workload.batch")
    before = window.focusWidget()
    window.show_palette()
    palette = window.findChild(CommandPalette)
    assert isinstance(palette, CommandPalette)
    QTest.keyClick(line(palette), Qt.Key.Key_Escape)
    assert not palette.isVisible()
    assert window.focusWidget() is before


def test_that_nothing_found_is_said(palette: CommandPalette, qtbot: QtBot) -> None:
    QTest.keyClicks(line(palette), "qqqq")
    assert rows(palette) == []
    QTest.keyClick(line(palette), Qt.Key.Key_Return)
    QTest.keyClick(line(palette), Qt.Key.Key_Down)
    assert palette.isVisible()


def test_that_every_enabled_action_and_every_preset_is_listed(
    palette: CommandPalette, main_window: Make, design: Design
) -> None:
    from presets import names, title

    listed = rows(palette)
    window = palette.window()
    assert isinstance(window, MainWindow)
    for spec in window.registry.specs:
        action = window.registry.action(spec.id)
        text = action.text().replace("&", "")
        assert (text in listed) == (action.isEnabled() and spec.id != "view.palette"), spec.id
    for name in names("clusters"):
        assert f"Cluster: {title('clusters', name)}" in listed
    for name in names("designs"):
        assert f"Open design: {name}" in listed


def test_that_english_ids_are_found_in_any_language(palette: CommandPalette, qtbot: QtBot) -> None:
    QTest.keyClicks(line(palette), "reset_layout")
    assert rows(palette) == ["Reset layout"]
