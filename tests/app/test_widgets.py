"""Fields: what they read, what they keep, what they say."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyleOptionComboBox
from pytestqt.qtbot import QtBot

from app.theme import DARK, apply
from app.widgets.choices import CheckEdit, ChoiceBox
from app.widgets.form import Form
from app.widgets.message import MessageLine
from app.widgets.quantity_edit import IntEdit, QuantityEdit
from model_core.diagnostics import Severity
from model_core.units import BYTES, BYTES_PER_S, SECONDS

Key = Qt.Key


@pytest.fixture
def bandwidth(qtbot: QtBot) -> QuantityEdit:
    edit = QuantityEdit(BYTES_PER_S)
    qtbot.addWidget(edit)
    edit.set_value(5e10)
    edit.show()
    edit.setFocus()
    return edit


@pytest.fixture
def batch(qtbot: QtBot) -> IntEdit:
    edit = IntEdit(1, 1000)
    qtbot.addWidget(edit)
    edit.set_value(64)
    edit.show()
    edit.setFocus()
    return edit


def retype(qtbot: QtBot, edit: QuantityEdit | IntEdit, text: str) -> None:
    edit.selectAll()
    QTest.keyClicks(edit, text)


def test_that_a_value_is_shown_with_its_unit(bandwidth: QuantityEdit) -> None:
    assert bandwidth.text() == "50 GB/s"


@pytest.mark.parametrize(("text", "value"), [("400 Gb/s", 5e10 * 1), ("1.2 TB/s", 1.2e12), ("60GB/s", 6e10)])
def test_that_a_typed_quantity_is_committed(
    text: str, value: float, bandwidth: QuantityEdit, qtbot: QtBot
) -> None:
    bandwidth.set_value(1.0)
    seen: list[float] = []
    bandwidth.value_committed.connect(seen.append)
    retype(qtbot, bandwidth, text)
    QTest.keyClick(bandwidth, Key.Key_Return)
    assert seen == [value]
    assert bandwidth.value == value


def test_that_typing_previews_every_right_text(bandwidth: QuantityEdit, qtbot: QtBot) -> None:
    seen: list[float] = []
    bandwidth.value_previewed.connect(seen.append)
    retype(qtbot, bandwidth, "60 GB/s")
    assert seen[-1] == 6e10
    assert bandwidth.value == 5e10


def test_that_a_wrong_text_is_kept_and_explained(bandwidth: QuantityEdit, qtbot: QtBot) -> None:
    seen: list[float] = []
    bandwidth.value_committed.connect(seen.append)
    retype(qtbot, bandwidth, "50 parsec")
    QTest.keyClick(bandwidth, Key.Key_Return)
    assert bandwidth.text() == "50 parsec"
    assert "400 Gb/s" in bandwidth.problem
    assert seen == []
    bandwidth.set_value(5e10)
    assert bandwidth.text() == "50 parsec"
    QTest.keyClick(bandwidth, Key.Key_Escape)
    assert bandwidth.text() == "50 GB/s"
    assert bandwidth.problem == ""


def test_that_another_value_replaces_a_wrong_text(bandwidth: QuantityEdit, qtbot: QtBot) -> None:
    retype(qtbot, bandwidth, "nonsense")
    bandwidth.set_value(6e10)
    assert bandwidth.text() == "60 GB/s"
    assert bandwidth.problem == ""


def test_that_escape_ends_a_preview(bandwidth: QuantityEdit, qtbot: QtBot) -> None:
    retype(qtbot, bandwidth, "60 GB/s")
    with qtbot.waitSignal(bandwidth.preview_ended):
        QTest.keyClick(bandwidth, Key.Key_Escape)
    assert bandwidth.value == 5e10


def test_that_typing_the_same_value_ends_the_preview_without_a_commit(
    bandwidth: QuantityEdit, qtbot: QtBot
) -> None:
    seen: list[float] = []
    bandwidth.value_committed.connect(seen.append)
    retype(qtbot, bandwidth, "400 Gb/s")
    with qtbot.waitSignal(bandwidth.preview_ended):
        QTest.keyClick(bandwidth, Key.Key_Return)
    assert seen == []
    assert bandwidth.text() == "50 GB/s"


@pytest.mark.parametrize(
    ("key", "value"),
    [(Key.Key_Up, 5.1e10), (Key.Key_Down, 4.9e10), (Key.Key_PageUp, 1e11), (Key.Key_PageDown, 2.5e10)],
)
def test_that_keys_step_a_quantity(key: Qt.Key, value: float, bandwidth: QuantityEdit, qtbot: QtBot) -> None:
    with qtbot.waitSignal(bandwidth.value_committed) as signal:
        QTest.keyClick(bandwidth, key)
    assert signal.args == [value]


def test_that_an_optional_quantity_can_be_emptied(qtbot: QtBot) -> None:
    edit = QuantityEdit(SECONDS, optional=True)
    qtbot.addWidget(edit)
    edit.set_value(0.03)
    edit.selectAll()
    QTest.keyClick(edit, Key.Key_Delete)
    with qtbot.waitSignal(edit.value_cleared):
        QTest.keyClick(edit, Key.Key_Return)
    assert edit.value is None
    assert edit.problem == ""


def test_that_a_quantity_that_must_be_is_not_emptied(bandwidth: QuantityEdit, qtbot: QtBot) -> None:
    bandwidth.selectAll()
    QTest.keyClick(bandwidth, Key.Key_Delete)
    assert bandwidth.problem
    assert bandwidth.value == 5e10


@pytest.mark.parametrize("text", ["0", "1001", "2.5", "many", "-3", "nan", "inf"])
def test_that_a_whole_number_out_of_bounds_is_refused(text: str, batch: IntEdit, qtbot: QtBot) -> None:
    retype(qtbot, batch, text)
    QTest.keyClick(batch, Key.Key_Return)
    assert "1,000" in batch.problem
    assert batch.value == 64


def test_that_whole_numbers_step_within_bounds(batch: IntEdit, qtbot: QtBot) -> None:
    seen: list[int] = []
    batch.value_committed.connect(seen.append)
    for key in (Key.Key_Up, Key.Key_PageUp, *[Key.Key_PageUp] * 5):
        QTest.keyClick(batch, key)
    assert seen == [65, 130, 260, 520, 1000]


def test_that_showing_a_value_announces_nothing(batch: IntEdit, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(batch.value_committed):
        batch.set_value(99)
        batch.clearFocus()


def wheel(box: ChoiceBox) -> QWheelEvent:
    return QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        QPoint(),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )


def test_that_the_wheel_changes_no_choice_by_accident(qtbot: QtBot) -> None:
    box = ChoiceBox((("a", "A"), ("b", "B")))
    qtbot.addWidget(box)
    box.set_choice("a")
    event = wheel(box)
    QApplication.sendEvent(box, event)
    assert box.choice == "a"
    assert not event.isAccepted()


def test_that_a_choice_is_announced_only_when_picked(qtbot: QtBot) -> None:
    box = ChoiceBox((("a", "A"), ("b", "B", "why")))
    qtbot.addWidget(box)
    seen: list[str] = []
    box.choice_committed.connect(seen.append)
    box.set_choice("a")
    assert seen == []
    QTest.keyClick(box, Key.Key_Down)
    assert seen == ["b"]
    box.set_choices((("c", "C"), ("b", "B")))
    assert box.choice == "b"
    box.set_choice("unknown")
    assert box.choice == ""


def test_that_a_check_is_announced_only_when_clicked(qtbot: QtBot) -> None:
    check = CheckEdit("Gated")
    qtbot.addWidget(check)
    seen: list[bool] = []
    check.check_committed.connect(seen.append)
    check.set_checked(True)
    check.click()
    assert seen == [False]


@pytest.fixture
def form(qtbot: QtBot) -> Form:
    made = Form()
    qtbot.addWidget(made)
    made.add("chip.hbm", "HBM", QuantityEdit(BYTES), "High-bandwidth memory")
    made.add("batch", "Batch", IntEdit(), "Sequences in the batch")
    made.show()
    return made


def test_that_a_field_is_labelled_for_everyone(form: Form) -> None:
    editor = form.editor("batch")
    assert editor.accessibleName() == "Batch"
    assert editor.accessibleDescription() == editor.toolTip() == "Sequences in the batch"
    assert editor.objectName() == "batch"
    labels = [
        label for label in form.findChildren(type(form._fields["batch"].label)) if label.buddy() is editor
    ]
    assert [label.text() for label in labels] == ["Batch"]


def test_that_a_problem_of_the_text_comes_before_a_diagnostic(form: Form, qtbot: QtBot) -> None:
    editor = form.editor("batch")
    assert isinstance(editor, IntEdit)
    editor.set_value(3)
    form.set_error("batch", "does not divide", Severity.ERROR, "use 4")
    assert form.error("batch") == "does not divide"
    retype(qtbot, editor, "x")
    assert form.error("batch") == editor.problem != ""
    editor.revert()
    assert form.error("batch") == "does not divide"
    form.clear_errors()
    assert form.error("batch") == ""


def test_that_a_message_names_its_severity_without_colour(form: Form) -> None:
    form.set_error("batch", "is padded", Severity.WARNING)
    message = form.findChild(MessageLine, "batch.message")
    assert isinstance(message, MessageLine)
    assert message.accessibleName() == "Warning: is padded"
    warned = message.grab().toImage()
    form.set_error("batch", "is padded", Severity.ERROR)
    assert message.grab().toImage() != warned


def test_that_a_message_is_as_high_as_its_text(form: Form, qtbot: QtBot) -> None:
    message = form.findChild(MessageLine, "batch.message")
    assert isinstance(message, MessageLine)
    form.resize(300, 200)
    form.set_error("batch", "short", Severity.WARNING)
    qtbot.waitUntil(message.isVisible)
    one_line = message.height()
    form.set_error("batch", "a text of many words that needs several lines " * 3, Severity.WARNING)
    assert message.height() > 2 * one_line - 8
    narrow = message.height()
    form.resize(900, 400)
    qtbot.waitUntil(lambda: message.height() < narrow)


def test_that_a_hidden_row_stays_hidden(form: Form) -> None:
    form.set_row_visible("batch", False)
    assert not form.editor("batch").isVisible()
    form.set_error("batch", "wrong", Severity.ERROR)
    form.set_row_visible("batch", True)
    assert form.editor("batch").isVisible()
    assert form.error("batch") == "wrong"


def test_that_symbols_follow_the_theme(form: Form, qapp: QApplication, qtbot: QtBot) -> None:
    form.set_error("batch", "wrong", Severity.ERROR)
    message = form.findChild(MessageLine, "batch.message")
    assert isinstance(message, MessageLine)
    light = message.grab().toImage()
    apply(qapp, DARK)
    assert message.grab().toImage() != light


def test_that_messages_said_together_replace_those_before(form: Form) -> None:
    form.set_error("batch", "old", Severity.ERROR)
    form.set_errors({"chip.hbm": ("new", Severity.WARNING, "hint")})
    assert (form.error("batch"), form.error("chip.hbm")) == ("", "new")


def test_that_a_text_too_long_for_its_box_is_elided(qtbot: QtBot) -> None:
    box = ChoiceBox((("a", "A name that needs quite some room"), ("b", "B")))
    qtbot.addWidget(box)
    box.set_choice("a")
    shown = []
    for width in (110, 600):
        box.resize(width, box.sizeHint().height())
        option = QStyleOptionComboBox()
        box.initStyleOption(option)
        shown.append(option.currentText)
    assert shown[0].endswith("…")
    assert box.fontMetrics().horizontalAdvance(shown[0]) <= 110
    assert shown[1] == box.currentText()
