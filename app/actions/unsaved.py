"""The question about unsaved changes, asked before a design is left."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.document import DesignDocument
from app.i18n import tr

Continuation = Callable[[], object]


class UnsavedGuard(QObject):
    """Lets something go on at once if everything is saved, else after Save or Discard."""

    def __init__(
        self, document: DesignDocument, save: Callable[[Continuation], object], window: QWidget
    ) -> None:
        super().__init__(window)
        self._document = document
        self._save = save
        self._window = window
        self._next: Continuation | None = None
        self._box: QMessageBox | None = None

    def proceed(self, continuation: Continuation) -> None:
        """Call the continuation once the present design may be left."""
        if not self._document.modified:
            continuation()
            return
        self._next = continuation
        if self._box is None:
            self._ask()

    def _ask(self) -> None:
        buttons = QMessageBox.StandardButton
        box = QMessageBox(
            QMessageBox.Icon.Question,
            tr("Unsaved changes"),
            tr("Save the changes to {name}?", name=self._document.design.name),
            buttons.Save | buttons.Discard | buttons.Cancel,
            self._window,
        )
        box.setObjectName("unsaved_box")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setInformativeText(tr("Without saving, they are lost."))
        box.setDefaultButton(buttons.Save)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.finished.connect(self._on_finished)
        self._box = box
        box.open()

    def _on_finished(self, result: int) -> None:
        self._box = None
        continuation, self._next = self._next, None
        if continuation is None:
            return
        if result == QMessageBox.StandardButton.Save:
            self._save(continuation)
        elif result == QMessageBox.StandardButton.Discard:
            continuation()
