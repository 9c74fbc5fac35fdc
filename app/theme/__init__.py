"""Colours by role, the three themes, and their application to Qt. No other module names a colour."""

from app.theme.apply import active, apply
from app.theme.roles import DARK, LIGHT, PRINT, Role, Theme, theme_named

__all__ = ["DARK", "LIGHT", "PRINT", "Role", "Theme", "active", "apply", "theme_named"]
