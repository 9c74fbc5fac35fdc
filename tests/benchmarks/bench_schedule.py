"""Prints the time of schedules with about 500,000 operations: ``python -m tests.benchmarks.bench_schedule``.

``first`` is the simulation of a new schedule: dependencies and times. ``again`` has other durations only;
``one by one`` are the times alone where no repetition can be skipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from model_core.schedule import Durations, Schedule, activation_memory, bubble_causes, schedule, simulate
from model_core.schedule.dependencies import dependencies
from model_core.schedule.engine import Problem, completion_times

SIZES = (
    ("gpipe", 8, 31_250),
    ("1f1b", 8, 31_250),
    ("interleaved", 8, 15_624),
    ("zb-h1", 8, 20_832),
    ("zb-2p", 8, 20_832),
    ("zb-v", 8, 10_416),
    ("chimera", 8, 31_248),
    ("dualpipe", 8, 62_600),
    ("dualpipev", 8, 31_300),
    ("dualpipe", 16, 31_400),
    ("dualpipe", 64, 7_700),
    ("dualpipe", 256, 1_450),
    ("1f1b", 256, 977),
    ("zb-h1", 128, 1_302),
)
REPEATS = 5


def made(kind: str, pp: int, microbatches: int) -> Schedule:
    """Make a schedule of a size known to be valid."""
    result, found = schedule(kind, pp, microbatches)
    assert result is not None, found
    return result


def best_ms(run: Callable[[], object]) -> float:
    """Return the shortest of some runs in milliseconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def first_ms(kind: str, pp: int, microbatches: int, durations: Durations) -> float:
    """Return the shortest time of simulating a schedule that was not simulated before."""
    times = []
    for _ in range(REPEATS):
        fresh = made(kind, pp, microbatches)
        start = time.perf_counter()
        simulate(fresh, durations)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def visited_ms(result: Schedule, durations: Durations) -> float:
    """Return the time where nothing repeats, so that every operation is visited one by one."""
    waits, d = dependencies(result), durations.on(result.layout)
    p2p = np.append(d.p2p_s, 0.0)
    delays = p2p[waits.first_edge], p2p[waits.second_edge]
    nothing_repeats = np.empty(0, np.int64)
    problem = Problem(
        result.offsets, waits.first, waits.second, *delays, d.of(result), signature=nothing_repeats
    )
    return best_ms(partial(completion_times, problem))


def main() -> None:
    """Measure making, simulating and reading; alike and uneven stages, with messages."""
    random = np.random.default_rng(0)
    for kind, pp, microbatches in SIZES:
        result = made(kind, pp, microbatches)
        forward, inputs, weights = random.uniform(1.0, 1.3, (3, result.layout.n_stages))
        alike = Durations(1.0, 1.0, 0.5, 2.1, 0.05)
        uneven = Durations(forward, inputs, weights, None, 0.05)
        simulation, _ = simulate(result, alike)
        assert simulation is not None
        figures = {
            "make": best_ms(partial(made, kind, pp, microbatches)),
            "first": first_ms(kind, pp, microbatches, alike),
            "first, uneven": first_ms(kind, pp, microbatches, uneven),
            "again": best_ms(partial(simulate, result, alike)),
            "one by one": visited_ms(result, alike),
            "memory": best_ms(partial(activation_memory, result)),
            "causes": best_ms(partial(bubble_causes, simulation)),
        }
        text = "   ".join(f"{name} {value:6.1f} ms" for name, value in figures.items())
        print(f"{kind:12} pp {pp:4} M {microbatches:6,} operations {len(result):8,}   {text}")


if __name__ == "__main__":
    main()
