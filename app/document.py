"""The document: the design, its undo stack and its evaluation. Everything that changes a design goes through it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from app.evaluation import EvaluationService
from app.i18n import tr
from model_core.diagnostics import Diagnostic
from model_core.results import Evaluation
from model_core.spec import Design, replace_at
from model_core.spec.base import field_names
from model_core.spec.edits import with_parents
from model_core.spec.errors import diagnostics_of

_COMMAND_ID: Final = 1
_NOT_MODELLED: Final = ("expert_pipeline",)
UNDO_LIMIT: Final = 1000


class ReplaceDesign(QUndoCommand):
    """Exchange the whole design; designs are immutable, so undo is the old one."""

    def __init__(self, document: DesignDocument, design: Design, text: str, merge_key: str) -> None:
        super().__init__(text)
        self._document = document
        self._before = document.design
        self._after = design
        self._merge_key = merge_key

    def id(self) -> int:
        """Return Qt's number for commands that may merge."""
        return _COMMAND_ID if self._merge_key else -1

    def mergeWith(self, other: QUndoCommand) -> bool:
        """Take over a following change of the same field; together they may amount to nothing."""
        if not isinstance(other, ReplaceDesign) or other._merge_key != self._merge_key:
            return False
        self._after = other._after
        self.setText(other.text())
        self.setObsolete(self._after == self._before)
        return True

    def redo(self) -> None:
        """Show the new design."""
        self._document.show_design(self._after)

    def undo(self) -> None:
        """Show the old design."""
        self._document.show_design(self._before)


def is_drawable(evaluation: Evaluation) -> bool:
    """Tell whether views can draw it: it has times, or the model has none yet but its memory is known."""
    if evaluation.programs and evaluation.time is not None:
        return True
    not_modelled = any(d.code in _NOT_MODELLED for d in evaluation.diagnostics)
    return not_modelled and evaluation.memory is not None


class DesignDocument(QObject):
    """One open design. Views read it and call its methods; no view talks to another.

    ``evaluation`` is the latest; ``picture`` is the latest that can be drawn, which views keep showing,
    greyed (``stale``), while the design has errors that leave nothing to draw. ``evaluation_started`` carries
    the worker's `Round`, to which views add the drawing of what it evaluates.
    """

    design_changed = Signal(object)
    evaluation_started = Signal(object)
    evaluation_changed = Signal(object)
    baseline_changed = Signal(object)
    stale_changed = Signal(bool)
    selection_changed = Signal(str)
    path_changed = Signal(object)

    def __init__(
        self,
        design: Design,
        service: EvaluationService | None = None,
        parent: QObject | None = None,
        path: Path | None = None,
    ) -> None:
        super().__init__(parent)
        self._design = design
        self._preview: Design | None = None
        self._path = path
        self._evaluation: Evaluation | None = None
        self._picture: Evaluation | None = None
        self._baseline: Evaluation | None = None
        self._stale = False
        self._selection = ""
        self._seconds = 0.0
        self._stack = QUndoStack(self)
        self._stack.setUndoLimit(UNDO_LIMIT)
        self._service = EvaluationService(parent=self) if service is None else service
        self._service.started.connect(self.evaluation_started)
        self._service.evaluated.connect(self.accept_evaluation)

    @property
    def design(self) -> Design:
        """The committed design."""
        return self._design

    @property
    def shown_design(self) -> Design:
        """The design of the pictures: the one being previewed, or the committed one."""
        return self._design if self._preview is None else self._preview

    @property
    def evaluation(self) -> Evaluation | None:
        """The latest evaluation; none before the first."""
        return self._evaluation

    @property
    def picture(self) -> Evaluation | None:
        """The latest evaluation that can be drawn."""
        return self._picture

    @property
    def stale(self) -> bool:
        """Whether `picture` is older than the design, because the design cannot be drawn."""
        return self._stale

    @property
    def evaluation_s(self) -> float:
        """Seconds that the latest evaluation took."""
        return self._seconds

    @property
    def baseline(self) -> Evaluation | None:
        """The evaluation that others are compared with."""
        return self._baseline

    @property
    def path(self) -> Path | None:
        """The file of the design; none before it is first saved."""
        return self._path

    @property
    def selection(self) -> str:
        """The key of the number being explained."""
        return self._selection

    @property
    def undo_stack(self) -> QUndoStack:
        """Every change since the design was opened."""
        return self._stack

    @property
    def modified(self) -> bool:
        """Whether there are changes that are not in the file."""
        return not self._stack.isClean()

    def push(self, design: Design, text: str, merge_key: str = "") -> None:
        """Change the design as one undo step; steps in a row with the same ``merge_key`` become one."""
        self._preview = None
        if design == self._design:
            self._service.request(self._design)
            return
        self._stack.push(ReplaceDesign(self, design, text, merge_key))

    def edit(self, path: str, value: object, text: str = "", merge_key: str = "") -> tuple[Diagnostic, ...]:
        """Change the field at a dotted path; an empty part on the way to it is filled with its defaults.

        Returns:
            What is wrong with the value, and then nothing was changed; else nothing.
        """
        design, problem = with_parents(self._design, path)
        if problem is not None:
            return (problem,)
        try:
            changed = replace_at(design, path, value)
        except ValidationError as error:
            parent = path.rpartition(".")[0]
            found = diagnostics_of(error, parent)
            # A rule between fields may name another one; it is this edit that broke it.
            return tuple(d if d.path.startswith(path) else replace(d, path=path) for d in found)
        except AttributeError as error:
            known = ", ".join(field_names(self._design, path))
            return (Diagnostic("field_unknown", path, {"field": str(error), "known": known}),)
        field = path.rpartition(".")[2]
        self.push(changed, text or tr("Change {field}", field=field), merge_key)
        return ()

    def preview(self, design: Design) -> None:
        """Evaluate a design without changing the document, while a value is being dragged or typed."""
        self._preview = design
        self._service.request(design)

    def end_preview(self) -> None:
        """Go back to the committed design."""
        if self._preview is not None:
            self._preview = None
            self._service.request(self._design)

    def evaluate_now(self) -> None:
        """Evaluate on this thread: for pictures without an event loop, and for tests."""
        self._service.evaluate_now(self.shown_design)

    def request_evaluation(self) -> None:
        """Ask for the first evaluation, once the window is shown."""
        self._service.request(self.shown_design)

    def pin_baseline(self) -> None:
        """Compare with the present evaluation from now on."""
        if self._picture is not None and not self._stale:
            self._set_baseline(self._picture)

    def clear_baseline(self) -> None:
        """Compare with nothing."""
        if self._baseline is not None:
            self._set_baseline(None)

    def select(self, key: str) -> None:
        """Explain the number of a key (see `Evaluation.explain`)."""
        self._selection = key
        self.selection_changed.emit(key)

    def load(self, design: Design, path: Path | None, modified: bool = False) -> None:
        """Replace the document by another; its undo steps end. ``modified``: it is not what the file holds."""
        self._service.forget()
        self._picture = None
        self._design = design
        self._set_path(path)
        self._stack.clear()
        if modified:
            self._stack.resetClean()
        self._set_baseline(None)
        self.select("")
        self.show_design(design)

    def save(self, path: Path) -> None:
        """Write the design to a file, atomically.

        Raises:
            OSError: the file cannot be written; an existing one is as it was.
        """
        from model_core.spec.io import write_design

        write_design(self._design, path)
        self._stack.setClean()
        self._set_path(path)

    def show_design(self, design: Design) -> None:
        """Make a design the current one; called by the undo commands and by `load`."""
        self._preview = None
        self._design = design
        self.design_changed.emit(design)
        self._service.request(design)

    def accept_evaluation(self, evaluation: Evaluation, seconds: float) -> None:
        """Take over an evaluation; the service calls this."""
        self._evaluation = evaluation
        self._seconds = seconds
        drawable = is_drawable(evaluation)
        if drawable:
            self._picture = evaluation
        stale = not drawable and self._picture is not None
        changed, self._stale = stale != self._stale, stale
        self.evaluation_changed.emit(evaluation)
        if changed:
            self.stale_changed.emit(stale)

    def close(self) -> None:
        """Stop evaluating; the document is not used after this."""
        self._service.stop()
        # A stack that is destroyed clears itself and says so, to objects that may be gone.
        self._stack.blockSignals(True)

    def _set_baseline(self, evaluation: Evaluation | None) -> None:
        self._baseline = evaluation
        self.baseline_changed.emit(evaluation)

    def _set_path(self, path: Path | None) -> None:
        self._path = path
        self.path_changed.emit(path)
