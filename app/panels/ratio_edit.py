"""A share between 0 and 100 %: a slider that previews while it is dragged, and a field beside it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QSlider, QWidget

from app.document import DesignDocument
from app.panels.binding import NumberBinding, field_at
from app.widgets.quantity_edit import QuantityEdit
from model_core.spec import Design, replace_at
from model_core.units import RATIO

_STEPS = 100


class _Slider(QSlider):
    """Leaves the wheel to the scroll area unless it has the focus."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class RatioEdit(QWidget):
    """The slider moves in whole per cent; the field takes any share."""

    ratio_previewed = Signal(float)
    ratio_committed = Signal(float)
    ratio_stepped = Signal(float)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = _Slider(Qt.Orientation.Horizontal, self)
        self.slider.setRange(0, _STEPS)
        self.slider.setPageStep(10)
        self.slider.setMinimumWidth(48)
        self.slider.setAccessibleName(name)
        self.slider.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.field = QuantityEdit(RATIO, parent=self)
        self.field.setAccessibleName(name)
        self.field.setFixedWidth(64)
        self.setFocusProxy(self.field)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.slider, 1)
        row.addWidget(self.field)
        self.slider.valueChanged.connect(self._on_value_changed)
        self.slider.sliderReleased.connect(self._on_released)

    def show_ratio(self, ratio: float) -> None:
        """Show a share on the slider without announcing it."""
        if self.slider.isSliderDown():
            return
        self.slider.blockSignals(True)
        self.slider.setValue(round(ratio * _STEPS))
        self.slider.blockSignals(False)

    def _on_value_changed(self, value: int) -> None:
        ratio = value / _STEPS
        if self.slider.isSliderDown():
            self.field.set_value(ratio)
            self.ratio_previewed.emit(ratio)
        else:
            self.ratio_stepped.emit(ratio)

    def _on_released(self) -> None:
        self.ratio_committed.emit(self.slider.value() / _STEPS)


class RatioBinding(NumberBinding):
    """A share of the design. Dragging evaluates at once; letting go is one undo step, as are steps in a row."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: RatioEdit) -> None:
        super().__init__(document, path, label, editor.field)
        self.editor = editor
        self._ratio = editor
        editor.ratio_previewed.connect(self._on_previewed)
        editor.ratio_committed.connect(self._on_slid)
        editor.ratio_stepped.connect(self._on_stepped)
        editor.field.problem_changed.connect(self._set_refusal)

    def show_design(self, design: Design) -> None:
        """Show the share in the field and on the slider."""
        if not self._ratio.slider.isSliderDown():
            super().show_design(design)
            self._ratio.show_ratio(field_at(design, self.path))

    def _on_previewed(self, ratio: float) -> None:
        self.document.preview(replace_at(self.document.design, self.path, ratio))

    def _on_slid(self, ratio: float) -> None:
        self.commit(ratio)
        self._restore()

    def _on_stepped(self, ratio: float) -> None:
        self.commit(ratio, f"{self.path}#slider")
        self._restore()
