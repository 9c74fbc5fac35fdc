"""New, open, save: the design and its file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.actions.dialogs import DiagnosticsDialog, open_message
from app.actions.registry import ActionSpec
from app.actions.unsaved import Continuation, UnsavedGuard
from app.document import DesignDocument
from app.i18n import tr
from app.storage.settings import Settings
from model_core.diagnostics import has_errors
from model_core.spec import Design

SUFFIX = ".meshwright.json"
FIRST_DESIGN = "palm-540b-decode-low-latency"


class FileActions(QObject):
    """Opens and saves designs; what is open is never left without asking."""

    def __init__(self, document: DesignDocument, settings: Settings | None, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._settings = settings
        self._window = window
        self.guard = UnsavedGuard(document, self.save, window)
        self._after_save: Continuation | None = None
        self._stamp = _stamp(document.path)
        document.path_changed.connect(self._on_path_changed)

    def specs(self) -> tuple[ActionSpec, ...]:
        """Describe the actions."""
        return (
            ActionSpec(
                "file.new", tr("&New"), self.new, ("Ctrl+N",), "new", tr("Start from the first example")
            ),
            ActionSpec("file.open", tr("&Open…"), self.open, ("Ctrl+O",), "open"),
            ActionSpec("file.save", tr("&Save"), self.save, ("Ctrl+S",), "save", enabled=self._can_save),
            ActionSpec("file.save_as", tr("Save &as…"), self.save_as, ("Ctrl+Shift+S",), "save"),
            ActionSpec("file.quit", tr("&Quit"), self._window.close, ("Ctrl+Q",), "quit"),
        )

    def recent(self) -> tuple[Path, ...]:
        """Return the files opened lately."""
        return () if self._settings is None else self._settings.recent

    def clear_recent(self) -> None:
        """Forget the files opened lately."""
        if self._settings is not None:
            self._settings.clear_recent()

    def new(self) -> None:
        """Start an unnamed design."""
        self.guard.proceed(self._load_new)

    def open(self) -> None:
        """Ask for a file and open it."""
        self.guard.proceed(self._ask_open)

    def open_path(self, path: Path) -> None:
        """Open a file; a bad one says why and changes nothing."""
        self.guard.proceed(partial(self._load_path, path))

    def open_preset(self, name: str) -> None:
        """Open a preset design as a new, unsaved one."""
        self.guard.proceed(partial(self._load_preset, name))

    def restore(self, design: Design, origin: Path | None, done: Continuation) -> None:
        """Open a recovered design, as a change that is not saved; ``done`` is called only if it was opened."""
        self.guard.proceed(partial(self._load_recovered, design, origin, done))

    def save(self, continuation: Continuation | None = None) -> None:
        """Save to the design's file, asking for one if it has none; then go on with the continuation."""
        self._after_save = continuation
        path = self._document.path
        if path is None:
            self._ask_save()
        elif _stamp(path) != self._stamp:
            self._ask_overwrite(path)
        else:
            self._write(path)

    def save_as(self) -> None:
        """Ask for a file and save to it."""
        self._after_save = None
        self._ask_save()

    def _can_save(self) -> bool:
        return self._document.modified or self._document.path is None

    def _load_new(self) -> None:
        from presets import load_design

        self._document.load(load_design(FIRST_DESIGN).replace(name=tr("Untitled"), notes=""), None)

    def _load_preset(self, name: str) -> None:
        from presets import load_design

        self._document.load(load_design(name), None)

    def _load_recovered(self, design: Design, origin: Path | None, done: Continuation) -> None:
        self._document.load(design, origin, modified=True)
        done()

    def _load_path(self, path: Path) -> None:
        from model_core.spec.io import read_design

        design, diagnostics = read_design(path)
        if design is None or has_errors(diagnostics):
            DiagnosticsDialog(path.name, diagnostics, self._window).open()
            return
        self._document.load(design, path)
        self._remember(path)

    def _ask_open(self) -> None:
        dialog = self._file_dialog(tr("Open a design"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._on_open_selected)
        dialog.open()

    def _ask_save(self) -> None:
        dialog = self._file_dialog(tr("Save the design"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        name = (
            self._document.path.name
            if self._document.path
            else f"{_file_stem(self._document.design.name)}{SUFFIX}"
        )
        dialog.selectFile(name)
        dialog.fileSelected.connect(self._on_save_selected)
        dialog.open()

    def _ask_overwrite(self, path: Path) -> None:
        buttons = QMessageBox.StandardButton
        box = QMessageBox(
            QMessageBox.Icon.Warning,
            tr("File changed"),
            tr("{name} was changed by another program since it was opened.", name=path.name),
            buttons.Cancel,
            self._window,
        )
        box.setObjectName("overwrite_box")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setInformativeText(tr("Overwriting loses what the other program wrote."))
        box.addButton(tr("Overwrite"), QMessageBox.ButtonRole.DestructiveRole).clicked.connect(
            partial(self._write, path)
        )
        elsewhere = box.addButton(tr("Save as…"), QMessageBox.ButtonRole.AcceptRole)
        elsewhere.clicked.connect(self._ask_save)
        box.setDefaultButton(elsewhere)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    def _on_path_changed(self, path: Path | None) -> None:
        self._stamp = _stamp(path)

    def _file_dialog(self, title: str) -> QFileDialog:
        folder = Path.home() if self._settings is None else self._settings.folder
        names = tr("Meshwright designs")
        dialog = QFileDialog(self._window, title, str(folder), f"{names} (*{SUFFIX} *.json)")
        dialog.setObjectName("file_dialog")
        return dialog

    def _on_open_selected(self, name: str) -> None:
        self._load_path(Path(name))

    def _on_save_selected(self, name: str) -> None:
        path = Path(name)
        self._write(path if path.name.endswith(".json") else path.with_name(path.name + SUFFIX))

    def _write(self, path: Path) -> None:
        continuation, self._after_save = self._after_save, None
        try:
            self._document.save(path)
        except OSError as error:
            reason = error.strerror or str(error)
            open_message(
                self._window,
                tr("Not saved"),
                tr("{name} could not be written: {reason}", name=path.name, reason=reason),
                tr("The design is still open and unsaved."),
            )
            return
        self._remember(path)
        if continuation is not None:
            continuation()

    def _remember(self, path: Path) -> None:
        if self._settings is not None:
            self._settings.add_recent(path)
            self._settings.folder = path.absolute().parent


def _stamp(path: Path | None) -> tuple[int, int] | None:
    """Return what tells one state of a file from another; none where there is no file."""
    try:
        status = None if path is None else path.stat()
    except OSError:
        return None
    return None if status is None else (status.st_mtime_ns, status.st_size)


def _file_stem(name: str) -> str:
    kept = "".join(c if c.isalnum() or c in "-_. " else "-" for c in name).strip(" .-")
    return kept[:80] or "design"
