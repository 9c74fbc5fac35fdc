"""Prints the time of ``evaluate``: ``python -m tests.benchmarks.bench_evaluate``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import presets
from model_core import Design, evaluate
from model_core.spec import replace_at

REPEATS = 500


def timed(variant: Callable[[int], Design]) -> tuple[float, float]:
    """Return median and 95th percentile in milliseconds over designs made beforehand."""
    variants = [variant(i) for i in range(REPEATS)]
    samples = []
    for design in variants:
        start = time.perf_counter()
        evaluate(design)
        samples.append((time.perf_counter() - start) * 1e3)
    samples.sort()
    return statistics.median(samples), samples[int(0.95 * REPEATS)]


def main() -> None:
    """Measure an unchanged design, and one in which a field differs every time."""
    for name in ("palm-540b-decode-low-latency", "llama-3.1-70b-h100"):
        design = presets.load_design(name)
        evaluate(design)

        def same(_: int, design: Design = design) -> Design:
            return design

        def batch(i: int, design: Design = design) -> Design:
            return replace_at(design, "workload.batch", 8 * (i + 1))

        def bandwidth(i: int, design: Design = design) -> Design:
            return replace_at(design, "cluster.chip.hbm_bandwidth", 1e12 + i * 1e9)

        for label, variant in (("unchanged", same), ("batch", batch), ("HBM bandwidth", bandwidth)):
            median, p95 = timed(variant)
            print(f"{name:32} {label:14} median {median:6.3f} ms   p95 {p95:6.3f} ms")


if __name__ == "__main__":
    main()
