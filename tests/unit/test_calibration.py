"""Calibrations: the efficiency model, how a design chooses one, and what a calibrated evaluation says."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import presets
from model_core import Design, evaluate
from model_core.hardware.calibration import (
    BOUND,
    Efficiency,
    choose_calibration,
    derated,
    efficiency_of,
    matmul_efficiency,
)
from model_core.hardware.network import Level
from model_core.partition.cost import program_costs
from model_core.partition.sizes import Sizes
from model_core.spec import CalibrationSpec, Evidence, replace_at
from model_core.spec.calibration import FACTORS, CalibratedFactor
from model_core.spec.io import dump_design, parse_design
from model_core.stages import bound_sizes, layout_stage, mesh_stage, rates_stage

DENSE = [n for n in presets.names("designs") if not n.startswith("deepseek")]
SHARE = st.floats(0.05, 1.0)
SECONDS = st.floats(0.0, 1e-3)
TILE = st.sampled_from([1, 8, 16, 64, 128, 256])
SIZE = st.integers(1, 100_000)
BY_KIND = {"share": SHARE, "ratio": st.floats(0.0, 1.0), "size": TILE, "seconds": SECONDS}
EFFICIENCY = st.builds(Efficiency, **{name: BY_KIND[factor.kind] for name, factor in FACTORS.items()})


def default() -> Design:
    return presets.load_design("palm-540b-decode-low-latency")


def calibration(**changes: Any) -> CalibrationSpec:
    return presets.load_calibration("tpu-v4-pope-2022").replace(**changes)


def with_calibrations(design: Design, *calibrations: CalibrationSpec) -> Design:
    return replace_at(design, "cluster.chip.calibrations", calibrations)


def test_that_every_factor_is_ideal_by_default() -> None:
    assert {entry.name: entry.default for entry in fields(Efficiency)} == {
        name: factor.ideal for name, factor in FACTORS.items()
    }
    assert efficiency_of(None) is BOUND


@given(SIZE, SIZE, SIZE, EFFICIENCY)
def test_that_an_efficiency_is_a_share(rows: int, columns: int, depth: int, e: Efficiency) -> None:
    assert 0 < matmul_efficiency(rows, columns, depth, e) <= e.matmul_share * (1 + 1e-12)


@given(SIZE, SIZE, SIZE, EFFICIENCY, st.integers(1, 50))
def test_that_larger_products_of_whole_tiles_are_no_less_efficient(
    rows: int, columns: int, depth: int, e: Efficiency, more: int
) -> None:
    """Efficiency grows with every size up to tile steps: between whole tiles it may fall."""
    m, n, k = (-(-size // tile) * tile for size, tile in
               ((rows, e.row_tile), (columns, e.column_tile), (depth, e.depth_tile)))  # fmt: skip
    before = matmul_efficiency(m, n, k, e)
    for larger in (
        (m + more * e.row_tile, n, k),
        (m, n + more * e.column_tile, k),
        (m, n, k + more * e.depth_tile),
    ):
        assert matmul_efficiency(*larger, e) >= before * (1 - 1e-12)


@given(SIZE, SIZE, SIZE, EFFICIENCY)
def test_that_a_product_takes_no_less_time_with_more_rows(rows: int, n: int, k: int, e: Efficiency) -> None:
    time = rows / matmul_efficiency(rows, n, k, e)
    more = (rows + 1) / matmul_efficiency(rows + 1, n, k, e)
    assert more >= time * (1 - 1e-12)


@given(st.lists(SIZE, min_size=1, max_size=8), EFFICIENCY)
def test_that_arrays_of_products_are_as_efficient_as_single_ones(rows: list[int], e: Efficiency) -> None:
    together = matmul_efficiency(np.array(rows), 4608, 1024, e)
    assert together == pytest.approx([matmul_efficiency(m, 4608, 1024, e) for m in rows], rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(EFFICIENCY, st.sampled_from(DENSE))
def test_that_a_calibrated_operation_is_never_faster_than_the_bound(e: Efficiency, name: str) -> None:
    design = presets.load_design(name)
    mesh = mesh_stage(design.cluster, design.model, design.plan.mesh)
    layout = layout_stage(design.model, design.workload, design.plan, mesh)
    rates, _ = rates_stage(design.cluster.chip, design.plan)
    for program in layout.programs.values():
        slow = program_costs(program, layout.sizes, replace(rates, efficiency=e), mesh.network)
        fast = program_costs(program, layout.sizes, replace(rates, efficiency=BOUND), mesh.network)
        for a, b in zip(slow, fast, strict=True):
            for part in ("compute_s", "weight_s", "kv_s", "communication_s", "busy_s"):
                assert getattr(a, part) >= getattr(b, part) * (1 - 1e-12), part
        total_slow = sum(c.busy_s + c.exposed_s for c in slow)
        total_fast = sum(c.busy_s + c.exposed_s for c in fast)
        assert total_slow >= total_fast * (1 - 1e-12)


@pytest.mark.parametrize("name", DENSE)
def test_that_a_calibrated_design_is_slower_than_its_bound(name: str) -> None:
    design = presets.load_design(name)
    bound = evaluate(replace_at(design, "plan.calibration", "none"))
    calibrated = evaluate(design)
    assert calibrated.time is not None
    assert bound.time is not None
    assert calibrated.time.calibrated
    assert not bound.time.calibrated
    assert calibrated.time.step_s > bound.time.step_s
    assert calibrated.memory == bound.memory


@pytest.mark.parametrize("name", DENSE)
def test_that_calibrated_arrays_cost_the_same_as_single_designs(name: str) -> None:
    design = presets.load_design(name)
    mesh = mesh_stage(design.cluster, design.model, design.plan.mesh)
    layout = layout_stage(design.model, design.workload, design.plan, mesh)
    rates, _ = rates_stage(design.cluster.chip, design.plan)
    assert rates.efficiency is not BOUND
    batches = np.array([64, 128, 512])
    sizes = bound_sizes(design.model, design.workload, mesh.sizes)
    block = layout.programs["block"]
    together = program_costs(block, Sizes({**sizes, "B": batches}), rates, mesh.network)
    for i, batch in enumerate(batches):
        single = program_costs(block, Sizes({**sizes, "B": int(batch)}), rates, mesh.network)
        for a, b in zip(together, single, strict=True):
            for part in ("busy_s", "communication_s", "exposed_s", "activation_s", "fixed_s"):
                assert np.broadcast_to(getattr(a, part), 3)[i] == pytest.approx(getattr(b, part), rel=1e-12)


def test_that_links_are_derated_by_their_kind() -> None:
    e = Efficiency(torus_share=0.5, switch_share=0.25, network_share=0.1, torus_hop_s=3e-6)
    kinds = ("ring", "line", "switch", "network")
    found = derated([Level("a", kind, 4, 100.0, 1e-6) for kind in kinds], e)  # type: ignore[arg-type]
    assert [level.bandwidth for level in found] == [50, 50, 25, 10]
    assert [level.latency for level in found] == pytest.approx([4e-6, 4e-6, 1e-6, 1e-6])


def test_that_cache_rereads_count_the_query_heads_of_a_key_head() -> None:
    design = presets.load_design("llama-3.1-70b-h100")
    once = with_calibrations(design, _bare("kv_rereads", 0.0))
    each = with_calibrations(design, _bare("kv_rereads", 1.0))
    first, second = evaluate(once).time, evaluate(each).time
    assert first is not None
    assert second is not None
    kv = [sum(op.count * op.kv_s for op in time.ops) for time in (first, second)]
    assert kv[1] == pytest.approx(kv[0] * design.model.n_heads / design.model.n_kv_heads)


def _bare(name: str, value: float) -> CalibrationSpec:
    factor = CalibratedFactor(name=name, value=value, source="test")
    return calibration(chip="H100 SXM", factors=(factor,), groups=())


def test_that_a_chip_carries_the_calibrations_measured_on_it() -> None:
    own = {
        "a100-80gb": "a100-80gb-fastertransformer",
        "h100-sxm": "h100-sxm-tensorrt-llm",
        "tpu-v4": "tpu-v4-pope-2022",
    }
    for name in presets.names("chips"):
        chip = presets.load_chip(name)
        assert all(calibration.chip == chip.name for calibration in chip.calibrations)
        assert own.get(name, "") in ("", *(calibration.name for calibration in chip.calibrations))
    assert not presets.load_chip("tpu-v5e").calibrations


def test_that_a_design_without_calibration_gives_the_bound_and_says_so() -> None:
    evaluation = evaluate(default().replace(cluster=presets.load_cluster("tpu-v5e-8x8")))
    step = evaluation.quantities["step_s"]
    assert evaluation.calibration is None
    assert "bound" in step.note
    assert step.error_band == 0


def test_that_a_calibrated_design_names_its_software_and_error_band() -> None:
    evaluation = evaluate(default())
    own = presets.load_calibration("tpu-v4-pope-2022")
    assert evaluation.calibration == own
    for key in ("step_s", "latency_s", "mfu", "tokens_per_s", "cost_chip_s_per_token"):
        quantity = evaluation.quantities[key]
        assert quantity.note == f"Calibrated: Pope et al. 2022, ± {own.error_band:.0%}."
        assert quantity.error_band == own.error_band
        assert quantity.evidence is Evidence.MODELLED
    assert evaluation.quantities["compute_s"].error_band == 0
    assert evaluation.quantities["kv_bytes_per_token"].note == ""


@pytest.mark.parametrize("wanted", ["tpu-v4-pope-2022", "Pope et al. 2022", "POPE ET AL. 2022"])
def test_that_a_calibration_is_found_by_name_or_software(wanted: str) -> None:
    choice = choose_calibration(default().cluster.chip, wanted)
    assert choice.calibration == presets.load_calibration("tpu-v4-pope-2022")
    assert not choice.foreign
    assert not choice.diagnostics


def test_that_a_calibration_of_another_chip_is_never_taken_by_itself() -> None:
    design = with_calibrations(presets.load_design("llama-3.1-70b-h100"), calibration())
    evaluation = evaluate(design)
    assert evaluation.calibration is None
    assert "bound" in evaluation.quantities["step_s"].note


def test_that_a_calibration_of_another_chip_that_is_asked_for_comes_with_a_warning() -> None:
    design = replace_at(presets.load_design("llama-3.1-70b-h100"), "plan.calibration", "tpu-v4-pope-2022")
    evaluation = evaluate(presets.with_calibration(design))
    (found,) = [d for d in evaluation.diagnostics if d.code == "calibration_foreign"]
    assert found.path == "plan.calibration"
    assert "TPU v4" in found.message
    assert evaluation.quantities["step_s"].evidence is Evidence.ASSUMED
    assert evaluation.quantities["parameters_total"].evidence is Evidence.MODELLED


def test_that_a_renamed_chip_keeps_no_calibration() -> None:
    evaluation = evaluate(replace_at(default(), "cluster.chip.name", "TPU v4 with twice the memory"))
    assert evaluation.calibration is None


def test_that_an_unknown_calibration_gives_the_bound_and_the_names_that_exist() -> None:
    evaluation = evaluate(replace_at(default(), "plan.calibration", "vllm"))
    (found,) = [d for d in evaluation.diagnostics if d.code == "calibration_unknown"]
    assert "tpu-v4-pope-2022" in found.hint
    assert evaluation.calibration is None


def test_that_several_calibrations_wait_for_a_choice() -> None:
    other = calibration(name="another", stack="another")
    design = with_calibrations(default(), calibration(), other)
    evaluation = evaluate(design)
    assert "calibration_ambiguous" in {d.code for d in evaluation.diagnostics}
    assert evaluation.calibration is None
    assert evaluate(replace_at(design, "plan.calibration", "another")).calibration == other


def test_that_a_design_file_holds_its_calibrations() -> None:
    design, problems = parse_design(dump_design(default()))
    assert problems == ()
    assert design == default()
    assert evaluate(design).calibration == presets.load_calibration("tpu-v4-pope-2022")


def test_that_a_design_file_from_before_calibrations_still_loads() -> None:
    document = json.loads(dump_design(default()))
    del document["design"]["cluster"]["chip"]["calibrations"]
    for name in ("calibration", "microbatches", "large_k", "matmul_dtype"):
        del document["design"]["plan"][name]
    design, problems = parse_design(json.dumps(document))
    assert problems == ()
    assert design is not None
    assert evaluate(design).calibration is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("matmul_share", 0.0),
        ("matmul_share", 1.01),
        ("hidden_share", -0.1),
        ("row_tile", 0.5),
        ("layer_s", -1e-6),
        ("speed", 1.0),
    ],
)
def test_that_an_unphysical_factor_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValidationError):
        CalibratedFactor(name=name, value=value, source="test")


def test_that_a_factor_given_twice_is_refused() -> None:
    factors = calibration().factors
    with pytest.raises(ValidationError, match="twice"):
        calibration(factors=(*factors, factors[0]))


def test_that_products_in_8_bits_run_at_that_rate() -> None:
    design = replace_at(presets.load_design("llama-3.1-70b-h100"), "plan.calibration", "none")
    fp8 = replace_at(design, "plan.matmul_dtype", "fp8")
    before, after = evaluate(design).time, evaluate(fp8).time
    assert before is not None
    assert after is not None
    assert after.compute_s < before.compute_s
    assert after.communication_s == before.communication_s
    codes = {d.code for d in evaluate(replace_at(default(), "plan.matmul_dtype", "fp8")).diagnostics}
    assert "dtype_without_rate" in codes


def test_that_large_k_moves_more() -> None:
    exact, rounded = evaluate(default()).time, evaluate(replace_at(default(), "plan.large_k", True)).time
    assert exact is not None
    assert rounded is not None
    assert rounded.communication_s > exact.communication_s
    volume = [sum(op.count * op.collective_bytes for op in time.ops) for time in (exact, rounded)]
    assert volume[0] < volume[1] < 2 * volume[0]


@pytest.mark.parametrize("name", DENSE)
def test_that_closed_forms_have_cards(name: str) -> None:
    evaluation = evaluate(presets.load_design(name))
    for key in ("closed_form/feedforward", "closed_form/optimal_x", "closed_form/optimal_n"):
        card = evaluation.explain(key)
        assert card is not None
        assert card.value > 0
        assert card.terms
        assert card.formula.source.startswith("Pope")
    assert evaluation.explain("closed_form/nothing") is None


def test_that_the_closed_form_of_the_layout_bounds_what_the_program_moves() -> None:
    """Pope 3.2.2: the form takes (K - 1)/K as 1, so that the program moves less of the same."""
    design = replace_at(default(), "plan.block", "parallel")
    evaluation = evaluate(design)
    card = evaluation.explain("closed_form/feedforward")
    assert card is not None
    assert evaluation.time is not None
    block = evaluation.programs["block"].ops
    moved = sum(
        op.collective_bytes
        for op in evaluation.time.ops
        if op.program == "block"
        and op.kind in ("all-gather", "reduce-scatter")
        and block[op.index].output.name.partition(".")[0] in ("x", "hidden", "gate", "out")
    )
    assert 0.7 * card.value < moved <= card.value * 1.01
