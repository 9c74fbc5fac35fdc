"""Evaluations off the main thread: the first change at once, bursts gathered, only the latest delivered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal, Slot

from model_core.results import Evaluation
from model_core.spec.design import Design

DEBOUNCE_MS = 30
Evaluate = Callable[[Design], Evaluation]


def evaluate_design(design: Design) -> Evaluation:
    """Evaluate with the core, which is imported on first use: its numerics are not needed to show a window."""
    from model_core import evaluate

    return evaluate(design)


@dataclass(frozen=True)
class _Request:
    generation: int
    design: Design


@dataclass(frozen=True)
class _Result:
    generation: int
    evaluation: Evaluation
    seconds: float


class _Worker(QObject):
    """Lives in the worker thread."""

    finished = Signal(object)

    def __init__(self, evaluate: Evaluate) -> None:
        super().__init__()
        self._evaluate = evaluate

    @Slot(object)
    def work(self, request: _Request) -> None:
        """Evaluate one design and send the result back."""
        start = perf_counter()
        evaluation = self._evaluate(request.design)
        self.finished.emit(_Result(request.generation, evaluation, perf_counter() - start))


class EvaluationService(QObject):
    """One worker thread for one document.

    `request` replaces what still waits. `evaluated` carries the evaluation and the seconds it took, and
    is emitted only for the latest request. Call `stop` before the application ends.
    """

    evaluated = Signal(object, float)
    _requested = Signal(object)

    def __init__(self, evaluate: Evaluate = evaluate_design, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._evaluate = evaluate
        self._generation = 0
        self._pending: _Request | None = None
        self._busy = False
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(DEBOUNCE_MS)
        self._pause.timeout.connect(self._dispatch)
        self._thread = QThread(self)
        self._thread.setObjectName("evaluation")
        self._worker = _Worker(evaluate)
        self._worker.moveToThread(self._thread)
        self._requested.connect(self._worker.work, Qt.ConnectionType.QueuedConnection)
        self._worker.finished.connect(self._on_finished, Qt.ConnectionType.QueuedConnection)
        self._stopped = False

    def request(self, design: Design) -> None:
        """Ask for the evaluation of a design; earlier requests that are not done are forgotten."""
        if self._stopped:
            return
        self._generation += 1
        self._pending = _Request(self._generation, design)
        if not self._busy and not self._pause.isActive():
            self._dispatch()

    def evaluate_now(self, design: Design) -> None:
        """Evaluate on the calling thread: for pictures and tests that have no event loop to wait in."""
        self._generation += 1
        self._pending = None
        start = perf_counter()
        evaluation = self._evaluate(design)
        self.evaluated.emit(evaluation, perf_counter() - start)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not self._busy and self._pending is None

    def stop(self) -> None:
        """End the worker thread after what it is doing; no result is delivered any more."""
        if self._stopped:
            return
        self._stopped = True
        self._generation += 1
        self._pending = None
        self._pause.stop()
        if self._thread.isRunning():
            self._thread.quit()
            self._thread.wait()

    def _dispatch(self) -> None:
        if self._pending is None or self._busy or self._stopped:
            return
        if not self._thread.isRunning():
            self._thread.start()
        request, self._pending = self._pending, None
        self._busy = True
        self._pause.start()
        self._requested.emit(request)

    @Slot(object)
    def _on_finished(self, result: _Result) -> None:
        self._busy = False
        if result.generation == self._generation and not self._stopped:
            self.evaluated.emit(result.evaluation, result.seconds)
        if not self._pause.isActive():
            self._dispatch()
