"""Which theme is on: the user's choice, or else what the desktop asks for."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication

from app.theme.apply import apply
from app.theme.roles import DARK, LIGHT, Theme, theme_named

SYSTEM: Final = "system"
CHOICES: Final = (SYSTEM, LIGHT.name, DARK.name)


class ThemeManager(QObject):
    """Applies the theme to the application and tells views that paint themselves when it changes."""

    theme_changed = Signal(object)

    def __init__(self, app: QApplication, choice: str = SYSTEM, parent: QObject | None = None) -> None:
        super().__init__(parent or app)
        self._app = app
        self._choice = choice if choice in CHOICES else SYSTEM
        self._theme = self._resolve()
        apply(app, self._theme)
        app.styleHints().colorSchemeChanged.connect(self._on_scheme_changed)

    @property
    def theme(self) -> Theme:
        """The theme in use."""
        return self._theme

    @property
    def choice(self) -> str:
        """What the user chose: one of `CHOICES`."""
        return self._choice

    def choose(self, choice: str) -> None:
        """Use a theme by name, or ``"system"`` to follow the desktop."""
        if choice in CHOICES:
            self._choice = choice
            self._use(self._resolve())

    def toggle(self) -> None:
        """Change between light and dark; from then on the choice is the user's."""
        self.choose(LIGHT.name if self._theme.dark else DARK.name)

    def follow_scheme(self, scheme: Qt.ColorScheme) -> None:
        """Take over the desktop's light or dark, unless the user chose."""
        if self._choice == SYSTEM:
            self._use(DARK if scheme is Qt.ColorScheme.Dark else LIGHT)

    def _on_scheme_changed(self, scheme: Qt.ColorScheme) -> None:
        self.follow_scheme(scheme)

    def _resolve(self) -> Theme:
        if self._choice != SYSTEM:
            return theme_named(self._choice)
        return DARK if self._app.styleHints().colorScheme() is Qt.ColorScheme.Dark else LIGHT

    def _use(self, theme: Theme) -> None:
        if theme is self._theme:
            return
        self._theme = theme
        apply(self._app, theme)
        self.theme_changed.emit(theme)
