"""Published figures of DeepSeek-V3's communication and deployment units, each with its source."""

from __future__ import annotations

import pytest

import presets
from model_core import Evaluation, evaluate
from model_core.hardware.expert_traffic import (
    Choice,
    ExpertRates,
    copies_per_token,
    ep_limit_s,
    ep_limit_tpot_s,
    expected_units,
    expert_transfer_s,
    token_bytes,
)
from model_core.hardware.network import Level
from model_core.reproduce import reproduce
from model_core.spec import Design, MeshPlan, replace_at

HIDDEN = 7168


def changed(name: str, **changes: object) -> Design:
    design = presets.load_design(name)
    for path, value in changes.items():
        design = replace_at(design, path.replace("__", "."), value)
    return design


def held(evaluation: Evaluation, item: str) -> float:
    assert evaluation.memory is not None
    return next(i.bytes for i in evaluation.memory.items if i.name == item)


def test_that_up_to_3_2_experts_of_every_node_the_network_bounds_a_dispatch() -> None:
    """DSV3 3.2.2: both kinds of link work at once; beyond 3.2 copies in each node NVLink is the slower one."""
    levels = [Level("nvlink", "switch", 8, 160e9, 0.0), Level("ib", "network", 8, 50e9, 0.0)]
    for experts, network_bound in ((2.0, True), (3.2, True), (3.3, False)):
        time = expert_transfer_s(4e6, 4e6 * experts, levels)
        assert (time == pytest.approx(4e6 / 50e9)) is network_bound


def test_that_a_token_reaches_at_most_4_of_8_nodes() -> None:
    """DSV3 2.1.2 and 3.2.2: 8 of 256 experts, from at most 4 of 8 nodes."""
    reached = expected_units(Choice(256, 8, 8, 4), 8)
    assert 3.5 < reached < 4
    assert expected_units(Choice(256, 8), 8) > 5


def test_that_the_limit_of_expert_parallelism_is_the_published_one() -> None:
    """Insights into DeepSeek-V3 2.3.2: (1 + 2) bytes x 32 tokens x 9 experts x 7K; 120.96 us, 14.76 ms, 67 tokens/s."""
    pair = ep_limit_s(32, 9, 7000, 1, 2, 50e9)
    assert pair * 1e6 == pytest.approx(120.96)
    assert ep_limit_tpot_s(61, pair) * 1e3 == pytest.approx(14.76, abs=0.005)
    assert int(1 / ep_limit_tpot_s(61, pair)) == 67


def test_that_the_limit_on_nvl72_is_the_published_one() -> None:
    """Insights into DeepSeek-V3 2.3.2: 6.72 us and 0.82 ms, about 1,200 tokens/s at 900 GB/s."""
    pair = ep_limit_s(32, 9, 7000, 1, 2, 900e9)
    assert pair * 1e6 == pytest.approx(6.72)
    assert ep_limit_tpot_s(61, pair) * 1e3 == pytest.approx(0.82, abs=0.005)


def test_that_compute_and_communication_in_training_are_about_equal() -> None:
    """DSV3 3.2.1: about 1:1 with experts on 64 GPUs; forward pass of one layer, 4,096 tokens per GPU.

    The arithmetic runs at the 1.0 PFLOP/s that grouped FP8 products reach in the published training trace.
    """
    copies = copies_per_token(Choice(256, 8, 8, 4), 8, 8, two_hop=True)
    rates = ExpertRates(copies, token_bytes(1), token_bytes(2))
    levels = [Level("nvlink", "switch", 8, 160e9, 0.0), Level("ib", "network", 8, 50e9, 0.0)]
    sent = (rates.dispatch_bytes, rates.combine_bytes)
    communication = sum(rates.message(4096 * HIDDEN * width, levels).transfer_s for width in sent)
    parameters = evaluate(presets.load_design("deepseek-v3-prefill")).parameters
    assert parameters is not None
    tables = 2 * 129280 * HIDDEN
    matrices = 2 * (parameters.active - tables) / 61 * 4096
    scores = 2 * 128 * (192 + 128) * 4096 * 4096 / 2
    assert (matrices + scores) / 1.0e15 / communication == pytest.approx(1.0, abs=0.15)


def test_that_the_cache_takes_70272_bytes_per_token() -> None:
    """Insights into DeepSeek-V3, Table 1: 70.272 KB per token in bfloat16."""
    assert evaluate(presets.load_design("deepseek-v3-decode")).value("kv_bytes_per_token") == 70272


def test_that_the_prefill_unit_is_that_of_the_report() -> None:
    """DSV3 3.4.1: 4 nodes, TP4 and DP8, EP32, 9 experts per GPU, dense layers whole, two microbatches."""
    evaluation = evaluate(presets.load_design("deepseek-v3-prefill"))
    assert evaluation.ok
    sizes = evaluation.sizes
    assert (sizes["z"], sizes["x"] * sizes["y"], sizes["x"] * sizes["y"] * sizes["z"]) == (4, 8, 32)
    assert sizes["X"] == 256 + 32
    expert = 3 * HIDDEN * 2048
    assert held(evaluation, "routed expert weights") == 9 * expert * 58
    assert held(evaluation, "feedforward weights") == 3 * HIDDEN * 18432 * 3
    assert sizes["B"] == evaluation.design.workload.batch / 2
    assert evaluation.memory is not None
    assert evaluation.memory.fits


def test_that_the_decode_unit_is_that_of_the_report() -> None:
    """DSV3 3.4.2: 40 nodes, TP4 and DP80, EP320, one expert per GPU, 9 choices, at most 256 tokens per expert."""
    evaluation = evaluate(presets.load_design("deepseek-v3-decode"))
    assert evaluation.ok
    sizes = evaluation.sizes
    assert (sizes["z"], sizes["x"] * sizes["y"], sizes["X"]) == (4, 80, 320)
    assert held(evaluation, "routed expert weights") == 3 * HIDDEN * 2048 * 58
    assert evaluation.memory is not None
    assert all(item.name != "shared expert weights" for item in evaluation.memory.items)
    tokens = evaluation.value("tokens_per_expert")
    assert tokens is not None
    assert 128 < tokens <= 256
    assert evaluation.value("chips_per_token") == pytest.approx(9, abs=0.05)


def test_that_experts_in_decode_are_bound_by_loading() -> None:
    """DSV3 3.4.2: within 256 tokens per expert the bottleneck is memory access."""
    evaluation = evaluate(changed("deepseek-v3-decode", plan__calibration="none"))
    assert evaluation.time is not None
    program = evaluation.programs["moe_block"]
    experts = [
        op
        for op in evaluation.time.ops
        if op.program == "moe_block"
        and any(t.group == "routed experts" for t in program.ops[op.index].inputs)
    ]
    assert len(experts) == 3
    assert all(op.weight_s > op.compute_s for op in experts)


@pytest.mark.parametrize("name", ["deepseek-v3-prefill", "deepseek-v3-decode"])
def test_that_the_other_microbatch_hides_dispatch_and_combine(name: str) -> None:
    """DSV3 3.4: what is not hidden at peak rates is at most a third, and with the measured rates a twentieth."""
    for calibration, most in (("none", 0.34), ("auto", 0.05)):
        time = evaluate(changed(name, plan__calibration=calibration)).time
        assert time is not None
        assert time.exposed_communication_s < most * time.communication_s
    apart = evaluate(changed(name, plan__calibration="auto", plan__overlap_microbatches=False)).time
    assert apart is not None
    assert apart.exposed_communication_s == pytest.approx(apart.communication_s)


def errors_of(beginning: str) -> dict[str, float]:
    rows = reproduce([presets.load_published("deepseek-serving")], presets, beginning)
    return {row.row.id: row.predicted.known / row.row.value - 1 for row in rows if row.row.value}


def test_that_deepep_is_predicted_within_15_percent() -> None:
    """DeepEP README. Two of the fourteen rows gave factors: normal dispatch to 64, low-latency dispatch to 128."""
    errors = errors_of("deepep")
    assert len(errors) == 14
    assert sum(abs(error) for error in errors.values()) / len(errors) < 0.06
    assert max(abs(error) for error in errors.values()) < 0.16


def test_that_the_rows_of_the_report_are_reproduced() -> None:
    """DSV3 3.2 and 3.4, Insights 2.3.2: exact but for rounding, and the ratio that is "about" one."""
    for identifier, error in {**errors_of("dsv3"), **errors_of("insights")}.items():
        about = "compute-over-communication" in identifier or "tokens-per-expert" in identifier
        assert abs(error) < (0.15 if about else 0.016), identifier


PROFILES = [
    ("deepseek-v3-online-prefill", {}, 62713, 0.12),
    ("deepseek-v3-online-decode", {"cluster__topology__n_nodes": 16, "workload__batch": 16384,
      "workload__input_length": 4096, "workload__output_length": 1, "plan__redundant_experts": 0}, 18598, 0.02),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "published", "most"), PROFILES)
def test_that_the_profiles_are_predicted(
    name: str, changes: dict[str, object], published: float, most: float
) -> None:
    """LMSYS blog 2025-05-05, table, of deepseek-ai/profile-data: tokens per second and node.

    Decode was fitted to (the fixed cost of a layer); prefill was not.
    """
    evaluation = evaluate(changed(name, **changes))
    predicted = evaluation.value("tokens_per_s_per_node")
    assert predicted == pytest.approx(published, rel=most)


def test_that_tp4_needs_factors_of_a_node() -> None:
    """DSV3 3.4: TP4 in nodes of 8 GPUs."""
    design = presets.load_design("deepseek-v3-decode")
    assert design.plan.mesh == MeshPlan(x=("ib",), y=("nvlink:2",), z=("nvlink:4",))
