"""Assigns the physical axes of the cluster to the logical axes x, y, z, and shows the sizes that result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.binding import Binding
from app.panels.mesh_choice import LOGICAL_AXES, PIPELINE, assignment_of, axes_of, mesh_from
from app.panels.numbers import MISSING
from app.theme import Role, active
from app.theme.fonts import tabular
from app.widgets.choices import ChoiceBox
from app.widgets.look import muted
from model_core.spec import Design, MeshPlan

AUTOMATIC: Final = "automatic"
BY_HAND: Final = "by_hand"
MAX_AXES: Final = 4
_NARROWEST: Final = 48
AXIS_ROLES: Final = {"x": Role.AXIS_X, "y": Role.AXIS_Y, "z": Role.AXIS_Z}


class AxisSizes(QWidget):
    """The sizes of the logical axes, each with the colour that the drawings give it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._texts: tuple[tuple[str, str], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_sizes({})

    def set_sizes(self, sizes: Mapping[str, int]) -> None:
        """Show sizes by axis; an axis without one shows a dash."""
        texts = tuple((axis, f"{axis.upper()} = {sizes.get(axis, '—')}") for axis in LOGICAL_AXES)
        if texts != self._texts:
            self._texts = texts
            joined = ", ".join(text for _, text in texts)
            self.setAccessibleName(tr("Sizes of the logical axes: {sizes}", sizes=joined))
            self.setToolTip(tr("Chips along each logical axis of the layouts"))
            self.update()

    def sizeHint(self) -> QSize:
        """Return the height of a line and its colour bar."""
        return QSize(150, self.fontMetrics().height() + 12)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw each size over a bar in the colour of its axis."""
        theme = active()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(tabular(0.95))
        width = self.width() / len(self._texts)
        for index, (axis, text) in enumerate(self._texts):
            left = index * width
            painter.setPen(theme.color(Role.TEXT))
            box = QRectF(left, 2, width - 6, self.height() - 8)
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(AXIS_ROLES[axis]))
            painter.drawRoundedRect(QRectF(left, self.height() - 5, width - 8, 3), 1.5, 1.5)
        painter.end()


class MeshEdit(QWidget):
    """Automatic, or for each physical axis one choice of logical axis or of the pipeline."""

    mesh_committed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._design: Design | None = None
        self._mode = ChoiceBox([(AUTOMATIC, tr("automatic")), (BY_HAND, tr("by hand"))], self)
        self._mode.choice_committed.connect(self._on_mode_committed)
        self._mode.setObjectName("plan.mesh.mode")
        self._rows = QWidget(self)
        self._labels = [muted("", self._rows) for _ in range(MAX_AXES)]
        choices = [*((axis, axis) for axis in LOGICAL_AXES), (PIPELINE, tr("pipeline"))]
        self._boxes = [ChoiceBox(choices, self._rows) for _ in range(MAX_AXES)]
        self.sizes = AxisSizes(self)
        self.setFocusProxy(self._mode)
        self._build()

    @property
    def mode(self) -> ChoiceBox:
        """The choice between automatic and by hand."""
        return self._mode

    def axis_box(self, physical: str) -> ChoiceBox:
        """Return the choice of logical axis for a physical axis."""
        return self._boxes[list(self._axes()).index(physical)]

    def show_design(self, design: Design) -> None:
        """Show the assignment of a design without announcing it."""
        self._design, mesh = design, design.plan.mesh
        self._mode.set_choice(AUTOMATIC if mesh is None else BY_HAND)
        self._rows.setVisible(mesh is not None)
        if mesh is not None:
            assignment = assignment_of(mesh, design)
            for index, (label, box) in enumerate(zip(self._labels, self._boxes, strict=True)):
                there = index < len(assignment)
                label.setVisible(there)
                box.setVisible(there)
                if there:
                    physical, logical = list(assignment.items())[index]
                    self._show_axis(label, box, physical, logical)

    def _build(self) -> None:
        grid = QGridLayout(self._rows)
        grid.setContentsMargins(0, 2, 0, 0)
        grid.setHorizontalSpacing(6)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        for row, (label, box) in enumerate(zip(self._labels, self._boxes, strict=True)):
            label.setWordWrap(False)
            label.setBuddy(box)
            box.setPlaceholderText(MISSING)
            box.setMinimumWidth(_NARROWEST)
            box.choice_committed.connect(self._on_axis_committed)
            grid.addWidget(label, row, 0)
            grid.addWidget(box, row, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        for widget in (self._mode, self._rows, self.sizes):
            column.addWidget(widget)

    def _show_axis(self, label: QLabel, box: ChoiceBox, physical: str, logical: str) -> None:
        size = self._axes()[physical]
        label.setText(tr("{axis} ({size})", axis=physical, size=size))
        box.setObjectName(f"plan.mesh.{physical}")
        box.setAccessibleName(tr("Role of {axis}, {size} chips", axis=physical, size=size))
        box.setToolTip(
            tr(
                "The logical axis that the {size} chips along {axis} serve, or the stages of a pipeline",
                axis=physical,
                size=size,
            )
        )
        box.set_choice(logical)

    def _axes(self) -> dict[str, int]:
        return {} if self._design is None else axes_of(self._design.plan.mesh, self._design.cluster)

    def _on_mode_committed(self, mode: str) -> None:
        if self._design is not None:
            by_hand = mesh_from(assignment_of(None, self._design))
            self.mesh_committed.emit(by_hand if mode == BY_HAND else None)

    def _on_axis_committed(self, _choice: str) -> None:
        chosen = {physical: box.choice for physical, box in zip(self._axes(), self._boxes, strict=False)}
        self.mesh_committed.emit(mesh_from(chosen))


class MeshBinding(Binding):
    """The mesh of the plan on the design's cluster."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: MeshEdit) -> None:
        super().__init__(document, path, label, editor)
        self._mesh = editor
        editor.mesh_committed.connect(self._on_committed)

    def show_design(self, design: Design) -> None:
        """Show the assignment."""
        self._mesh.show_design(design)

    def _on_committed(self, mesh: MeshPlan | None) -> None:
        self.commit(mesh)
        self.show_design(self.document.design)
