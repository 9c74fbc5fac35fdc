"""The diagnostics of the latest evaluation as a table, worst first."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.i18n import tr, tr_diagnostic
from app.theme.icons import icon
from app.widgets.message import severity_name, severity_role
from model_core.diagnostics import Diagnostic, Severity

_ORDER: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE: Final = QModelIndex()


class Column(IntEnum):
    """What the columns show."""

    SEVERITY = 0
    FIELD = 1
    MESSAGE = 2
    HINT = 3


class ProblemsModel(QAbstractTableModel):
    """Severity, field, message and hint of each diagnostic."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[tuple[Diagnostic, str, str], ...] = ()

    def set_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> bool:
        """Show other diagnostics.

        Returns:
            Whether anything changed.
        """
        ordered = sorted(diagnostics, key=lambda d: (_ORDER[d.severity], d.path))
        rows = tuple((diagnostic, *tr_diagnostic(diagnostic)) for diagnostic in ordered)
        if rows == self._rows:
            return False
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()
        return True

    def path(self, row: int) -> str:
        """Return the path of the field that a row concerns."""
        return self._rows[row][0].path

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        """Return the number of diagnostics."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(Column)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text, symbol, tooltip or accessible text of a cell."""
        if not index.isValid():
            return None
        diagnostic, message, hint = self._rows[index.row()]
        severity = severity_name(diagnostic.severity)
        column = Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return (severity, diagnostic.path, message, hint)[column]
        if role == Qt.ItemDataRole.DecorationRole and column is Column.SEVERITY:
            return icon(str(diagnostic.severity), role=severity_role(diagnostic.severity))
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{message}\n{hint}".strip()
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{severity}: {message}" if column is Column.MESSAGE else None
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return the titles of the columns."""
        if role != Qt.ItemDataRole.DisplayRole or orientation is not Qt.Orientation.Horizontal:
            return None
        return (tr("Severity"), tr("Field"), tr("Problem"), tr("What helps"))[section]
