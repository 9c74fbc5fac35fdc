"""Fields for one of several choices and for yes or no."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QRect, QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStylePainter,
    QWidget,
)

from app.theme import Role, active
from app.theme.icons import pixmap

# What the style leaves free beside the text.
_AROUND: Final = 4


class ChoiceBox(QComboBox):
    """A combo box of values with labels; announces only what the user picks."""

    choice_committed = Signal(str)

    def __init__(
        self, choices: Iterable[tuple[str, str] | tuple[str, str, str]] = (), parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(6)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMaxVisibleItems(20)
        self.set_choices(choices)
        self.activated.connect(self._on_activated)

    def set_choices(self, choices: Iterable[tuple[str, str] | tuple[str, str, str]]) -> None:
        """Offer choices ``(value, label)`` or ``(value, label, tooltip)``, keeping the current one."""
        current = self.choice
        self.clear()
        for value, label, *tooltip in choices:
            self.addItem(label, value)
            if tooltip:
                self.setItemData(self.count() - 1, tooltip[0], Qt.ItemDataRole.ToolTipRole)
        self.set_choice(current)

    @property
    def choice(self) -> str:
        """The value shown; empty where there is none."""
        data = self.currentData()
        return data if isinstance(data, str) else ""

    def set_choice(self, value: str) -> None:
        """Show a choice without announcing it; an unknown value shows none."""
        self.setCurrentIndex(self.findData(value))

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:  # noqa: N802
        """Shorten a text that is too long; the style would cut it off in the middle of a letter."""
        super().initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self
        )
        room = field.width() - _AROUND
        text = self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideRight, room)
        option.currentText = text

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the scroll area unless the field has the focus."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the arrow in the theme's colour; style sheets take only image files."""
        super().paintEvent(event)
        side = 12
        box = QRect(self.width() - side - 7, (self.height() - side) // 2, side, side)
        if self.layoutDirection() is Qt.LayoutDirection.RightToLeft:
            box.moveLeft(7)
        role = Role.TEXT_MUTED if self.isEnabled() else Role.TEXT_DISABLED
        painter = QPainter(self)
        painter.drawPixmap(box, pixmap("chevron-down", side, self.devicePixelRatioF(), role))
        painter.end()

    def _on_activated(self, _index: int) -> None:
        self.choice_committed.emit(self.choice)


class CheckEdit(QCheckBox):
    """A check box that announces only what the user does."""

    check_committed = Signal(bool)

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.clicked.connect(self.check_committed)

    def set_checked(self, checked: bool) -> None:
        """Show a state without announcing it."""
        self.setChecked(checked)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw a box with a visible frame in both themes; Fusion's nearly vanishes in dark."""
        option = QStyleOptionButton()
        self.initStyleOption(option)
        box = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self)
        painter = QStylePainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = active()
        frame = Role.ACCENT if self.hasFocus() or self.isChecked() else Role.TEXT_MUTED
        painter.setPen(QPen(theme.color(frame if self.isEnabled() else Role.BORDER), 1.2))
        painter.setBrush(theme.color(Role.ACCENT if self.isChecked() else Role.FIELD))
        painter.drawRoundedRect(QRectF(box).adjusted(0.6, 0.6, -0.6, -0.6), 3, 3)
        if self.isChecked():
            symbol = pixmap("check", box.width(), self.devicePixelRatioF(), Role.ON_ACCENT)
            painter.drawPixmap(box, symbol)
        option.rect = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self)
        painter.drawControl(QStyle.ControlElement.CE_CheckBoxLabel, option)
        painter.end()
