"""Paints the cells of the problems table with a tenth of the work of a style sheet's item view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.panels.problems_model import Column, ProblemsModel
from app.theme import Role, active
from app.theme.icons import pixmap
from app.widgets.message import severity_role

SYMBOL: Final = 16
_PADDING: Final = 9
_GAP: Final = 6


class ProblemsDelegate(QStyledItemDelegate):
    """Symbol and text of a cell, on the fill of a row that is chosen or under the pointer."""

    def __init__(self, model: ProblemsModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._model = model

    def column_width(self, column: Column, texts: Iterable[str], metrics: QFontMetrics) -> int:
        """Return the width at which no text of a column is shortened."""
        symbol = SYMBOL + _GAP // 2 if column is Column.SEVERITY else 0
        return max(map(metrics.horizontalAdvance, texts), default=0) + symbol + 2 * _PADDING

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw in the active theme."""
        theme, row = active(), self._model.row(index.row())
        rect, state = option.rect, option.state
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, theme.color(Role.SELECTION))
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, theme.color(Role.HOVER))
        left = rect.left() + _PADDING
        if index.column() == Column.SEVERITY:
            severity = row.diagnostic.severity
            ratio = painter.device().devicePixelRatioF()
            symbol = pixmap(str(severity), SYMBOL, ratio, severity_role(severity))
            painter.drawPixmap(left - _GAP // 2, rect.top() + (rect.height() - SYMBOL) // 2, symbol)
            left += SYMBOL + _GAP // 2
        metrics, text = option.fontMetrics, row.texts[index.column()]
        room = rect.right() + 1 - _PADDING - left
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        painter.setPen(theme.color(Role.TEXT))
        painter.drawText(left, rect.top() + (rect.height() - metrics.height()) // 2 + metrics.ascent(), text)
