from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import presets
from model_core import Design, Evaluation, evaluate
from model_core.hardware.network import Level, Network
from model_core.partition.cost import OpCost, program_costs
from model_core.partition.sizes import Sizes
from model_core.spec import FfnLayout, Phase, replace_at
from model_core.stages import bound_sizes, layout_stage, mesh_stage, rates_stage

DENSE = [n for n in presets.names("designs") if not n.startswith("deepseek") and "training" not in n]


def default() -> Design:
    return presets.load_design("palm-540b-decode-low-latency")


@st.composite
def designs(draw: st.DrawFn) -> Design:
    design = presets.load_design(draw(st.sampled_from(presets.names("designs"))))
    design = design.replace(
        model=presets.load_model(draw(st.sampled_from(presets.names("models")))),
        cluster=presets.load_cluster(draw(st.sampled_from(presets.names("clusters")))),
    )
    changes: dict[str, Any] = {
        "plan.mesh": None,
        "workload.phase": draw(st.sampled_from(list(Phase))),
        "workload.batch": draw(st.integers(1, 2000)),
        "workload.input_length": draw(st.integers(1, 10_000)),
        "workload.output_length": draw(st.integers(0, 3000)),
        "plan.ffn_layout": draw(st.sampled_from(list(FfnLayout))),
        "plan.attention_sharding": draw(st.sampled_from(["heads", "batch"])),
        "plan.block": draw(st.sampled_from(["as_model", "serial", "parallel"])),
        "plan.weight_dtype": draw(st.sampled_from(["bfloat16", "int8", "fp8"])),
        "plan.kv_dtype": draw(st.sampled_from(["bfloat16", "int8"])),
        "plan.activation_dtype": draw(st.sampled_from(["bfloat16", "int8", "fp8"])),
        "plan.collective_overlap": draw(st.floats(0, 1)),
    }
    for path, value in changes.items():
        design = replace_at(design, path, value)
    return design


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(designs())
def test_that_any_design_evaluates_and_its_parts_add_up(design: Design) -> None:
    evaluation = evaluate(design)
    assert [d for d in evaluation.diagnostics if d.code == "internal"] == []
    for diagnostic in evaluation.diagnostics:
        assert diagnostic.message
        assert diagnostic.hint
    assert evaluation.parameters is not None
    assert sum(evaluation.parameters.groups.values()) == evaluation.parameters.total
    if evaluation.memory is None:
        assert not evaluation.ok
        return
    assert all(item.bytes >= 0 for item in evaluation.memory.items)
    if evaluation.time is None:
        return
    time = evaluation.time
    assert sum(op.total_s for op in time.ops) == pytest.approx(time.step_s)
    assert 0 <= time.exposed_communication_s <= time.communication_s * (1 + 1e-9)
    assert time.step_s >= max(time.compute_s, time.memory_s, time.exposed_communication_s) * (1 - 1e-9)
    cost, throughput = evaluation.value("cost_chip_s_per_token"), evaluation.value("tokens_per_s")
    assert cost is not None
    assert throughput is not None
    assert cost * throughput == pytest.approx(design.cluster.n_chips)


@pytest.mark.parametrize("name", DENSE)
def test_that_flops_count_every_parameter_twice_per_token_and_attention_beside(name: str) -> None:
    design = replace_at(presets.load_design(name), "plan.ffn_layout", "weight_stationary_2d")
    evaluation = evaluate(design)
    assert evaluation.time is not None
    assert evaluation.parameters is not None
    model, workload, chips = design.model, design.workload, design.cluster.n_chips
    block = [op for op in evaluation.time.ops if op.program == "block" and op.flops]
    program = evaluation.programs["block"].ops
    total = chips * sum(op.count * op.flops for op in block)
    cached = (
        sum(op.count * op.flops for op in block if program[op.index].output.name in ("scores", "mixed"))
        * chips
    )
    groups = evaluation.parameters.groups
    tokens = workload.batch * (1 if workload.phase is Phase.DECODE else workload.input_length)
    matrices = groups["attention"] + groups["feedforward"]
    shared_kv = model.n_layers * model.d_model * 2 * model.n_kv_heads * model.d_head
    lower = 2 * matrices * tokens
    assert lower * (1 - 1e-9) <= total - cached <= (lower + 2 * shared_kv * tokens * chips) * (1 + 1e-9)
    context = evaluation.sizes["M"]
    exact = 4 * tokens * context * model.n_heads * model.d_head * model.n_layers
    assert cached >= exact * (1 - 1e-9)


@pytest.mark.parametrize("layout", list(FfnLayout))
def test_that_weight_bytes_are_conserved_over_the_chips(layout: FfnLayout) -> None:
    design = replace_at(presets.load_design("palm-540b-decode-high-throughput"), "plan.ffn_layout", layout)
    evaluation = evaluate(design)
    assert evaluation.memory is not None
    assert evaluation.parameters is not None
    held = {i.name: i.bytes * design.cluster.n_chips for i in evaluation.memory.items if i.kind == "weights"}
    groups = evaluation.parameters.groups
    assert held["feedforward weights"] == 2 * groups["feedforward"]
    assert held["embedding and output weights"] == 2 * groups["embedding"]
    model = design.model
    kv = model.n_layers * 2 * model.d_model * model.d_head
    assert held["attention weights"] == pytest.approx(
        2 * (groups["attention"] - kv) + 2 * kv * (64 if layout is FfnLayout.WEIGHT_STATIONARY_1D else 16)
    )


def array_costs(
    design: Design, batches: np.ndarray[Any, Any], bandwidths: np.ndarray[Any, Any]
) -> list[OpCost]:
    mesh = mesh_stage(design.cluster, design.model, design.plan.mesh)
    layout = layout_stage(design.model, design.workload, design.plan, mesh)
    rates, _ = rates_stage(design.cluster.chip, design.plan)
    sizes = {**bound_sizes(design.model, design.workload, mesh.sizes), "B": batches}
    levels = {
        axis: tuple(Level(v.axis, v.kind, v.size, bandwidths, v.latency) for v in found)
        for axis, found in mesh.network.levels.items()
    }
    return program_costs(layout.programs["block"], Sizes(sizes), rates, Network(levels))


@pytest.mark.parametrize("name", DENSE)
def test_that_arrays_of_designs_cost_the_same_as_single_ones(name: str) -> None:
    design = presets.load_design(name)
    batches = np.array([64, 128, 512, 1024])
    bandwidths = np.array([45e9, 90e9, 50e9, 1e11])
    many = array_costs(design, batches, bandwidths)
    for i, (batch, bandwidth) in enumerate(zip(batches, bandwidths, strict=True)):
        single = array_costs(design, np.array([batch]), np.array([bandwidth]))
        for a, b in zip(many, single, strict=True):
            for field in ("flops", "collective_bytes", "busy_s", "communication_s", "exposed_s"):
                left, right = (
                    np.broadcast_to(getattr(a, field), 4)[i],
                    np.broadcast_to(getattr(b, field), 1)[0],
                )
                assert left == pytest.approx(right, rel=1e-12)


def codes(design: Design) -> dict[str, str]:
    return {d.code: d.path for d in evaluate(design).diagnostics}


def test_that_findings_name_the_field_they_concern() -> None:
    design = default()
    assert codes(replace_at(design, "model.d_ff", 73_730))["does_not_divide"] == "model.d_ff"
    assert (
        codes(replace_at(design, "workload.batch", 100_000))["out_of_memory"] == "cluster.chip.hbm_capacity"
    )
    assert codes(replace_at(design, "workload.batch", 4))["batch_partly_sharded"] == "workload.batch"
    assert codes(replace_at(design, "workload.batch", 6))["batch_not_sharded"] == "workload.batch"
    assert (
        codes(replace_at(design, "workload.output_length", 0))["decode_without_output"]
        == "workload.output_length"
    )
    assert (
        codes(replace_at(design, "workload.latency_target", "1 ms"))["above_target"]
        == "workload.latency_target"
    )
    assert codes(replace_at(design, "plan.mesh", {"x": ["w"]}))["mesh_axis_unknown"] == "plan.mesh.x"
    assert (
        codes(replace_at(design, "cluster.topology.shape", [4, 4, 5]))["slice_unavailable"]
        == "cluster.topology.shape"
    )
    unpadded = design.replace(model=presets.load_model("palm-540b"))
    assert codes(unpadded)["heads_replicated"] == "model.n_heads"
    gathered = replace_at(design, "plan.ffn_layout", "weight_gathered_xyz")
    assert codes(replace_at(gathered, "workload.batch", 32))["does_not_divide"] == "workload.batch"


@pytest.mark.parametrize("name", DENSE)
def test_that_the_longest_context_fits_and_one_token_more_does_not(name: str) -> None:
    design = presets.load_design(name)
    design = design.replace(model=design.model.replace(max_context=0))
    longest = evaluate(design).value("max_context")
    assert longest is not None
    held = design.workload.max_context

    def fits(context: float) -> bool:
        """Grow the cache alone, through output that no step of a prefill sees."""
        memory = evaluate(design).memory
        assert memory is not None
        kv = next(item.bytes for item in memory.items if item.kind == "kv")
        return memory.per_chip_bytes + kv / held * (context - held) <= memory.capacity_bytes

    assert fits(longest)
    assert not fits(longest + 1)


def test_that_the_longest_context_is_none_where_nothing_is_left_and_never_above_the_model() -> None:
    llama = presets.load_design("llama-3.1-70b-h100")
    assert evaluate(replace_at(llama, "workload.batch", 1)).value("max_context") == llama.model.max_context
    assert evaluate(llama.replace(model=presets.load_model("llama-3.1-405b"))).value("max_context") == 0


def test_that_a_wrong_mesh_gives_no_time_and_no_memory() -> None:
    evaluation = evaluate(replace_at(default(), "plan.mesh", {"x": ["x"], "y": ["x"], "z": ["z"]}))
    assert {d.code for d in evaluation.diagnostics} >= {"mesh_axis_reused", "mesh_axis_unused"}
    assert evaluation.time is None
    assert evaluation.memory is None
    assert set(evaluation.quantities) == {"parameters_total", "parameters_active", "kv_bytes_per_token"}


def test_that_a_dimension_that_does_not_divide_says_which_sizes_would() -> None:
    found = evaluate(replace_at(default(), "model.d_ff", 73_730)).diagnostics
    diagnostic = next(d for d in found if d.code == "does_not_divide")
    assert diagnostic.message == "d_ff (F) = 73730 does not divide by xyz = 64"
    assert "73728 and 73792" in diagnostic.hint


@pytest.mark.parametrize("name", presets.names("designs"))
def test_that_every_key_has_a_card(name: str) -> None:
    evaluation = evaluate(presets.load_design(name))
    keys = [*evaluation.quantities]
    keys += [f"op/{op.program}/{op.index}" for op in (evaluation.time.ops if evaluation.time else ())]
    keys += [f"memory/{item.name}" for item in (evaluation.memory.items if evaluation.memory else ())]
    keys += [
        f"parameters/{group}" for group in (evaluation.parameters.groups if evaluation.parameters else ())
    ]
    for program_name, program in evaluation.programs.items():
        keys += [
            f"tensor/{program_name}/{t.name}" for t in (*program.inputs, *program.weights, *program.caches)
        ]
        keys += [f"tensor/{program_name}/{op.output.name}" for op in program.ops]
    for key in keys:
        card = evaluation.explain(key)
        assert card is not None, key
        assert card.formula.expression, key
        assert card.formula.source, key
        assert card.text, key


@pytest.mark.parametrize(
    "key", ["", "nothing", "op/block/999", "op/nowhere/0", "tensor/block/none", "memory/none"]
)
def test_that_an_unknown_key_has_no_card(key: str) -> None:
    assert evaluate(default()).explain(key) is None


def test_that_cards_and_budgets_agree() -> None:
    evaluation = evaluate(default())
    assert evaluation.time is not None
    assert evaluation.memory is not None
    collectives = [op for op in evaluation.time.ops if op.kind not in ("einsum", "local")]
    cards = [evaluation.explain(f"op/{op.program}/{op.index}") for op in collectives]
    assert sum(c.value for c in cards if c) == pytest.approx(evaluation.time.communication_s)
    items = [evaluation.explain(f"memory/{i.name}") for i in evaluation.memory.items]
    assert sum(i.value for i in items if i) == pytest.approx(evaluation.memory.per_chip_bytes)


def test_that_concurrent_evaluations_agree() -> None:
    variants = [replace_at(default(), "workload.batch", 64 * n) for n in range(1, 40)] * 3

    def latency(design: Design) -> float | None:
        return evaluate(design).value("latency_s")

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(latency, variants))
    assert together == [latency(d) for d in variants]


def test_that_an_unexpected_failure_becomes_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Evaluation:
        raise RuntimeError("broken")

    monkeypatch.setattr(sys.modules["model_core.evaluate"], "mesh_stage", fail)
    (diagnostic,) = evaluate(default()).diagnostics
    assert diagnostic.code == "internal"
    assert "broken" in diagnostic.message


def test_that_a_notebook_shows_a_table() -> None:
    html = evaluate(default().replace(name="<script>"))._repr_html_()
    assert "<script>" not in html
    assert "MFU" in html
