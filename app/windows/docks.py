"""Docks with their title bars, and the folding sections of the input column."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr
from app.theme import Role, active
from app.theme.icons import icon
from app.widgets.look import heading


class DockTitle(QWidget):
    """A dock's title bar: its name, a remark such as a count, and a button that hides it."""

    def __init__(self, text: str, dock: QDockWidget) -> None:
        super().__init__(dock)
        self.setObjectName("dock_title")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.remark = QLabel(self)
        self.remark.setProperty("muted", True)
        self._close = QToolButton(self)
        self._close.setProperty("flat", True)
        self._close.setIconSize(QSize(12, 12))
        self._close.setToolTip(tr("Hide; the View menu shows it again"))
        self._close.setAccessibleName(tr("Hide {panel}", panel=text))
        self._close.clicked.connect(dock.close)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 6, 4)
        row.setSpacing(8)
        row.addWidget(heading(text, self))
        row.addWidget(self.remark)
        row.addStretch(1)
        row.addWidget(self._close)
        self._tint()

    def changeEvent(self, event: QEvent) -> None:
        """Tint the button anew when the theme changes."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._tint()

    def _tint(self) -> None:
        self._close.setIcon(icon("close"))


class Dock(QDockWidget):
    """A dock with a quiet title bar."""

    def __init__(self, identifier: str, text: str, content: QWidget, window: QMainWindow) -> None:
        super().__init__(text, window)
        self.setObjectName(identifier)
        self.title = DockTitle(text, self)
        self.setTitleBarWidget(self.title)
        self.setWidget(content)


class Section(QWidget):
    """A heading that folds what is below it."""

    folded = Signal(bool)

    def __init__(self, identifier: str, text: str, content: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName(identifier)
        # Qt moves what is opaque by copying its pixels: a message further up then repaints nothing down here.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._content = content
        self._header = QToolButton(self)
        self._header.setObjectName("section_header")
        self._header.setText(text)
        self._header.setCheckable(True)
        self._header.setChecked(True)
        self._header.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._header.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._header.setIconSize(QSize(12, 12))
        self._header.setToolTip(tr("Fold or unfold"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addWidget(content)
        self._header.toggled.connect(self._on_toggled)
        self._tint()

    @property
    def content(self) -> QWidget:
        """What folds."""
        return self._content

    @property
    def is_folded(self) -> bool:
        """Whether the content is hidden."""
        return not self._header.isChecked()

    def fold(self, folded: bool) -> None:
        """Hide or show the content."""
        self._header.setChecked(not folded)

    def changeEvent(self, event: QEvent) -> None:
        """Tint the arrow anew when the theme changes."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._tint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Fill the background."""
        painter = QPainter(self)
        painter.fillRect(event.rect(), active().color(Role.PANEL))
        painter.end()

    def _on_toggled(self, checked: bool) -> None:
        self._content.setVisible(checked)
        self._tint()
        self.folded.emit(not checked)

    def _tint(self) -> None:
        self._header.setIcon(icon("chevron-down" if self._header.isChecked() else "chevron-right"))


class InputColumn(QScrollArea):
    """The input panels one below the other, in one scrolled column."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("input_column")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._column = QWidget(self)
        self._column.setProperty("panel", True)
        self._column.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._layout = QVBoxLayout(self._column)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self.sections: list[Section] = []
        self.setWidget(self._column)

    def set_panels(self, panels: Sequence[tuple[str, str, QWidget]]) -> None:
        """Take the panels: identifier, title, widget."""
        for identifier, text, panel in panels:
            section = Section(identifier, text, panel, self._column)
            self._layout.addWidget(section)
            self.sections.append(section)
        self._layout.addStretch(1)
        self.setMinimumWidth(self._column.minimumSizeHint().width() + 12)

    @property
    def folded(self) -> frozenset[str]:
        """The identifiers of the folded sections."""
        return frozenset(section.objectName() for section in self.sections if section.is_folded)

    def fold(self, identifiers: frozenset[str]) -> None:
        """Fold these sections and unfold the others."""
        for section in self.sections:
            section.fold(section.objectName() in identifiers)

    def unfold(self, identifier: str) -> None:
        """Unfold one section."""
        for section in self.sections:
            if section.objectName() == identifier:
                section.fold(False)
