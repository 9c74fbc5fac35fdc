"""Shows panels and acts on them as a user does; shared by the tests of the panels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.panels.group import Group
from app.panels.panel import FieldPanel
from app.panels.preset_picker import PresetPicker
from app.widgets.choices import ChoiceBox
from app.widgets.quantity_edit import NumberEdit
from model_core.spec import MeshPlan

P = TypeVar("P", bound=FieldPanel)
W = TypeVar("W", bound=QWidget)


class Stage:
    """Shows a panel in a scrolled column, as the window does, and keeps it alive."""

    def __init__(self, qtbot: QtBot, document: DesignDocument) -> None:
        self._qtbot = qtbot
        self._document = document
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.resize(320, 700)
        qtbot.addWidget(self._area)

    def show(self, make: Callable[[DesignDocument], P]) -> P:
        panel = make(self._document)
        self._area.setWidget(panel)
        with self._qtbot.waitExposed(self._area):
            self._area.show()
        self._area.activateWindow()
        self._qtbot.waitUntil(panel.isActiveWindow)
        return panel


def part(panel: FieldPanel, path: str, kind: type[W]) -> W:
    editor = panel.editor(path)
    assert isinstance(editor, kind)
    return editor


def unfold(widget: QWidget) -> None:
    for group in widget.findChildren(Group):
        group.unfold()


def write(qtbot: QtBot, editor: NumberEdit, text: str, enter: bool = True) -> None:
    editor.setFocus()
    editor.selectAll()
    qtbot.keyClick(editor, Qt.Key.Key_Delete)
    qtbot.keyClicks(editor, text)
    if enter:
        qtbot.keyClick(editor, Qt.Key.Key_Return)


def pick(box: ChoiceBox, value: str) -> None:
    box.setCurrentIndex(box.findData(value))
    box.activated.emit(box.currentIndex())


def pick_preset(panel: FieldPanel, path: str, name: str) -> None:
    box = part(panel, path, PresetPicker).findChild(ChoiceBox)
    assert isinstance(box, ChoiceBox)
    pick(box, name)


def visible(panel: FieldPanel, path: str) -> bool:
    return panel.editor(path).isVisible()


def mesh_of(document: DesignDocument) -> MeshPlan | None:
    return document.design.plan.mesh


def edited(panel: FieldPanel, path: str) -> bool:
    return part(panel, path, PresetPicker).edited
