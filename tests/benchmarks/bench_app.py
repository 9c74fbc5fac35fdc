"""Print how fast the window is: ``python -m tests.benchmarks.bench_app``.

Two numbers: seconds from process start to first paint (median of 5 starts, disk warm), and the time of
the main thread from an edit to repainted views (200 edits of the batch in the default design).
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STARTS = 5
EDITS = 200
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


def edit_times_s() -> list[float]:
    """Edit the batch many times and return the main thread's time for each, until the views are repainted."""
    from PySide6.QtCore import QEventLoop
    from PySide6.QtWidgets import QApplication

    from app.document import DesignDocument
    from app.theme.manager import ThemeManager
    from app.windows.main_window import MainWindow
    from presets import load_design

    qt = QApplication.instance() or QApplication([])
    assert isinstance(qt, QApplication)
    document = DesignDocument(load_design(DESIGN))
    document.evaluate_now()
    window = MainWindow(document, ThemeManager(qt, "light"))
    window.resize(*SIZE)
    window.show()
    for _ in range(20):
        qt.processEvents()
    times = []
    for number in range(EDITS):
        before = document.evaluation
        start = time.thread_time()
        document.edit("workload.batch", 32 + number % 97)
        while document.evaluation is before:
            qt.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        qt.processEvents()
        qt.processEvents()
        times.append(time.thread_time() - start)
    window.leave()
    document.close()
    return times


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        environment = isolated_environment(folder)
        os.environ.update(environment)
        seconds_to_first_paint(environment)
        starts = [seconds_to_first_paint(environment) for _ in range(STARTS)]
        edits = sorted(edit_times_s())
    p50, p95 = (edits[round(share * (len(edits) - 1))] for share in (0.5, 0.95))
    print(f"first paint after start: median {statistics.median(starts):.2f} s of {STARTS} (limit 1.5 s)")
    print(
        f"edit to repainted views, main thread: p50 {p50 * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms "
        f"of {EDITS} at {SIZE[0]}x{SIZE[1]} (limit p95 16 ms)"
    )


if __name__ == "__main__":
    main()
