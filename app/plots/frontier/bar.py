"""The bar over the frontier: what is swept, what is set against the latency, and the latency target."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy, QWidget

from app.i18n import tr
from app.plots.frontier.cloud import COST, SWEPT_AT_FIRST
from app.widgets.choices import CheckEdit, ChoiceBox
from app.widgets.quantity_edit import QuantityEdit
from model_core.units import SECONDS

_BUSY: Final = 1000
ONE_ROW: Final = 1080


class FrontierBar(QWidget):
    """Announces what the user asks for; shows how far a sweep is."""

    sweep_changed = Signal()
    target_committed = Signal(object)
    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("frontier_bar")
        self._checks = {name: self._check(name, text, tip) for name, text, tip in sweepable()}
        self.measure = ChoiceBox(_measures(), self)
        self.measure.setObjectName("frontier_y")
        self.measure.setAccessibleName(tr("Set against the latency"))
        self.measure.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.measure.setMinimumWidth(180)
        self.measure.set_choice(COST)
        self.measure.choice_committed.connect(self._on_changed)
        self.target = QuantityEdit(SECONDS, optional=True, parent=self)
        self.target.setObjectName("frontier_target")
        self.target.setAccessibleName(tr("Latency target"))
        self.target.setToolTip(tr("Latency target of the workload; drawn as a line. Empty: none"))
        self.target.setFixedWidth(84)
        self.target.setPlaceholderText(tr("none"))
        self.target.value_committed.connect(self._on_target)
        self.target.value_cleared.connect(self._on_no_target)
        self.progress = QProgressBar(self)
        self.progress.setObjectName("frontier_progress")
        self.progress.setRange(0, _BUSY)
        self.progress.setTextVisible(False)
        self.progress.setFixedSize(70, 6)
        self.stop = QPushButton(tr("Stop"), self)
        self.stop.setObjectName("frontier_stop")
        self.stop.setToolTip(tr("Give up this sweep; the last picture stays"))
        self.stop.clicked.connect(self.cancel_requested)
        self._wide = False
        self._rows = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._arrange()
        self.show_busy(False)

    @property
    def swept(self) -> frozenset[str]:
        """Names of what is swept."""
        return frozenset(name for name, box in self._checks.items() if box.isChecked())

    def check(self, name: str) -> CheckEdit:
        """Return the box of something that may be swept."""
        return self._checks[name]

    def show_busy(self, busy: bool) -> None:
        """Show or hide what concerns a running sweep, without moving the rest."""
        for widget in (self.progress, self.stop):
            policy = widget.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            widget.setSizePolicy(policy)
            widget.setVisible(busy)
        self.progress.setValue(0)

    def show_progress(self, share: float) -> None:
        """Show how far the sweep is."""
        self.progress.setValue(round(share * _BUSY))

    def show_target(self, seconds: float | None) -> None:
        """Show the workload's latency target."""
        if self.target.value != seconds and not self.target.hasFocus():
            self.target.set_value(seconds)

    def _check(self, name: str, text: str, tip: str) -> CheckEdit:
        box = CheckEdit(text, self)
        box.setObjectName(f"sweep_{name}")
        box.setToolTip(tip)
        box.set_checked(name in SWEPT_AT_FIRST)
        box.check_committed.connect(self._on_changed)
        return box

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use one row where there is room, two where there is not."""
        super().resizeEvent(event)
        wide = self.width() >= ONE_ROW
        if wide is not self._wide:
            self._wide = wide
            self._rows.setDirection(
                QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
            )

    def _arrange(self) -> None:
        first, second = QHBoxLayout(), QHBoxLayout()
        for row in (first, second):
            row.setSpacing(10)
        first.addWidget(self._caption(tr("Sweep")))
        for box in self._checks.values():
            first.addWidget(box)
        first.addStretch(1)
        second.addWidget(self._caption(tr("Latency against")))
        second.addWidget(self.measure)
        second.addWidget(self._caption(tr("Target")))
        second.addWidget(self.target)
        second.addStretch(1)
        second.addWidget(self.progress, 0, Qt.AlignmentFlag.AlignVCenter)
        second.addWidget(self.stop)
        self._rows.setContentsMargins(14, 8, 14, 0)
        self._rows.setSpacing(6)
        self._rows.addLayout(first)
        self._rows.addLayout(second)

    def _caption(self, text: str) -> QLabel:
        label = QLabel(text, self)
        label.setProperty("muted", True)
        return label

    def _on_changed(self, _value: object = None) -> None:
        self.sweep_changed.emit()

    def _on_target(self, seconds: float) -> None:
        self.target_committed.emit(seconds)

    def _on_no_target(self) -> None:
        self.target_committed.emit(None)


def sweepable() -> tuple[tuple[str, str, str], ...]:
    """Return what may be swept: its name in `PATHS`, its title, and a remark."""
    return (
        ("batch", tr("Batch"), tr("Powers of two from 1 to 1024")),
        ("slice", tr("Slice"), tr("Slice shapes of the same chip that can be had")),
        ("layout", tr("Layout"), tr("The five layouts of the feedforward layer")),
        ("attention", tr("Attention"), tr("Attention sharded over heads or over batch")),
        ("weights", tr("Weights"), tr("Formats of the weights; each has its own frontier")),
        ("kv", tr("KV cache"), tr("Formats of the KV cache")),
        ("mesh", tr("Mesh"), tr("Every assignment of physical axes to x, y and z; many designs")),
    )


def _measures() -> tuple[tuple[str, str], ...]:
    return (
        (COST, tr("chip-seconds per token")),
        ("mfu", tr("MFU")),
        ("usd_per_million_tokens", tr("price per million tokens")),
        ("joules_per_token", tr("energy per token")),
        ("tokens_per_s", tr("throughput")),
    )
