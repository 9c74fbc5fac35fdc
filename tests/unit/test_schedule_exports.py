"""Schedules as data: JSON, PyTorch's CSV and traces."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from model_core.schedule import (
    KINDS,
    LETTERS,
    Durations,
    OpKind,
    Schedule,
    ops_text,
    perfetto_trace,
    pytorch_csv,
    summary,
)
from model_core.schedule.compare import Share, compare_at_equal_devices
from tests.unit.schedule_cases import made, ran, schedules

ACTION = re.compile(r"(\d+)([FBIW])(\d+)|\((\d+)F(\d+);(\d+)B(\d+)\)OVERLAP_F_B")


@given(schedules())
def test_that_the_notation_has_a_line_for_each_rank(result: Schedule) -> None:
    lines = ops_text(result).splitlines()
    assert len(lines) == result.pp
    assert sum(len(line.split()) for line in lines) == len(result)


@given(schedules(tuple(kind for kind in KINDS if KINDS[kind].n_directions == 1)))
def test_that_pytorch_gets_every_action_once(result: Schedule) -> None:
    text, found = pytorch_csv(result)
    assert text is not None
    assert not found
    seen: Counter[tuple[str, int, int]] = Counter()
    stages: dict[int, set[int]] = {}
    for rank, line in enumerate(text.splitlines()):
        for action in line.split(","):
            match = ACTION.fullmatch(action)
            assert match, action
            parts = (
                [(match[2], int(match[1]), int(match[3]))]
                if match[2]
                else [("F", int(match[4]), int(match[5])), ("B", int(match[6]), int(match[7]))]
            )
            seen.update(parts)
            stages.setdefault(rank, set()).update(stage for _, stage, _ in parts)
    assert set(seen.values()) == {1}
    assert sorted(stage for held in stages.values() for stage in held) == list(range(result.layout.n_stages))


@pytest.mark.parametrize("kind", ["dualpipe", "chimera"])
def test_that_pytorch_cannot_hold_two_directions(kind: str) -> None:
    text, found = pytorch_csv(made(kind, 4, 8))
    assert text is None
    assert found[0].code == "schedule_not_in_pytorch"


@pytest.mark.parametrize("kind", KINDS)
def test_that_a_trace_has_a_slice_for_each_operation(kind: str) -> None:
    simulation = ran(made(kind, 4, 8), Durations(1e-3, 1e-3, 5e-4, None, 1e-5))
    events = json.loads(perfetto_trace(simulation))["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == len(simulation.schedule)
    assert max(e["ts"] + e["dur"] for e in slices) == pytest.approx(simulation.makespan_s * 1e6)
    assert {e["pid"] for e in slices} == set(range(4))
    # Both ends of a message lie in a slice: a flow that binds to none is an error in the viewer.
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys() != set()
    for number, start in starts.items():
        assert start["pid"] != ends[number]["pid"]
        assert start["ts"] < ends[number]["ts"]
    counters = [e["args"]["chunks"] for e in events if e["ph"] == "C"]
    assert min(counters) == 0 < max(counters)


def test_that_long_traces_leave_out_messages_and_memory() -> None:
    simulation = ran(made("1f1b", 8, 3200))
    assert len(simulation.schedule) > 50_000
    phases = {e["ph"] for e in json.loads(perfetto_trace(simulation))["traceEvents"]}
    assert phases == {"M", "X"}


def test_that_the_summary_has_the_fields_of_the_command_line() -> None:
    simulation = ran(made("dualpipe", 8, 20))
    document = json.loads(json.dumps(summary(simulation)))
    assert document["kind"] == "dualpipe"
    assert (document["pp"], document["microbatches"], document["operations"]) == (
        8,
        20,
        len(simulation.schedule),
    )
    assert document["makespan"] == 66
    for name in ("busy", "bubble", "peak_activations"):
        assert len(document[name]) == 8
    assert np.allclose(np.add(document["busy"], document["bubble"]), document["makespan"])


def test_that_letters_follow_the_kinds() -> None:
    assert [LETTERS[op] for op in OpKind] == ["F", "B", "I", "W", "FB"]


def test_that_a_comparison_gives_every_rank_the_same_work() -> None:
    kinds = ("1f1b", "interleaved", "zb-v", "dualpipe", "dualpipev")
    rows, found = compare_at_equal_devices((*kinds, "chimera"), 8, 20, Share(1.0, 1.0, 0.5))
    assert [row.kind for row in rows] == list(kinds)
    assert [d.code for d in found] == ["schedule_size"]
    for row in rows:
        assert row.simulation.busy_s.sum() == pytest.approx(8 * 20 * 2.5)
    assert {row.kind: row.parameters for row in rows} == {
        "1f1b": 1.0,
        "interleaved": 1.0,
        "zb-v": 1.0,
        "dualpipe": 2.0,
        "dualpipev": 1.0,
    }
    assert {row.kind: row.peak_activations for row in rows} == {
        "1f1b": 8.0,
        # 20 microbatches make two rounds of 10: a chunk holds more than with rounds of 8.
        "interleaved": 12.5,
        "zb-v": 8.0,
        "dualpipe": 9.0,
        "dualpipev": 8.5,
    }
