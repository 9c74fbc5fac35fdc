"""A computed number in a panel; a click explains it."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.document import DesignDocument
from app.i18n import tr_text
from app.panels.numbers import MISSING, quantity_text
from app.theme import Role, active
from app.theme.fonts import tabular
from model_core.results import Evaluation


class ValueLink(QAbstractButton):
    """Shows one quantity of the evaluation by its key."""

    def __init__(self, document: DesignDocument, key: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._key = key
        self.setFont(tabular(bold=True))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setText(MISSING)
        self.clicked.connect(self._on_clicked)

    def sizeHint(self) -> QSize:
        """Return the height of a row."""
        return QSize(90, self.fontMetrics().height() + 6)

    def show_evaluation(self, evaluation: Evaluation) -> None:
        """Show the value, or a dash where there is none."""
        quantity = evaluation.quantities.get(self._key)
        text = MISSING if quantity is None else quantity_text(quantity)
        if text != self.text():
            self.setText(text)
        self.setEnabled(quantity is not None)
        if quantity is not None:
            self.setAccessibleDescription(f"{tr_text(quantity.label)}: {text}")

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the value as text, as a link under the mouse or with the focus."""
        painter = QPainter(self)
        linked = self.isEnabled() and (self.underMouse() or self.hasFocus())
        font = self.font()
        font.setUnderline(linked)
        painter.setFont(font)
        painter.setPen(active().color(Role.ACCENT if linked else Role.TEXT))
        box = QRect(1, 0, self.width() - 1, self.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self.text())
        painter.end()

    def _on_clicked(self) -> None:
        self._document.select(self._key)
