"""Traffic of experts: closed forms against counts, elementwise; meshes of factored axes; overlap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import presets
from model_core import evaluate
from model_core.experts.placement import Placement
from model_core.experts.routing import RoutingSpec, fit_routing
from model_core.experts.traffic import gpus_per_token, node_traffic
from model_core.experts.traffic import token_bytes as wire_bytes
from model_core.hardware.expert_traffic import (
    Choice,
    Copies,
    ExpertRates,
    bandwidth_share,
    compute_share,
    copies_per_token,
    expected_units,
    token_bytes,
)
from model_core.hardware.network import Level
from model_core.partition.cost import OpCost
from model_core.partition.mesh import resolve_mesh
from model_core.partition.overlap import overlapped
from model_core.spec import MeshPlan, replace_at

CLUSTER = presets.load_cluster("h800-4x8")
MODEL = presets.load_model("deepseek-v3")


def counted_units(choice: Choice, units: int, tokens: int = 20_000) -> float:
    """Let tokens choose by random scores, groups by their best expert, and count the units that they reach."""
    rng = np.random.default_rng(0)
    scores = rng.random((tokens, choice.groups, choice.experts // choice.groups))
    closed = scores.max(axis=2).argsort(axis=1)[:, : choice.groups - choice.open_groups]
    np.put_along_axis(scores, closed[:, :, None], -1.0, axis=1)
    chosen = scores.reshape(tokens, -1).argsort(axis=1)[:, -choice.chosen :] * units // choice.experts
    if choice.always:
        chosen = np.concatenate([chosen, rng.integers(0, units, (tokens, choice.always))], axis=1)
    reached = np.sort(chosen, axis=1)
    return float(1 + (np.diff(reached, axis=1) > 0).sum(axis=1).mean())


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from([(64, 1, 1), (64, 8, 4), (256, 8, 4), (256, 8, 1), (128, 4, 2)]),
    st.integers(1, 8),
    st.sampled_from([2, 4, 8, 16, 32, 64]),
    st.integers(0, 1),
)
def test_that_closed_form_and_count_of_reached_units_agree(
    experts: tuple[int, int, int], chosen: int, units: int, always: int
) -> None:
    choice = Choice(experts[0], chosen, experts[1], experts[2], always)
    assert expected_units(choice, units) == pytest.approx(counted_units(choice, units), rel=0.02)


def test_that_the_routing_model_of_equal_loads_agrees() -> None:
    """The model that is fitted to loads, given equal ones, is the closed form used without loads."""
    routing = fit_routing(np.full((1, 256), 1 / 256), RoutingSpec(256, 8, 8, 4))
    for nodes, gpus in ((4, 32), (8, 64)):
        placement = Placement.of(np.arange(256)[None, :], n_experts=256, n_gpus=gpus, n_nodes=nodes)
        choice = Choice(256, 8, 8, 4)
        reached = node_traffic(placement, routing, wire_bytes(7168)).nodes_per_token[0]
        assert expected_units(choice, nodes) == pytest.approx(float(reached))
        assert expected_units(choice, gpus) == pytest.approx(float(gpus_per_token(placement, routing)[0]))


@given(st.integers(1, 16), st.integers(1, 64), st.sampled_from([True, False]))
def test_that_copies_stay_within_what_a_token_visits(chosen: int, nodes: int, two_hop: bool) -> None:
    copies = copies_per_token(Choice(512, chosen), nodes, 8, two_hop)
    assert 0 <= copies.network <= min(chosen, nodes) or not two_hop
    assert copies.network + copies.inside <= chosen * (2 if two_hop else 1) + 1e-9
    if nodes == 1:
        assert copies.network == 0


def test_that_fp8_tokens_carry_one_scale_for_128_numbers() -> None:
    assert token_bytes(1) * 7168 == 7168 + 7168 / 128 * 4
    assert token_bytes(2) == 2


def test_that_sms_fill_the_links_and_are_missing_in_arithmetic() -> None:
    assert bandwidth_share(20) == bandwidth_share(40) == 1
    assert bandwidth_share(10) == 0.5
    assert compute_share(20, 132) == pytest.approx(112 / 132)


def test_that_times_of_arrays_are_those_of_numbers() -> None:
    bandwidth = np.array([25e9, 50e9, 400e9])
    tokens = np.array([1e6, 2e6, 3e6])

    def seconds(size: object, network: object) -> object:
        levels = [Level("nvlink", "switch", 8, 160e9, 1e-6), Level("ib", "network", 4, network, 3e-6)]
        return ExpertRates(Copies(2.0, 5.0), 1, 2).message(size, levels).transfer_s

    together = np.asarray(seconds(tokens, bandwidth))
    assert together.tolist() == [
        seconds(t, b) for t, b in zip(tokens.tolist(), bandwidth.tolist(), strict=True)
    ]


def test_that_factors_of_an_axis_make_levels_of_their_sizes() -> None:
    mesh = resolve_mesh(CLUSTER, MODEL, MeshPlan(x=("ib",), y=("nvlink:2",), z=("nvlink:4",)))
    assert mesh.diagnostics == ()
    assert mesh.sizes == {"x": 4, "y": 2, "z": 4}
    (level,) = mesh.network.of("z")
    assert (level.kind, level.size, level.bandwidth) == ("switch", 4, 160e9)


@pytest.mark.parametrize(
    ("cluster", "plan", "code"),
    [
        ("h800-4x8", MeshPlan(x=("ib",), y=("nvlink:2",), z=("nvlink:3",)), "mesh_factors_wrong"),
        ("h800-4x8", MeshPlan(x=("ib",), y=("nvlink",), z=("nvlink:8",)), "mesh_factors_wrong"),
        ("h800-4x8", MeshPlan(y=("nvlink:2",), z=("nvlink:4",)), "mesh_axis_unused"),
        ("h800-4x8", MeshPlan(x=("ib",), y=("nvlink:two",)), "mesh_axis_unknown"),
        ("tpu-v4-4x4x4", MeshPlan(x=("x",), y=("y:2", "y:2"), z=("z",)), "mesh_factors_wrong"),
    ],
)
def test_that_wrong_factors_are_reported(cluster: str, plan: MeshPlan, code: str) -> None:
    mesh = resolve_mesh(presets.load_cluster(cluster), MODEL, plan)
    assert code in {diagnostic.code for diagnostic in mesh.diagnostics}


def test_that_work_of_one_microbatch_hides_what_the_other_sends() -> None:
    costs = [OpCost(0, "einsum", compute_s=3.0), OpCost(1, "dispatch", transfer_s=4.0, exposed_s=4.0)]
    assert overlapped(costs, 1.0)[1].exposed_s == pytest.approx(1.0)
    assert overlapped(costs, 0.5)[1].exposed_s == pytest.approx(2.0)
    assert overlapped(costs[:1], 1.0) == costs[:1]


def test_that_communication_sms_are_taken_from_arithmetic_only_while_it_overlaps() -> None:
    design = replace_at(presets.load_design("deepseek-v3-prefill"), "plan.calibration", "none")
    both, apart = evaluate(design), evaluate(replace_at(design, "plan.overlap_microbatches", False))
    assert both.time is not None
    assert apart.time is not None
    slower = [op.flops / op.compute_s for op in both.time.ops if op.flops and op.program == "moe_block"]
    faster = [op.flops / op.compute_s for op in apart.time.ops if op.flops and op.program == "moe_block"]
    assert slower[0] / faster[0] == pytest.approx(112 / 132)


def test_that_slots_that_do_not_divide_are_reported_and_padded() -> None:
    evaluation = evaluate(
        replace_at(presets.load_design("deepseek-v3-prefill"), "plan.redundant_experts", 33)
    )
    assert "slots_uneven" in {d.code for d in evaluation.diagnostics}
    assert evaluation.time is not None


def test_that_an_imbalance_of_load_lengthens_the_step() -> None:
    design = presets.load_design("deepseek-v3-prefill")
    even, uneven = (
        evaluate(replace_at(design, "plan.expert_imbalance", r)).value("step_s") for r in (1.0, 1.5)
    )
    assert even is not None
    assert uneven is not None
    assert uneven > 1.1 * even
