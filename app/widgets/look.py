"""Dynamic properties that the style sheet reads, set in one place."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QWidget


def set_look(widget: QWidget, name: str, value: object) -> None:
    """Set a property that the style sheet selects on, and restyle the widget if it changed."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def heading(text: str, parent: QWidget | None = None) -> QLabel:
    """Return a section heading."""
    label = QLabel(text, parent)
    label.setProperty("heading", True)
    return label


def muted(text: str, parent: QWidget | None = None) -> QLabel:
    """Return a quiet, wrapping text."""
    label = QLabel(text, parent)
    label.setProperty("muted", True)
    label.setWordWrap(True)
    return label
