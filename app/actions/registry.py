"""The registry: what each action is called, where its key is, and when it can be used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.theme import Theme
from app.theme.icons import icon


def plain_text(text: str) -> str:
    """Return a menu text without its menu key, which Chinese texts have in brackets at the end."""
    return re.sub(r"\(&\w\)", "", text).replace("&", "")


@dataclass(frozen=True)
class ActionSpec:
    """One action. ``text`` is in the user's language, with an ampersand before its menu key.

    ``enabled``, ``checked`` and ``label`` (a text that varies) are asked whenever the document changes;
    the first shortcut is the one that is shown.
    """

    id: str
    text: str
    run: Callable[[], object]
    shortcuts: tuple[str, ...] = ()
    icon: str = ""
    tooltip: str = ""
    enabled: Callable[[], bool] | None = None
    checked: Callable[[], bool] | None = None
    label: Callable[[], str] | None = None


class ActionRegistry(QObject):
    """The actions of one window by id; menus, toolbar and palette are views of it."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._specs: dict[str, ActionSpec] = {}
        self._actions: dict[str, QAction] = {}

    def add(self, specs: Iterable[ActionSpec]) -> None:
        """Make the actions of some specifications.

        Raises:
            ValueError: an id or a shortcut is taken already.
        """
        for spec in specs:
            self._check(spec)
            self._specs[spec.id] = spec
            self._actions[spec.id] = self._make(spec)

    def action(self, identifier: str) -> QAction:
        """Return the action of an id."""
        return self._actions[identifier]

    @property
    def specs(self) -> tuple[ActionSpec, ...]:
        """All specifications in order."""
        return tuple(self._specs.values())

    def refresh(self) -> None:
        """Ask every action anew whether it can be used and whether it is on."""
        for identifier, spec in self._specs.items():
            action = self._actions[identifier]
            if spec.enabled is not None:
                action.setEnabled(spec.enabled())
            if spec.checked is not None:
                action.setChecked(spec.checked())
            if spec.label is not None:
                action.setText(spec.label())

    def tint(self, theme: Theme) -> None:
        """Draw the icons in a theme's colours."""
        for identifier, spec in self._specs.items():
            if spec.icon:
                self._actions[identifier].setIcon(icon(spec.icon, theme))

    def _on_triggered(self, _checked: bool) -> None:
        self._specs[self.sender().objectName()].run()
        self.refresh()

    def _check(self, spec: ActionSpec) -> None:
        if spec.id in self._specs:
            raise ValueError(f"the action {spec.id} exists already")
        for other in self._specs.values():
            shared = set(spec.shortcuts) & set(other.shortcuts)
            if shared:
                raise ValueError(f"{spec.id} and {other.id} share the shortcut {shared.pop()}")

    def _make(self, spec: ActionSpec) -> QAction:
        action = QAction(spec.text, self._window)
        action.setObjectName(spec.id)
        action.setShortcuts([QKeySequence(text) for text in spec.shortcuts])
        action.setCheckable(spec.checked is not None)
        plain = plain_text(spec.text).rstrip("…")
        action.setIconText(plain)
        tip = spec.tooltip or plain
        keys = (
            QKeySequence(spec.shortcuts[0]).toString(QKeySequence.SequenceFormat.NativeText)
            if spec.shortcuts
            else ""
        )
        action.setToolTip(f"{tip} ({keys})" if keys else tip)
        action.triggered.connect(self._on_triggered)
        self._window.addAction(action)
        return action
