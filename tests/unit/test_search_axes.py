"""Axes as people type them: values, ranges, choices and presets; mistakes become diagnostics."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import presets
from model_core.diagnostics import Diagnostic
from model_core.search.axes import Axis, make_axis
from model_core.search.axis_text import mesh_assignments, nodes_of, parse_axis
from model_core.search.space import make_space
from model_core.spec import AttentionSharding, FfnLayout, MeshPlan, NodeTopology
from tests.unit.search_spaces import PARTS, decode_design

DESIGN = decode_design()
GPUS = presets.load_design("llama-3.1-70b-h100")


def read(text: str) -> Axis:
    axis, problems = parse_axis(DESIGN, text, PARTS)
    assert axis is not None, [problem.message for problem in problems]
    return axis


def refused(text: str) -> Diagnostic:
    axis, problems = parse_axis(DESIGN, text, PARTS)
    assert axis is None
    return problems[0]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("workload.batch=1,2k", (1, 2000)),
        ("workload.batch=1:16:*2", (1, 2, 4, 8, 16)),
        ("workload.batch=1:10:*3", (1, 3, 9)),
        ("workload.batch=3:5", (3, 4, 5)),
        ("workload.batch=10:20:+4", (10, 14, 18)),
        ("workload.batch=1:2,8:9", (1, 2, 8, 9)),
        ("cluster.chip.hbm_bandwidth=1 TB/s:2 TB/s:+500 GB/s", (1e12, 1.5e12, 2e12)),
        ("plan.kv_memory_share=10%:30%:+10%", (0.1, 0.2, 0.3)),
        ("plan.ffn_layout=all", tuple(FfnLayout)),
        ("plan.attention_sharding=batch", (AttentionSharding.BATCH,)),
        ("plan.weight_dtype=int8,bfloat16", ("int8", "bfloat16")),
        ("model.gated_ffn=all", (False, True)),
        ("cluster.topology.shape=4x4x4,(4,4,8)", ((4, 4, 4), (4, 4, 8))),
        ('plan.mesh=null,{"x": ["x", "y"], "z": ["z"]}', (None, MeshPlan(x=("x", "y"), z=("z",)))),
        ("plan.mesh.x=x,yz", (("x",), ("y", "z"))),
        ("workload.prefill_chunk=none,64", (None, 64)),
    ],
)
def test_that_values_ranges_and_choices_are_read(text: str, values: tuple[Any, ...]) -> None:
    assert read(text).values == values


def test_that_presets_are_named_or_matched() -> None:
    axis = read("cluster=tpu-v4-4x4x4,h100-*")
    assert axis.labels == ("tpu-v4-4x4x4", "h100-1x8", "h100-2x8")
    assert axis.values[0] is presets.load_cluster("tpu-v4-4x4x4")
    assert read("model=all").labels == presets.names("models")


@pytest.mark.parametrize(
    ("text", "code", "parts"),
    [
        ("workload.batch", "axis_invalid", ["PATH=VALUES"]),
        ("workload.batch=", "axis_invalid", ["PATH=VALUES"]),
        ("workload.batch=many", "field_invalid", ["whole number"]),
        ("workload.batch=0,1", "field_invalid", ["too small"]),
        ("workload.batch=1:0", "axis_invalid", ["first <= last"]),
        ("workload.batch=0:8:*2", "axis_invalid", ["0 < first"]),
        ("workload.batch=1:8:*1", "axis_invalid", ["factor above 1"]),
        ("workload.batch=1:2:3:4", "axis_invalid", ["not a range"]),
        ("workload.batch=1:1e9", "axis_invalid", ["more than 100,000"]),
        ("plan.ffn_layout=a:b", "axis_invalid", ["only numbers"]),
        ("cluster.chip.hbm_bandwidth=1 TB/s:2 parsec", "axis_invalid", ["parsec"]),
        ("workload.bach=1", "field_unknown", ["workload.batch"]),
        ("cluster=tpu-v4-9x9x9", "axis_invalid", ["nearest: tpu-v4"]),
        ("workload.batch=all", "axis_invalid", ["no list of choices"]),
        ("plan.mesh={x}", "axis_invalid", ["JSON"]),
        ("name=a,b", "axis_invalid", ["not inside model"]),
        ("model.moe.n_routed_experts=4", "field_invalid", ["together"]),
    ],
)
def test_that_a_wrong_axis_is_refused_with_its_path(text: str, code: str, parts: list[str]) -> None:
    found = refused(text)
    assert found.code == code
    assert found.path.startswith(text.partition("=")[0].partition(".")[0])
    for part in parts:
        assert part in f"{found.message} {found.hint}"


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_that_no_text_raises(text: str) -> None:
    for candidate in (text, f"workload.batch={text}", f"plan.mesh={text}", f"cluster={text}"):
        axis, problems = parse_axis(DESIGN, candidate, PARTS)
        assert (axis is None) == bool(problems)
        assert all(problem.message and problem.hint for problem in problems)


@pytest.mark.parametrize(
    ("text", "numeric"),
    [
        ("workload.batch=1,2", True),
        ("workload.prefill_chunk=1,2", True),
        ("workload.prefill_chunk=none,2", False),
        ("plan.collective_overlap=0.1,1", True),
        ("plan.collective_overlap=0,1", False),
        ("cluster.chip.peak_int8=none,1e15", False),
        ("model.d_ff=1,2", False),
    ],
)
def test_that_only_values_that_never_change_what_is_computed_become_arrays(text: str, numeric: bool) -> None:
    assert read(text).is_numeric is numeric


def test_that_a_field_has_one_axis_only() -> None:
    axis = read("workload.batch=1,2")
    space, problems = make_space(DESIGN, [axis, axis])
    assert space is None
    assert problems[0].path == "workload.batch"


def test_that_an_axis_of_values_is_checked_one_by_one() -> None:
    axis, problems = make_axis(DESIGN, "workload.batch", [1, 0, 2, -3])
    assert axis is None
    assert [problem.code for problem in problems] == ["field_invalid", "field_invalid"]


def test_that_labels_are_for_people() -> None:
    assert read("cluster.chip.hbm_bandwidth=1.2e12").labels == ("1.2 TB/s",)
    assert read('plan.mesh=null,{"x": ["x", "y"], "z": ["z"]}').labels == ("automatic", "x=x+y z=z")
    assert read("cluster.topology.shape=4x4x8").labels == ("4x4x8",)
    axis, _ = make_axis(GPUS, "cluster.topology", [GPUS.cluster.topology])
    assert axis is not None
    assert axis.labels == ("1 x 8",)


def test_that_mesh_assignments_use_every_axis_once() -> None:
    found = mesh_assignments(DESIGN.cluster)
    assert len(found) == len(set(found)) == 27
    for plan in found:
        assert sorted([*plan.x, *plan.y, *plan.z]) == ["x", "y", "z"]


def test_that_nodes_are_had_in_parts_of_one_or_whole() -> None:
    topology = GPUS.cluster.topology
    assert isinstance(topology, NodeTopology)
    sizes = [(t.n_nodes, t.chips_per_node) for t in nodes_of(topology, 4)]
    assert sizes == [(1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8)]
