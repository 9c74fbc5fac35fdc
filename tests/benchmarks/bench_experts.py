"""Prints the time of ``evaluate`` for models with experts: ``python -m tests.benchmarks.bench_experts``."""

from __future__ import annotations

import presets
from model_core import Design, evaluate
from model_core.spec import replace_at
from tests.benchmarks.bench_evaluate import timed


def main() -> None:
    """Measure an unchanged design, and one in which a field differs every time."""
    for name in ("deepseek-v3-decode", "deepseek-v3-prefill"):
        design = presets.load_design(name)
        evaluate(design)

        def same(_: int, design: Design = design) -> Design:
            return design

        def batch(i: int, design: Design = design) -> Design:
            return replace_at(design, "workload.batch", 640 * (i + 1))

        def slots(i: int, design: Design = design) -> Design:
            return replace_at(design, "plan.redundant_experts", 32 + i)

        for label, variant in (("unchanged", same), ("batch", batch), ("redundant", slots)):
            median, p95 = timed(variant)
            print(f"{name:32} {label:14} median {median:6.3f} ms   p95 {p95:6.3f} ms")


if __name__ == "__main__":
    main()
