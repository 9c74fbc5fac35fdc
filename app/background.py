"""Long computations off the main thread: one at a time for each owner, the latest wins, with progress."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from time import perf_counter

from PySide6.QtCore import QObject, Qt, QThread, Signal, Slot

REPORT_EVERY_S = 0.05


class Ticket:
    """One computation on its way: it asks here whether it is still wanted and says how far it is."""

    def __init__(self, report: Callable[[Ticket, float], None]) -> None:
        self._report = report
        self._unwanted = Event()
        self._reported = 0.0

    def cancel(self) -> None:
        """Ask the computation to end."""
        self._unwanted.set()

    def cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self._unwanted.is_set()

    def progress(self, done: int, total: int) -> None:
        """Say how far it is."""
        now = perf_counter()
        if now - self._reported >= REPORT_EVERY_S and total > 0:
            self._reported = now
            self._report(self, done / total)


Task = Callable[[Ticket], object]


class _Worker(QObject):
    """Lives in the worker thread."""

    progressed = Signal(object, float)
    finished = Signal(object, object)

    @Slot(object, object)
    def work(self, ticket: Ticket, task: Task) -> None:
        """Do one task; one that is no longer wanted is not begun."""
        result = None
        try:
            if not ticket.cancelled():
                result = task(ticket)
        finally:
            # An error is reported by Qt's hook; the owner must not wait for this task for ever.
            self.finished.emit(ticket, result)


class Background(QObject):
    """Runs tasks in a thread of its own. A task gets a `Ticket`, touches no widget, and returns ``None`` if cancelled.

    ``finished`` carries the result of the latest task only, never ``None``; ``busy_changed`` tells when work begins
    and ends. Call `stop` before the application ends.
    """

    progressed = Signal(float)
    finished = Signal(object)
    busy_changed = Signal(bool)
    _requested = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._ticket: Ticket | None = None
        self._stopped = False
        self._thread = QThread(self)
        self._thread.setObjectName("background")
        self._worker = _Worker()
        self._worker.moveToThread(self._thread)
        self._requested.connect(self._worker.work, Qt.ConnectionType.QueuedConnection)
        self._worker.progressed.connect(self._on_progressed, Qt.ConnectionType.QueuedConnection)
        self._worker.finished.connect(self._on_finished, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """Whether a task that is wanted runs or waits."""
        return self._ticket is not None

    def start(self, task: Task) -> None:
        """Do a task next; the one before is cancelled."""
        if self._stopped:
            return
        was_busy = self.busy
        self._forget()
        if not self._thread.isRunning():
            self._thread.start()
        self._ticket = Ticket(self._worker.progressed.emit)
        self._requested.emit(self._ticket, task)
        if not was_busy:
            self.busy_changed.emit(True)

    def cancel(self) -> None:
        """Give up the task that runs."""
        if self.busy:
            self._forget()
            self.busy_changed.emit(False)

    def stop(self) -> None:
        """End the thread; nothing is delivered any more."""
        self._stopped = True
        self._forget()
        if self._thread.isRunning():
            self._thread.quit()
            self._thread.wait()

    def _forget(self) -> None:
        if self._ticket is not None:
            self._ticket.cancel()
            self._ticket = None

    @Slot(object, float)
    def _on_progressed(self, ticket: Ticket, share: float) -> None:
        if ticket is self._ticket:
            self.progressed.emit(share)

    @Slot(object, object)
    def _on_finished(self, ticket: Ticket, result: object) -> None:
        if ticket is not self._ticket:
            return
        self._ticket = None
        self.busy_changed.emit(False)
        if result is not None:
            self.finished.emit(result)
