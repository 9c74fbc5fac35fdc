"""The status bar: how long the evaluation took, how far to trust it, and where the design is kept."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QLabel, QStatusBar, QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.theme.fonts import tabular
from model_core.results import Evaluation
from model_core.units import SECONDS, format_quantity

_PAD: Final = 8


class StatusBar(QStatusBar):
    """Three short facts about the document."""

    def __init__(self, document: DesignDocument, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("status_bar")
        self.setSizeGripEnabled(False)
        self._document = document
        self.evaluated = self._label("status_evaluated")
        self.evidence = self._label("status_evidence")
        self.file = self._label("status_file")
        self.addWidget(self.evaluated)
        self.addWidget(self.evidence)
        self.addPermanentWidget(self.file)
        document.evaluation_changed.connect(self._on_evaluation_changed)
        document.design_changed.connect(self._show_file)
        document.path_changed.connect(self._show_file)
        document.undo_stack.cleanChanged.connect(self._show_file)
        widest = tr("Evaluated in {time}", time="888.88 ms")
        # A label of fixed size does not make the whole window lay itself out at every edit.
        self.evaluated.setFixedSize(
            self.evaluated.fontMetrics().horizontalAdvance(widest) + 2 * _PAD,
            self.evaluated.sizeHint().height(),
        )
        self._show_file()
        if document.evaluation is not None:
            self._on_evaluation_changed(document.evaluation)

    def _label(self, name: str) -> QLabel:
        label = QLabel(self)
        label.setObjectName(name)
        label.setFont(tabular())
        return label

    def _on_evaluation_changed(self, evaluation: Evaluation) -> None:
        seconds = self._document.evaluation_s
        self.evaluated.setText(tr("Evaluated in {time}", time=format_quantity(seconds, SECONDS, 2)))
        _show(self.evidence, *_trust(evaluation))

    def _show_file(self, *_: object) -> None:
        path = self._document.path
        if path is None:
            text, tip = tr("Not saved to a file"), ""
        elif self._document.modified:
            text, tip = tr("{name}: unsaved changes", name=path.name), str(path)
        else:
            text, tip = tr("{name}: saved", name=path.name), str(path)
        _show(self.file, text, tip)


def _show(label: QLabel, text: str, tip: str) -> None:
    if label.text() != text:
        label.setText(text)
    label.setToolTip(tip)


def _trust(evaluation: Evaluation) -> tuple[str, str]:
    if evaluation.time is None:
        return tr("No time is given for this design"), tr("Problems says why.")
    if evaluation.time.calibrated:
        return tr("Calibrated"), tr("Times use efficiencies fitted to measurements.")
    return (
        tr("Uncalibrated: times are lower bounds"),
        tr("Times come from peak rates and bandwidths; a real run takes longer."),
    )
