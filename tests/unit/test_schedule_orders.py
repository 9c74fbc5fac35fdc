"""Orders of operations: complete, in dependency order, and of valid sizes only."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.schedule import KINDS, Layout, OpKind, Schedule, nearest_sizes, ops_text, schedule
from model_core.schedule.dependencies import dependencies
from tests.unit.schedule_cases import made, place, schedules, works


@given(schedules())
def test_that_every_microbatch_runs_once_on_every_stage(result: Schedule) -> None:
    parts = Counter(part for rank in works(result, ops_text(result)) for work in rank for part in work.parts)
    layout = result.layout
    for direction in range(layout.n_directions):
        for stage in range(layout.n_stages):
            for microbatch in range(result.microbatches_per_direction):
                where = (direction, stage, microbatch)
                assert parts["F", *where] == 1
                assert parts["B", *where] + parts["I", *where] == 1
                assert parts["I", *where] == parts["W", *where]
    assert set(parts.values()) == {1}
    forwards = sum(1 for kind, *_ in parts if kind == "F")
    assert forwards == layout.n_stages * result.microbatches


@given(schedules())
def test_that_columns_agree_with_the_notation(result: Schedule) -> None:
    assert not dependencies(result).problems
    for rank, queue in enumerate(works(result, ops_text(result))):
        rows = range(int(result.offsets[rank]), int(result.offsets[rank + 1]))
        for row, work in zip(rows, queue, strict=True):
            kind, direction, stage, microbatch = work.parts[0]
            assert (result.direction[row], result.stage[row], result.microbatch[row]) == (
                direction,
                stage,
                microbatch,
            )
            assert result.rank[row] == rank
            assert result.label(row) == ops_text(result).splitlines()[rank].split()[row - rows.start]
            if work.kind == "FB":
                backward = (result.direction2[row], result.stage2[row], result.microbatch2[row])
                assert backward == work.parts[1][1:]
                assert result.op[row] == OpKind.OVERLAPPED
            else:
                assert result.stage2[row] == result.direction2[row] == result.microbatch2[row] == -1
                assert "FBIW"[result.op[row]] == kind


@given(st.sampled_from(sorted(KINDS)), st.integers(-2, 12), st.integers(-3, 40), st.integers(1, 4))
def test_that_an_invalid_size_names_valid_ones(kind: str, pp: int, microbatches: int, chunks: int) -> None:
    result, found = schedule(kind, pp, microbatches, chunks)
    if result is not None:
        assert not found
        assert (result.kind, result.pp, result.microbatches) == (kind, pp, microbatches)
        return
    assert [d.code for d in found] == ["schedule_size"]
    near = nearest_sizes(kind, pp, microbatches, chunks)
    assert near
    for size in near:
        assert schedule(kind, *size, chunks)[0] is not None
        assert "pp={} microbatches={}".format(*size) in found[0].hint


def test_that_nearest_sizes_keep_the_ranks_where_they_can() -> None:
    assert nearest_sizes("dualpipe", 8, 19) == ((8, 18), (8, 20))
    assert nearest_sizes("dualpipe", 8, 3) == ((8, 16),)
    assert nearest_sizes("dualpipe", 7, 30) == ((6, 30), (8, 30))
    assert nearest_sizes("chimera", 8, 20) == ((8, 16), (8, 24))
    assert nearest_sizes("interleaved", 4, 11) == ((4, 10), (4, 12))


def test_that_an_unknown_schedule_names_the_nearest() -> None:
    result, found = schedule("dualpip", 8, 20)
    assert result is None
    assert found[0].code == "schedule_unknown"
    assert "dualpipe" in found[0].hint


@pytest.mark.parametrize(
    ("pp", "microbatches", "chunks", "code"),
    [
        (2, 10**9, 2, "schedule_too_large"),
        (10**6, 1, 2, "schedule_too_large"),
        (4, 8, 0, "schedule_chunks"),
        (4, 8, 2000, "schedule_chunks"),
    ],
)
def test_that_sizes_out_of_bounds_are_reported(pp: int, microbatches: int, chunks: int, code: str) -> None:
    result, found = schedule("interleaved", pp, microbatches, chunks)
    assert result is None
    assert found[0].code == code


@given(schedules())
def test_that_layouts_hold_every_stage_once_in_each_direction(result: Schedule) -> None:
    layout: Layout = result.layout
    for lane in range(layout.n_lanes):
        for rank in range(layout.pp):
            direction, stage = place(result.kind, layout.pp, rank, lane)
            assert layout.stage_of[lane, rank] == stage
            assert layout.rank_of[direction, stage] == rank
    assert np.array_equal(
        np.sort(layout.stage_of.ravel()), np.sort(np.tile(np.arange(layout.n_stages), layout.n_directions))
    )


def test_that_a_row_is_found_by_its_notation() -> None:
    result = made("dualpipe", 8, 20)
    row = result.row(0, "FB0.7/1.3")
    assert result.label(row) == "FB0.7/1.3"
    with pytest.raises(KeyError, match="no F5"):
        result.row(0, "F5.0")
