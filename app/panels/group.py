"""A group of fields under a heading that folds it."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from app.theme import Role, active
from app.theme.icons import pixmap
from app.widgets.form import Form

_ARROW = 12
_MARGIN = 12


class GroupHeader(QAbstractButton):
    """The heading: an arrow, the title and a line, or while folded what is inside in a few words."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(title)
        self.digest = ""
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Return the height of one line with air above."""
        return QSize(120, self.fontMetrics().height() + 10)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw in the active theme."""
        theme = active()
        painter = QPainter(self)
        arrow = "chevron-down" if self.isChecked() else "chevron-right"
        top = (self.height() - _ARROW) // 2
        painter.drawPixmap(_MARGIN, top, pixmap(arrow, _ARROW, self.devicePixelRatioF(), Role.TEXT_MUTED))
        font = self.font()
        font.setWeight(font.Weight.DemiBold)
        painter.setFont(font)
        left = _MARGIN + _ARROW + 6
        painter.setPen(theme.color(Role.ACCENT if self.hasFocus() else Role.TEXT))
        box = QRect(left, 0, self.width() - left - _MARGIN, self.height())
        drawn = painter.boundingRect(box, Qt.AlignmentFlag.AlignVCenter, self.text())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, self.text())
        box.setLeft(drawn.right() + 10)
        self._draw_rest(painter, box)
        painter.end()

    def _draw_rest(self, painter: QPainter, box: QRect) -> None:
        if self.isChecked() or not self.digest:
            painter.setPen(active().color(Role.BORDER))
            painter.drawLine(box.left(), box.center().y(), box.right(), box.center().y())
            return
        painter.setFont(self.font())
        painter.setPen(active().color(Role.TEXT_MUTED))
        text = painter.fontMetrics().elidedText(self.digest, Qt.TextElideMode.ElideRight, box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)


class Group(QWidget):
    """A form under a heading. Its rows are added with `form.add`; `unfolding` comes before they are shown."""

    unfolding = Signal()

    def __init__(self, title: str, unfolded: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # Qt moves what is opaque by copying its pixels: a message further up then repaints nothing down here.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.form = Form(self)
        self._header = GroupHeader(title, self)
        self._header.setChecked(unfolded)
        self._header.toggled.connect(self._on_toggled)
        self.form.setVisible(unfolded)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._header)
        layout.addWidget(self.form)

    def set_digest(self, text: str) -> None:
        """Say what is inside in a few words; shown while folded."""
        if text != self._header.digest:
            self._header.digest = text
            self._header.setAccessibleDescription(text)
            self._header.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Fill the background."""
        painter = QPainter(self)
        painter.fillRect(event.rect(), active().color(Role.PANEL))
        painter.end()

    def unfold(self) -> None:
        """Show the fields."""
        self._header.setChecked(True)

    def _on_toggled(self, unfolded: bool) -> None:
        if unfolded:
            self.unfolding.emit()
        self.form.setVisible(unfolded)
