"""What actions may ask of the window, without knowing it."""

from __future__ import annotations

from typing import Protocol

from app.actions.registry import ActionRegistry
from app.plots.gantt.page import SchedulePage
from app.plots.lazy_page import LazyPage


class Shell(Protocol):
    """The window as actions see it."""

    @property
    def registry(self) -> ActionRegistry:
        """The window's actions."""

    @property
    def schedule(self) -> SchedulePage:
        """The tab page of the schedule."""

    def current_view_id(self) -> str:
        """Return the id of the current tab's view."""

    def current_page(self) -> LazyPage | None:
        """Return the tab page of the current view, where it is one that searches."""

    def show_paper(self, identifier: str) -> None:
        """Show a figure or table of a paper, recomputed."""

    def current_part(self) -> str:
        """Return the part that the current view shows; empty where it has none."""

    def announce(self, text: str) -> None:
        """Say for a few seconds that something was done."""

    def show_view(self, index: int) -> None:
        """Bring a tab to the front."""

    def zoom_fit(self) -> None:
        """Show all of the current view."""

    def zoom_by(self, factor: float) -> None:
        """Zoom the current view."""

    def reset_layout(self) -> None:
        """Put docks and toolbars back to where they were at first."""

    def show_palette(self) -> None:
        """Open the command palette."""

    def show_preferences(self) -> None:
        """Open the preferences."""

    def show_shortcuts(self) -> None:
        """Open the list of shortcuts."""

    def show_about(self) -> None:
        """Open the text about the application."""
