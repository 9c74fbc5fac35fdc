"""A sweep over arrays gives what `evaluate` gives for each design, whatever varies."""

from __future__ import annotations

import random
import time
from threading import Event, Timer
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import presets
from model_core import Design, evaluate
from model_core.diagnostics import Severity
from model_core.search.readers import COLUMNS, TIMES, WHOLE
from model_core.search.space import SearchCancelledError, Space, windows
from model_core.search.sweep import MOST_DESIGNS, stream, sweep
from tests.unit.search_spaces import decode_design, space_of, swept

AXES = (
    "cluster=tpu-v4-*,tpu-v5e-4x4,h100-*,b200-2x8",
    "cluster.topology.shape=all",
    "cluster.topology.link_bandwidth=20 GB/s,45 GB/s,90 GB/s",
    "cluster.topology.hop_latency=0 s,1 us",
    "cluster.chip=tpu-v4,h100-sxm",
    "cluster.chip.hbm_bandwidth=500 GB/s:3 TB/s:+500 GB/s",
    "cluster.chip.hbm_capacity=16 GiB,80 GiB",
    "cluster.chip.peak_int8=null,550 TFLOP/s",
    "cluster.chip.price_per_hour=null,2,5.5",
    "model=palm-8b,palm-62b,palm-540b,palm-540b-multihead,llama-3.1-70b,gpt-3-175b",
    "model.d_ff=4096:40960:+5000",
    "model.n_layers=1,118",
    "model.n_heads=48,64,80",
    "model.n_kv_heads=1,4,48",
    "workload.batch=1:40,64,512,1000",
    "workload.batch=1:4096:*2",
    "workload.input_length=1,100,2048,1M",
    "workload.output_length=0,1,64",
    "workload.cached_length=0,1920",
    "workload.prefill_chunk=null,100,256",
    "workload.phase=prefill,decode",
    "workload=low-latency-prefill,chatbot-decode",
    "plan.ffn_layout=all",
    "plan.attention_sharding=all",
    "plan.block=all",
    "plan.mesh=all",
    'plan.mesh=null,{"pipeline":["z"]},{"x":["x"],"z":["y"],"pipeline":["z"]},{"x":["nope"]}',
    "plan.microbatches=1,3,4",
    "plan.weight_dtype=bfloat16,int8,fp8",
    "plan.kv_dtype=bfloat16,int8",
    "plan.activation_dtype=bfloat16,int8,fp8",
    "plan.collective_overlap=0,0.5,1",
    "plan.collective_overlap=0.1,0.9",
    "plan.memory_reserve=0,0.1",
    "plan.kv_memory_share=0.3,0.6",
    "plan.calibration=auto,none,unknown",
)
BASES = ("palm-540b-decode-low-latency", "palm-62b-prefill-high-throughput", "llama-3.1-70b-h100")


CHOSEN = st.lists(st.sampled_from(AXES), min_size=1, max_size=6, unique_by=lambda text: text.split("=")[0])


def chosen_space(base: str, texts: list[str]) -> Space:
    """Make a space of some axes, leaving out what the base design lacks and what would make it too large."""
    design = presets.load_design(base)
    kept: list[str] = []
    for text in texts:
        if _exists(design, text) and space_of(design, *kept, text).size <= 200_000:
            kept.append(text)
    return space_of(design, *kept)


def _exists(design: Design, text: str) -> bool:
    torus_only = ("cluster.topology.shape", "cluster.topology.link", "cluster.topology.hop")
    return not text.startswith(torus_only) or "nodes" not in str(design.cluster.topology.kind)


def expected(design: Design) -> dict[str, Any]:
    """The row of one design from its own evaluation."""
    found = evaluate(design)
    assert not any(d.code == "internal" for d in found.diagnostics)
    errors = [d for d in found.diagnostics if d.severity is Severity.ERROR and d.code != "out_of_memory"]
    row: dict[str, Any] = {
        name: found.value(name) for name in ("memory_per_chip_bytes", "max_context", *TIMES)
    }
    row["valid"] = not errors
    row["fits"] = found.memory is not None and found.memory.fits
    row["bound_by"] = "" if found.time is None else found.time.bound_by
    row["calibrated"] = found.time is not None and found.time.calibrated
    if found.memory is not None:
        row |= {"n_chips": design.cluster.n_chips, "batch": design.workload.batch}
        row |= {"context": design.workload.max_context, "capacity_bytes": found.memory.capacity_bytes}
    return row


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float | int) and isinstance(right, float | int) and not isinstance(left, bool):
        return left == pytest.approx(right, rel=1e-12, abs=0)
    return bool(left == right)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(BASES), CHOSEN, st.integers(0, 2**32))
def test_that_every_design_of_a_sweep_is_as_evaluated(base: str, texts: list[str], seed: int) -> None:
    space = chosen_space(base, texts)
    result, problems = sweep(space)
    if result is None:
        assert problems[0].code == "space_invalid"
        assert all(
            space.design_at(n)[0] is None or not evaluate(_design(space, n)).ok
            for n in range(min(5, space.size))
        )
        return
    for number in random.Random(seed).sample(range(space.size), min(12, space.size)):
        row = result.row(number)
        design, refused = space.design_at(number)
        if design is None:
            assert refused
            assert not row["valid"]
            assert row["step_s"] is None
            continue
        for name, value in expected(design).items():
            assert same(row[name], value), (name, row[name], value, space.labels_of(number))


def _design(space: Space, number: int) -> Design:
    design, _ = space.design_at(number)
    assert design is not None
    return design


@pytest.mark.parametrize(
    ("base", "texts"),
    [
        ("deepseek-v3-decode", ("workload.batch=64,128", "plan.kv_dtype=bfloat16,fp8")),
        ("deepseek-v3-training", ("workload.batch=15360,100", "plan.weight_dtype=bfloat16")),
        ("palm-540b-decode-low-latency", ("workload.phase=all", "model=palm-62b,deepseek-v3")),
    ],
)
def test_that_what_no_array_reader_covers_is_evaluated_one_by_one(base: str, texts: tuple[str, ...]) -> None:
    result = swept(presets.load_design(base), *texts)
    for number in range(result.space.size):
        row = result.row(number)
        for name, value in expected(result.design(number)).items():
            assert same(row[name], value), (name, result.space.labels_of(number))


@pytest.mark.parametrize("chunk", [1, 7, 8192])
def test_that_chunks_cover_every_design_once_and_agree(chunk: int) -> None:
    design = decode_design()
    texts = (
        "plan.ffn_layout=all",
        "workload.batch=1:9",
        "workload.input_length=1:5",
        "cluster.chip.hbm_bandwidth=1e12,2e12",
    )
    space = space_of(design, *texts)
    whole = swept(design, *texts)
    seen = np.zeros(space.size, np.int64)
    for part in stream(space, chunk=chunk):
        assert len(part.numbers) <= max(chunk, 1)
        seen[part.numbers] += 1
        for name in COLUMNS:
            np.testing.assert_allclose(part.columns[name], whole.columns[name][part.numbers], rtol=1e-14)
    assert (seen == 1).all()


@given(st.lists(st.integers(1, 9), max_size=4), st.integers(1, 60))
def test_that_windows_cut_a_box_into_parts(shape: list[int], most: int) -> None:
    seen = np.zeros(shape, np.int64)
    for window in windows(tuple(shape), most):
        seen[window] += 1
        assert seen[window].size <= most
    assert (seen == 1).all()


def test_that_axes_are_numbered_with_the_numeric_ones_last_and_found_again() -> None:
    result = swept(
        decode_design(),
        "workload.batch=1,2,4",
        "plan.weight_dtype=int8,bfloat16",
        "workload.input_length=8,9",
    )
    assert [axis.path for axis in result.space.axes] == [
        "plan.weight_dtype",
        "workload.batch",
        "workload.input_length",
    ]
    for number in range(result.space.size):
        values = result.space.values_of(number)
        design = result.design(number)
        assert (design.plan.weight_dtype, design.workload.batch) == (
            values["plan.weight_dtype"],
            values["workload.batch"],
        )
        for axis in result.space.axes:
            assert axis.values[result.index(axis.path)[number]] == values[axis.path]


def test_that_a_combination_that_is_no_design_is_refused_and_the_others_stay() -> None:
    result = swept(decode_design(), "model.n_heads=48,64", "model.n_kv_heads=1,3,5")
    assert result.columns["valid"].tolist() == [True, True, False, True, False, False]
    assert result.refused
    assert result.row(2)["memory_per_chip_bytes"] is None
    with pytest.raises(ValueError, match="n_heads"):
        result.design(2)


def test_that_a_space_without_any_design_says_why() -> None:
    result, problems = sweep(space_of(decode_design(), "model.n_heads=48,64", "model.n_kv_heads=5"))
    assert result is None
    assert problems[0].code == "space_invalid"
    assert "n_kv_heads = 5" in problems[0].message


def test_that_too_many_designs_for_the_memory_are_refused_but_can_be_streamed() -> None:
    texts = ("workload.batch=1:6000", "workload.input_length=1:6000")
    space = space_of(decode_design(), *texts)
    assert space.size > MOST_DESIGNS
    _, problems = sweep(space)
    assert problems[0].code == "space_too_large"
    first = next(iter(stream(space)))
    assert 0 < len(first.numbers) <= 8192


def test_that_a_sweep_stops_within_50_ms_of_being_cancelled() -> None:
    space = space_of(
        decode_design(),
        "plan.ffn_layout=all",
        "plan.mesh=all",
        "workload.batch=1:2000",
        "workload.input_length=1:200",
    )
    event = Event()
    moment: list[float] = []

    def cancel() -> None:
        moment.append(time.perf_counter())
        event.set()

    Timer(0.3, cancel).start()
    with pytest.raises(SearchCancelledError):
        for _ in stream(space, cancelled=event):
            pass
    # The machine may be busy: the time is only bounded loosely here, and measured by the benchmark.
    assert time.perf_counter() - moment[0] < 1.0


def test_that_a_search_can_be_cancelled_before_its_first_chunk() -> None:
    space = space_of(decode_design(), "plan.mesh=all", "workload.batch=1,2")
    with pytest.raises(SearchCancelledError):
        sweep(space, cancelled=lambda: True)


def test_that_progress_ends_at_the_number_of_designs() -> None:
    space = space_of(decode_design(), "plan.ffn_layout=all", "workload.batch=1:100")
    seen: list[tuple[int, int]] = []
    sweep(space, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (500, 500)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_that_rows_are_plain_data() -> None:
    row = swept(decode_design(), "workload.batch=64").row(0)
    assert set(row) == set(COLUMNS)
    assert all(type(row[name]) is int for name in WHOLE)
    assert type(row["step_s"]) is float
    assert row["valid"] is True
    assert row["bound_by"] == evaluate(decode_design()).time.bound_by  # type: ignore[union-attr]


def test_that_a_space_without_axes_is_the_design_itself() -> None:
    result = swept(decode_design())
    assert result.space.size == 1
    assert result.row(0)["step_s"] == pytest.approx(evaluate(decode_design()).value("step_s"), rel=1e-12)
