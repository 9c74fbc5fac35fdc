"""Pipeline-parallel inference: stages, microbatches, memory and what does not divide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import presets
from model_core import Design, Evaluation, evaluate
from model_core.partition.pipeline import critical_counts
from model_core.spec import MeshPlan, NodeTopology, replace_at

SMALL = st.integers(1, 200)


def single() -> Design:
    """One node, tensor parallel, at peak rates."""
    design = presets.load_design("llama-3.1-70b-h100")
    return replace_at(design, "plan.calibration", "none")


def staged(nodes: int = 2, **plan: object) -> Design:
    """The same with a stage on each of some nodes."""
    design = single()
    topology = design.cluster.topology
    assert isinstance(topology, NodeTopology)
    design = replace_at(design, "cluster.topology", topology.replace(n_nodes=nodes))
    return design.replace(plan=design.plan.replace(mesh=MeshPlan(pipeline=("ib",)), **plan))


def step(evaluation: Evaluation) -> float:
    assert evaluation.time is not None
    return evaluation.time.step_s


def item(evaluation: Evaluation, name: str) -> float:
    assert evaluation.memory is not None
    return next(i.bytes for i in evaluation.memory.items if i.name == name)


def codes(design: Design) -> set[str]:
    return {d.code for d in evaluate(design).diagnostics}


def test_that_one_microbatch_takes_the_sum_of_the_stages() -> None:
    """Without microbatches a pipeline only adds the messages between its stages."""
    one, two = evaluate(single()), evaluate(staged())
    assert two.time is not None
    (send,) = [op for op in two.time.ops if op.kind == "send"]
    assert send.count == 1
    assert step(two) == pytest.approx(step(one) + send.total_s)
    assert send.communication_s == pytest.approx(
        send.collective_bytes / two.design.cluster.topology.nic_bandwidth  # type: ignore[union-attr]
        + two.design.cluster.topology.nic_latency  # type: ignore[union-attr]
    )


def test_that_a_stage_holds_its_layers_and_their_cache() -> None:
    one, two = evaluate(single()), evaluate(staged())
    for name in ("feedforward weights", "attention weights", "KV cache"):
        assert item(two, name) == pytest.approx(item(one, name) / 2)
    longest = [e.value("max_context_of_share") for e in (one, two)]
    assert longest[0] is not None
    assert longest[1] is not None
    assert longest[1] == pytest.approx(2 * longest[0], abs=1)


def test_that_microbatches_keep_the_cache_of_the_whole_batch() -> None:
    assert item(evaluate(staged(microbatches=4)), "KV cache") == item(evaluate(staged()), "KV cache")


def test_that_microbatches_shorten_a_prefill() -> None:
    """With m microbatches S stages take (m + S - 1) times the stage time of one of them."""
    prefill = {"workload.phase": "prefill", "workload.batch": 64}
    designs = [staged(2), staged(2, microbatches=8)]
    for path, value in prefill.items():
        designs = [replace_at(design, path, value) for design in designs]
    whole, parted = (step(evaluate(design)) for design in designs)
    assert parted < whole
    assert parted > 0.5 * whole


def test_that_layers_and_batches_that_do_not_divide_are_named() -> None:
    assert "pipeline_uneven" in codes(staged(3))
    assert "pipeline_uneven" not in codes(staged(2))
    assert "pipeline_too_long" in codes(replace_at(staged(3), "model.n_layers", 2))
    assert "microbatches_uneven" in codes(staged(2, microbatches=3))


def test_that_the_axis_of_a_pipeline_takes_no_part_in_the_layouts() -> None:
    evaluation = evaluate(staged())
    assert {axis: evaluation.sizes[axis] for axis in "xyz"} == {"x": 1, "y": 1, "z": 8}
    by_hand = staged().replace(plan=staged().plan.replace(mesh=MeshPlan(z=("nvlink",), pipeline=("ib",))))
    assert step(evaluate(by_hand)) == step(evaluation)


@pytest.mark.parametrize(
    ("mesh", "code"),
    [
        (MeshPlan(y=("ib",), z=("nvlink",), pipeline=("ib",)), "mesh_axis_reused"),
        (MeshPlan(pipeline=("moon",)), "mesh_axis_unknown"),
        (MeshPlan(z=("nvlink",)), "mesh_axis_unused"),
    ],
)
def test_that_a_wrong_pipeline_axis_is_named(mesh: MeshPlan, code: str) -> None:
    design = staged()
    assert code in codes(design.replace(plan=design.plan.replace(mesh=mesh)))


def test_that_a_torus_axis_can_hold_stages() -> None:
    design = replace_at(presets.load_design("palm-540b-decode-low-latency"), "model.n_layers", 120)
    design = replace_at(design, "plan.mesh", MeshPlan(pipeline=("z",)))
    evaluation = evaluate(design)
    assert evaluation.sizes["x"] * evaluation.sizes["y"] * evaluation.sizes["z"] == 16
    assert evaluation.ok
    card = evaluation.explain("op/pipeline/0")
    assert card is not None
    assert card.value > 0


@given(SMALL, st.integers(1, 16), st.integers(1, 16))
def test_that_the_critical_path_is_that_of_a_linear_pipeline(layers: int, stages: int, parts: int) -> None:
    """Simulate the stages: each microbatch enters one when it has left the one before and that is free."""
    counts = critical_counts(layers, stages, parts)
    full, spare = -(-layers // stages), -(-layers // stages) * stages - layers
    sizes = [full] * (stages - spare) + [full - 1] * spare if layers >= stages else None
    if sizes is None:
        return
    free = [0] * stages
    for _ in range(parts):
        ready = 0
        for stage, size in enumerate(sizes):
            ready = max(ready, free[stage]) + size
            free[stage] = ready
    assert counts.block == free[-1]
    assert counts.sends == (0 if stages == 1 else stages - 1 + parts - 1)


def test_that_counts_take_arrays() -> None:
    layers, stages, parts = np.array([80, 81, 7]), np.array([1, 2, 4]), np.array([1, 3, 2])
    together = critical_counts(layers, stages, parts)
    for i in range(3):
        single_counts = critical_counts(int(layers[i]), int(stages[i]), int(parts[i]))
        assert together.block[i] == single_counts.block
        assert together.sends[i] == single_counts.sends
