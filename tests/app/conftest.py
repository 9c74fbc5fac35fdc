"""The window's tests: no display, no user files, English, and nothing left running."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSettings, QStandardPaths, QTranslator
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.i18n import set_language
from app.storage.settings import Settings
from app.theme import LIGHT, apply
from app.theme.manager import ThemeManager
from model_core.spec import Design

if TYPE_CHECKING:
    from app.windows.main_window import MainWindow


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what the offscreen platform says about every window with a smallest size."""
    config.addinivalue_line("qt_log_ignore", r"This plugin does not support propagateSizeHints\(\)")


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: QApplication) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    QStandardPaths.setTestModeEnabled(True)
    QSettings.setDefaultFormat(QSettings.Format.IniFormat)
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "config"))
    qapp.setOrganizationName("Meshwright")
    qapp.setApplicationName("Meshwright")
    apply(qapp, LIGHT)
    set_language("en")
    yield
    set_language("en")
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)


@pytest.fixture(scope="session", autouse=True)
def _empty_clipboard(qapp: QApplication) -> Iterator[None]:
    """Take back what a test has copied: Qt would destroy it after Python has ended, and crash."""
    yield
    qapp.clipboard().clear()


@pytest.fixture
def design() -> Design:
    """The design that the application opens with."""
    from presets import load_design

    return load_design("palm-540b-decode-low-latency")


@pytest.fixture
def theme_manager(qapp: QApplication) -> Iterator[ThemeManager]:
    """A manager that starts with the light theme."""
    manager = ThemeManager(qapp, "light")
    yield manager
    manager.deleteLater()


@pytest.fixture
def document(design: Design, qapp: QApplication) -> Iterator[DesignDocument]:
    """A document with its first evaluation in place."""
    made = DesignDocument(design)
    made.evaluate_now()
    yield made
    made.close()
    made.deleteLater()
    _delete_now()


def _delete_now() -> None:
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def main_window(
    document: DesignDocument, theme_manager: ThemeManager, qtbot: QtBot
) -> Iterator[Callable[[Design], MainWindow]]:
    """Make windows on a design; the document is the `document` fixture's."""
    from app.windows.main_window import MainWindow

    made: list[MainWindow] = []

    def make(design: Design) -> MainWindow:
        if design != document.design:
            document.load(design, None)
            document.evaluate_now()
        window = MainWindow(document, theme_manager, Settings())
        made.append(window)
        window.resize(1280, 800)
        window.show()
        qtbot.waitExposed(window)
        return window

    yield make
    for window in made:
        window.leave()
        window.deleteLater()
    _delete_now()
