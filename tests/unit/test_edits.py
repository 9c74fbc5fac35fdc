"""Editing one field by its path: text becomes a value, mistakes become diagnostics."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import presets
from model_core.diagnostics import Diagnostic
from model_core.spec import Evidence, MeshPlan, get_at, replace_at
from model_core.spec.edits import edit, edit_text, edit_texts, field_paths

DESIGN = presets.load_design("palm-540b-decode-low-latency")
DEEPSEEK = presets.load_design("deepseek-v3-decode")


def refused(outcome: tuple[Any, tuple[Diagnostic, ...]]) -> Diagnostic:
    changed, found = outcome
    assert changed is None
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("workload.batch", "128", 128),
        ("workload.batch", "2k", 2000),
        ("workload.latency_target", "25 ms", 0.025),
        ("workload.latency_target", "null", None),
        ("cluster.chip.hbm_bandwidth", "1300 GB/s", 1.3e12),
        ("cluster.topology.shape", "4x4x8", (4, 4, 8)),
        ("cluster.topology.shape", "4,4,8", (4, 4, 8)),
        ("cluster.topology.shape", "[4, 4, 8]", (4, 4, 8)),
        ("cluster.topology.shape", "(8)", (8,)),
        ("plan.mesh", '{"x": ["x"], "y": ["y", "z"]}', MeshPlan(x=("x",), y=("y", "z"))),
        ("plan.mesh", "none", None),
        ("plan.mesh.y", "yz", ("y", "z")),
        ("plan.mesh.x", "ib, nvlink", ("ib", "nvlink")),
        ("plan.memory_reserve", "10 %", 0.1),
        ("plan.weight_dtype", "bfloat16", "bfloat16"),
        ("model.gated_ffn", "false", False),
        ("model.n_heads_unpadded", "null", None),
        ("name", "null", "null"),
        ("notes", "", ""),
    ],
)
def test_that_text_sets_a_field(path: str, text: str, value: Any) -> None:
    changed, found = edit_text(DESIGN, path, text)
    assert found == ()
    assert changed is not None
    assert get_at(changed, path) == value


def test_that_axes_of_a_mesh_are_set_one_after_the_other() -> None:
    first, _ = edit_text(DESIGN, "plan.mesh.x", "x")
    assert first is not None
    second, _ = edit_text(first, "plan.mesh.y", "y,z")
    assert second is not None
    assert second.plan.mesh == MeshPlan(x=("x",), y=("y", "z"))


@pytest.mark.parametrize(
    ("path", "text", "where", "parts"),
    [
        ("workload.batch", "many", "workload.batch", ["batch = 'many'", "from 1 to 10,000,000"]),
        ("workload.batch", "1.5", "workload.batch", ["not a whole number"]),
        ("workload.batch", "null", "workload.batch", ["not a whole number"]),
        ("cluster.chip.hbm_bandwidth", "fast", "cluster.chip.hbm_bandwidth", ["50 GB/s"]),
        ("cluster.topology.shape", "4x0x4", "cluster.topology.shape.1", ["from 1 to 4,096"]),
        ("cluster.topology.shape", "4x4x4x4", "cluster.topology.shape", ["1 to 3"]),
        ("plan.ffn_layout", "weight_gathered_yz", "plan.ffn_layout", ["weight_gathered_xyz"]),
        ("model.n_kv_heads", "5", "model.n_heads", ["multiple of n_kv_heads = 5"]),
        ("plan.mesh", "{x}", "plan.mesh", ["JSON"]),
        ("plan.mesh", "[" * 100_000, "plan.mesh", ["JSON"]),
        ("model.moe.n_dense_layers", "3", "model.moe", ["n_routed_experts", "together"]),
        ("workload", "5", "workload", ["input_length"]),
    ],
)
def test_that_a_wrong_text_is_refused_at_its_path(path: str, text: str, where: str, parts: list[str]) -> None:
    found = refused(edit_text(DESIGN, path, text))
    assert (found.code, found.path) == ("field_invalid", where)
    for part in parts:
        assert part in f"{found.message} {found.hint}"


def test_that_a_rule_of_an_outer_part_is_reported_at_that_part() -> None:
    assert refused(edit(DEEPSEEK, "model.moe.n_dense_layers", 99)).path == "model.moe.n_dense_layers"
    assert (
        refused(edit(DEEPSEEK, "model.moe.n_experts_per_token", 999)).path == "model.moe.n_experts_per_token"
    )


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("workload.bach", "workload.batch"),
        ("batch", "workload.batch"),
        ("hbm_bandwidth", "cluster.chip.hbm_bandwidth"),
        ("cluster.chip.hbm_bandwith", "cluster.chip.hbm_bandwidth"),
        ("modle.d_ff", "model.d_ff"),
    ],
)
def test_that_an_unknown_path_is_answered_with_the_nearest(path: str, nearest: str) -> None:
    found = refused(edit_text(DESIGN, path, "1"))
    assert found.code == "field_unknown"
    assert nearest in found.hint


@given(st.text(max_size=30), st.text(max_size=30))
@settings(deadline=None)
def test_that_no_path_and_no_text_raises(path: str, text: str) -> None:
    changed, found = edit_text(DESIGN, path, text)
    assert (changed is None) == bool(found)


@given(
    st.sampled_from(field_paths(DESIGN)),
    st.text(max_size=30) | st.sampled_from(["null", "1", "{}", "[]", "1e400"]),
)
@settings(max_examples=300, deadline=None)
def test_that_any_text_in_a_real_field_is_taken_or_refused(path: str, text: str) -> None:
    changed, found = edit_text(DESIGN, path, text)
    assert (changed is None) == bool(found)
    assert all(diagnostic.message and diagnostic.hint for diagnostic in found)


def test_that_fields_that_agree_only_together_are_set_in_any_order() -> None:
    multihead = presets.load_design("palm-540b-decode-low-latency").replace(
        model=presets.load_model("palm-540b-multihead")
    )
    changed, found = edit_texts(
        multihead, {"model.n_heads": "80", "model.n_kv_heads": "80", "model.n_heads_unpadded": "80"}
    )
    assert found == ()
    assert changed is not None
    assert (changed.model.n_heads, changed.model.n_kv_heads, changed.model.n_heads_unpadded) == (80, 80, 80)
    assert changed.model.source_of("n_kv_heads").evidence is Evidence.ASSUMED
    assert changed.model.source_of("d_model").evidence is Evidence.PUBLISHED


def test_that_every_refused_field_of_several_is_reported() -> None:
    changed, found = edit_texts(
        DESIGN, {"workload.batch": "0", "workload.input_length": "-1", "name": "kept", "plan.mesh.w": "x"}
    )
    assert changed is None
    assert [diagnostic.path for diagnostic in found] == [
        "workload.batch",
        "workload.input_length",
        "plan.mesh.w",
    ]


@given(
    st.dictionaries(
        st.sampled_from(field_paths(DEEPSEEK)) | st.text(max_size=9), st.text(max_size=9), max_size=4
    )
)
@settings(max_examples=300, deadline=None)
def test_that_no_set_of_texts_raises(texts: dict[str, str]) -> None:
    changed, found = edit_texts(DEEPSEEK, texts)
    assert (changed is None) == bool(found)


def test_that_a_changed_nested_field_loses_its_source_and_its_neighbours_keep_theirs() -> None:
    cluster = presets.load_cluster("h800-4x8")
    changed = replace_at(cluster, "topology.nic_bandwidth", "25 GB/s")
    assert changed.source_of("topology.nic_bandwidth").evidence is Evidence.ASSUMED
    assert changed.source_of("topology.nvlink_bandwidth") == cluster.source_of("topology.nvlink_bandwidth")
    whole = replace_at(cluster, "topology", presets.load_cluster("a100-1x8").topology)
    assert not [s for s in whole.sources if s.field.startswith("topology.")]
