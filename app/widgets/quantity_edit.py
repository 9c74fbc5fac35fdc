"""Fields for numbers with units and for whole numbers. They keep what the user typed, right or wrong."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QKeyCombination, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLineEdit, QWidget

from app.i18n import tr, tr_text
from app.theme.fonts import tabular
from app.widgets.look import set_look
from model_core.units import COUNT, Dimension, QuantityError, exact_text, parse_quantity

MAX_COUNT = 10**8
_WINDOW_KEYS = [
    QKeyCombination(Qt.KeyboardModifier.ControlModifier, key) for key in (Qt.Key.Key_K, Qt.Key.Key_E)
]


class NumberEdit(QLineEdit):
    """A line edit that reads a quantity; the base of `QuantityEdit` and `IntEdit`.

    While the text is wrong, `problem` says why, the frame shows it, and the text stays until it is
    corrected, Escape is pressed, or another value arrives. Up and Down step, Page Up and Page Down
    double and halve. With ``optional`` an empty text means that there is no value.
    """

    value_cleared = Signal()
    preview_ended = Signal()
    problem_changed = Signal(str)

    def __init__(self, dimension: Dimension, optional: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dimension = dimension
        self._optional = optional
        self._value: float | None = None
        self._problem = ""
        self._previewing = False
        self.setFont(tabular())
        self.setAcceptDrops(False)
        self.textEdited.connect(self._on_text_edited)
        self.editingFinished.connect(self.commit)

    @property
    def value(self) -> float | None:
        """The last right value; none before the first, or where it is optional and empty."""
        return self._value

    @property
    def problem(self) -> str:
        """Why the text is not a value; empty when it is."""
        return self._problem

    def set_value(self, value: float | None) -> None:
        """Show a value without announcing it. A wrong text stays if the value did not change."""
        if (self._problem or self._previewing) and value == self._value and self.hasFocus():
            return
        self._value = value
        self._previewing = False
        self._set_problem("")
        text = "" if value is None else self.format(value)
        if text != self.text():
            self.setText(text)
            self.setCursorPosition(0)

    def commit(self) -> None:
        """Take the text over as the value, if it is one and differs."""
        if not self.isModified() and not self._previewing:
            return
        read = self._read()
        if self._problem:
            return
        self._previewing = False
        self.setModified(False)
        changed = read != self._value
        self.set_value(read)
        if changed:
            self._announce(read)
        else:
            self.preview_ended.emit()

    def revert(self) -> None:
        """Go back to the last right value."""
        value, self._value = self._value, None
        self._set_problem("")
        self._previewing = False
        self.set_value(value)
        self.setModified(False)
        self.preview_ended.emit()

    def step(self, direction: int, double: bool = False) -> None:
        """Step the value up (+1) or down (-1) and announce it."""
        if self._value is None or self.isReadOnly():
            return
        value = self._value * 2.0**direction if double else self.stepped(self._value, direction)
        value = self.clamped(value)
        if value != self._value:
            self._value = value
            self._set_problem("")
            self.setText(self.format(value))
            self.selectAll()
            self._announce(value)

    def format(self, value: float) -> str:
        """Return the text of a value, such that it is read back exactly."""
        return exact_text(value, self._dimension)

    def parse(self, text: str) -> float:
        """Read a text.

        Raises:
            QuantityError: the text is no value; the message says what would be, in the user's language.
        """
        try:
            return parse_quantity(text, self._dimension)
        except QuantityError:
            raise QuantityError(
                tr(
                    "Not a {dimension}; write for instance {examples}",
                    dimension=tr_text(self._dimension.name),
                    examples=self._dimension.examples,
                )
            ) from None

    def stepped(self, value: float, direction: int) -> float:
        """Return the neighbouring value: one unit of its second digit further."""
        if value == 0:
            return 0.0
        unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
        return float(f"{value + direction * unit:.12g}")

    def clamped(self, value: float) -> float:
        """Return the nearest value that stepping may reach."""
        return max(0.0, value)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Step on the arrow and page keys; Escape reverts."""
        steps = {
            Qt.Key.Key_Up: (1, False),
            Qt.Key.Key_Down: (-1, False),
            Qt.Key.Key_PageUp: (1, True),
            Qt.Key.Key_PageDown: (-1, True),
        }
        key = Qt.Key(event.key())
        if key in steps:
            self.step(*steps[key])
        elif key == Qt.Key.Key_Escape and (self.isModified() or self._problem):
            self.revert()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Leave the window its shortcuts: Qt's line edits take Ctrl+K, Ctrl+E and undo for themselves."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            undoes = event.matches(QKeySequence.StandardKey.Undo) or event.matches(
                QKeySequence.StandardKey.Redo
            )
            if event.keyCombination() in _WINDOW_KEYS or (undoes and not self.isModified()):
                event.ignore()
                return False
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Select everything when reached by keyboard, so that typing replaces it."""
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self.selectAll()

    def _on_text_edited(self, _text: str) -> None:
        read = self._read()
        if not self._problem and read is not None:
            self._previewing = True
            self._preview(read)

    def _read(self) -> float | None:
        text = self.text().strip()
        if not text and self._optional:
            self._set_problem("")
            return None
        try:
            value = self.parse(text)
        except QuantityError as error:
            self._set_problem(str(error))
            return None
        self._set_problem("")
        return value

    def _set_problem(self, problem: str) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        set_look(self, "severity", "error" if problem else "")
        self.problem_changed.emit(problem)

    def _announce(self, value: float | None) -> None:
        if value is None:
            self.value_cleared.emit()
        else:
            self._commit_value(value)

    def _commit_value(self, value: float) -> None:
        raise NotImplementedError

    def _preview(self, value: float) -> None:
        raise NotImplementedError


class QuantityEdit(NumberEdit):
    """A field for a quantity with a unit: reads ``50 GB/s``, ``400 Gb/s``, ``32 GiB``."""

    value_committed = Signal(float)
    value_previewed = Signal(float)

    def _commit_value(self, value: float) -> None:
        self.value_committed.emit(value)

    def _preview(self, value: float) -> None:
        self.value_previewed.emit(value)


class IntEdit(NumberEdit):
    """A field for a whole number between two limits."""

    value_committed = Signal(int)
    value_previewed = Signal(int)

    def __init__(
        self,
        minimum: int = 1,
        maximum: int = MAX_COUNT,
        optional: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(COUNT, optional, parent)
        self._minimum = minimum
        self._maximum = maximum

    def format(self, value: float) -> str:
        """Return the whole number with its thousands grouped."""
        return f"{int(value):,}"

    def parse(self, text: str) -> float:
        """Read a whole number within the limits.

        Raises:
            QuantityError: the text is none; the message says what would be.
        """
        try:
            value = parse_quantity(text, COUNT)
        except QuantityError:
            value = math.nan
        if not (value.is_integer() and self._minimum <= value <= self._maximum):
            raise QuantityError(
                tr(
                    "Not a whole number from {minimum} to {maximum}",
                    minimum=f"{self._minimum:,}",
                    maximum=f"{self._maximum:,}",
                )
            )
        return value

    def stepped(self, value: float, direction: int) -> float:
        """Return the next whole number."""
        return value + direction

    def clamped(self, value: float) -> float:
        """Return the nearest whole number within the limits."""
        return float(min(max(round(value), self._minimum), self._maximum))

    def _commit_value(self, value: float) -> None:
        self.value_committed.emit(int(value))

    def _preview(self, value: float) -> None:
        self.value_previewed.emit(int(value))
