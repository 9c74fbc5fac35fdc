"""Tab pages that search: made when they are first shown, as their numerics are not needed to start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QSizeF, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.theme.manager import ThemeManager

if TYPE_CHECKING:
    from app.plots.scene import Scene


class SearchPage(Protocol):
    """What the window needs of such a page."""

    def scene_for(self, size: QSizeF) -> Scene | None:
        """Return the picture for an export; none before there is one."""

    def stop(self) -> None:
        """End the page's worker."""


def page_title(identifier: str) -> str:
    """Return the title of a page in the user's language."""
    return {
        "frontier": tr("Frontier"),
        "layouts": tr("Layouts"),
        "context": tr("Context"),
        "reproduce": tr("Reproduce"),
    }[identifier]


class LazyPage(QWidget):
    """Holds the page of one view, by the view's id."""

    def __init__(
        self, identifier: str, document: DesignDocument, themes: ThemeManager, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(f"page_{identifier}")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(page_title(identifier))
        self._id, self._document, self._themes = identifier, document, themes
        self._page: QWidget | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    @property
    def page(self) -> QWidget:
        """The page; made when it is first needed."""
        if self._page is None:
            self._page = self._made()
            self._column.addWidget(self._page)
            self.setFocusProxy(self._page)
        return self._page

    @property
    def part(self) -> str:
        """The view has no parts."""
        return ""

    @property
    def is_paper(self) -> bool:
        """Whether it shows figures of papers instead of the design."""
        return self._id == "reproduce"

    def fit(self) -> None:
        """Nothing to do: the picture always fills the space."""

    def zoom_by(self, factor: float) -> None:
        """Nothing to do: the picture always fills the space."""

    def scene_for(self, size: QSizeF) -> Scene | None:
        """Return the picture for an export; none before there is one."""
        page: SearchPage | None = self._page  # type: ignore[assignment]
        return None if page is None else page.scene_for(size)

    def stop(self) -> None:
        """End the page's worker; the page is not used after this."""
        page: SearchPage | None = self._page  # type: ignore[assignment]
        if page is not None:
            page.stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Make the page."""
        super().showEvent(event)
        self.page.show()

    def _made(self) -> QWidget:
        if self._id == "frontier":
            from app.plots.frontier.page import FrontierPage

            return FrontierPage(self._document, self._themes, self)
        if self._id == "reproduce":
            from app.plots.paper.page import ReproducePage

            return ReproducePage(self._themes, self)
        from app.plots.computed_page import ComputedPage

        if self._id == "layouts":
            from app.plots import switches

            return ComputedPage(
                self._id,
                switches.compute_layouts,
                switches.draw_layouts,
                switches.least_height,
                self._document,
                self._themes,
                self,
            )
        from app.plots import context

        return ComputedPage(
            self._id,
            context.compute_context,
            context.draw_context,
            context.least_height,
            self._document,
            self._themes,
            self,
        )
