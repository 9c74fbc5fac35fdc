"""What the schedule view shows while the design has no schedule: ways to get one."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from app.i18n import tr


class EmptySchedule(QWidget):
    """Says that there is no schedule, and offers two."""

    figure_requested = Signal()
    schedule_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("empty_schedule")
        text = QLabel(
            tr("This design has no pipeline schedule. It needs one where training is split into stages."),
            self,
        )
        text.setWordWrap(True)
        text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        text.setProperty("muted", True)
        figure = QPushButton(tr("Figure 5 of the DeepSeek-V3 report"), self)
        figure.setObjectName("figure_button")
        figure.clicked.connect(self.figure_requested)
        plain = QPushButton(tr("Add a 1F1B schedule"), self)
        plain.setObjectName("add_button")
        plain.clicked.connect(self.schedule_requested)
        column = QVBoxLayout(self)
        column.addStretch(1)
        column.addWidget(text)
        for button in (figure, plain):
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(1)
