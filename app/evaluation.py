"""Evaluations off the main thread: the first change at once, bursts gathered, only the latest delivered.

What is to be drawn of an evaluation can be drawn in the worker too, see `Round`: the main thread then has
only the finished picture to show.
"""

from __future__ import annotations

from collections.abc import Callable
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


class Round:
    """One evaluation on its way through the worker.

    Who hears of its start (`EvaluationService.started`) may add tasks: they get the evaluation, in the worker,
    before it is delivered, and must not touch widgets.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.evaluation: Evaluation | None = None
        self.seconds = 0.0
        self.superseded = False
        self.dropped = False
        self._tasks: list[Callable[[Evaluation], object]] = []
        self._done = False

    @property
    def deliverable(self) -> bool:
        """Whether the result is of use: of the latest request, or one whose tasks are done.

        A request that comes while they are done must not make them useless: in the stream of requests of
        a drag, no picture would ever be seen.
        """
        return self.evaluation is not None and not self.dropped and (self._done or not self.superseded)

    def add(self, task: Callable[[Evaluation], object]) -> None:
        """Have something done with the evaluation, in the worker."""
        self._tasks.append(task)

    def evaluate(self, evaluate: Evaluate) -> None:
        """Make the evaluation."""
        start = perf_counter()
        self.evaluation = evaluate(self.design)
        self.seconds = perf_counter() - start

    def follow_up(self) -> None:
        """Do the tasks, if the result is of use."""
        if self.evaluation is not None and self.deliverable:
            for task in self._tasks:
                task(self.evaluation)
            self._done = bool(self._tasks)


class _Thread(QThread):
    """The worker thread."""

    def run(self) -> None:
        """Handle events. In Python, so that values of `threading.local` live on from one event to the next."""
        super().run()


class _Worker(QObject):
    """Lives in the worker thread."""

    finished = Signal(object)

    def __init__(self, evaluate: Evaluate) -> None:
        super().__init__()
        self._evaluate = evaluate

    @Slot(object)
    def work(self, round_: Round) -> None:
        """Evaluate one design, do what is to be done with the result, and send it back."""
        try:
            round_.evaluate(self._evaluate)
            round_.follow_up()
        finally:
            # Errors are reported by Qt's hook; the service must not wait for this round for ever.
            self.finished.emit(round_)


class EvaluationService(QObject):
    """One worker thread for one document.

    `request` replaces what still waits. `started` carries the `Round` that begins; `evaluated` carries the
    evaluation and the seconds it took, and is emitted only where it is `Round.deliverable`. Call `stop` before
    the application ends.
    """

    started = Signal(object)
    evaluated = Signal(object, float)
    _requested = Signal(object)

    def __init__(self, evaluate: Evaluate = evaluate_design, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._evaluate = evaluate
        self._pending: Design | None = None
        self._round: Round | None = None
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(DEBOUNCE_MS)
        self._pause.timeout.connect(self._dispatch)
        self._thread = _Thread(self)
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
        self._pending = design
        if self._round is not None:
            self._round.superseded = True
        if self._round is None and not self._pause.isActive():
            self._dispatch()

    def evaluate_now(self, design: Design) -> None:
        """Evaluate on the calling thread: for pictures and tests that have no event loop to wait in."""
        self.forget()
        now = Round(design)
        now.evaluate(self._evaluate)
        self.evaluated.emit(now.evaluation, now.seconds)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return self._round is None and self._pending is None

    def stop(self) -> None:
        """End the worker thread after what it is doing; no result is delivered any more."""
        if self._stopped:
            return
        self._stopped = True
        self.forget()
        self._pause.stop()
        if self._thread.isRunning():
            self._thread.quit()
            self._thread.wait()

    def forget(self) -> None:
        """Deliver nothing that was asked for before."""
        self._pending = None
        if self._round is not None:
            self._round.dropped = True

    def _dispatch(self) -> None:
        if self._pending is None or self._round is not None or self._stopped:
            return
        if not self._thread.isRunning():
            self._thread.start()
        self._round, self._pending = Round(self._pending), None
        self._pause.start()
        self.started.emit(self._round)
        self._requested.emit(self._round)

    @Slot(object)
    def _on_finished(self, done: Round) -> None:
        self._round = None
        if done.evaluation is not None and done.deliverable:
            self.evaluated.emit(done.evaluation, done.seconds)
        if not self._pause.isActive():
            self._dispatch()
