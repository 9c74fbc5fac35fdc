"""Evaluating training designs: sums, conventions, diagnostics and what each choice changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import presets
from model_core import evaluate
from model_core.headline import BOUND_NOTE
from model_core.parameters import count_parameters
from model_core.results import Evaluation
from model_core.spec import Design, NodeTopology, replace_at
from model_core.training.evaluation import TrainingResult, training_stage
from model_core.training.flops import model_flops_per_token
from model_core.training.korthikanti import GptShape, model_flops
from model_core.training.layout import group_levels, layers_of_stages
from model_core.training.rows import GATHER, SCATTER
from tests.unit.training_cases import gpt

DESIGNS = ["deepseek-v3-training", "gpt3-175b-training-a100", "mt-nlg-530b-training"]


def result_of(design: Design) -> TrainingResult:
    parameters = count_parameters(design.model)
    return training_stage(design.model, design.cluster, design.workload, design.plan, parameters)


def changed(name: str, **fields: Any) -> Design:
    design = presets.load_design(name)
    for path, value in fields.items():
        design = replace_at(design, path.replace("__", "."), value)
    return design


def codes(evaluation: Evaluation) -> list[str]:
    return [diagnostic.code for diagnostic in evaluation.diagnostics]


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("calibration", ["auto", "none"])
def test_that_preset_designs_evaluate_without_findings(name: str, calibration: str) -> None:
    evaluation = evaluate(changed(name, plan__calibration=calibration))
    assert not evaluation.diagnostics
    assert evaluation.memory is not None
    assert evaluation.memory.fits
    assert evaluation.time is not None
    assert evaluation.time.step_s == pytest.approx(evaluation.value("step_s"))
    assert sum(op.total_s for op in evaluation.time.ops) == pytest.approx(evaluation.time.step_s)
    for op in evaluation.time.ops:
        card = evaluation.explain(f"op/{op.program}/{op.index}")
        assert card is not None
        assert card.value == pytest.approx(op.total_s)
    for item in evaluation.memory.items:
        assert evaluation.explain(f"memory/{item.name}") is not None


@pytest.mark.parametrize("name", DESIGNS)
def test_that_a_bound_is_never_above_a_calibrated_time(name: str) -> None:
    bound = evaluate(changed(name, plan__calibration="none"))
    assert bound.quantities["step_s"].note == BOUND_NOTE
    calibrated = evaluate(presets.load_design(name))
    assert calibrated.quantities["step_s"].error_band > 0
    below, above = bound.value("step_s"), calibrated.value("step_s")
    assert below is not None
    assert above is not None
    assert below < above


def test_that_the_numbers_of_a_step_agree_with_each_other() -> None:
    design = presets.load_design("deepseek-v3-training")
    found = {key: quantity.value for key, quantity in evaluate(design).quantities.items()}
    tokens = design.workload.batch * design.workload.input_length
    chips, peak = design.cluster.n_chips, design.cluster.chip.peak_bf16
    assert found["tokens_per_s"] == pytest.approx(tokens / found["step_s"])
    assert found["gpu_hours_per_trillion_tokens"] == pytest.approx(
        chips * 1e12 / found["tokens_per_s"] / 3600
    )
    assert found["mfu"] == pytest.approx(
        found["model_flops_per_token"] * found["tokens_per_s"] / chips / peak
    )
    assert found["latency_s"] == found["step_s"]


def test_that_recomputation_counts_in_the_hardware_flops_only() -> None:
    """Korthikanti et al. 2022, Table 5: 51.4 % MFU and 52.8 % HFU of 175B."""
    found = {
        key: q.value for key, q in evaluate(presets.load_design("gpt3-175b-training-a100")).quantities.items()
    }
    assert found["hfu"] / found["mfu"] == pytest.approx(1.01, abs=0.01)


@pytest.mark.parametrize(("h", "a", "layers"), [(6144, 64, 48), (12288, 96, 96), (20480, 128, 105)])
def test_that_model_flops_are_those_of_the_published_formula(h: int, a: int, layers: int) -> None:
    """Korthikanti et al. 2022, appendix A: 72 B·L·s·h² (1 + s/6h + v/12hL)."""
    counted = model_flops_per_token(gpt(h, a, layers), 2048) * 2048
    assert counted == pytest.approx(model_flops(GptShape(2048, 1, h, a, layers, 51_200), 1), rel=1e-12)


def test_that_training_flops_of_deepseek_v3_are_the_published_ones() -> None:
    """Insights into DeepSeek-V3, Table 2: 250 GFLOP a token; there only the causal half of attention counts."""
    model = presets.load_model("deepseek-v3")
    assert model.mla is not None
    mla = model.mla
    widths = mla.qk_nope_head_dim + mla.qk_rope_head_dim + mla.v_head_dim
    masked = 3 * model.n_layers * model.n_heads * widths * 4096
    assert model_flops_per_token(model, 4096) - masked == pytest.approx(250e9, rel=0.02)


def test_that_stages_differ_at_both_ends() -> None:
    result = result_of(changed("deepseek-v3-training", plan__schedule__kind="1f1b"))
    assert result.times is not None
    names = [set(content.programs) for content in result.inputs.contents]
    assert "embedding" in names[0]
    assert {"logits", "mtp"} <= names[-1]
    middle = result.times.stages.forward_s[1:-1]
    assert np.ptp(middle) == 0
    assert sum(content.layers for content in result.inputs.contents) == 61


def test_that_dualpipe_beats_1f1b_and_holds_more_weights() -> None:
    """DSV3 3.2.1: less bubble, communication hidden, two copies of the parameters."""
    plain, dual = (
        result_of(changed("deepseek-v3-training", plan__schedule__kind=kind)) for kind in ("1f1b", "dualpipe")
    )
    assert plain.times is not None
    assert dual.times is not None
    assert dual.times.step_s < plain.times.step_s

    def weights(result: TrainingResult) -> float:
        return max(sum(i.bytes for i in budget.items if i.kind == "weights") for budget in result.ranks)

    assert weights(dual) > weights(plain)


@pytest.mark.parametrize(
    ("field", "less_time", "more_time"),
    [
        ("plan__training__recompute", "selective", "full"),
        ("plan__training__overlap_tensor_parallel", True, False),
        ("plan__training__sequence_parallel", True, False),
    ],
)
def test_that_choices_cost_time(field: str, less_time: Any, more_time: Any) -> None:
    fast, slow = (
        evaluate(changed("gpt3-175b-training-a100", **{field: value})).value("step_s")
        for value in (less_time, more_time)
    )
    assert fast is not None
    assert slow is not None
    assert fast < slow


def test_that_gradients_overlap_with_the_last_backward_pass() -> None:
    fields = {"cluster__topology__n_nodes": 16, "workload__batch": 128}
    later, beside = (
        evaluate(changed("gpt3-175b-training-a100", **fields, plan__training__overlap_gradients=value)).value(
            "step_s"
        )
        for value in (False, True)
    )
    assert later is not None
    assert beside is not None
    assert beside < later


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"plan__training__tp": 3}, "training_degrees"),
        ({"plan__training__ep": 48}, "training_experts"),
        ({"workload__batch": 15361}, "training_batch"),
        ({"plan__schedule__microbatches": 60}, "training_microbatches"),
        ({"plan__training__stage_layers": (4, 4)}, "training_stages"),
        ({"workload__batch": 128}, "schedule_size"),
    ],
)
def test_that_sizes_that_do_not_fit_are_reported(fields: dict[str, Any], code: str) -> None:
    evaluation = evaluate(changed("deepseek-v3-training", **fields))
    found = codes(evaluation)
    assert code in found
    assert len(found) == len({(d.code, d.path) for d in evaluation.diagnostics})
    assert "internal" not in found


@pytest.mark.parametrize(
    "fields",
    [
        {"plan__training__tp": 16},
        {"plan__training__tp": 7},
        {"workload__batch": 281, "plan__training__micro_batch": 2},
        {"plan__training__stage_layers": (4, 4)},
    ],
)
def test_that_a_layout_with_errors_has_neither_time_nor_memory(fields: dict[str, Any]) -> None:
    evaluation = evaluate(changed("mt-nlg-530b-training", **fields))
    assert "internal" not in codes(evaluation)
    assert evaluation.diagnostics
    assert evaluation.time is None
    assert evaluation.memory is None
    assert evaluation.value("mfu") is None
    assert evaluation.value("parameters_total")


@given(
    name=st.sampled_from(DESIGNS),
    fused=st.booleans(),
    recompute=st.sampled_from(["none", "selective", "full"]),
    length=st.sampled_from([512, 2048, 32_768]),
)
@settings(max_examples=25, deadline=None)
def test_that_hfu_is_never_below_mfu(name: str, fused: bool, recompute: str, length: int) -> None:
    fields = {"fused_attention": fused, "recompute": recompute}
    design = changed(name, workload__input_length=length)
    for field, value in fields.items():
        design = replace_at(design, f"plan.training.{field}", value)
    evaluation = evaluate(design)
    hfu, mfu = evaluation.value("hfu"), evaluation.value("mfu")
    assert hfu is not None
    assert mfu is not None
    assert hfu >= mfu * (1 - 1e-9)


def sharded(stage: int, **fields: Any) -> Evaluation:
    nodes = {"cluster__topology__n_nodes": 16, "workload__batch": 128}
    return evaluate(changed("gpt3-175b-training-a100", **nodes, plan__training__zero_stage=stage, **fields))


@pytest.mark.parametrize("overlap", [False, True])
def test_that_sharing_more_costs_time(overlap: bool) -> None:
    """Rajbhandari et al. 2020, 7: ZeRO-3 gathers weights in forward and again in backward."""
    steps = [sharded(stage, plan__training__overlap_gradients=overlap).value("step_s") for stage in (1, 2, 3)]
    one, two, three = (step or 0.0 for step in steps)
    assert 0 < one <= two <= three
    if not overlap:
        assert one < two < three


def test_that_sharing_has_rows_of_its_own() -> None:
    for stage, expected in (
        (1, set[str]()),
        (2, {SCATTER}),
        (3, {GATHER, SCATTER}),
    ):
        time = sharded(stage).time
        assert time is not None
        found = {op.name: op for op in time.ops if op.name in (GATHER, SCATTER)}
        assert set(found) == expected
        assert all(op.exposed_s > 0 for op in found.values())
        assert sum(op.total_s for op in time.ops) == pytest.approx(time.step_s)


def test_that_tokens_that_do_not_divide_by_tp_are_blamed_on_sequence_parallelism() -> None:
    evaluation = evaluate(changed("gpt3-175b-training-a100", workload__input_length=2047))
    (found,) = (d for d in evaluation.diagnostics if d.code == "does_not_divide")
    assert found.path == "plan.training.tp"
    assert "sequence parallelism" in found.message
    assert "tp" in found.message


def test_that_step_and_latency_have_labels_of_their_own() -> None:
    found = evaluate(presets.load_design("gpt3-175b-training-a100")).quantities
    assert found["step_s"].label != found["latency_s"].label


@pytest.mark.parametrize(("kind", "unit"), [("1f1b", "microbatches"), ("interleaved", "chunks")])
def test_that_what_is_in_flight_is_named(kind: str, unit: str) -> None:
    memory = evaluate(changed("mt-nlg-530b-training", plan__schedule__kind=kind)).memory
    assert memory is not None
    details = [item.detail for item in memory.items if item.kind == "activations"]
    assert details
    assert all(detail.endswith(f"{unit} in flight") for detail in details)


def test_that_a_training_design_without_a_plan_evaluates() -> None:
    """Files from before the training plan keep loading."""
    design = presets.load_design("llama-3.1-70b-h100")
    design = design.replace(workload={"phase": "training", "batch": 8, "input_length": 2048})
    evaluation = evaluate(design)
    assert evaluation.time is not None
    assert "out_of_memory" in codes(evaluation)


def test_that_layers_fill_stages_from_the_front_and_none_is_empty() -> None:
    assert layers_of_stages(61, 16) == (*(4,) * 15, 1)
    assert layers_of_stages(96, 24) == (4,) * 24
    assert layers_of_stages(10, 8) == (2, 2, 1, 1, 1, 1, 1, 1)


def test_that_groups_fill_nodes_first() -> None:
    cluster = presets.load_cluster("h800-256x8")
    assert isinstance(cluster.topology, NodeTopology)

    def sizes(ways: int, stride: int) -> dict[str, Any]:
        return {level.axis: level.size for level in group_levels(cluster, ways, stride)}

    assert sizes(8, 1) == {"nvlink": 8}
    assert sizes(64, 1) == {"nvlink": 8, "ib": 8}
    assert sizes(16, 8) == {"ib": 16}
    assert sizes(4, 2) == {"nvlink": 4}
    assert sizes(1, 1) == {}
