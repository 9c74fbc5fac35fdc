"""The command palette: every action and preset, found by typing parts of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFocusEvent, QIcon, QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QGraphicsDropShadowEffect,
    QLabel,
    QLineEdit,
    QListView,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr
from app.theme.icons import icon
from app.windows.fuzzy import fuzzy_match
from app.windows.palette_delegate import POSITIONS_ROLE, SHORTCUT_ROLE, EntryDelegate

_WIDTH: Final = 620
_ROWS: Final = 11
_MARGIN: Final = 24
_MOVES: Final = {
    Qt.Key.Key_Down: 1,
    Qt.Key.Key_Up: -1,
    Qt.Key.Key_PageDown: _ROWS - 1,
    Qt.Key.Key_PageUp: 1 - _ROWS,
}
_Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class Entry:
    """One command. ``keywords`` are searched too, but not shown."""

    text: str
    run: Callable[[], object]
    icon: str = ""
    shortcut: str = ""
    keywords: str = ""


@dataclass(frozen=True)
class _Hit:
    entry: Entry
    positions: tuple[int, ...]


class EntryModel(QAbstractListModel):
    """The entries that fit the query, best first."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._entries: Sequence[Entry] = ()
        self._hits: list[_Hit] = []
        self._query = ""

    def set_entries(self, entries: Iterable[Entry]) -> None:
        """Offer other entries."""
        self._entries = tuple(entries)
        self.filter(self._query)

    def filter(self, query: str) -> None:
        """Show what fits a query; everything, in order, where it is empty."""
        self.beginResetModel()
        self._query = query
        scored = [hit for entry in self._entries if (hit := _hit(query, entry)) is not None]
        if query.strip():
            scored.sort(key=_rank)
        self._hits = [_Hit(entry, positions) for _, positions, entry in scored]
        self.endResetModel()

    def entry(self, row: int) -> Entry:
        """Return the entry of a row."""
        return self._hits[row].entry

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        """Return how many entries fit."""
        return 0 if parent.isValid() else len(self._hits)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what the delegate draws of a row."""
        hit = self._hits[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return hit.entry.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{hit.entry.text} {hit.entry.shortcut}".strip()
        if role == Qt.ItemDataRole.DecorationRole:
            return icon(hit.entry.icon) if hit.entry.icon else QIcon()
        if role == SHORTCUT_ROLE:
            return hit.entry.shortcut
        if role == POSITIONS_ROLE:
            return hit.positions
        return None


def _hit(query: str, entry: Entry) -> tuple[int, tuple[int, ...], Entry] | None:
    match = fuzzy_match(query, entry.text)
    if match is not None:
        return match.score, match.positions, entry
    keyword = fuzzy_match(query, entry.keywords) if entry.keywords else None
    return None if keyword is None else (keyword.score // 2, (), entry)


def _rank(scored: tuple[int, tuple[int, ...], Entry]) -> tuple[int, int]:
    return -scored[0], len(scored[2].text)


class CommandPalette(QFrame):
    """A sheet over the window with a line to type into and a list; used by keyboard alone."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setObjectName("palette_frame")
        self.setAccessibleName(tr("Command palette"))
        self._return_focus: QWidget | None = None
        self._line = QLineEdit(self)
        self._line.setObjectName("palette_line")
        self._line.setPlaceholderText(tr("Type a command, a model, a cluster…"))
        self._line.setAccessibleName(tr("Search commands and presets"))
        self._line.installEventFilter(self)
        self._model = EntryModel(self)
        self._list = QListView(self)
        self._list.setObjectName("palette_list")
        self._list.setAccessibleName(tr("Commands found"))
        self._list.setModel(self._model)
        self._list.setItemDelegate(EntryDelegate(self._list))
        self._list.setUniformItemSizes(True)
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setFrameShape(QFrame.Shape.NoFrame)
        self._none = QLabel(tr("Nothing is called that."), self)
        self._none.setProperty("muted", True)
        self._none.setContentsMargins(12, 8, 12, 8)
        column = QVBoxLayout(self)
        column.setContentsMargins(6, 6, 6, 6)
        column.setSpacing(4)
        column.addWidget(self._line)
        column.addWidget(self._list)
        column.addWidget(self._none)
        shadow = QGraphicsDropShadowEffect(self)
        shadow.setBlurRadius(32)
        shadow.setOffset(0, 8)
        self.setGraphicsEffect(shadow)
        self._line.textChanged.connect(self._on_text_changed)
        self._list.clicked.connect(self._on_clicked)
        self.hide()

    def open_with(self, entries: Iterable[Entry]) -> None:
        """Show the palette over the window with these entries."""
        self._return_focus = self.window().focusWidget()
        self._line.clear()
        self._model.set_entries(entries)
        self._select(0)
        self._place()
        self.show()
        self.raise_()
        self._line.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Steer the list with the keys of the line, and close when the focus leaves."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._on_key(event)
        if isinstance(event, QFocusEvent):
            self._on_focus(event)
        return False

    def _on_focus(self, event: QFocusEvent) -> None:
        if event.lostFocus() and event.reason() != Qt.FocusReason.PopupFocusReason:
            self.hide()

    def _on_key(self, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape:
            self._close()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._run(self._list.currentIndex())
        elif key in _MOVES:
            self._move(_MOVES[key])
        else:
            return key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab)
        return True

    def _move(self, rows: int) -> None:
        count = self._model.rowCount()
        if not count:
            return
        row = self._list.currentIndex().row() + rows
        self._select(row % count if abs(rows) == 1 else min(max(row, 0), count - 1))

    def _on_text_changed(self, text: str) -> None:
        self._model.filter(text)
        self._select(0)
        self._place()

    def _on_clicked(self, index: QModelIndex) -> None:
        self._run(index)

    def _select(self, row: int) -> None:
        self._list.setCurrentIndex(self._model.index(row, 0))

    def _run(self, index: QModelIndex) -> None:
        if index.isValid():
            entry = self._model.entry(index.row())
            self._close()
            entry.run()

    def _close(self) -> None:
        self.hide()
        if self._return_focus is not None:
            self._return_focus.setFocus(Qt.FocusReason.OtherFocusReason)

    def _place(self) -> None:
        count = self._model.rowCount()
        self._none.setVisible(count == 0)
        self._list.setVisible(count > 0)
        row = max(self._list.sizeHintForRow(0), 1)
        self._list.setFixedHeight(min(count, _ROWS) * row + 4)
        window = self.window()
        width = min(_WIDTH, window.width() - 2 * _MARGIN)
        self.setFixedWidth(width)
        self.adjustSize()
        self.move((window.width() - width) // 2, max(_MARGIN, window.height() // 9))
