"""Undo, redo and the baseline."""

from __future__ import annotations

from app.actions.registry import ActionSpec
from app.document import DesignDocument
from app.i18n import tr


class EditActions:
    """Changes to the document as a whole."""

    def __init__(self, document: DesignDocument) -> None:
        self._document = document
        self._stack = document.undo_stack

    def specs(self) -> tuple[ActionSpec, ...]:
        """Describe the actions."""
        document = self._document
        return (
            ActionSpec(
                "edit.undo",
                tr("&Undo"),
                self._stack.undo,
                ("Ctrl+Z",),
                "undo",
                enabled=self._stack.canUndo,
                label=self._undo_label,
            ),
            ActionSpec(
                "edit.redo",
                tr("&Redo"),
                self._stack.redo,
                ("Ctrl+Shift+Z", "Ctrl+Y"),
                "redo",
                enabled=self._stack.canRedo,
                label=self._redo_label,
            ),
            ActionSpec(
                "edit.pin_baseline",
                tr("&Pin as baseline"),
                document.pin_baseline,
                ("Ctrl+B",),
                "pin",
                tr("Compare every number with the design as it is now"),
                enabled=self._can_pin,
            ),
            ActionSpec(
                "edit.clear_baseline",
                tr("&Clear baseline"),
                document.clear_baseline,
                ("Ctrl+Shift+B",),
                "unpin",
                tr("Stop comparing"),
                enabled=self._has_baseline,
            ),
        )

    def _undo_label(self) -> str:
        text = self._stack.undoText()
        return tr("&Undo: {change}", change=text) if text else tr("&Undo")

    def _redo_label(self) -> str:
        text = self._stack.redoText()
        return tr("&Redo: {change}", change=text) if text else tr("&Redo")

    def _can_pin(self) -> bool:
        return self._document.picture is not None and not self._document.stale

    def _has_baseline(self) -> bool:
        return self._document.baseline is not None
