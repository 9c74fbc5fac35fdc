"""The application as a whole: start, change of language, end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.i18n import language
from app.main import Application, seconds_since_start
from app.storage.recovery import recovery_folder
from app.storage.settings import Settings
from model_core.spec import Design
from model_core.spec.io import write_design


@pytest.fixture
def application(qapp: QApplication, design: Design, qtbot: QtBot) -> Iterator[Application]:
    made = Application(qapp, design, None)
    made.start()
    qtbot.waitUntil(lambda: made.window.document.evaluation is not None)
    yield made
    made.window.leave()
    made.window.deleteLater()
    made.deleteLater()


def test_that_the_window_is_seen_before_anything_is_evaluated(
    qapp: QApplication, design: Design, qtbot: QtBot
) -> None:
    application = Application(qapp, design, None)
    with qtbot.waitSignal(application.window.first_painted):
        application.start()
    assert application.window.document.evaluation is None
    qtbot.waitUntil(lambda: application.window.document.evaluation is not None)
    application.window.leave()
    application.window.deleteLater()
    application.deleteLater()


def test_that_another_language_gets_another_window_on_the_same_document(
    application: Application, qtbot: QtBot
) -> None:
    first = application.window
    document = first.document
    document.edit("workload.batch", 128)
    first.language_chosen.emit("zh_CN")
    qtbot.waitUntil(lambda: application.window is not first and application.window.isVisible())
    assert language() == "zh_CN"
    assert application.window.document is document
    assert document.design.workload.batch == 128
    assert document.undo_stack.canUndo()
    assert application.window.menuBar().actions()[0].text() == "文件(&F)"
    document.edit("workload.batch", 256)
    qtbot.waitUntil(lambda: document.evaluation is not None and document.evaluation.design is document.design)


def test_that_unsaved_work_is_snapshotted_until_the_end(application: Application, qtbot: QtBot) -> None:
    application.window.document.edit("workload.batch", 128)
    qtbot.waitUntil(lambda: len(list(recovery_folder().glob("*.meshwright.json"))) == 1)
    application.window.leave()
    assert list(recovery_folder().iterdir()) == []


def test_that_quitting_without_an_answer_keeps_the_snapshot(
    application: Application, qapp: QApplication, qtbot: QtBot
) -> None:
    application.window.document.edit("workload.batch", 128)
    qapp.aboutToQuit.emit()
    assert [path.suffix for path in recovery_folder().glob("*.json")] == [".json"]
    assert not list(recovery_folder().glob("*.lock"))


def test_that_the_file_opened_is_remembered(
    qapp: QApplication, design: Design, tmp_path: Path, qtbot: QtBot
) -> None:
    path = tmp_path / "mine.meshwright.json"
    write_design(design, path)
    application = Application(qapp, design, path)
    assert application.window.document.path == path
    assert not application.window.document.modified
    assert Settings().recent == (path,)
    application.window.leave()
    application.window.deleteLater()
    application.deleteLater()


def test_that_the_age_of_the_process_is_known() -> None:
    assert 0 < seconds_since_start() < 24 * 3600
