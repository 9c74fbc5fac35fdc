"""A line that says what is wrong: a symbol, a word for screen readers, and the text."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.theme import Role, active
from app.theme.icons import pixmap
from model_core.diagnostics import Severity

_SYMBOL: Final = 14
_GAP: Final = 5
_ABOVE: Final = 1
_BELOW: Final = 3
_TALLEST: Final = 10_000
_FLAGS: Final = int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignTop)
_ROLES = {
    Severity.ERROR: Role.ERROR,
    Severity.WARNING: Role.WARNING,
    Severity.INFO: Role.TEXT_MUTED,
}


def severity_role(severity: Severity) -> Role:
    """Return the colour role of a severity."""
    return _ROLES[severity]


def severity_name(severity: Severity) -> str:
    """Return the word for a severity."""
    names = {
        Severity.ERROR: tr("Error"),
        Severity.WARNING: tr("Warning"),
        Severity.INFO: tr("Note"),
    }
    return names[severity]


class MessageLine(QWidget):
    """One message with the symbol of its severity; hidden while there is none.

    It knows its own height instead of leaving that to the layout: with height-for-width in the middle of
    nested layouts, every message that changes would lay out the whole column several times over.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._severity = Severity.INFO
        self._text = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.hide()

    @property
    def text(self) -> str:
        """The message shown; empty while hidden."""
        return self._text

    @property
    def severity(self) -> Severity:
        """How much the message matters."""
        return self._severity

    def show_message(self, text: str, severity: Severity, hint: str = "") -> None:
        """Show a message; the hint is its tooltip. An empty text hides the line."""
        self.setToolTip(hint)
        if (text, severity) == (self._text, self._severity):
            return
        self._severity = severity
        self._text = text
        self.setAccessibleName(f"{severity_name(severity)}: {text}" if text else "")
        self._fit()
        self.setVisible(bool(text))
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Take the height that the text needs in the new width."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def changeEvent(self, event: QEvent) -> None:
        """Measure anew when the font changes."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the symbol and the text in the colour of the severity."""
        role = severity_role(self._severity)
        painter = QPainter(self)
        symbol = pixmap(str(self._severity), _SYMBOL, self.devicePixelRatioF(), role)
        painter.drawPixmap(0, _ABOVE + max(0, (self.fontMetrics().height() - _SYMBOL) // 2), symbol)
        painter.setPen(active().color(role))
        painter.drawText(self._text_rect(self.height()), _FLAGS, self._text)
        painter.end()

    def _fit(self) -> None:
        needed = self.fontMetrics().boundingRect(self._text_rect(_TALLEST), _FLAGS, self._text).height()
        height = max(needed, _SYMBOL) + _ABOVE + _BELOW
        if height != self.height():
            self.setFixedHeight(height)

    def _text_rect(self, height: int) -> QRect:
        return QRect(_SYMBOL + _GAP, _ABOVE, max(1, self.width() - _SYMBOL - _GAP), height)
