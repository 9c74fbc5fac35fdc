"""Dialogs that actions open. All are shown by ``open()``: the event loop never nests."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QLabel,
    QMessageBox,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr, tr_diagnostic
from app.widgets.look import muted
from app.widgets.message import MessageLine
from model_core.diagnostics import Diagnostic


def open_message(parent: QWidget, title: str, text: str, detail: str = "") -> QMessageBox:
    """Open a box with a message and a button to close it."""
    box = QMessageBox(QMessageBox.Icon.Warning, title, text, QMessageBox.StandardButton.Close, parent)
    box.setObjectName("message_box")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(detail)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
    return box


class DiagnosticsDialog(QDialog):
    """Says why a file was not opened, finding by finding."""

    def __init__(self, name: str, diagnostics: Sequence[Diagnostic], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("diagnostics_dialog")
        self.setWindowTitle(tr("Cannot open {name}", name=name))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(560, 320)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(muted(tr("The design that is open stays as it is."), self))
        column.addWidget(self._list(diagnostics), 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)

    def _list(self, diagnostics: Sequence[Diagnostic]) -> QScrollArea:
        content = QWidget(self)
        content.setProperty("panel", True)
        rows = QVBoxLayout(content)
        rows.setSpacing(2)
        for diagnostic in diagnostics:
            message, hint = tr_diagnostic(diagnostic)
            line = MessageLine(content)
            line.show_message(message, diagnostic.severity)
            rows.addWidget(line)
            where = QLabel(" · ".join(text for text in (diagnostic.path, hint) if text), content)
            where.setTextFormat(Qt.TextFormat.PlainText)
            where.setWordWrap(True)
            where.setProperty("muted", True)
            where.setContentsMargins(20, 0, 0, 8)
            rows.addWidget(where)
        rows.addStretch(1)
        area = QScrollArea(self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(content)
        return area
