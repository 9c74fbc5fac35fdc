"""Blocks with latent attention and experts run chip by chip, against a plain reference and the cost reader."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from model_core.hardware.expert_traffic import Choice, Copies, ExpertRates, copies_per_token
from model_core.hardware.network import Level, Network
from model_core.partition.cost import Rates, program_costs
from model_core.partition.execute import Execution, VirtualMesh, execute
from model_core.partition.execute_experts import route
from model_core.partition.expert_layers import (
    dense_block_program,
    expert_block_program,
    expert_embedding_program,
    expert_logits_program,
)
from model_core.partition.program import Collective, LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.partition.structure_experts import ExpertStructure, expert_structure
from model_core.spec import DispatchMode, MlaSpec, ModelSpec, MoeSpec, Phase, PlanSpec
from tests.unit import dense_reference, expert_reference
from tests.unit.test_execute import BYTES, random_values

Array = NDArray[Any]
WIDTHS = {**BYTES, Role.DISPATCHED: 1, Role.ROUTING: 4}
MLA = MlaSpec(q_lora_rank=12, kv_lora_rank=10, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5)
MOE = MoeSpec(n_routed_experts=16, n_shared_experts=1, n_experts_per_token=3, d_ff_expert=7, gate_bias=True)


def small(mla: MlaSpec | None = MLA, moe: MoeSpec | None = MOE, **changes: Any) -> ModelSpec:
    fields: dict[str, Any] = {
        "name": "small", "n_layers": 2, "d_model": 16, "d_ff": 24, "n_heads": 8, "n_kv_heads": 8,
        "d_head": 10, "vocab_size": 32, "mla": mla, "moe": moe,
    }  # fmt: skip
    return ModelSpec(**{**fields, **changes})


def network(mesh: dict[str, int], inner: str) -> Network:
    return Network(
        {a: (Level(a, "switch" if a in inner else "network", n, 1e9, 1e-6),) for a, n in mesh.items()}
    )


def sizes_for(
    model: ModelSpec,
    mesh: dict[str, int],
    batch: int,
    length: int,
    past: int,
    slots: int = 16,
    shared: int = 0,
) -> dict[str, int]:
    mla, moe = model.mla or MLA, model.moe or MOE
    return {
        "B": batch, "L": length, "P": past, "M": past + length, "E": model.d_model, "F": model.d_ff,
        "H": model.n_heads, "K": model.n_kv_heads, "G": model.n_heads // model.n_kv_heads,
        "D": mla.qk_nope_head_dim + mla.qk_rope_head_dim if model.mla else model.d_head,
        "V": model.vocab_size, "S": 1, "Q": mla.q_lora_rank or 0, "C": mla.kv_lora_rank,
        "N": mla.qk_nope_head_dim, "R": mla.qk_rope_head_dim, "U": mla.v_head_dim,
        "Y": moe.n_routed_experts, "X": slots, "T": batch * length, "I": moe.d_ff_expert,
        "J": moe.d_ff_expert * moe.n_shared_experts, "topk": moe.n_experts_per_token, "shared_slots": shared,
        **mesh,
    }  # fmt: skip


def double(values: dict[str, Array]) -> dict[str, Array]:
    return {name: value.astype(np.float64) for name, value in values.items()}


def virtual(structure: ExpertStructure, mesh: dict[str, int]) -> VirtualMesh:
    live = structure.mesh_axes
    return VirtualMesh(live, tuple(mesh[a] for a in live))


def with_copies(model: ModelSpec, values: dict[str, Array], slots: int, shared: int) -> dict[str, Array]:
    """Give the slots of an expert's copies the expert's weights."""
    moe = model.moe
    assert moe is not None
    changed = dict(values)
    for name in ("W_in", "W_gate.2", "W_out"):
        if name in values and values[name].ndim == 3:
            held = values[name].copy()
            for slot in range(moe.n_routed_experts, slots - shared):
                held[slot] = held[slot % moe.n_routed_experts]
            held[slots - shared :] = held[slots - shared : slots - shared + 1]
            changed[name] = held
    return changed


def check_collectives(program: LayerProgram, run: Execution, sizes: dict[str, int], net: Network) -> None:
    """The cost reader's bytes of everything but dispatch and combine are those that were received."""
    rates = Rates(1e12, 1e12, 1e12, WIDTHS, experts=ExpertRates(Copies(1, 1), 1, 2))
    costs = program_costs(program, Sizes(sizes), rates, net)
    for index, op in program.collectives():
        if op.routing is None:
            counted = run.received[index] * WIDTHS[op.output.role]
            assert counted == pytest.approx(costs[index].collective_bytes, rel=1e-12)


def latent_cache(values: dict[str, Array]) -> tuple[Array, Array]:
    return values["latent cache"], values["rotary key cache"]


def plain_attention(model: ModelSpec, x: Array, values: dict[str, Array]) -> Array:
    normed = expert_reference.rms_norm(x, values["scale"])
    if model.mla is not None:
        return x + expert_reference.latent_attention(model, normed, values, *latent_cache(values))
    shape = (*values["key cache"].shape[:2], model.n_kv_heads, model.d_head)
    caches = (values["key cache"].reshape(shape), values["value cache"].reshape(shape))
    return x + dense_reference.attention(model, normed, values, *caches)


def plain_experts(model: ModelSpec, x: Array, values: dict[str, Array], slots: int, shared: int) -> Array:
    moe = model.moe
    assert moe is not None
    normed = expert_reference.rms_norm(x, values["scale.2"])
    gates = values.get("W_gate.2")
    experts = [
        (values["W_in"][e], None if gates is None else gates[e], values["W_out"][e]) for e in range(slots)
    ]
    out = x + expert_reference.routed_experts(
        model, normed, values["W_gate"], values.get("gate bias"), experts
    )
    if shared:
        out = out + expert_reference.feedforward(model, normed, *experts[slots - 1])
    elif moe.n_shared_experts:
        gate = values["W_gate.3"] if model.gated_ffn else None
        out = out + expert_reference.feedforward(model, normed, values["W_in.2"], gate, values["W_out.2"])
    return out


def run_expert_block(
    model: ModelSpec, plan: PlanSpec, phase: Phase, mesh: dict[str, int], batch: int, length: int, past: int,
    slots: int = 16, shared: int = 0, inner: str = "z",
) -> tuple[LayerProgram, Execution]:  # fmt: skip
    net = network(mesh, inner)
    structure = expert_structure(model, plan, phase, mesh, net)
    program = expert_block_program(structure, str(phase))
    sizes = sizes_for(model, mesh, batch, length, past, slots, shared)
    values = with_copies(model, double(random_values(program, sizes)), slots, shared)
    run = execute(program, virtual(structure, mesh), sizes, values)
    expected = plain_experts(model, plain_attention(model, values["x"], values), values, slots, shared)
    np.testing.assert_allclose(run.whole(program.outputs[0]), expected, rtol=1e-8, atol=1e-10)
    check_collectives(program, run, sizes, net)
    return program, run


MESHES = [
    {"x": 2, "y": 1, "z": 2},
    {"x": 1, "y": 2, "z": 4},
    {"x": 2, "y": 2, "z": 1},
    {"x": 1, "y": 1, "z": 1},
]


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
@pytest.mark.parametrize("mode", list(DispatchMode))
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_that_a_block_of_experts_equals_the_plain_one(
    phase: Phase, mode: DispatchMode, mesh: dict[str, int]
) -> None:
    length, past = (4, 3) if phase is Phase.PREFILL else (1, 5)
    run_expert_block(small(), PlanSpec(dispatch_mode=mode), phase, mesh, 8, length, past)


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
def test_that_redundant_and_shared_slots_change_no_result(phase: Phase) -> None:
    plan = PlanSpec(redundant_experts=8, shared_expert_as_routed=True)
    length = 4 if phase is Phase.PREFILL else 1
    run_expert_block(small(), plan, phase, {"x": 2, "y": 1, "z": 2}, 8, length, 2, slots=24, shared=4)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_that_random_shapes_equal_the_plain_block(data: st.DataObject) -> None:
    mesh = {axis: data.draw(st.sampled_from([1, 2])) for axis in "xy"} | {
        "z": data.draw(st.sampled_from([1, 2, 4]))
    }
    phase = data.draw(st.sampled_from([Phase.PREFILL, Phase.DECODE]))
    mla = data.draw(st.sampled_from([None, MLA, MLA.replace(q_lora_rank=None)]))
    moe = MoeSpec(
        n_routed_experts=16,
        n_shared_experts=data.draw(st.integers(0, 2)),
        n_experts_per_token=data.draw(st.integers(1, 4)),
        d_ff_expert=data.draw(st.integers(1, 9)),
        gate_bias=data.draw(st.booleans()),
    )
    model = small(
        mla,
        moe,
        n_kv_heads=data.draw(st.sampled_from([1, 2, 8])),
        gated_ffn=data.draw(st.booleans()),
        d_head=8,
    )
    plan = PlanSpec(dispatch_mode=data.draw(st.sampled_from(list(DispatchMode))))
    slots = 16 + data.draw(st.sampled_from([0, 16]))
    length = 4 if phase is Phase.PREFILL else 1
    run_expert_block(
        model,
        plan,
        phase,
        mesh,
        16,
        length,
        data.draw(st.integers(0, 3)),
        slots,
        inner=data.draw(st.sampled_from(["", "z", "yz"])),
    )


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_that_absorbed_and_expanded_attention_give_equal_results(mesh: dict[str, int]) -> None:
    """DeepSeek-V2 report, 2.1.2: W_UK can be absorbed into the queries and W_UV into the output."""
    results = []
    for phase in (Phase.DECODE, Phase.PREFILL):
        structure = expert_structure(small(), PlanSpec(), phase, {"x": 1, "y": 1, "z": 1}, network(mesh, ""))
        program = dense_block_program(structure, str(phase))
        sizes = sizes_for(small(), {}, 8, 1, 5)
        whole = double(random_values(program, sizes))
        results.append(execute(program, VirtualMesh("", ()), sizes, whole).whole(program.outputs[0]))
        structure = expert_structure(small(), PlanSpec(), Phase.DECODE, mesh, network(mesh, ""))
        split = dense_block_program(structure, "decode")
        results.append(execute(split, virtual(structure, mesh), sizes | mesh, whole).whole(split.outputs[0]))
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
@pytest.mark.parametrize("tensor_parallel", [False, True])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_that_dense_layers_equal_the_plain_ones(
    phase: Phase, tensor_parallel: bool, mesh: dict[str, int]
) -> None:
    plan, model, net = PlanSpec(dense_tensor_parallel=tensor_parallel), small(), network(mesh, "z")
    structure = expert_structure(model, plan, phase, mesh, net)
    program = dense_block_program(structure, str(phase))
    sizes = sizes_for(model, mesh, 8, 4 if phase is Phase.PREFILL else 1, 2)
    values = double(random_values(program, sizes))
    run = execute(program, virtual(structure, mesh), sizes, values)
    x = plain_attention(model, values["x"], values)
    normed = expert_reference.rms_norm(x, values["scale.2"])
    expected = x + expert_reference.feedforward(
        model, normed, values["W_in"], values["W_gate"], values["W_out"]
    )
    np.testing.assert_allclose(run.whole(program.outputs[0]), expected, rtol=1e-8, atol=1e-10)
    check_collectives(program, run, sizes, net)


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_that_embedding_and_logits_equal_the_plain_ones(phase: Phase, mesh: dict[str, int]) -> None:
    model, net = small(), network(mesh, "z")
    structure = expert_structure(model, PlanSpec(), phase, mesh, net)
    sizes = sizes_for(model, mesh, 8, 4 if phase is Phase.PREFILL else 1, 2)
    embedding = expert_embedding_program(structure)
    values = random_values(embedding, sizes)
    run = execute(embedding, virtual(structure, mesh), sizes, values)
    np.testing.assert_array_equal(run.whole(embedding.outputs[0]), values["table"][values["tokens"]])
    check_collectives(embedding, run, sizes, net)
    logits = expert_logits_program(structure)
    values = double(random_values(logits, sizes))
    run = execute(logits, virtual(structure, mesh), sizes, values)
    last = expert_reference.rms_norm(values["x"][:, -1], values["scale"])
    np.testing.assert_allclose(run.whole(logits.outputs[0]), last @ values["table"], rtol=1e-8, atol=1e-10)
    check_collectives(logits, run, sizes, net)


def test_that_every_token_returns_once_from_each_expert_that_it_visits() -> None:
    """With experts that return what they get, the weights of the routing are all that is left: their sum is one."""
    program, run = run_expert_block(small(), PlanSpec(), Phase.PREFILL, {"x": 2, "y": 1, "z": 2}, 4, 4, 0)
    weights = next(op.output for op in program.ops if op.output.role is Role.ROUTING)
    whole = run.whole(weights)
    assert np.all((whole != 0).sum(axis=-1) == MOE.n_experts_per_token)
    np.testing.assert_allclose(whole.sum(axis=-1), 1)
    arrived = next(op.output for op in program.ops if op.output.role is Role.DISPATCHED)
    held = run.whole(arrived)
    assert np.count_nonzero(np.abs(held).sum(axis=-1)) == 4 * 4 * MOE.n_experts_per_token


@pytest.mark.parametrize("mode", list(DispatchMode))
def test_that_the_copies_that_are_sent_agree_with_their_closed_form(mode: DispatchMode) -> None:
    """Random routing of 2,048 tokens on 4 nodes of 4 chips: closed form and count agree within 2%."""
    mesh = {"x": 4, "y": 1, "z": 4}
    model = small(moe=MOE.replace(n_routed_experts=64, gate_bias=False), d_model=64)
    net = network(mesh, "z")
    structure = expert_structure(model, PlanSpec(dispatch_mode=mode), Phase.PREFILL, mesh, net)
    program = expert_block_program(structure, "prefill")
    sizes = sizes_for(model, mesh, 64, 32, 0, slots=64) | {"T": 400}
    # Scores are the numbers of a random token itself, so that every expert is equally likely.
    even = {"W_gate": np.eye(64), "W_o": np.zeros((8, 5, 64)), "scale.2": np.ones(64)}
    run = execute(program, virtual(structure, mesh), sizes, random_values(program, sizes, 3) | even)
    dispatch = next(i for i, op in program.collectives() if op.routing is not None)
    tokens = 64 * 32
    total = run.received[dispatch] * 16 / model.d_model / tokens
    crossed = run.crossed / tokens
    expected = copies_per_token(Choice(64, 3), 4, 4, mode is DispatchMode.TWO_HOP)
    assert crossed == pytest.approx(expected.network, rel=0.02)
    assert total - crossed == pytest.approx(expected.inside, rel=0.02)


def test_that_results_go_back_the_way_that_tokens_came() -> None:
    program, run = run_expert_block(small(), PlanSpec(), Phase.PREFILL, {"x": 2, "y": 2, "z": 2}, 8, 4, 0)
    routed = [i for i, op in enumerate(program.ops) if isinstance(op, Collective) and op.routing is not None]
    assert len(routed) == 2
    assert run.received[routed[0]] == run.received[routed[1]] > 0


def test_that_a_token_chooses_by_score_and_bias_but_is_weighed_by_score() -> None:
    scores = np.array([[[2.0, 1.0, 0.0, -1.0]]])
    bias = np.array([0.0, 0.0, 0.0, 9.0])
    weights = route([scores, bias], {"Y": 4, "X": 4, "topk": 2})
    sigmoid = 1 / (1 + np.exp(-scores[0, 0]))
    np.testing.assert_allclose(weights[0, 0], [sigmoid[0], 0, 0, sigmoid[3]] / (sigmoid[0] + sigmoid[3]))
