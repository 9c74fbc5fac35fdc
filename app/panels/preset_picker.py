"""Picks a preset for a whole part of the design, and tells when the part is no longer that preset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QVBoxLayout, QWidget

import presets
from app.i18n import tr
from app.widgets.choices import ChoiceBox
from app.widgets.look import muted
from model_core.spec import Spec

_LOADERS: Final[Mapping[presets.Kind, Callable[[str], Spec]]] = {
    "models": presets.load_model,
    "chips": presets.load_chip,
    "clusters": presets.load_cluster,
    "workloads": presets.load_workload,
}
# Parts name themselves by the preset's title; comparing the values alone tells whether one was edited.
_UNCOMPARED: Final[Mapping[str, Any]] = {"sources": True, "chip": {"sources": True}}


class PresetPicker(QWidget):
    """A choice of presets; under it, while the part differs from its preset, a way back."""

    preset_chosen = Signal(str)

    def __init__(self, kind: presets.Kind, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = kind
        self._titles = {presets.title(kind, name): name for name in presets.names(kind)}
        self._box = ChoiceBox([(name, title, title) for title, name in self._titles.items()], self)
        self._box.setPlaceholderText(tr("custom"))
        self._box.choice_committed.connect(self.preset_chosen)
        self.setFocusProxy(self._box)
        self._edited = QWidget(self)
        self._restore = QToolButton(self._edited)
        self._build()

    @property
    def choice(self) -> str:
        """The preset that the part is, or was made from; empty if none."""
        return self._box.choice

    @property
    def edited(self) -> bool:
        """Whether the part differs from that preset."""
        return not self._edited.isHidden()

    def show_part(self, part: Spec) -> None:
        """Show which preset a part is."""
        name = self._titles.get(str(getattr(part, "name", "")), "")
        if name != self._box.choice:
            self._box.set_choice(name)
        self._edited.setVisible(bool(name) and not _same(part, _LOADERS[self._kind](name)))

    def _build(self) -> None:
        self._restore.setProperty("flat", True)
        self._restore.setText(tr("Restore"))
        self._restore.setToolTip(tr("Set every value back to the preset's"))
        self._restore.clicked.connect(self._on_restore_clicked)
        row = QHBoxLayout(self._edited)
        row.setContentsMargins(8, 2, 0, 0)
        row.setSpacing(4)
        row.addWidget(muted(tr("edited"), self._edited))
        row.addStretch(1)
        row.addWidget(self._restore)
        self._edited.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._box)
        column.addWidget(self._edited)

    def _on_restore_clicked(self) -> None:
        self.preset_chosen.emit(self.choice)


def _same(part: Spec, preset: Spec) -> bool:
    if part is preset:
        return True
    hidden = {key: value for key, value in _UNCOMPARED.items() if key in type(part).model_fields}
    return part.model_dump(exclude=hidden) == preset.model_dump(exclude=hidden)
