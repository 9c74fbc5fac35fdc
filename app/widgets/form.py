"""The one way to put a field into a panel: label, buddy, accessible name, tooltip and error line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from app.widgets.message import MessageLine
from app.widgets.quantity_edit import NumberEdit
from model_core.diagnostics import Severity

LABEL_WIDTH = 112


@dataclass(frozen=True)
class Field:
    """The widgets of one row."""

    label: QLabel
    editor: QWidget
    message: MessageLine


class Form(QWidget):
    """Rows of label and editor; each row can say what is wrong with it.

    What the editor itself cannot read comes first; a diagnostic set with `set_error` shows when
    the text is right again.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._fields: dict[str, Field] = {}
        self._errors: dict[str, tuple[str, Severity, str]] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 8, 12, 8)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnMinimumWidth(0, LABEL_WIDTH)
        self._grid.setColumnStretch(1, 1)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the rows, in order."""
        return tuple(self._fields)

    def add(self, path: str, label: str, editor: QWidget, tooltip: str) -> None:
        """Add a row for the field at a design path (or any name unique in this form)."""
        text = QLabel(label, self)
        text.setProperty("muted", True)
        # Wrapping costs layout time at every message shown, so only labels that need it wrap.
        text.setWordWrap(text.sizeHint().width() > LABEL_WIDTH)
        text.setBuddy(editor)
        text.setToolTip(tooltip)
        text.setMaximumWidth(LABEL_WIDTH)
        # The grid makes room for a label of two lines only if the label fills its cell.
        text.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading)
        editor.setParent(self)
        editor.setObjectName(path)
        editor.setToolTip(tooltip)
        editor.setAccessibleName(label)
        editor.setAccessibleDescription(tooltip)
        editor.setSizePolicy(QSizePolicy.Policy.Expanding, editor.sizePolicy().verticalPolicy())
        message = MessageLine(self)
        message.setObjectName(f"{path}.message")
        row = 2 * len(self._fields)
        self._grid.addWidget(text, row, 0)
        self._grid.addWidget(editor, row, 1)
        self._grid.addWidget(message, row + 1, 0, 1, 2)
        self._fields[path] = Field(text, editor, message)
        if isinstance(editor, NumberEdit):
            editor.problem_changed.connect(self._on_problem_changed)

    def editor(self, path: str) -> QWidget:
        """Return the editor of a row."""
        return self._fields[path].editor

    def set_row_visible(self, path: str, visible: bool) -> None:
        """Show or hide a whole row."""
        row = self._fields[path]
        row.label.setVisible(visible)
        row.editor.setVisible(visible)
        row.message.setVisible(visible and bool(row.message.text))

    def set_error(self, path: str, text: str, severity: Severity, hint: str = "") -> None:
        """Say under the field what is wrong with its value."""
        self._errors[path] = (text, severity, hint)
        self._show(path)

    def set_errors(self, errors: Mapping[str, tuple[str, Severity, str]]) -> None:
        """Say what is wrong with each field by path (text, severity, hint), and nothing else any more."""
        said, self._errors = self._errors, dict(errors)
        for path in said.keys() | errors.keys():
            if said.get(path) != errors.get(path):
                self._show(path)

    def clear_errors(self) -> None:
        """Take back what was said."""
        self.set_errors({})

    def error(self, path: str) -> str:
        """Return what is said under a field; empty if nothing."""
        return self._fields[path].message.text

    def _on_problem_changed(self, _problem: str) -> None:
        for path, row in self._fields.items():
            if row.editor is self.sender():
                self._show(path)

    def _show(self, path: str) -> None:
        row = self._fields[path]
        if isinstance(row.editor, NumberEdit) and row.editor.problem:
            row.message.show_message(row.editor.problem, Severity.ERROR)
        else:
            row.message.show_message(*self._errors.get(path, ("", Severity.INFO, "")))
