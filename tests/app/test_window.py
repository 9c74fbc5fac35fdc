"""The main window: actions, files, layout, recovery, both languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QAction, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QDialog,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QMessageBox,
    QPushButton,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.actions.registry import ActionRegistry, ActionSpec, plain_text
from app.document import DesignDocument
from app.i18n import set_language, translations
from app.panels.problems import ProblemsPanel
from app.storage.recovery import RecoveryStore
from app.storage.settings import Settings
from app.theme import DARK
from app.theme.manager import ThemeManager
from app.widgets.choices import ChoiceBox
from app.widgets.message import MessageLine
from app.windows.main_window import MainWindow
from app.windows.menus import ExamplesMenu, RecentMenu
from model_core.diagnostics import Severity
from model_core.spec import Design
from model_core.spec.io import read_design, write_design

Make = Callable[[Design], MainWindow]


@pytest.fixture
def window(main_window: Make, design: Design) -> MainWindow:
    return main_window(design)


def trigger(window: MainWindow, identifier: str) -> None:
    window.registry.action(identifier).trigger()


def dialog(window: MainWindow, name: str) -> QDialog:
    found = [d for d in window.findChildren(QDialog, name) if d.isVisible()]
    assert len(found) == 1, name
    return found[0]


def answer(window: MainWindow, button: QMessageBox.StandardButton) -> None:
    box = dialog(window, "unsaved_box")
    assert isinstance(box, QMessageBox)
    box.button(button).click()


def menus(window: MainWindow) -> list[QMenu]:
    return [menu for menu in window.menuBar().findChildren(QMenu) if menu.parent() is window.menuBar()]


def submenu(window: MainWindow, kind: type[QMenu]) -> QMenu:
    (found,) = window.menuBar().findChildren(kind)
    return found


# --- actions ---


def test_that_menus_hold_every_action(window: MainWindow) -> None:
    in_menus = {action.objectName() for menu in menus(window) for action in menu.actions()}
    assert {spec.id for spec in window.registry.specs} <= in_menus


@pytest.mark.parametrize(
    ("identifier", "keys"),
    [
        ("file.new", "Ctrl+N"),
        ("file.open", "Ctrl+O"),
        ("file.save", "Ctrl+S"),
        ("file.save_as", "Ctrl+Shift+S"),
        ("file.quit", "Ctrl+Q"),
        ("edit.undo", "Ctrl+Z"),
        ("edit.redo", "Ctrl+Shift+Z"),
        ("edit.redo", "Ctrl+Y"),
        ("edit.pin_baseline", "Ctrl+B"),
        ("edit.preferences", "Ctrl+,"),
        ("view.palette", "Ctrl+K"),
        ("view.show_layout", "Ctrl+1"),
        ("view.show_memory", "Ctrl+2"),
        ("view.show_time", "Ctrl+3"),
        ("view.zoom_fit", "Ctrl+0"),
        ("figure.export", "Ctrl+E"),
        ("help.shortcuts", "F1"),
    ],
)
def test_that_actions_have_the_keys_people_expect(window: MainWindow, identifier: str, keys: str) -> None:
    assert keys in [s.toString() for s in window.registry.action(identifier).shortcuts()]


def test_that_the_registry_refuses_a_second_id_or_key(qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    registry = ActionRegistry(widget)
    registry.add([ActionSpec("a", "A", widget.show, ("Ctrl+A",))])
    with pytest.raises(ValueError, match="exists already"):
        registry.add([ActionSpec("a", "B", widget.show)])
    with pytest.raises(ValueError, match=r"share the shortcut Ctrl\+A"):
        registry.add([ActionSpec("b", "B", widget.show, ("Ctrl+A",))])


@pytest.mark.parametrize(("text", "plain"), [("&Open…", "Open…"), ("打开(&O)…", "打开…"), ("a (b)", "a (b)")])
def test_that_menu_keys_are_left_out_of_plain_texts(text: str, plain: str) -> None:
    assert plain_text(text) == plain


def test_that_undo_says_what_it_undoes(window: MainWindow, document: DesignDocument) -> None:
    undo = window.registry.action("edit.undo")
    assert not undo.isEnabled()
    document.edit("workload.batch", 128, "Set batch to 128")
    assert undo.isEnabled()
    assert "Set batch to 128" in undo.text()
    undo.trigger()
    assert document.design.workload.batch == 64
    trigger(window, "edit.redo")
    assert document.design.workload.batch == 128


def test_that_tabs_and_panels_answer_their_actions(window: MainWindow) -> None:
    for identifier in ("time", "memory", "layout"):
        trigger(window, f"view.show_{identifier}")
        assert window.current_view_id() == identifier
    for dock in (window.inputs_dock, window.explain_dock, window.problems_dock):
        action = window.registry.action(f"view.{dock.objectName()}")
        assert action.isChecked()
        action.trigger()
        assert dock.isHidden()
        assert not action.isChecked()
    trigger(window, "view.reset_layout")
    assert not window.problems_dock.isHidden()


def test_that_the_theme_action_changes_every_icon(window: MainWindow, theme_manager: ThemeManager) -> None:
    before = window.registry.action("file.open").icon().pixmap(20).toImage()
    trigger(window, "view.dark")
    assert theme_manager.theme is DARK
    assert window.registry.action("view.dark").isChecked()
    assert window.registry.action("file.open").icon().pixmap(20).toImage() != before
    assert Settings().theme == "dark"


def test_that_the_baseline_actions_follow_the_document(window: MainWindow, document: DesignDocument) -> None:
    assert not window.registry.action("edit.clear_baseline").isEnabled()
    trigger(window, "edit.pin_baseline")
    assert document.baseline is document.evaluation
    trigger(window, "edit.clear_baseline")
    assert document.baseline is None


@pytest.mark.parametrize("key", [Qt.Key.Key_K, Qt.Key.Key_E, Qt.Key.Key_Z])
def test_that_a_field_leaves_the_window_its_shortcuts(
    key: Qt.Key, window: MainWindow, document: DesignDocument, qtbot: QtBot
) -> None:
    identifier = {Qt.Key.Key_K: "view.palette", Qt.Key.Key_E: "figure.export", Qt.Key.Key_Z: "edit.undo"}[key]
    document.edit("workload.batch", 128)
    window.activateWindow()
    window.focus_field("workload.batch")
    field = window.focusWidget()
    assert isinstance(field, QLineEdit)
    with qtbot.waitSignal(window.registry.action(identifier).triggered):
        QTest.keyClick(field, key, Qt.KeyboardModifier.ControlModifier)


def test_that_undo_in_a_field_takes_back_typing_first(window: MainWindow, document: DesignDocument) -> None:
    document.edit("workload.batch", 128)
    window.activateWindow()
    window.focus_field("workload.batch")
    field = window.focusWidget()
    assert isinstance(field, QLineEdit)
    QTest.keyClicks(field, "7")
    QTest.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert document.design.workload.batch == 128


# --- files ---


def test_that_leaving_a_clean_design_asks_nothing(window: MainWindow, document: DesignDocument) -> None:
    trigger(window, "file.new")
    assert document.design.name == "Untitled"
    assert document.path is None


def test_that_unsaved_changes_can_be_kept_discarded_or_saved(
    window: MainWindow, document: DesignDocument, tmp_path: Path
) -> None:
    path = tmp_path / "a.meshwright.json"
    document.save(path)
    document.edit("workload.batch", 128)
    trigger(window, "file.new")
    answer(window, QMessageBox.StandardButton.Cancel)
    assert document.design.workload.batch == 128
    trigger(window, "file.new")
    answer(window, QMessageBox.StandardButton.Save)
    assert document.design.name == "Untitled"
    saved, _ = read_design(path)
    assert saved is not None
    assert saved.workload.batch == 128
    document.edit("workload.batch", 32)
    trigger(window, "file.new")
    answer(window, QMessageBox.StandardButton.Discard)
    assert document.design.workload.batch == 64


def test_that_closing_asks_about_unsaved_changes(window: MainWindow, document: DesignDocument) -> None:
    document.edit("workload.batch", 128)
    window.close()
    assert window.isVisible()
    answer(window, QMessageBox.StandardButton.Cancel)
    assert window.isVisible()
    window.close()
    answer(window, QMessageBox.StandardButton.Discard)
    assert not window.isVisible()


def test_that_saving_a_new_design_asks_for_a_file_and_goes_on(
    window: MainWindow, document: DesignDocument, tmp_path: Path
) -> None:
    document.edit("workload.batch", 128)
    trigger(window, "file.new")
    answer(window, QMessageBox.StandardButton.Save)
    chooser = dialog(window, "file_dialog")
    assert isinstance(chooser, QFileDialog)
    chooser.fileSelected.emit(str(tmp_path / "mine"))
    assert read_design(tmp_path / "mine.meshwright.json")[0] is not None
    assert document.design.name == "Untitled"


def test_that_a_failed_save_is_said_and_nothing_is_left(
    window: MainWindow, document: DesignDocument, tmp_path: Path
) -> None:
    document.edit("workload.batch", 128)
    trigger(window, "file.save_as")
    chooser = dialog(window, "file_dialog")
    assert isinstance(chooser, QFileDialog)
    chooser.fileSelected.emit(str(tmp_path / "gone" / "mine"))
    box = dialog(window, "message_box")
    assert isinstance(box, QMessageBox)
    assert "mine.meshwright.json" in box.text()
    assert document.modified


@pytest.mark.parametrize(("button", "kept"), [("Overwrite", False), ("Cancel", True)])
def test_that_a_file_changed_by_others_is_not_overwritten_unasked(
    button: str, kept: bool, window: MainWindow, document: DesignDocument, tmp_path: Path
) -> None:
    path = tmp_path / "shared.meshwright.json"
    document.save(path)
    path.write_text("theirs", encoding="utf-8")
    document.edit("workload.batch", 128)
    trigger(window, "file.save")
    box = dialog(window, "overwrite_box")
    assert isinstance(box, QMessageBox)
    assert path.read_text(encoding="utf-8") == "theirs"
    next(b for b in box.buttons() if plain_text(b.text()) == button).click()
    assert (path.read_text(encoding="utf-8") == "theirs") is kept
    assert document.modified is kept


def drop(window: MainWindow, path: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(50, 50),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    event.ignore()
    window.dropEvent(event)
    return event.isAccepted()


def test_that_a_dropped_design_is_opened(
    window: MainWindow, document: DesignDocument, design: Design, tmp_path: Path
) -> None:
    path = tmp_path / "dropped.meshwright.json"
    write_design(design.replace(name="dropped"), path)
    assert drop(window, path)
    assert document.design.name == "dropped"
    assert document.path == path
    assert Settings().recent == (path,)
    assert window.windowTitle().startswith("dropped")
    assert not drop(window, tmp_path / "picture.png")


@pytest.mark.parametrize("content", ["{", "[]", '{"meshwright": {"format": "design", "version": 999}}', ""])
def test_that_a_bad_file_is_explained_and_changes_nothing(
    content: str, window: MainWindow, document: DesignDocument, tmp_path: Path
) -> None:
    before = document.design
    path = tmp_path / "bad.meshwright.json"
    path.write_text(content, encoding="utf-8")
    drop(window, path)
    shown = dialog(window, "diagnostics_dialog")
    lines = shown.findChildren(MessageLine)
    assert [line.text for line in lines if line.severity is Severity.ERROR]
    assert document.design is before


def test_that_the_recent_menu_lists_and_opens(
    window: MainWindow, document: DesignDocument, design: Design, tmp_path: Path
) -> None:
    path = tmp_path / "recent.meshwright.json"
    write_design(design.replace(name="recent"), path)
    Settings().add_recent(path)
    menu = submenu(window, RecentMenu)
    menu.aboutToShow.emit()
    assert "recent.meshwright.json" in menu.actions()[0].text()
    menu.actions()[0].trigger()
    assert document.design.name == "recent"
    menu.aboutToShow.emit()
    menu.actions()[-1].trigger()
    assert Settings().recent == ()


def test_that_an_example_is_opened_from_the_menu(window: MainWindow, document: DesignDocument) -> None:
    menu = submenu(window, ExamplesMenu)
    menu.aboutToShow.emit()
    action = next(a for a in menu.actions() if a.text() == "llama-3.1-70b-h100")
    action.trigger()
    assert document.design.name == "llama-3.1-70b-h100"


# --- figures ---


@pytest.mark.parametrize(
    ("suffix", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")], ids=["png", "svg", "pdf"]
)
def test_that_the_current_view_is_exported(
    suffix: str, head: bytes, window: MainWindow, tmp_path: Path
) -> None:
    trigger(window, "figure.export")
    chooser = dialog(window, "export_dialog")
    assert isinstance(chooser, QFileDialog)
    path = tmp_path / f"figure.{suffix}"
    chooser.fileSelected.emit(str(path))
    assert path.read_bytes().startswith(head)


def test_that_the_current_view_is_copied(window: MainWindow) -> None:
    QGuiApplication.clipboard().clear()
    trigger(window, "figure.copy")
    assert QGuiApplication.clipboard().image().width() > 100


# --- windows it opens ---


def test_that_help_lists_the_shortcuts(window: MainWindow) -> None:
    trigger(window, "help.shortcuts")
    texts = {label.text() for label in dialog(window, "shortcuts_dialog").findChildren(QLabel)}
    assert "Ctrl+K" in texts
    trigger(window, "help.about")
    dialog(window, "about_box")


def test_that_preferences_count_at_once(
    window: MainWindow, theme_manager: ThemeManager, qtbot: QtBot
) -> None:
    trigger(window, "edit.preferences")
    shown = dialog(window, "preferences_dialog")
    theme, language = (shown.findChild(ChoiceBox, name) for name in ("theme", "language"))
    assert isinstance(theme, ChoiceBox)
    assert isinstance(language, ChoiceBox)
    theme.choice_committed.emit("dark")
    assert theme_manager.theme is DARK
    with qtbot.waitSignal(window.language_chosen) as signal:
        language.choice_committed.emit("zh_CN")
    assert signal.args == ["zh_CN"]
    assert Settings().language == "zh_CN"


# --- problems, status, recovery ---


def test_that_a_problem_leads_to_its_field(
    window: MainWindow, document: DesignDocument, qtbot: QtBot
) -> None:
    document.edit("workload.batch", 10_000)
    document.evaluate_now()
    assert "1" in window.problems_dock.title.remark.text()
    window.inputs.fold(frozenset({"section_workload"}))
    problems = window.findChild(ProblemsPanel)
    assert isinstance(problems, ProblemsPanel)
    window.activateWindow()
    problems.field_requested.emit("workload.batch")
    focused = window.focusWidget()
    assert isinstance(focused, QLineEdit)
    assert focused.accessibleName().startswith("Batch")
    assert focused.isVisible()


def test_that_the_status_bar_says_time_trust_and_file(
    window: MainWindow, document: DesignDocument, tmp_path: Path
) -> None:
    def text(name: str) -> str:
        label = window.findChild(QLabel, name)
        assert isinstance(label, QLabel)
        return label.text()

    assert re.fullmatch(r"Evaluated in [\d.,]+ (ms|µs|s)", text("status_evaluated"))
    assert text("status_evidence") == "Calibrated"
    assert text("status_file") == "Not saved to a file"
    document.save(tmp_path / "a.meshwright.json")
    assert text("status_file") == "a.meshwright.json: saved"
    document.edit("workload.batch", 128)
    assert text("status_file") == "a.meshwright.json: unsaved changes"
    assert window.isWindowModified()


def lost(folder: Path, design: Design) -> None:
    folder.mkdir(exist_ok=True)
    write_design(design, folder / "dead.meshwright.json")
    (folder / "dead.origin").write_text("/somewhere/mine.meshwright.json", encoding="utf-8")


def press(window: MainWindow, name: str) -> None:
    button = window.findChild(QPushButton, name)
    assert isinstance(button, QPushButton)
    button.click()


@pytest.fixture
def recovery(document: DesignDocument, design: Design, tmp_path: Path) -> Iterator[RecoveryStore]:
    lost(tmp_path / "recovery", design.replace(name="lost"))
    store = RecoveryStore(document, tmp_path / "recovery")
    yield store
    store.close()


def test_that_a_lost_design_is_restored_as_unsaved(
    window: MainWindow, document: DesignDocument, recovery: RecoveryStore
) -> None:
    window.offer_recovery(recovery)
    assert window.banner.isVisible()
    press(window, "banner_restore")
    assert document.design.name == "lost"
    assert document.modified
    assert document.path == Path("/somewhere/mine.meshwright.json")
    assert recovery.lost_sessions() == ()
    assert recovery.snapshot.exists()
    assert not window.banner.isVisible()


def test_that_restoring_asks_about_the_changes_at_hand(
    window: MainWindow, document: DesignDocument, recovery: RecoveryStore
) -> None:
    document.edit("workload.batch", 128)
    window.offer_recovery(recovery)
    press(window, "banner_restore")
    answer(window, QMessageBox.StandardButton.Cancel)
    assert document.design.workload.batch == 128
    assert len(recovery.lost_sessions()) == 1


@pytest.mark.parametrize(("button", "left"), [("banner_discard", 0), ("banner_later", 1)])
def test_that_a_lost_design_is_discarded_or_kept(
    button: str, left: int, window: MainWindow, recovery: RecoveryStore
) -> None:
    window.offer_recovery(recovery)
    press(window, button)
    assert not window.banner.isVisible()
    assert len(recovery.lost_sessions()) == left


def test_that_an_unreadable_snapshot_is_not_thrown_away(
    window: MainWindow, document: DesignDocument, recovery: RecoveryStore, tmp_path: Path
) -> None:
    snapshot = tmp_path / "recovery" / "dead.meshwright.json"
    snapshot.write_text("{", encoding="utf-8")
    window.offer_recovery(recovery)
    press(window, "banner_restore")
    assert window.banner.isVisible()
    assert snapshot.exists()


# --- layout ---


def test_that_the_arrangement_comes_back(main_window: Make, design: Design) -> None:
    first = main_window(design)
    first.explain_dock.close()
    first.inputs.fold(frozenset({"section_plan"}))
    first.close()
    second = main_window(design)
    assert second.explain_dock.isHidden()
    assert second.inputs.folded == {"section_plan"}


@pytest.mark.parametrize("size", [(1280, 800), (1600, 1000), (2560, 1440)])
@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_that_no_text_is_cut_off(
    size: tuple[int, int], language: str, main_window: Make, design: Design
) -> None:
    set_language(language)
    window = main_window(design)
    window.resize(*size)
    assert (window.width(), window.height()) == size
    for label in window.findChildren(QLabel):
        if (
            label.isVisible()
            and label.text()
            and not label.wordWrap()
            and label.textFormat() != Qt.TextFormat.RichText
        ):
            assert label.width() >= label.fontMetrics().horizontalAdvance(label.text()), label.text()


@pytest.mark.parametrize("size", [(1280, 800), (2560, 1440)])
def test_that_areas_do_not_overlap(size: tuple[int, int], main_window: Make, design: Design) -> None:
    window = main_window(design)
    window.resize(*size)
    areas: list[QWidget] = [
        window.inputs_dock,
        window.explain_dock,
        window.problems_dock,
        window.tabs,
        window.statusBar(),
        window.menuBar(),
    ]
    frames = [(a, a.rect().translated(a.mapTo(window, QPoint()))) for a in areas]
    for i, (one, frame) in enumerate(frames):
        assert window.rect().contains(frame), one.objectName()
        for other, other_frame in frames[:i]:
            assert not frame.intersects(other_frame), (one.objectName(), other.objectName())


# --- language ---


def shown_texts(window: MainWindow) -> Iterator[str]:
    for widget in window.findChildren(QWidget):
        yield widget.toolTip()
        yield widget.accessibleName()
        yield widget.accessibleDescription()
        if isinstance(widget, QLabel | QAbstractButton):
            yield widget.text()
        if isinstance(widget, QLineEdit):
            yield widget.placeholderText()
        if isinstance(widget, QTabBar):
            yield from (widget.tabText(i) for i in range(widget.count()))
    for action in window.findChildren(QAction):
        yield action.text()
        yield action.toolTip()


def test_that_nothing_in_the_window_stays_english(main_window: Make, design: Design) -> None:
    set_language("zh_CN")
    window = main_window(design)
    english = {source for source, text in translations("zh_CN").items() if source != text}
    # A field may be called by its name in the file, and that name may be an English word too.
    names = {widget.objectName().rpartition(".")[2] for widget in window.inputs.findChildren(QWidget)}
    stayed = {text for text in shown_texts(window) if text in english - names}
    assert not stayed
    assert "文件(&F)" in set(shown_texts(window))
