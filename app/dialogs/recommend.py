"""The dialog that recommends a design: targets, what to optimise, what may change; the answer can be loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.background import Task, Ticket
from app.dialogs.search_dialog import SearchDialog
from app.dialogs.search_text import measure_names, recommendation_html
from app.document import DesignDocument
from app.i18n import tr, tr_diagnostic
from app.plots.frontier.bar import sweepable
from app.plots.frontier.cloud import PATHS
from app.theme import active
from app.theme.icons import icon
from app.widgets.choices import CheckEdit, ChoiceBox
from model_core.results import Evaluation
from model_core.search.recommend import Answer, Goal, Recommendation, recommend
from model_core.search.space import SearchCancelledError
from model_core.search.targets import MEASURES, Target, parse_target
from model_core.spec import Design, Phase
from model_core.units import SECONDS, exact_text

MOST_TARGETS: Final = 5


class TargetRow(QWidget):
    """One bound: a measure, at most or at least, and a value as people write it."""

    removed = Signal(object)

    def __init__(self, phase: Phase, name: str, value: str, parent: QWidget) -> None:
        super().__init__(parent)
        names = measure_names()
        choices = [(key, names[key]) for key, m in MEASURES.items() if m.phase in (None, phase)]
        self.measure = ChoiceBox(choices, self)
        self.measure.setAccessibleName(tr("Bounded number"))
        self.measure.set_choice(name)
        self.measure.choice_committed.connect(self._on_measure)
        self.sign = ChoiceBox((("<=", tr("at most")), (">=", tr("at least"))), self)
        self.sign.setAccessibleName(tr("Kind of bound"))
        self.sign.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.sign.setMinimumWidth(104)
        self.value = QLineEdit(value, self)
        self.value.setAccessibleName(tr("Bound"))
        self.value.setFixedWidth(110)
        remove = QToolButton(self)
        remove.setProperty("flat", True)
        remove.setIcon(icon("close"))
        remove.setAccessibleName(tr("Remove this target"))
        remove.setToolTip(tr("Remove this target"))
        remove.clicked.connect(self._on_removed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for widget in (self.measure, self.sign, self.value, remove):
            row.addWidget(widget)
        self._on_measure(name)

    @property
    def text(self) -> str:
        """The target as the search reads it."""
        return f"{self.measure.choice}{self.sign.choice}{self.value.text().strip()}"

    def _on_measure(self, name: str) -> None:
        measure = MEASURES[name]
        self.sign.set_choice("<=" if measure.sign > 0 else ">=")
        self.value.setPlaceholderText(measure.dimension.examples.partition(",")[0])

    def _on_removed(self) -> None:
        self.removed.emit(self)


class RecommendDialog(SearchDialog):
    """Searches from the document's design on."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(
            "recommend_dialog",
            tr("Recommend a design"),
            tr("The best design with this model on this kind of chip that meets the targets and fits."),
            document,
            parent,
        )
        self._found: Recommendation | None = None
        phase = document.design.workload.phase
        names = measure_names()
        self.direction = ChoiceBox((("min", tr("Minimise")), ("max", tr("Maximise"))), self)
        self.direction.setAccessibleName(tr("Direction"))
        self.goal = ChoiceBox(
            [(key, names[key]) for key, measure in MEASURES.items() if measure.phase in (None, phase)], self
        )
        self.goal.setObjectName("recommend_goal")
        self.goal.setAccessibleName(tr("Goal"))
        self.goal.choice_committed.connect(self._on_goal)
        self.goal.set_choice("cost")
        self._on_goal("cost")
        self.targets: list[TargetRow] = []
        self._target_column = QVBoxLayout()
        self.add_button = QPushButton(tr("Add a target"), self)
        self.add_button.setAutoDefault(False)
        self.add_button.clicked.connect(self.add_target)
        self.changes = {name: self._change(name, text, tip) for name, text, tip in sweepable()}
        self._lay_out()
        self.load_button = self._load_button("load_best", tr("Load"), self._on_load)
        self.load_next_button = self._load_button("load_next", tr("Load the next best"), self._on_load_next)
        target = document.design.workload.latency_target
        first = "tpot" if phase is Phase.DECODE else "ttft"
        self.add_target(first, "" if target is None else exact_text(target, SECONDS))

    def add_target(self, name: object = None, value: str = "") -> None:
        """Add a row for a target."""
        phase = self._document.design.workload.phase
        row = TargetRow(phase, name if isinstance(name, str) and name else "memory", value, self)
        row.removed.connect(self._on_removed)
        self.targets.append(row)
        self._target_column.addWidget(row)
        self.add_button.setEnabled(len(self.targets) < MOST_TARGETS)

    def make_task(self) -> Task | None:
        """Return the search that the form describes."""
        design = self._document.design
        targets: list[Target] = []
        for row in self.targets:
            if not row.value.text().strip():
                continue
            target, problems = parse_target(row.text, design.workload.phase)
            if target is None:
                self.say(" ".join(tr_diagnostic(problems[0])))
                row.value.setFocus()
                return None
            targets.append(target)
        fixed = [path for name, box in self.changes.items() if not box.isChecked() for path in PATHS[name]]
        goal = Goal(self.goal.choice, self.direction.choice == "min")
        return _Search(design, tuple(targets), goal, tuple(fixed), self._document.evaluation)

    def show_result(self, found: object) -> None:
        """Show the recommendation."""
        assert isinstance(found, _Found)
        self._found = found.recommendation
        self.answer.setHtml(recommendation_html(found.recommendation, found.evaluation, active()))
        best = found.recommendation.best or found.recommendation.closest
        self.load_button.setEnabled(best is not None)
        self.load_next_button.setEnabled(found.recommendation.next_best is not None)

    def _change(self, name: str, text: str, tip: str) -> CheckEdit:
        box = CheckEdit(text, self)
        box.setObjectName(f"change_{name}")
        box.setToolTip(tip)
        box.set_checked(True)
        return box

    def _lay_out(self) -> None:
        goal = QHBoxLayout()
        goal.addWidget(self.direction)
        goal.addWidget(self.goal, 1)
        self.form.addLayout(goal)
        self.form.addWidget(self._caption(tr("so that")))
        self._target_column.setSpacing(6)
        self.form.addLayout(self._target_column)
        self.form.addWidget(self.add_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.form.addWidget(self._caption(tr("What may change")))
        changes = QHBoxLayout()
        changes.setSpacing(12)
        for box in self.changes.values():
            changes.addWidget(box)
        changes.addStretch(1)
        self.form.addLayout(changes)

    def _caption(self, text: str) -> QLabel:
        label = QLabel(text, self)
        label.setProperty("muted", True)
        return label

    def _load_button(self, name: str, text: str, slot: object) -> QPushButton:
        button = QPushButton(text, self)
        button.setObjectName(name)
        button.setAutoDefault(False)
        button.setEnabled(False)
        button.clicked.connect(slot)
        self.loads.addWidget(button)
        return button

    def _on_goal(self, name: str) -> None:
        self.direction.set_choice("min" if MEASURES[name].sign > 0 else "max")

    def _on_removed(self, row: TargetRow) -> None:
        self.targets.remove(row)
        row.deleteLater()
        self.add_button.setEnabled(True)

    def _on_load(self) -> None:
        if self._found is not None:
            self._load(self._found.best or self._found.closest)

    def _on_load_next(self) -> None:
        if self._found is not None:
            self._load(self._found.next_best)

    def _load(self, answer: Answer | None) -> None:
        if answer is not None:
            self._document.push(answer.design, tr("Load the recommended design"))


@dataclass(frozen=True, slots=True)
class _Found:
    """A recommendation and the evaluation it is compared with."""

    recommendation: Recommendation
    evaluation: Evaluation | None


@dataclass(frozen=True, slots=True)
class _Search:
    """The task of the worker."""

    design: Design
    targets: tuple[Target, ...]
    goal: Goal
    fixed: tuple[str, ...]
    evaluation: Evaluation | None

    def __call__(self, ticket: Ticket) -> _Found | None:
        try:
            found = recommend(
                self.design,
                self.targets,
                self.goal,
                self.fixed,
                cancelled=ticket.cancelled,
                progress=ticket.progress,
            )
        except SearchCancelledError:
            return None
        return _Found(found, self.evaluation)
