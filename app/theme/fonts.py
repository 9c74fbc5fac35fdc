"""Fonts derived from the system's own: tabular figures for numbers that change in place, and a fixed pitch."""

from __future__ import annotations

from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import QApplication


def tabular(scale: float = 1.0, bold: bool = False) -> QFont:
    """Return the application's font with figures of equal width where the font has them."""
    font = QFont(QApplication.font())
    font.setPointSizeF(font.pointSizeF() * scale)
    font.setFeature(QFont.Tag("tnum"), 1)
    if bold:
        font.setWeight(QFont.Weight.DemiBold)
    return font


def fixed(scale: float = 1.0) -> QFont:
    """Return the system's fixed-pitch font, for formulas."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(QApplication.font().pointSizeF() * scale)
    return font
