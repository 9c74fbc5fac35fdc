"""The composition root: makes the application, its services and its window, and runs them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, QTranslator
from PySide6.QtWidgets import QApplication

from app.crash import CrashHandler, report_folder
from app.document import DesignDocument
from app.i18n import install_qt, set_language, system_language
from app.idle import IdleCollector
from app.storage.recovery import RecoveryStore
from app.storage.settings import SYSTEM_LANGUAGE, Settings
from app.theme.manager import ThemeManager
from app.windows.main_window import MainWindow
from model_core.spec import Design


class Application(QObject):
    """Everything that lives as long as the process: settings, theme, document, recovery, and the window."""

    def __init__(self, qt: QApplication, design: Design, path: Path | None) -> None:
        super().__init__(qt)
        self._qt = qt
        self._settings = Settings()
        self._translator: QTranslator | None = None
        self._use_language(self._settings.language)
        self._themes = ThemeManager(qt, self._settings.theme, self)
        self._document = DesignDocument(design, parent=self, path=path)
        if path is not None:
            self._settings.add_recent(path)
        self._recovery: RecoveryStore | None = None
        self._collector: IdleCollector | None = None
        self._window = self._make_window()
        qt.aboutToQuit.connect(self._on_about_to_quit)

    @property
    def window(self) -> MainWindow:
        """The window; another one after the language was changed."""
        return self._window

    def start(self) -> None:
        """Show the window; everything that it does not need to be seen comes after."""
        self._window.first_painted.connect(self._on_first_painted)
        self._window.show()

    def _make_window(self) -> MainWindow:
        window = MainWindow(self._document, self._themes, self._settings)
        window.language_chosen.connect(self._on_language_chosen)
        window.closed.connect(self._on_closed)
        return window

    def _on_first_painted(self) -> None:
        QTimer.singleShot(0, self._after_first_paint)

    def _after_first_paint(self) -> None:
        if os.environ.get("MESHWRIGHT_TIMING") == "1":
            sys.stderr.write(f"first paint after {seconds_since_start():.3f} s\n")
        self._document.request_evaluation()
        self._collector = IdleCollector(self._document, self)
        self._recovery = RecoveryStore(self._document, parent=self)
        self._window.offer_recovery(self._recovery)

    def _use_language(self, choice: str) -> None:
        if self._translator is not None:
            self._qt.removeTranslator(self._translator)
        set_language(system_language() if choice == SYSTEM_LANGUAGE else choice)
        self._translator = install_qt(self._qt)

    def _on_language_chosen(self, choice: str) -> None:
        QTimer.singleShot(0, self._rebuild_window)
        self._use_language(choice)

    def _rebuild_window(self) -> None:
        old = self._window
        old.closed.disconnect(self._on_closed)
        self._window = self._make_window()
        self._window.show()
        old.leave()
        old.deleteLater()
        if self._collector is not None:
            self._collector.renew()

    def _on_closed(self) -> None:
        self._document.close()
        self._stop_collector()
        if self._recovery is not None:
            self._recovery.close()
            self._recovery = None

    def _on_about_to_quit(self) -> None:
        """End what still runs if the process was told to quit and nobody was asked about changes."""
        self._document.close()
        self._stop_collector()
        if self._recovery is not None:
            self._recovery.abandon()
            self._recovery = None

    def _stop_collector(self) -> None:
        if self._collector is not None:
            self._collector.stop()
            self._collector = None


def seconds_since_start() -> float:
    """Return the age of this process where the system tells it, else the CPU time it has used."""
    try:
        started_ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return time.process_time()
    return uptime - started_ticks / os.sysconf("SC_CLK_TCK")


def run_window(design: Design, path: Path | None) -> int:
    """Show the window on a design and run until it is closed.

    Args:
        design: what to open.
        path: the file it came from; none for a preset.

    Returns:
        The exit code.
    """
    qt = QApplication.instance()
    if not isinstance(qt, QApplication):
        qt = QApplication(sys.argv[:1])
    qt.setOrganizationName("Meshwright")
    qt.setApplicationName("Meshwright")
    qt.setDesktopFileName("meshwright")
    crash = CrashHandler(report_folder(), qt)
    crash.install()
    application = Application(qt, design, path)
    application.start()
    code = qt.exec()
    application.window.deleteLater()
    crash.remove()
    return code
