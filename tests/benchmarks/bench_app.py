"""Print how fast the window is: ``python -m tests.benchmarks.bench_app``.

Seconds from process start to first paint (median of 5 starts, disk warm), and the time from an edit to
repainted views (200 edits of the batch in the default design). The limit is on the CPU time of the main thread:
while it works, the window does not answer. Wall time is printed beside it; it includes the worker, which
evaluates and draws, and whatever else this machine does. Edits come one by one, after a pause in which the
window goes idle, as those of a person do.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

STARTS = 5
EDITS = 200
PAUSE_S = 0.05
SIZE = (1600, 1000)
ROOT = Path(__file__).parents[2]
DESIGN = "palm-540b-decode-low-latency"
START = f"from app.main import run_window; from presets import load_design; run_window(load_design({DESIGN!r}), None)"


def isolated_environment(folder: str) -> dict[str, str]:
    """Return an environment that reads and writes no file of the user."""
    own = {"HOME": folder, "XDG_CONFIG_HOME": f"{folder}/config", "XDG_DATA_HOME": f"{folder}/data"}
    platform = {} if "DISPLAY" in os.environ else {"QT_QPA_PLATFORM": "offscreen"}
    return {**os.environ, **platform, **own, "MESHWRIGHT_TIMING": "1"}


def seconds_to_first_paint(environment: dict[str, str]) -> float:
    """Start the application, read what it says about its first paint, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-c", START], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            found = re.match(r"first paint after ([\d.]+) s", line)
            if found:
                return float(found[1])
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    raise RuntimeError("the application ended before it painted")


class Edit(NamedTuple):
    """Seconds from an edit to repainted views."""

    cpu_s: float
    wall_s: float


class Editor:
    """A window on the default design, and the events that an edit leads to."""

    def __init__(self, qt: QApplication) -> None:
        from app.document import DesignDocument
        from app.evaluation import EvaluationService
        from app.idle import IdleCollector
        from app.theme.manager import ThemeManager
        from app.windows.main_window import MainWindow
        from presets import load_design

        self._qt = qt
        self._service = EvaluationService()
        self._document = DesignDocument(load_design(DESIGN), self._service)
        self._document.evaluate_now()
        self._window = MainWindow(self._document, ThemeManager(qt, "light"))
        self._window.resize(*SIZE)
        self._window.show()
        self._collector = IdleCollector(self._document)
        self.rest(1.0)
        self._collector.collect()

    def rest(self, seconds: float) -> None:
        """Handle events for a while."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self._qt.processEvents()
            time.sleep(0.002)

    def edit(self, batch: int) -> Edit:
        """Edit the batch, and wait until the views show it."""
        from PySide6.QtCore import QEventLoop

        before = self._document.evaluation
        cpu, wall = time.thread_time(), time.perf_counter()
        self._document.edit("workload.batch", batch)
        while self._document.evaluation is before or not self._service.idle:
            self._qt.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        for _ in range(3):
            self._qt.processEvents()
        return Edit(time.thread_time() - cpu, time.perf_counter() - wall)

    def close(self) -> None:
        """End everything."""
        self._window.leave()
        self._collector.stop()
        self._document.close()


def edit_times() -> list[Edit]:
    """Edit the batch many times."""
    from PySide6.QtWidgets import QApplication

    qt = QApplication.instance() or QApplication([])
    assert isinstance(qt, QApplication)
    editor = Editor(qt)
    times = []
    for number in range(EDITS):
        times.append(editor.edit(32 + number % 97))
        editor.rest(PAUSE_S)
    editor.close()
    return times


def percentiles(times: Sequence[float]) -> str:
    """Write median and 95th percentile."""
    ordered = sorted(times)
    p50, p95 = (ordered[round(share * (len(ordered) - 1))] for share in (0.5, 0.95))
    return f"p50 {p50 * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms"


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        environment = isolated_environment(folder)
        os.environ.update(environment)
        seconds_to_first_paint(environment)
        starts = [seconds_to_first_paint(environment) for _ in range(STARTS)]
        edits = edit_times()
    print(f"first paint after start: median {statistics.median(starts):.2f} s of {STARTS} (limit 1.5 s)")
    print(f"edit to repainted views, {EDITS} edits at {SIZE[0]}x{SIZE[1]}:")
    print(f"  CPU time of the main thread: {percentiles([edit.cpu_s for edit in edits])} (limit p95 16 ms)")
    print(f"  wall time: {percentiles([edit.wall_s for edit in edits])}")


if __name__ == "__main__":
    main()
