"""The schedule's tab page. It makes its view when it is first shown: numerics are not needed to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.document import DesignDocument
from app.theme.manager import ThemeManager

if TYPE_CHECKING:
    from app.plots.gantt.view import ScheduleView


class SchedulePage(QWidget):
    """Holds the schedule view."""

    def __init__(
        self, document: DesignDocument, theme_manager: ThemeManager, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("schedule_page")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._document = document
        self._themes = theme_manager
        self._view: ScheduleView | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    @property
    def view(self) -> ScheduleView:
        """The view; made when it is first needed."""
        if self._view is None:
            from app.plots.gantt.view import ScheduleView

            self._view = ScheduleView(self._document, self._themes, self)
            self._column.addWidget(self._view)
            self.setFocusProxy(self._view)
        return self._view

    @property
    def part(self) -> str:
        """The view has no parts."""
        return ""

    def fit(self) -> None:
        """Show all of the schedule."""
        self.view.fit()

    def zoom_by(self, factor: float) -> None:
        """Zoom about the middle."""
        self.view.zoom_by(factor)

    def stop(self) -> None:
        """End the view's worker thread; the page is not used after this."""
        if self._view is not None:
            self._view.stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Make the view."""
        super().showEvent(event)
        self.view.show()
