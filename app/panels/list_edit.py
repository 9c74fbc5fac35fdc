"""Fields for several values: whole numbers in one line, or any of a few choices."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.binding import Binding, field_at
from app.theme.fonts import tabular
from app.widgets.choices import CheckEdit
from model_core.spec import Design

_BETWEEN = re.compile(r"[,;\s]+")


class CountsEdit(QLineEdit):
    """Whole numbers with commas or spaces between them; empty for none."""

    text_committed = Signal()
    reverted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFont(tabular())
        self.setAcceptDrops(False)
        self.editingFinished.connect(self._on_finished)

    @property
    def counts(self) -> tuple[int, ...] | None:
        """The numbers written; none where the text is something else."""
        words = [word for word in _BETWEEN.split(self.text().strip()) if word]
        return tuple(int(word) for word in words) if all(_is_count(word) for word in words) else None

    def set_counts(self, counts: tuple[int, ...]) -> None:
        """Show numbers without announcing them."""
        self.setText(", ".join(str(count) for count in counts))
        self.setCursorPosition(0)
        self.setModified(False)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let Escape bring back what was there."""
        if event.key() == Qt.Key.Key_Escape:
            self.reverted.emit()
        else:
            super().keyPressEvent(event)

    def _on_finished(self) -> None:
        if self.isModified():
            self.setModified(False)
            self.text_committed.emit()


class CountsBinding(Binding):
    """A list of whole numbers of the design."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: CountsEdit) -> None:
        super().__init__(document, path, label, editor)
        self._counts = editor
        editor.text_committed.connect(self._on_committed)
        editor.reverted.connect(self._on_reverted)

    def show_design(self, design: Design) -> None:
        """Show the numbers, unless the user is writing or has something to correct here."""
        if not self.refusal and not self._counts.isModified():
            self._counts.set_counts(field_at(design, self.path))

    def _on_committed(self) -> None:
        counts = self._counts.counts
        if counts is None:
            self._set_refusal(tr("Not a list of whole numbers; write for instance 4, 4, 3"))
        else:
            self.commit(counts)
            self.show_design(self.document.design)

    def _on_reverted(self) -> None:
        self._set_refusal("")
        self._counts.setModified(False)
        self.show_design(self.document.design)


class ChecksEdit(QWidget):
    """One check box for each value that may be in a list."""

    values_committed = Signal(object)

    def __init__(self, choices: tuple[tuple[str, str], ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._boxes = {value: CheckEdit(label, self) for value, label in choices}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(6)
        for box in self._boxes.values():
            column.addWidget(box)
            box.check_committed.connect(self._on_committed)
        self.setFocusProxy(next(iter(self._boxes.values())))

    def box(self, value: str) -> CheckEdit:
        """Return the check box of a value."""
        return self._boxes[value]

    def set_values(self, values: tuple[str, ...]) -> None:
        """Show which values are in the list, without announcing it."""
        for value, box in self._boxes.items():
            box.set_checked(value in values)

    def _on_committed(self, _checked: bool) -> None:
        self.values_committed.emit(tuple(value for value, box in self._boxes.items() if box.isChecked()))


class ChecksBinding(Binding):
    """A list of the design that holds some of a few values."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: ChecksEdit) -> None:
        super().__init__(document, path, label, editor)
        self._checks = editor
        editor.values_committed.connect(self._on_committed)

    def show_design(self, design: Design) -> None:
        """Show what is in the list."""
        self._checks.set_values(field_at(design, self.path))

    def _on_committed(self, values: tuple[str, ...]) -> None:
        self.commit(values)
        self.show_design(self.document.design)


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10
