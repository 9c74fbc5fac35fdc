"""Programs run chip by chip: equal to the plain block, and the bytes moved equal to the cost reader's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from model_core.hardware.network import Level, Network
from model_core.partition.cost import Rates, program_costs
from model_core.partition.execute import VirtualMesh, assemble, execute, scatter
from model_core.partition.layers import block_program, embedding_program, logits_program
from model_core.partition.notation import Sharding, ShardingError
from model_core.partition.program import LayerProgram, Role, Tensor
from model_core.partition.sizes import Sizes
from model_core.partition.structure import Structure, structure_of
from model_core.spec import AttentionSharding, BlockForm, FfnLayout, ModelSpec, PlanSpec
from tests.unit import dense_reference

Array = NDArray[Any]
BYTES = {Role.WEIGHT: 1, Role.ACTIVATION: 2, Role.KV: 2, Role.STATISTIC: 4, Role.TOKEN: 4, Role.ON_CHIP: 2}


def small_model(**changes: Any) -> ModelSpec:
    fields: dict[str, Any] = {
        "name": "small", "n_layers": 1, "d_model": 32, "d_ff": 64, "n_heads": 8, "n_kv_heads": 1,
        "d_head": 8, "vocab_size": 64,
    }  # fmt: skip
    return ModelSpec(**{**fields, **changes})


def sizes_of(model: ModelSpec, mesh: dict[str, int], batch: int, length: int, past: int) -> dict[str, int]:
    return {
        "B": batch, "L": length, "P": past, "M": past + length, "E": model.d_model, "F": model.d_ff,
        "H": model.n_heads, "K": model.n_kv_heads, "G": model.n_heads // model.n_kv_heads, "D": model.d_head,
        "V": model.vocab_size, "S": 2 if model.norm == "layernorm" else 1, **mesh,
    }  # fmt: skip


def random_values(program: LayerProgram, sizes: dict[str, int], seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)

    def array(tensor: Tensor) -> Array:
        shape = [sizes[d] for d in tensor.sharding.dims]
        if tensor.role is Role.TOKEN:
            return rng.integers(0, sizes["V"], shape)
        return rng.normal(size=shape).astype(np.float32) / np.float32(np.sqrt(shape[0]))

    return {t.name: array(t) for t in (*program.inputs, *program.weights, *program.caches)}


def predicted_bytes(program: LayerProgram, sizes: dict[str, int]) -> dict[int, float]:
    levels = {a: (Level(a, "ring", sizes[a], 1e9, 1e-6),) for a in program.mesh_axes}
    costs = program_costs(program, Sizes(sizes), Rates(1e12, 1e12, 1e12, BYTES), Network(levels))
    return {i: costs[i].collective_bytes for i, _ in program.collectives()}


def check_bytes(program: LayerProgram, received: dict[int, float], sizes: dict[str, int]) -> None:
    counted = {i: received[i] * BYTES[op.output.role] for i, op in program.collectives()}
    expected = predicted_bytes(program, sizes)
    assert counted.keys() == expected.keys()
    for index, value in expected.items():
        assert counted[index] == pytest.approx(value, rel=1e-12)


def run_block(
    model: ModelSpec, plan: PlanSpec, mesh: dict[str, int], batch: int, length: int, past: int
) -> Structure:
    structure = structure_of(model, plan, batch, mesh)
    program = block_program(structure, "test")
    sizes = sizes_of(model, mesh, batch, length, past)
    values = random_values(program, sizes)
    live = structure.mesh_axes
    run = execute(program, VirtualMesh(live, tuple(mesh[a] for a in live)), sizes, values)
    kv_shape = (batch, past, model.n_kv_heads, model.d_head)
    expected = dense_reference.block(
        model, structure.parallel, values["x"].astype(np.float64), values,
        values["key cache"].reshape(kv_shape), values["value cache"].reshape(kv_shape),
    )  # fmt: skip
    np.testing.assert_allclose(run.whole(program.outputs[0]), expected, rtol=2e-4, atol=2e-5)
    check_bytes(program, run.received, sizes)
    return structure


MESHES = [
    {"x": 2, "y": 2, "z": 2},
    {"x": 4, "y": 2, "z": 1},
    {"x": 1, "y": 1, "z": 4},
    {"x": 2, "y": 4, "z": 2},
]


@pytest.mark.parametrize("layout", list(FfnLayout))
@pytest.mark.parametrize("sharding", list(AttentionSharding))
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_that_every_layout_equals_the_unsharded_block(
    layout: FfnLayout, sharding: AttentionSharding, mesh: dict[str, int]
) -> None:
    plan = PlanSpec(ffn_layout=layout, attention_sharding=sharding)
    run_block(small_model(parallel_block=True), plan, mesh, batch=16, length=1, past=5)


SIZE = st.sampled_from([1, 2, 4])


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_that_random_shapes_meshes_and_layouts_run_and_move_the_bytes_that_are_costed(
    data: st.DataObject,
) -> None:
    mesh = {axis: data.draw(SIZE) for axis in "xyz"}
    groups = data.draw(st.sampled_from([1, 2, 3, 4, 8]))
    kv_heads = data.draw(st.sampled_from([1, 2, 4]))
    model = small_model(
        d_model=64 * data.draw(st.sampled_from([1, 2])),
        d_ff=64 * data.draw(st.sampled_from([1, 3])),
        n_heads=groups * kv_heads,
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
    length = data.draw(st.integers(1, 3))
    batch = (
        64 * data.draw(st.sampled_from([1, 2]))
        if "gathered" in plan.ffn_layout
        else data.draw(st.integers(1, 9))
    )
    run_block(model, plan, mesh, batch, length, past=data.draw(st.integers(0, 3)))


@pytest.mark.parametrize("layout", list(FfnLayout))
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_that_embedding_and_logits_equal_the_unsharded_ones(layout: FfnLayout, mesh: dict[str, int]) -> None:
    model = small_model()
    structure = structure_of(model, PlanSpec(ffn_layout=layout), 16, mesh)
    sizes = sizes_of(model, mesh, 16, 3, 0)
    live = structure.mesh_axes
    virtual = VirtualMesh(live, tuple(mesh[a] for a in live))
    embedding = embedding_program(structure)
    values = random_values(embedding, sizes)
    run = execute(embedding, virtual, sizes, values)
    np.testing.assert_array_equal(run.whole(embedding.outputs[0]), values["table"][values["tokens"]])
    check_bytes(embedding, run.received, sizes)
    logits = logits_program(structure)
    values = random_values(logits, sizes)
    run = execute(logits, virtual, sizes, values)
    last = dense_reference.norm(model, values["x"][:, -1], values["scale"])
    np.testing.assert_allclose(run.whole(logits.outputs[0]), last @ values["table"], rtol=1e-4, atol=1e-5)
    check_bytes(logits, run.received, sizes)


def test_that_a_chip_holds_exactly_the_shape_that_the_notation_gives() -> None:
    mesh = VirtualMesh("xyz", (2, 2, 2))
    sharding = Sharding.parse("E_xF_zy")
    shards = scatter(np.arange(8 * 12).reshape(8, 12), sharding, mesh)
    sizes = {"E": 8, "F": 12, "x": 2, "y": 2, "z": 2}
    assert {s.shape for s in shards.values()} == {sharding.per_chip_shape(sizes)}
    assert sum(s.size for s in shards.values()) == 8 * 12


def test_that_differing_replicas_are_reported() -> None:
    mesh = VirtualMesh("x", (2,))
    shards: dict[tuple[int, ...], Array] = {(0,): np.zeros(4), (1,): np.ones(4)}
    with pytest.raises(ShardingError, match="replicas of E differ"):
        assemble(shards, Sharding.parse("E"), mesh)
