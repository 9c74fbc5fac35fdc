"""Put a theme on the application: Fusion, a palette and one small style sheet."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from app.theme.roles import LIGHT, Role, Theme, theme_named
from app.theme.stylesheet import stylesheet

_PROPERTY = "meshwrightTheme"


def apply(app: QApplication, theme: Theme) -> None:
    """Give the application a theme; widgets that exist repaint themselves."""
    # A style under a style sheet has no name to ask for, and setting it anew restyles every widget.
    if app.property(_PROPERTY) is None:
        app.setStyle("Fusion")
    app.setProperty(_PROPERTY, theme.name)
    app.setPalette(palette(theme))
    app.setStyleSheet(stylesheet(theme))


def active() -> Theme:
    """Return the theme last applied; light before that."""
    app = QApplication.instance()
    name = app.property(_PROPERTY) if app is not None else None
    return theme_named(name) if isinstance(name, str) else LIGHT


def palette(theme: Theme) -> QPalette:
    """Build Qt's palette of a theme."""
    roles = {
        QPalette.ColorRole.Window: Role.WINDOW,
        QPalette.ColorRole.Base: Role.FIELD,
        QPalette.ColorRole.AlternateBase: Role.CARD,
        QPalette.ColorRole.Button: Role.PANEL,
        QPalette.ColorRole.ToolTipBase: Role.CARD,
        QPalette.ColorRole.ToolTipText: Role.TEXT,
        QPalette.ColorRole.WindowText: Role.TEXT,
        QPalette.ColorRole.Text: Role.TEXT,
        QPalette.ColorRole.ButtonText: Role.TEXT,
        QPalette.ColorRole.BrightText: Role.ERROR,
        QPalette.ColorRole.PlaceholderText: Role.TEXT_MUTED,
        QPalette.ColorRole.Highlight: Role.SELECTION,
        QPalette.ColorRole.HighlightedText: Role.TEXT,
        QPalette.ColorRole.Link: Role.ACCENT,
        QPalette.ColorRole.LinkVisited: Role.ACCENT,
        QPalette.ColorRole.Accent: Role.ACCENT,
        QPalette.ColorRole.Light: Role.PANEL,
        QPalette.ColorRole.Midlight: Role.HOVER,
        QPalette.ColorRole.Mid: Role.BORDER,
        QPalette.ColorRole.Dark: Role.FIELD_BORDER,
    }
    result = QPalette()
    for qt_role, role in roles.items():
        result.setColor(qt_role, theme.color(role))
    result.setColor(QPalette.ColorRole.Shadow, QColor(0, 0, 0))
    disabled = QPalette.ColorGroup.Disabled
    for qt_role in (
        QPalette.ColorRole.WindowText,
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
        QPalette.ColorRole.HighlightedText,
    ):
        result.setColor(disabled, qt_role, theme.color(Role.TEXT_DISABLED))
    return result
