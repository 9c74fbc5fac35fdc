"""Crashes: an unexpected error writes a report and says so; the work is in the recovery snapshot."""

from __future__ import annotations

import faulthandler
import platform
import sys
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TextIO

from PySide6 import __version__ as qt_version
from PySide6.QtCore import QObject, QStandardPaths, Signal
from PySide6.QtWidgets import QApplication, QMessageBox

from app.i18n import tr


def report_folder() -> Path:
    """Return the folder of the crash reports."""
    data = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.AppDataLocation)
    return Path(data) / "crash-reports"


class CrashHandler(QObject):
    """Takes over Python's hooks for unexpected errors until `remove`."""

    _caught = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._box: QMessageBox | None = None
        self._fault_file: TextIO | None = None
        self._hooks = (sys.excepthook, threading.excepthook)
        self._caught.connect(self._show)

    def install(self) -> None:
        """Catch errors from now on, those of Qt's slots and of threads too."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._fault_file = (self._folder / "fault.log").open("w", encoding="utf-8")
        faulthandler.enable(self._fault_file)
        sys.excepthook = self.handle
        threading.excepthook = self._handle_thread

    def remove(self) -> None:
        """Give the hooks back."""
        sys.excepthook, threading.excepthook = self._hooks
        faulthandler.disable()
        if self._fault_file is not None:
            self._fault_file.close()
            self._fault_file = None

    def handle(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Write a report of an error and tell the user."""
        if issubclass(kind, KeyboardInterrupt):
            QApplication.quit()
            return
        path = self._write("".join(traceback.format_exception(kind, error, trace)))
        self._caught.emit(str(path))

    def _handle_thread(self, arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            self.handle(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)

    def _write(self, text: str) -> Path:
        now = datetime.now(UTC)
        path = self._folder / f"{now:%Y%m%dT%H%M%S%f}.txt"
        head = (
            f"Meshwright {now.isoformat()}\nPython {sys.version}\nQt {qt_version}\n{platform.platform()}\n\n"
        )
        path.write_text(head + text, encoding="utf-8")
        return path

    def _show(self, path: str) -> None:
        if self._box is not None:
            return
        box = QMessageBox(
            QMessageBox.Icon.Critical,
            tr("Something went wrong"),
            tr("Meshwright met an error it did not expect. Your design is safe in its recovery copy."),
            QMessageBox.StandardButton.Close,
            QApplication.activeWindow(),
        )
        box.setObjectName("crash_box")
        box.setInformativeText(tr("A report was written to {path}.", path=path))
        box.finished.connect(self._on_closed)
        self._box = box
        box.open()

    def _on_closed(self, _result: int) -> None:
        if self._box is not None:
            self._box.deleteLater()
        self._box = None
