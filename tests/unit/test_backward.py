"""The derived backward pass, run chip by chip, against finite differences of the unsharded block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from model_core.partition.backward import Backward, Recompute, backward, recompute_gathers, recompute_nothing
from model_core.partition.execute import Execution, VirtualMesh, execute
from model_core.partition.layers import block_program
from model_core.partition.program import Collective, CollectiveKind, Einsum, LayerProgram
from model_core.partition.structure import structure_of
from model_core.spec import AttentionSharding, BlockForm, FfnLayout, ModelSpec, PlanSpec
from tests.unit import dense_reference
from tests.unit.test_execute import MESHES, check_bytes, random_values, sizes_of, small_model

Array = NDArray[Any]


def training_program(model: ModelSpec, plan: PlanSpec, mesh: dict[str, int], batch: int) -> LayerProgram:
    return block_program(structure_of(model, plan, batch, mesh), "training")


def run_backward(
    program: LayerProgram, passes: Backward, virtual: VirtualMesh, sizes: dict[str, int], values: dict[str, Array],
    seed_gradient: Array,
) -> tuple[Execution, Execution]:  # fmt: skip
    """Run forward, then both halves, handing on exactly what the halves say they keep and pass."""
    forward = execute(program, virtual, sizes, values)
    kept = {t.name: forward.tensors[t.name] for t in passes.saved}
    weights = {t.name: values[t.name] for t in program.weights}
    seeds = {f"d {program.outputs[0].name}": seed_gradient}
    inward = execute(passes.input_gradient, virtual, sizes, {**kept, **weights, **seeds})
    handed = {t.name: inward.tensors[t.name] for t in passes.passed}
    outward = execute(passes.weight_gradient, virtual, sizes, {**kept, **weights, **handed})
    return inward, outward


def plain_loss(model: ModelSpec, parallel: bool, values: dict[str, Array], gradient: Array) -> float:
    batch, kv = values["x"].shape[0], (model.n_kv_heads, model.d_head)
    empty = np.zeros((batch, 0, *kv))
    return float(np.sum(gradient * dense_reference.block(model, parallel, values["x"], values, empty, empty)))


def check_gradients(
    model: ModelSpec,
    plan: PlanSpec,
    mesh: dict[str, int],
    batch: int,
    recompute: Recompute = recompute_nothing,
) -> Backward:
    structure = structure_of(model, plan, batch, mesh)
    program = block_program(structure, "training")
    length = 3
    sizes = {**sizes_of(model, mesh, batch, length, 0), "M": length}
    values = {name: value.astype(np.float64) for name, value in random_values(program, sizes).items()}
    live = structure.mesh_axes
    virtual = VirtualMesh(live, tuple(mesh[a] for a in live))
    rng = np.random.default_rng(1)
    seed_gradient = rng.normal(size=values["x"].shape)
    passes = backward(program, recompute)
    inward, outward = run_backward(program, passes, virtual, sizes, values, seed_gradient)
    gradients = {"x": inward.whole(passes.input_gradient.outputs[0])}
    for tensor, output in zip(program.weights, passes.weight_gradient.outputs, strict=True):
        gradients[tensor.name] = outward.whole(output)
    for name, gradient in gradients.items():
        direction, step = rng.normal(size=values[name].shape), 1e-6
        moved = [{**values, name: values[name] + sign * step * direction} for sign in (1, -1)]
        losses = [plain_loss(model, structure.parallel, v, seed_gradient) for v in moved]
        slope = (losses[0] - losses[1]) / (2 * step)
        assert float(np.sum(gradient * direction)) == pytest.approx(slope, rel=2e-5, abs=1e-6), name
    check_bytes(passes.input_gradient, inward.received, sizes)
    check_bytes(passes.weight_gradient, outward.received, sizes)
    return passes


@pytest.mark.parametrize("layout", list(FfnLayout))
@pytest.mark.parametrize("sharding", list(AttentionSharding))
@pytest.mark.parametrize("mesh", MESHES[:3], ids=str)
def test_that_gradients_of_every_layout_equal_finite_differences(
    layout: FfnLayout, sharding: AttentionSharding, mesh: dict[str, int]
) -> None:
    plan = PlanSpec(ffn_layout=layout, attention_sharding=sharding)
    check_gradients(small_model(parallel_block=True), plan, mesh, batch=16)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_that_gradients_of_random_blocks_equal_finite_differences(data: st.DataObject) -> None:
    mesh = {axis: data.draw(st.sampled_from([1, 2, 4])) for axis in "xyz"}
    kv_heads = data.draw(st.sampled_from([1, 2, 4]))
    model = small_model(
        d_model=64,
        n_heads=kv_heads * data.draw(st.sampled_from([1, 3, 4])),
        n_kv_heads=kv_heads,
        d_head=64,
        gated_ffn=data.draw(st.booleans()),
        norm=data.draw(st.sampled_from(["rmsnorm", "layernorm"])),
    )
    plan = PlanSpec(
        ffn_layout=data.draw(st.sampled_from(list(FfnLayout))),
        attention_sharding=data.draw(st.sampled_from(list(AttentionSharding))),
        block=data.draw(st.sampled_from([BlockForm.SERIAL, BlockForm.PARALLEL])),
    )
    batch = 64 if "gathered" in plan.ffn_layout else data.draw(st.integers(1, 4))
    check_gradients(
        model, plan, mesh, batch, data.draw(st.sampled_from([recompute_nothing, recompute_gathers]))
    )


def test_that_gathering_again_keeps_less_and_sends_more() -> None:
    plan, mesh = PlanSpec(ffn_layout=FfnLayout.WEIGHT_STATIONARY_1D), {"x": 1, "y": 1, "z": 4}
    model = small_model(n_kv_heads=8)
    kept = check_gradients(model, plan, mesh, 4)
    again = check_gradients(model, plan, mesh, 4, recompute_gathers)

    def gathers(passes: Backward) -> int:
        programs = (passes.input_gradient, passes.weight_gradient)
        return sum(op.kind is CollectiveKind.ALL_GATHER for p in programs for _, op in p.collectives())

    assert gathers(again) > gathers(kept)
    assert {t.sharding.axes_of("E") for t in again.saved if t.sharding.dims == "BLE"} >= {"z"}


def test_that_every_collective_has_its_dual() -> None:
    """Pope A.1, Korthikanti 2022: the backward of an all-gather is a reduce-scatter and the other way round."""
    program = training_program(small_model(n_kv_heads=8), PlanSpec(), MESHES[0], 4)
    passes = backward(program)

    def count(of: LayerProgram, kind: CollectiveKind) -> int:
        return sum(op.kind is kind for op in of.ops if isinstance(op, Collective))

    gather, scatter = CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER
    assert count(passes.input_gradient, gather) == count(program, scatter)
    assert count(passes.input_gradient, scatter) == count(program, gather)


def test_that_the_backward_pass_has_twice_the_products_of_weights() -> None:
    program = training_program(small_model(), PlanSpec(), MESHES[0], 4)
    passes = backward(program)
    products = [op for op in program.ops if isinstance(op, Einsum)]
    of_weights = [op for op in products if op.right.group]
    outward = [op for op in passes.weight_gradient.ops if isinstance(op, Einsum)]
    assert len(outward) == len(of_weights)
    recomputed = 1
    inward = [op for op in passes.input_gradient.ops if isinstance(op, Einsum)]
    assert len(inward) == len(of_weights) + 2 * (len(products) - len(of_weights)) + recomputed
