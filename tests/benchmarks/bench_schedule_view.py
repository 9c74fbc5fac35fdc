"""Print how fast the schedule view is: ``python -m tests.benchmarks.bench_schedule_view``.

500,000 operations on 256 ranks at 1600x900: simulation and cutting into cells (off the main thread in
the application), then the main thread's time for a frame while panning and zooming.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

SIZE = (1600, 900)
FRAMES = 60
LIMIT_MS = 16.0


def main() -> None:
    """Measure and print."""
    from PySide6.QtCore import QSizeF
    from PySide6.QtGui import QImage, QPainter
    from PySide6.QtWidgets import QApplication

    from app.plots.gantt.camera import TimeCamera
    from app.plots.gantt.canvas import Canvas
    from app.plots.gantt.picture import make_picture
    from app.theme import LIGHT
    from model_core.spec import ScheduleSpec

    application = QApplication.instance() or QApplication([])
    for kind in ("1f1b", "dualpipe"):
        microbatches = 1000 if kind == "1f1b" else 1600
        spec = ScheduleSpec.model_validate(
            {"kind": kind, "pp": 256, "microbatches": microbatches, "point_to_point": 1e-5}
        )
        start = time.thread_time()
        picture = make_picture(spec)
        cells = picture.charts[0]
        print(f"{kind}: {len(cells.schedule):,} operations, {len(cells.start):,} segments")
        print(f"  simulate and cut, worker: {1e3 * (time.thread_time() - start):.0f} ms")
        canvas = Canvas(picture, QSizeF(*SIZE), LIGHT, 1.0)
        image = QImage(*SIZE, QImage.Format.Format_ARGB32_Premultiplied)

        def draw(camera: TimeCamera, canvas: Canvas = canvas, image: QImage = image) -> None:
            painter = QPainter(image)
            canvas.paint(painter, camera, None, [-1], moving=True)
            painter.end()

        start = time.thread_time()
        draw(TimeCamera(cells.makespan_s, 0.0, cells.makespan_s))
        print(f"  first frame: {1e3 * (time.thread_time() - start):.0f} ms")
        for name, cameras in _walks(cells.makespan_s, cells.pp):
            _report(name, [_timed(draw, camera) for camera in cameras])
    del application


def _timed(draw: Callable[..., None], camera: object) -> float:
    start = time.thread_time()
    draw(camera)
    return 1e3 * (time.thread_time() - start)


def _walks(whole_s: float, pp: int) -> Iterator[tuple[str, Iterator[object]]]:
    """Yield ways through the chart: all of it, deeper and deeper, and 16 ranks of 20 cells each."""
    yield "full view, panning", (_camera(whole_s, whole_s * 0.98, k / FRAMES, 1.0) for k in range(FRAMES))
    yield (
        "zooming from all to 20 cells",
        (_camera(whole_s, whole_s * 0.01 ** (k / FRAMES), 0.5, 1.0) for k in range(FRAMES)),
    )
    yield (
        "zooming ranks and time",
        (
            _camera(whole_s, whole_s * 0.01 ** (k / FRAMES), 0.5, (pp / 16) ** (k / FRAMES))
            for k in range(FRAMES)
        ),
    )
    yield (
        "16 ranks of 20 cells, panning",
        (_camera(whole_s, whole_s * 0.01, 0.2 + k / 10_000, pp / 16) for k in range(FRAMES)),
    )


def _camera(whole_s: float, span_s: float, at: float, rows: float) -> object:
    from app.plots.gantt.camera import TimeCamera

    camera = TimeCamera(whole_s, 0.0, whole_s)
    begin = at * (whole_s - span_s)
    camera.show(begin, begin + span_s, 0.4 * (1 - 1 / rows), 0.4 * (1 - 1 / rows) + 1 / rows)
    return camera


def _report(name: str, times_ms: list[float]) -> None:
    ordered = sorted(times_ms)
    p50, p95 = (ordered[round(share * (len(ordered) - 1))] for share in (0.5, 0.95))
    print(
        f"  {name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms, most {ordered[-1]:.1f} ms (limit p95 {LIMIT_MS:g} ms)"
    )


if __name__ == "__main__":
    main()
