"""Which view is shown and how the window looks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from app.actions.registry import ActionSpec
from app.actions.shell import Shell
from app.i18n import tr
from app.theme.manager import ThemeManager


class ViewActions:
    """Tabs, zoom, theme, layout and palette."""

    def __init__(self, shell: Shell, themes: ThemeManager) -> None:
        self._shell = shell
        self._themes = themes

    def specs(self, view_ids: Sequence[str], view_titles: Sequence[str]) -> tuple[ActionSpec, ...]:
        """Describe the actions, one of them for each view."""
        tabs = tuple(
            ActionSpec(
                f"view.show_{identifier}",
                tr("Show view: {title}", title=title),
                partial(self._shell.show_view, index),
                (f"Ctrl+{index + 1}",) if index < 9 else (),
                identifier,
            )
            for index, (identifier, title) in enumerate(zip(view_ids, view_titles, strict=True))
        )
        return (*tabs, *self._zoom(), *self._window())

    def _zoom(self) -> tuple[ActionSpec, ...]:
        return (
            ActionSpec("view.zoom_fit", tr("Zoom to &fit"), self._fit, ("Ctrl+0",), "zoom-fit"),
            ActionSpec("view.zoom_in", tr("Zoom &in"), self._zoom_in, ("Ctrl++", "Ctrl+="), "zoom-in"),
            ActionSpec("view.zoom_out", tr("Zoom &out"), self._zoom_out, ("Ctrl+-",), "zoom-out"),
        )

    def _window(self) -> tuple[ActionSpec, ...]:
        shell = self._shell
        return (
            ActionSpec(
                "view.palette",
                tr("&Search commands and presets…"),
                shell.show_palette,
                ("Ctrl+K", "Ctrl+Shift+P"),
                "palette",
            ),
            ActionSpec(
                "view.dark",
                tr("&Dark theme"),
                self._themes.toggle,
                ("Ctrl+Shift+D",),
                "theme",
                checked=self._is_dark,
            ),
            ActionSpec("view.reset_layout", tr("&Reset layout"), shell.reset_layout, (), "reset"),
            ActionSpec(
                "edit.preferences", tr("Pr&eferences…"), shell.show_preferences, ("Ctrl+,",), "preferences"
            ),
        )

    def _fit(self) -> None:
        self._shell.zoom_fit()

    def _zoom_in(self) -> None:
        self._shell.zoom_by(1.25)

    def _zoom_out(self) -> None:
        self._shell.zoom_by(0.8)

    def _is_dark(self) -> bool:
        return self._themes.theme.dark
