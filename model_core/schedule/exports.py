"""A schedule as data: the notation, a summary, PyTorch's CSV and a trace for Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np

from model_core.diagnostics import Diagnostic
from model_core.schedule.dependencies import dependencies
from model_core.schedule.memory import activation_memory
from model_core.schedule.operations import LETTERS, Schedule
from model_core.schedule.simulate import Simulation

MAX_DETAILED: Final = 50_000
"""Operations up to which a trace also shows messages and memory; they triple its size."""

_CATEGORIES: Final = ("forward", "backward", "backward input", "backward weight", "overlapped")


def labels(schedule: Schedule) -> list[str]:
    """Return every row in the notation (``F0.3``, ``FB0.4/1.2``)."""
    columns = (schedule.op, schedule.lane, schedule.microbatch, schedule.lane2, schedule.microbatch2)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        f"{LETTERS[op]}{lane}.{m}/{lane2}.{m2}" if lane2 >= 0 else f"{LETTERS[op]}{lane}.{m}"
        for op, lane, m, lane2, m2 in rows
    ]


def ops_text(schedule: Schedule) -> str:
    """Return one line for each rank: its operations in the notation, in order."""
    return _lines(schedule, labels(schedule), " ")


def _lines(schedule: Schedule, words: list[str], separator: str) -> str:
    offsets = schedule.offsets.tolist()
    return "".join(f"{separator.join(words[a:b])}\n" for a, b in pairwise(offsets))


def summary(simulation: Simulation) -> dict[str, Any]:
    """Return what the command line prints as JSON; times in seconds, activations in chunks."""
    schedule = simulation.schedule
    return {
        "kind": schedule.kind,
        "pp": schedule.pp,
        "microbatches": schedule.microbatches,
        "stages": schedule.layout.n_stages,
        "makespan": simulation.makespan_s,
        "period": simulation.period_s,
        "busy": simulation.busy_s.tolist(),
        "bubble": simulation.bubble_s.tolist(),
        "bubble_fraction": simulation.bubble_fraction,
        "peak_activations": activation_memory(schedule).peak.tolist(),
        "operations": len(schedule),
    }


def pytorch_csv(schedule: Schedule) -> tuple[str | None, tuple[Diagnostic, ...]]:
    """Return the schedule for PyTorch's ``pipeline_parallel_schedule_csv``.

    A line for each rank, actions such as ``3F0``, ``3I0`` and ``(0F4;7B2)OVERLAP_F_B``: stage, kind and
    microbatch. A stage there lives on one rank, so schedules with two directions cannot be written.
    """
    if schedule.layout.n_directions > 1:
        return None, (Diagnostic("schedule_not_in_pytorch", "", {"kind": schedule.kind}),)
    columns = (schedule.op, schedule.stage, schedule.microbatch, schedule.stage2, schedule.microbatch2)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    words = [
        f"({stage}F{m};{stage2}B{m2})OVERLAP_F_B" if stage2 >= 0 else f"{stage}{LETTERS[op]}{m}"
        for op, stage, m, stage2, m2 in rows
    ]
    return _lines(schedule, words, ","), ()


def perfetto_trace(simulation: Simulation) -> str:
    """Return a trace in the Chrome JSON format: a process for each rank, times in microseconds.

    Up to `MAX_DETAILED` operations, messages between ranks are flows and activations are counters.
    """
    events = [*_names(simulation), *_slices(simulation)]
    if len(simulation.schedule) <= MAX_DETAILED:
        events += [*_flows(simulation), *_counters(simulation)]
    document = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"tool": "meshwright"}}
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


def _names(simulation: Simulation) -> Iterator[dict[str, Any]]:
    for rank in range(simulation.schedule.pp):
        yield {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}}
        yield {"name": "process_sort_index", "ph": "M", "pid": rank, "args": {"sort_index": rank}}
        yield {"name": "thread_name", "ph": "M", "pid": rank, "tid": 0, "args": {"name": "compute"}}


def _slices(simulation: Simulation) -> Iterator[dict[str, Any]]:
    s = simulation.schedule
    columns = (s.rank, s.op, s.stage, s.direction, s.microbatch, s.stage2, s.direction2, s.microbatch2)
    times = (simulation.start_s * 1e6, (simulation.end_s - simulation.start_s) * 1e6)
    rows = zip(labels(s), *(column.tolist() for column in (*columns, *times)), strict=True)
    for name, rank, op, stage, direction, m, stage2, direction2, m2, start, duration in rows:
        args = {"stage": stage, "direction": direction, "microbatch": m}
        if stage2 >= 0:
            args |= {"stage2": stage2, "direction2": direction2, "microbatch2": m2}
        yield {
            "name": name,
            "cat": _CATEGORIES[op],
            "ph": "X",
            "ts": start,
            "dur": duration,
            "pid": rank,
            "tid": 0,
            "args": args,
        }


def _flows(simulation: Simulation) -> Iterator[dict[str, Any]]:
    """Yield the two ends of each message, within the slices that send and receive it."""
    s, waits = simulation.schedule, dependencies(simulation.schedule)
    receivers = np.concatenate(
        [np.flatnonzero(waits.first_edge >= 0), np.flatnonzero(waits.second_edge >= 0)]
    )
    senders = np.concatenate([waits.first[waits.first_edge >= 0], waits.second[waits.second_edge >= 0]])
    middle = (simulation.start_s + simulation.end_s) * 0.5e6
    for number, (sender, receiver) in enumerate(zip(senders.tolist(), receivers.tolist(), strict=True)):
        common = {"name": "p2p", "cat": "flow", "id": number, "tid": 0}
        yield common | {"ph": "s", "ts": middle[sender], "pid": int(s.rank[sender])}
        yield common | {"ph": "f", "bp": "e", "ts": middle[receiver], "pid": int(s.rank[receiver])}


def _counters(simulation: Simulation) -> Iterator[dict[str, Any]]:
    memory = activation_memory(simulation.schedule)
    for rank in range(simulation.schedule.pp):
        times, levels = memory.steps(rank, simulation.start_s, simulation.end_s)
        for time, level in zip((times * 1e6).tolist(), levels.tolist(), strict=True):
            yield {"name": "activations", "ph": "C", "ts": time, "pid": rank, "args": {"chunks": level}}
