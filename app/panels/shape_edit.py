"""The shape of a torus: up to three counts of chips."""

from __future__ import annotations

from pydantic import ValidationError
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.binding import Binding, field_at
from app.panels.mesh_choice import with_cluster
from app.panels.wording import refusal
from app.widgets.quantity_edit import IntEdit
from model_core.spec import Design, replace_at
from model_core.spec.errors import diagnostics_of

AXES = ("x", "y", "z")
MAX_AXIS = 4096
_NARROWEST = 30


class ShapeEdit(QWidget):
    """Fields for the chips along x, y and z; the last two may be empty."""

    shape_committed = Signal(object)
    problem_changed = Signal()
    editing_ended = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._edits = [IntEdit(1, MAX_AXIS, optional=index > 0) for index in range(len(AXES))]
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for index, edit in enumerate(self._edits):
            if index:
                row.addWidget(QLabel("×", self))
            self._add(row, index, edit)
        self.setFocusProxy(self._edits[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The chips along each axis that there is."""
        return tuple(int(edit.value) for edit in self._edits if edit.value is not None)

    @property
    def problem(self) -> str:
        """Why a text is no count; empty if all are."""
        return next((edit.problem for edit in self._edits if edit.problem), "")

    @property
    def writing(self) -> bool:
        """Whether the user is writing in one of the fields."""
        return any(edit.hasFocus() and edit.isModified() for edit in self._edits)

    def edit(self, axis: str) -> IntEdit:
        """Return the field of an axis."""
        return self._edits[AXES.index(axis)]

    def set_shape(self, shape: tuple[int, ...]) -> None:
        """Show a shape without announcing it."""
        for index, edit in enumerate(self._edits):
            edit.set_value(shape[index] if index < len(shape) else None)

    def _add(self, row: QHBoxLayout, index: int, edit: IntEdit) -> None:
        axis = AXES[index]
        edit.setParent(self)
        edit.setMinimumWidth(_NARROWEST)
        edit.setObjectName(f"cluster.topology.shape.{axis}")
        edit.setAccessibleName(tr("Chips along {axis}", axis=axis))
        edit.setPlaceholderText(axis)
        edit.value_committed.connect(self._on_committed)
        edit.value_cleared.connect(self._on_committed)
        edit.problem_changed.connect(self._on_problem_changed)
        edit.preview_ended.connect(self.editing_ended)
        row.addWidget(edit, 1)

    def _on_committed(self) -> None:
        self.shape_committed.emit(self.shape)

    def _on_problem_changed(self, _problem: str) -> None:
        self.problem_changed.emit()


class ShapeBinding(Binding):
    """The torus shape; a mesh that names an axis which the new shape lacks becomes automatic with it."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: ShapeEdit) -> None:
        super().__init__(document, path, label, editor)
        self._shape = editor
        self._shown: object = None
        editor.shape_committed.connect(self._on_committed)
        editor.problem_changed.connect(self._on_problem_changed)
        editor.editing_ended.connect(self._on_editing_ended)

    def show_design(self, design: Design) -> None:
        """Show the shape, unless the user is writing here."""
        shape = field_at(design, self.path)
        if shape is None or self._shape.writing or (shape == self._shown and self._shape.problem):
            return
        self._shown = shape
        self._shape.set_shape(shape)

    def _on_committed(self, shape: tuple[int, ...]) -> None:
        design = self.document.design
        try:
            cluster = replace_at(design, self.path, shape).cluster
        except ValidationError as error:
            self._set_refusal(refusal(diagnostics_of(error)))
            return
        self._set_refusal("")
        self.document.push(with_cluster(design, cluster), tr("Change {field}", field=self.label))
        self.show_design(self.document.design)

    def _on_problem_changed(self) -> None:
        self._set_refusal(self._shape.problem)

    def _on_editing_ended(self) -> None:
        self.show_design(self.document.design)
