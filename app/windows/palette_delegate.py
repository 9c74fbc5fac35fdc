"""Draws one line of the palette: icon, text with the typed letters bold, shortcut at the right."""

from __future__ import annotations

from html import escape
from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QTextDocument
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.theme import Role, active

SHORTCUT_ROLE: Final = int(Qt.ItemDataRole.UserRole)
POSITIONS_ROLE: Final = SHORTCUT_ROLE + 1
_PAD: Final = 10
_ICON: Final = 18


class EntryDelegate(QStyledItemDelegate):
    """The palette's lines."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return a line's height."""
        return QSize(0, option.fontMetrics.height() + 14)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw one line."""
        rect: QRect = option.rect
        theme = active()
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(Role.SELECTION))
            painter.drawRoundedRect(rect.adjusted(2, 1, -2, -1), 5, 5)
        icon = index.data(Qt.ItemDataRole.DecorationRole)
        if isinstance(icon, QIcon):
            icon.paint(painter, rect.x() + _PAD, rect.y() + (rect.height() - _ICON) // 2, _ICON, _ICON)
        shortcut = str(index.data(SHORTCUT_ROLE) or "")
        painter.setPen(theme.color(Role.TEXT_MUTED))
        right = rect.adjusted(0, 0, -_PAD - 4, 0)
        painter.drawText(right, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, shortcut)
        taken = option.fontMetrics.horizontalAdvance(shortcut) + 2 * _PAD
        self._draw_text(painter, option, index, rect.adjusted(2 * _PAD + _ICON, 0, -taken, 0))
        painter.restore()

    def _draw_text(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
        rect: QRect,
    ) -> None:
        text = str(index.data(Qt.ItemDataRole.DisplayRole))
        hits = set(index.data(POSITIONS_ROLE) or ())
        document = QTextDocument()
        document.setDocumentMargin(0)
        document.setDefaultFont(option.font)
        color = active().css(Role.TEXT)
        body = "".join(f"<b>{escape(c)}</b>" if i in hits else escape(c) for i, c in enumerate(text))
        document.setHtml(f'<span style="color:{color}; white-space:pre">{body}</span>')
        painter.setClipRect(rect)
        painter.translate(rect.x(), rect.y() + (rect.height() - document.size().height()) / 2)
        document.drawContents(painter)
