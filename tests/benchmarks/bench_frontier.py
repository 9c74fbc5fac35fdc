"""Print how fast the frontier is: ``python -m tests.benchmarks.bench_frontier``.

For growing sweeps: designs, seconds of the worker, and the main thread's time for a picture of new designs,
for one with only the current design moved, for a repaint under a moving pointer, and for finding the design
under it (medians, 1000 x 560).
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from time import perf_counter, thread_time

REPEATS = 15
SIZE = (1000, 560)
DESIGN = "palm-540b-decode-low-latency"
SWEEPS = (
    ("batch, slice, layout, attention, weights", ("batch", "slice", "layout", "attention", "weights")),
    ("and KV cache", ("batch", "slice", "layout", "attention", "weights", "kv")),
    ("and mesh", ("batch", "slice", "layout", "attention", "weights", "kv", "mesh")),
)


def median_ms(work: Callable[[], object]) -> float:
    """Return the median time that this thread works on something, whatever else the machine does."""
    times = []
    for _ in range(REPEATS):
        start = thread_time()
        work()
        times.append((thread_time() - start) * 1e3)
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    if "DISPLAY" not in os.environ:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import QPointF
    from PySide6.QtWidgets import QApplication

    from app.plots.frontier.canvas import FrontierCanvas
    from app.plots.frontier.cloud import Cloud, Wish, sweep_cloud
    from app.theme.manager import ThemeManager
    from model_core import evaluate
    from model_core.results import Evaluation
    from presets import load_design

    application = QApplication(["bench"])
    design = load_design(DESIGN)
    canvas = FrontierCanvas(ThemeManager(application, "light"))
    canvas.resize(*SIZE)
    canvas.show()
    print(
        f"{'swept':44}{'designs':>9}{'shown':>9}{'sweep s':>9}{'new ms':>8}{'edit ms':>9}{'paint ms':>9}{'find ms':>8}"
    )
    for name, swept in SWEEPS:
        start = perf_counter()
        cloud = sweep_cloud(Wish(design, frozenset(swept)), lambda: False)
        seconds = perf_counter() - start
        assert isinstance(cloud, Cloud)
        canvas.show_cloud(cloud)
        evaluation = evaluate(design)

        def renew(cloud: Cloud = cloud) -> None:
            canvas.show_cloud(cloud)
            canvas.grab()

        def mark(evaluation: Evaluation = evaluation) -> None:
            canvas.show_evaluation(evaluation, False)
            canvas.grab()

        new, moved = median_ms(renew), median_ms(mark)
        paint = median_ms(canvas.grab)
        find = median_ms(lambda: canvas.design_at(QPointF(400, 300)))
        print(
            f"{name:44}{cloud.total:>9,}{len(cloud.numbers):>9,}{seconds:>9.2f}{new:>8.1f}{moved:>9.1f}{paint:>9.1f}{find:>8.2f}"
        )


if __name__ == "__main__":
    main()
