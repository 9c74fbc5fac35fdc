"""The diagnostics of the latest evaluation as a table, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QIcon

from app.i18n import tr, tr_diagnostic
from app.theme.icons import icon
from app.widgets.message import severity_name, severity_role
from model_core.diagnostics import Diagnostic, Severity

_ORDER: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_ROLES: Final = frozenset(
    {
        Qt.ItemDataRole.DisplayRole,
        Qt.ItemDataRole.DecorationRole,
        Qt.ItemDataRole.ToolTipRole,
        Qt.ItemDataRole.AccessibleTextRole,
    }
)
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE: Final = QModelIndex()


class Column(IntEnum):
    """What the columns show."""

    SEVERITY = 0
    FIELD = 1
    MESSAGE = 2
    HINT = 3


class Row(NamedTuple):
    """One diagnostic with its texts in the user's language."""

    diagnostic: Diagnostic
    severity: str
    message: str
    hint: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same problem with other numbers."""
        return self.diagnostic.code, self.diagnostic.path

    @property
    def texts(self) -> tuple[str, ...]:
        """What the columns show, in order."""
        return self.severity, self.diagnostic.path, self.message, self.hint


class ProblemsModel(QAbstractTableModel):
    """Severity, field, message and hint of each diagnostic."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[Row, ...] = ()

    def set_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> bool:
        """Show other diagnostics; rows of problems that remain stay, with what is selected in them.

        Returns:
            Whether anything changed.
        """
        ordered = sorted(diagnostics, key=lambda d: (_ORDER[d.severity], d.path))
        rows = tuple(Row(d, severity_name(d.severity), *tr_diagnostic(d)) for d in ordered)
        if rows == self._rows:
            return False
        self._exchange(rows)
        self._update(rows)
        return True

    def _exchange(self, rows: tuple[Row, ...]) -> None:
        """Remove and insert rows between those that are the same problems at the start and at the end."""
        old, new = [row.key for row in self._rows], [row.key for row in rows]
        first = _common(old, new)
        last = _common(old[first:][::-1], new[first:][::-1])
        if first + last < len(old):
            self.beginRemoveRows(_NOWHERE, first, len(old) - last - 1)
            self._rows = (*self._rows[:first], *self._rows[len(old) - last :])
            self.endRemoveRows()
        if first + last < len(new):
            self.beginInsertRows(_NOWHERE, first, len(new) - last - 1)
            self._rows = (*self._rows[:first], *rows[first : len(new) - last], *self._rows[first:])
            self.endInsertRows()

    def _update(self, rows: tuple[Row, ...]) -> None:
        """Take over other texts, and tell of them cell by cell: for a range, Qt paints the whole table anew."""
        before, self._rows = self._rows, rows
        for number, (old, new) in enumerate(zip(before, rows, strict=True)):
            for column in Column:
                if old.texts[column] != new.texts[column]:
                    cell = self.index(number, column)
                    self.dataChanged.emit(cell, cell)

    def row(self, number: int) -> Row:
        """Return a row."""
        return self._rows[number]

    def texts(self, column: Column) -> Iterator[str]:
        """Yield what a column shows."""
        return (row.texts[column] for row in self._rows)

    def path(self, row: int) -> str:
        """Return the path of the field that a row concerns."""
        return self._rows[row].diagnostic.path

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        """Return the number of diagnostics."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(Column)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text, symbol, tooltip or accessible text of a cell."""
        # Qt asks for about eight roles of every cell that it paints.
        if role not in _ROLES or not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return row.texts[column]
        if role == Qt.ItemDataRole.DecorationRole:
            return _symbol(row.diagnostic.severity) if column == Column.SEVERITY else None
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{row.message}\n{row.hint}".strip()
        return f"{row.severity}: {row.message}" if column == Column.MESSAGE else None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return the titles of the columns."""
        if role != Qt.ItemDataRole.DisplayRole or orientation is not Qt.Orientation.Horizontal:
            return None
        return (tr("Severity"), tr("Field"), tr("Problem"), tr("What helps"))[section]


def _symbol(severity: Severity) -> QIcon:
    return icon(str(severity), role=severity_role(severity))


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """Count the equal items at the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))
