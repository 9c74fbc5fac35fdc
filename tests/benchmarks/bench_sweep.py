"""Prints designs a second of sweeps, the time of a frontier, and how soon a sweep stops when cancelled.

``taskset -c 0 python -m tests.benchmarks.bench_sweep`` measures on one core. Rates are given by the clock
and by the time that the process had the core, which other work on the machine affects less.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from model_core import evaluate
from model_core.search.layouts import best_layout
from model_core.search.pareto import frontiers, pareto_indices
from model_core.search.recommend import Goal, recommend
from model_core.search.space import SearchCancelledError, Space
from model_core.search.sweep import stream, sweep
from model_core.search.targets import parse_target
from model_core.spec import replace_at
from tests.unit.search_spaces import decode_design, space_of

REPEATS: Final = 5
CANCELLATIONS: Final = 40

SPACES: Final[dict[str, tuple[str, ...]]] = {
    "batch, context, layout, attention": (
        "plan.ffn_layout=all",
        "plan.attention_sharding=all",
        "workload.batch=1:4096",
        "workload.input_length=256:8192:+256",
    ),
    "slices, layout, attention, batch, context, formats": (
        "cluster=tpu-v4-*",
        "plan.ffn_layout=all",
        "plan.attention_sharding=all",
        "workload.batch=1:1024:*2",
        "workload.input_length=128:32768:+128",
        "plan.weight_dtype=bfloat16,int8",
        "plan.kv_dtype=bfloat16,int8",
    ),
    "the same with mesh assignments": (
        "cluster=tpu-v4-*",
        "plan.mesh=all",
        "plan.ffn_layout=all",
        "plan.attention_sharding=all",
        "workload.batch=1:1024:*2",
        "workload.input_length=256:8192:+256",
        "plan.weight_dtype=bfloat16,int8",
        "plan.kv_dtype=bfloat16,int8",
    ),
    "models, slices, bandwidths": (
        "model=palm-8b,palm-62b,palm-540b-padded",
        "cluster=tpu-v4-*",
        "cluster.chip.hbm_bandwidth=500 GB/s:4 TB/s:+100 GB/s",
        "cluster.topology.link_bandwidth=20 GB/s:200 GB/s:+10 GB/s",
        "plan.ffn_layout=all",
        "workload.batch=1:1024:*2",
    ),
    "a small one: slices, layout, batch": (
        "cluster=tpu-v4-*",
        "plan.ffn_layout=all",
        "plan.attention_sharding=all",
        "workload.batch=1:1024:*2",
    ),
}


def seconds(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time of one run."""
    start = clock()
    run()
    return clock() - start


def best(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the shortest time of some runs."""
    return min(seconds(run) for _ in range(repeats))


def sweeps(calibration: str) -> None:
    """Measure every space: the first run, the best by the clock, and the best of the core's time."""
    design = replace_at(decode_design(), "plan.calibration", calibration)
    for name, texts in SPACES.items():
        run = partial(sweep, space_of(design, *texts))
        size = space_of(design, *texts).size
        first = size / seconds(run) / 1e6
        clock = size / best(run) / 1e6
        core = size / min(seconds(run, time.process_time) for _ in range(REPEATS)) / 1e6
        print(
            f"  {name:52} {size:>9,} designs; million a second: first {first:5.2f}   best {clock:5.2f}   "
            f"of core time {core:5.2f}"
        )


def agreement() -> None:
    """Compare a sweep with single evaluations, and print how long these take."""
    space = space_of(decode_design(), *SPACES["slices, layout, attention, batch, context, formats"])
    result, _ = sweep(space)
    assert result is not None
    numbers = random.Random(0).sample(range(space.size), 300)
    worst, start = 0.0, time.perf_counter()
    for number in numbers:
        value, row = evaluate(result.design(number)).value("latency_s"), result.row(number)
        assert value is not None
        worst = max(worst, abs(row["latency_s"] / value - 1))
    each = (time.perf_counter() - start) / len(numbers)
    print(
        f"  largest relative difference to evaluate {worst:.1e}; one evaluation with its row {each * 1e3:.2f} ms"
    )


def pareto() -> None:
    """Time frontiers: random points, points that are all on it, and those of a sweep."""
    points = np.random.default_rng(0)
    x, y = points.random(1_000_000), points.random(1_000_000)
    print(f"  1,000,000 random points {best(lambda: pareto_indices(x, y)) * 1e3:8.1f} ms")
    curve = 1 / (x + 1e-9)
    print(f"  1,000,000 on the frontier {best(lambda: pareto_indices(x, curve)) * 1e3:6.1f} ms")
    space = space_of(decode_design(), *SPACES["models, slices, bandwidths"])
    result, _ = sweep(space)
    assert result is not None
    took = best(lambda: frontiers(result, "cost_chip_s_per_token"))
    print(f"  frontiers per model of {space.size:,} designs {took * 1e3:6.1f} ms")


def cancellation(space: Space) -> None:
    """Cancel at random moments and print how long the sweep goes on."""
    late = []
    for number in range(CANCELLATIONS):
        event = threading.Event()
        moment: list[float] = []

        def cancel(event: threading.Event = event, moment: list[float] = moment) -> None:
            moment.append(time.perf_counter())
            event.set()

        timer = threading.Timer(0.01 + 0.02 * number, cancel)
        timer.start()
        try:
            for _ in stream(space, cancelled=event):
                pass
        except SearchCancelledError:
            late.append(time.perf_counter() - moment[0])
        timer.join()
    late.sort()
    print(
        f"  {len(late)} cancellations: median {late[len(late) // 2] * 1e3:.1f} ms, largest {late[-1] * 1e3:.1f} ms"
    )


def searches() -> None:
    """Time a layout choice with its switch points, and a recommendation."""
    design = decode_design()
    print(f"  best_layout with switch points {best(lambda: best_layout(design)) * 1e3:7.0f} ms")
    target, _ = parse_target("tpot<=30ms", design.workload.phase)
    assert target is not None
    goal = Goal("cost", minimise=True)
    print(
        f"  recommend, tpot<=30ms at least cost {best(lambda: recommend(design, [target], goal), 3) * 1e3:7.0f} ms"
    )


def main() -> None:
    """Run all measurements."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    print(f"cores that this may use: {cores}; load of the machine {load}")
    for calibration in ("auto", "none"):
        print(f"sweeps, plan.calibration = {calibration}")
        sweeps(calibration)
    print("agreement")
    agreement()
    print("frontiers")
    pareto()
    print("cancelling")
    cancellation(space_of(decode_design(), *SPACES["the same with mesh assignments"]))
    print("searches")
    searches()


if __name__ == "__main__":
    main()
