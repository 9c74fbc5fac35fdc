"""Unexpected errors: a report, a message, no end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app.crash import CrashHandler, report_folder


@pytest.fixture
def handler(tmp_path: Path, qapp: QApplication) -> Iterator[CrashHandler]:
    made = CrashHandler(tmp_path / "reports")
    made.install()
    yield made
    made.remove()
    made.deleteLater()


def boxes() -> list[QMessageBox]:
    return [w for w in QApplication.topLevelWidgets() if isinstance(w, QMessageBox) and w.isVisible()]


def reports(tmp_path: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in (tmp_path / "reports").glob("*.txt")]


def raised() -> ValueError:
    try:
        int("forty-one")
    except ValueError as error:
        return error
    raise AssertionError


def test_that_an_error_is_reported_once_and_said(handler: CrashHandler, tmp_path: Path) -> None:
    for _ in range(3):
        error = raised()
        sys.excepthook(type(error), error, error.__traceback__)
    (box,) = boxes()
    assert str(tmp_path) in box.informativeText()
    assert len(reports(tmp_path)) == 3
    assert "ValueError: invalid literal" in reports(tmp_path)[0]
    assert "Qt 6" in reports(tmp_path)[0]
    box.close()


def test_that_an_error_of_a_thread_reaches_the_user(
    handler: CrashHandler, tmp_path: Path, qtbot: QtBot
) -> None:
    error = raised()
    arguments = threading.ExceptHookArgs((type(error), error, error.__traceback__, None))
    thread = threading.Thread(target=threading.excepthook, args=(arguments,))
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: len(boxes()) == 1)
    assert "forty-one" in reports(tmp_path)[0]
    boxes()[0].close()


def test_that_the_hooks_are_given_back(tmp_path: Path, qapp: QApplication) -> None:
    before = (sys.excepthook, threading.excepthook)
    handler = CrashHandler(tmp_path / "reports")
    handler.install()
    assert sys.excepthook != before[0]
    handler.remove()
    assert (sys.excepthook, threading.excepthook) == before


def test_that_reports_are_kept_with_the_applications_data(qapp: QApplication) -> None:
    assert report_folder().name == "crash-reports"
    assert "Meshwright" in str(report_folder())
