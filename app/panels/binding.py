"""What joins an editor to a field of the design: shows its value, commits what the user enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.wording import refusal
from app.widgets.choices import CheckEdit, ChoiceBox
from app.widgets.look import set_look
from app.widgets.quantity_edit import IntEdit, NumberEdit, QuantityEdit
from model_core.spec import Design, Spec, TrainingSpec

# What a part counts as while the design has none.
_ABSENT: Final[Mapping[str, Spec]] = {"plan.training": TrainingSpec()}
_STEP_KEYS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


def field_at(design: Design, path: str) -> Any:
    """Return the value at a path; none where an optional part or another kind of part is absent.

    Training that a plan does not describe has its defaults.
    """
    value: Any = design
    parent, _, name = path.rpartition(".")
    for step in parent.split("."):
        value = getattr(value, step, None)
    return getattr(_ABSENT.get(parent) if value is None else value, name, None)


class Binding(QObject):
    """One field of the design and its editor.

    `refusal` says why the document refused what was entered; `refusal_changed` announces it. The text
    then stays in the editor until it is corrected, or Escape brings the value back.
    """

    refusal_changed = Signal()

    def __init__(self, document: DesignDocument, path: str, label: str, editor: QWidget) -> None:
        super().__init__(editor)
        self.document = document
        self.path = path
        self.label = label
        self.editor = editor
        self.refusal = ""
        self._marked = editor

    def show_design(self, design: Design) -> None:
        """Show the design's value without announcing it."""
        raise NotImplementedError

    def commit(self, value: object, merge_key: str = "") -> None:
        """Make a value the design's, as one undo step."""
        text = tr("Change {field}", field=self.label)
        found = self.document.edit(self.path, value, text, merge_key)
        self._set_refusal(refusal(found) if found else "")

    def _set_refusal(self, reason: str) -> None:
        if reason != self.refusal:
            self.refusal = reason
            set_look(self._marked, "severity", "error" if reason else "")
            self.refusal_changed.emit()


class NumberBinding(Binding):
    """A count or a quantity. Steps with the arrow keys in a row are one undo step."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: NumberEdit) -> None:
        super().__init__(document, path, label, editor)
        self._number = editor
        self._shown: object = _Nothing
        self._stepping = False
        self._session = 0
        if isinstance(editor, QuantityEdit | IntEdit):
            editor.value_committed.connect(self._on_committed)
        editor.value_cleared.connect(self._on_cleared)
        editor.preview_ended.connect(self._on_preview_ended)
        editor.installEventFilter(self)

    def show_design(self, design: Design) -> None:
        """Show the value, unless the user is writing or has something to correct here."""
        value = field_at(design, self.path)
        if value == self._shown and (self.refusal or self._number.problem or self._number.isModified()):
            return
        if self._number.hasFocus() and self._number.isModified():
            return
        self._shown = value
        self._set_refusal("")
        self._number.set_value(value)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Notice steps, and let Escape bring back the value in place of a refused one."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() == Qt.Key.Key_Escape and self.refusal and not self._number.isModified():
                self._restore()
                return True
            stepping = event.key() in _STEP_KEYS
            self._session += stepping and not self._stepping
            self._stepping = stepping
        return super().eventFilter(watched, event)

    def _restore(self) -> None:
        self._shown = _Nothing
        self._number.setModified(False)
        self.show_design(self.document.design)

    def _on_committed(self, value: float) -> None:
        self.commit(value, f"{self.path}#{self._session}" if self._stepping else "")

    def _on_cleared(self) -> None:
        self.commit(None)

    def _on_preview_ended(self) -> None:
        if not self.refusal:
            self.show_design(self.document.design)


class _Nothing:
    """Stands for no value shown yet, as ``None`` is a value."""


class ChoiceBinding(Binding):
    """A field with a few possible values; the empty one stands for none."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: ChoiceBox) -> None:
        super().__init__(document, path, label, editor)
        self._box = editor
        editor.choice_committed.connect(self._on_committed)

    def show_design(self, design: Design) -> None:
        """Show the choice."""
        choice = self._choice_of(design)
        if choice != self._box.choice:
            self._box.set_choice(choice)

    def _on_committed(self, choice: str) -> None:
        if choice != self._choice_of(self.document.design):
            self.commit(choice or None)
        self.show_design(self.document.design)

    def _choice_of(self, design: Design) -> str:
        value = field_at(design, self.path)
        return "" if value is None else str(value)


class CheckBinding(Binding):
    """A field that is true or false."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: CheckEdit) -> None:
        super().__init__(document, path, label, editor)
        self._check = editor
        editor.check_committed.connect(self._on_committed)

    def show_design(self, design: Design) -> None:
        """Show the state."""
        self._check.set_checked(bool(field_at(design, self.path)))

    def _on_committed(self, checked: bool) -> None:
        self.commit(checked)
        self.show_design(self.document.design)


def bind(document: DesignDocument, path: str, label: str, editor: QWidget) -> Binding:
    """Return the binding for a kind of editor.

    Raises:
        TypeError: nothing is known about such an editor.
    """
    if isinstance(editor, NumberEdit):
        return NumberBinding(document, path, label, editor)
    if isinstance(editor, ChoiceBox):
        return ChoiceBinding(document, path, label, editor)
    if isinstance(editor, CheckEdit):
        return CheckBinding(document, path, label, editor)
    raise TypeError(f"no binding for {type(editor).__name__}")
