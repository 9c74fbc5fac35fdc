"""Help: the shortcuts, and the text about the application."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QGridLayout,
    QLabel,
    QMessageBox,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.actions.registry import plain_text
from app.i18n import tr
from app.theme.fonts import fixed
from app.widgets.look import heading, muted


def shortcut_text(action: QAction) -> str:
    """Return the first shortcut of an action as the platform writes it."""
    return action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)


class ShortcutsDialog(QDialog):
    """First steps, and every action that has a key."""

    def __init__(self, actions: Iterable[QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("shortcuts_dialog")
        self.setWindowTitle(tr("Help and shortcuts"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(520, 600)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(heading(tr("How to read it"), self))
        column.addWidget(
            muted(
                tr(
                    "Change a field at the left: every number answers at once. Click a number, a box or a bar "
                    "to see its formula with the values filled in. Pin a baseline to see what a change costs."
                ),
                self,
            )
        )
        column.addWidget(heading(tr("Shortcuts"), self))
        column.addWidget(self._table([*actions]), 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)

    def _table(self, actions: list[QAction]) -> QScrollArea:
        content = QWidget(self)
        content.setProperty("panel", True)
        grid = QGridLayout(content)
        grid.setColumnStretch(0, 1)
        grid.setVerticalSpacing(6)
        rows = [
            (plain_text(action.text()), shortcut_text(action)) for action in actions if shortcut_text(action)
        ]
        rows += [
            (tr("In a number: next or previous value"), "↑ ↓"),
            (tr("In a number: double or halve"), "Page Up / Page Down"),
            (tr("In a number: take back what was typed"), "Esc"),
        ]
        for row, (text, keys) in enumerate(rows):
            grid.addWidget(QLabel(text, content), row, 0)
            label = QLabel(keys, content)
            label.setFont(fixed())
            label.setProperty("muted", True)
            grid.addWidget(label, row, 1)
        grid.setRowStretch(len(rows), 1)
        area = QScrollArea(self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(content)
        return area


def open_about(parent: QWidget) -> QMessageBox:
    """Open the text about the application."""
    try:
        version = metadata.version("meshwright")
    except metadata.PackageNotFoundError:
        version = tr("from source")
    box = QMessageBox(
        QMessageBox.Icon.NoIcon,
        tr("About Meshwright"),
        tr("Meshwright {version}", version=version),
        QMessageBox.StandardButton.Close,
        parent,
    )
    box.setObjectName("about_box")
    box.setInformativeText(
        tr(
            "Designs deployments of large Transformers: layout, memory, time, and where each number comes from. "
            "Licensed under Apache-2.0. Formulas after Pope et al. 2022 and the DeepSeek-V3 report."
        )
    )
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
    return box
