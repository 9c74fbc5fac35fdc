"""Prints published and predicted training figures by group, and the time of an evaluation.

Run ``python -m tests.benchmarks.bench_training``.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

import presets
from model_core import evaluate
from model_core.reproduce import reproduce
from model_core.spec import replace_at

FILES = ("korthikanti-2022", "megatron", "zero-bubble", "deepseek-v3-training")


def errors() -> None:
    groups: dict[str, list[tuple[float, bool]]] = {}
    for row in reproduce([presets.load_published(name) for name in FILES], presets):
        if row.error is not None:
            print(f"{row.row.id:52} {row.row.value:14.6g} {row.predicted.known:14.6g} {row.error:+7.1%}")
            groups.setdefault(row.row.group, []).append((row.error, row.fitted))
    for group, found in groups.items():
        sizes = np.abs([error for error, _ in found])
        fitted = sum(flag for _, flag in found)
        print(
            f"{group:36} {len(found):3} rows, {fitted:3} fitted, mean {sizes.mean():.1%}, worst {sizes.max():.1%}"
        )


def evaluations() -> None:
    for name in ("deepseek-v3-training", "gpt3-175b-training-a100", "mt-nlg-530b-training"):
        design = presets.load_design(name)
        evaluate(design)
        times = []
        for k in range(2, 12):
            edited = replace_at(design, "plan.memory_reserve", k / 100)
            start = perf_counter()
            evaluate(edited)
            times.append(perf_counter() - start)
        print(f"{name:28} {1e3 * float(np.median(times)):7.1f} ms an evaluation")


if __name__ == "__main__":
    errors()
    evaluations()
