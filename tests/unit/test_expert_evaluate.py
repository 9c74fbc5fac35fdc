"""Designs with experts and latent attention: weights and FLOPs add up to the model's, any shape evaluates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import presets
from model_core import Design, evaluate
from model_core.explain import tensors
from model_core.spec import MeshPlan, MlaSpec, ModelSpec, MoeSpec, Phase, replace_at

SHAPES: dict[str, dict[str, Any]] = {
    "Mixtral 8x7B": {
        "n_layers": 32, "d_model": 4096, "d_ff": 14336, "n_heads": 32, "n_kv_heads": 8, "d_head": 128,
        "vocab_size": 32000, "moe": MoeSpec(n_routed_experts=8, n_experts_per_token=2, d_ff_expert=14336),
    },
    "Qwen3 30B-A3B": {
        "n_layers": 48, "d_model": 2048, "d_ff": 6144, "n_heads": 32, "n_kv_heads": 4, "d_head": 128,
        "vocab_size": 151936, "moe": MoeSpec(n_routed_experts=128, n_experts_per_token=8, d_ff_expert=768),
    },
    "DeepSeek-V2-Lite": {
        "n_layers": 27, "d_model": 2048, "d_ff": 10944, "n_heads": 16, "n_kv_heads": 16, "d_head": 192,
        "vocab_size": 102400,
        "mla": MlaSpec(kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128),
        "moe": MoeSpec(
            n_routed_experts=64, n_shared_experts=2, n_experts_per_token=6, d_ff_expert=1408, n_dense_layers=1
        ),
    },
    "latent, dense": {
        "n_layers": 4, "d_model": 1024, "d_ff": 4096, "n_heads": 16, "n_kv_heads": 16, "d_head": 96,
        "vocab_size": 32000,
        "mla": MlaSpec(
            q_lora_rank=512, kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64
        ),
    },
}  # fmt: skip


def model(shape: str) -> ModelSpec:
    return ModelSpec(name=shape, **SHAPES[shape])


def on_nodes(shape: ModelSpec, nodes: int, gpus: int, **changes: Any) -> Design:
    design = presets.load_design("deepseek-v3-decode").replace(model=shape)
    plain = {
        "cluster.topology.n_nodes": nodes, "cluster.topology.chips_per_node": gpus, "plan.mesh": None,
        "plan.redundant_experts": 0, "plan.shared_expert_as_routed": False, "plan.overlap_microbatches": False,
        "plan.calibration": "none", "workload.batch": 16 * nodes * gpus,
    }  # fmt: skip
    for path, value in {**plain, **{p.replace("__", "."): v for p, v in changes.items()}}.items():
        design = replace_at(design, path, value)
    return design


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
@pytest.mark.parametrize("shape", [*SHAPES, "DeepSeek-V3"])
def test_that_weights_on_one_chip_are_the_parameters_of_the_model(shape: str, phase: Phase) -> None:
    found = presets.load_model("deepseek-v3") if shape == "DeepSeek-V3" else model(shape)
    evaluation = evaluate(on_nodes(found, 1, 1, workload__phase=phase, plan__weight_dtype="int8"))
    assert evaluation.memory is not None
    assert evaluation.parameters is not None
    weights = sum(item.bytes for item in evaluation.memory.items if item.kind == "weights")
    assert weights == evaluation.parameters.total


@pytest.mark.parametrize("shape", [*SHAPES, "DeepSeek-V3"])
def test_that_flops_in_prefill_are_two_for_every_active_parameter_and_token(shape: str) -> None:
    """Beside those of the scores; the embedding is looked up, and logits are of the last token alone."""
    found = presets.load_model("deepseek-v3") if shape == "DeepSeek-V3" else model(shape)
    design = on_nodes(found, 1, 1, workload__phase="prefill", workload__batch=4, workload__input_length=2048)
    evaluation = evaluate(replace_at(design, "plan.calibration", "none"))
    assert evaluation.time is not None
    assert evaluation.parameters is not None
    counted, scores = 0.0, 0.0
    for op in evaluation.time.ops:
        made = evaluation.programs[op.program].ops[op.index]
        touches = any({"L", "M"} <= set(t.sharding.dims) for t in (*made.inputs, made.output))
        scores += op.count * op.flops * touches
        counted += op.count * op.flops
    mla, length = found.mla, 2048
    widths = 2 * found.d_head if mla is None else mla.qk_nope_head_dim + mla.qk_rope_head_dim + mla.v_head_dim
    unmasked = length * (length + 1) / 2
    assert scores == pytest.approx(2 * 4 * found.n_heads * unmasked * widths * found.n_layers)
    groups = evaluation.parameters.groups
    tables, small = groups["embedding"] + groups["output"], groups["norms"]
    bias = found.n_layers * 256 if found.moe is not None and found.moe.gate_bias else 0
    active = evaluation.parameters.active - tables - small
    expected = 2 * 4 * length * active + 2 * 4 * found.d_model * found.vocab_size
    assert counted - scores == pytest.approx(expected, rel=1e-4 if bias else 1e-9)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_that_any_design_with_experts_evaluates_and_its_parts_add_up(data: st.DataObject) -> None:
    shape = model(data.draw(st.sampled_from(list(SHAPES))))
    meshes = [
        None,
        MeshPlan(x=("ib",), y=("nvlink:2",), z=("nvlink:4",)),
        MeshPlan(x=("ib",), y=("nvlink",)),
        MeshPlan(z=("ib", "nvlink")),
    ]
    design = on_nodes(
        shape,
        data.draw(st.sampled_from([1, 2, 5])),
        8,
        plan__mesh=data.draw(st.sampled_from(meshes)),
        plan__redundant_experts=data.draw(st.integers(0, 40)),
        plan__shared_expert_as_routed=data.draw(st.booleans()),
        plan__overlap_microbatches=data.draw(st.booleans()),
        plan__dispatch_mode=data.draw(st.sampled_from(["two_hop", "low_latency"])),
        plan__dispatch_dtype=data.draw(st.sampled_from(["fp8", "bfloat16"])),
        plan__dense_tensor_parallel=data.draw(st.booleans()),
        plan__communication_sms=data.draw(st.sampled_from([4, 20, 200])),
        plan__calibration=data.draw(st.sampled_from(["none", "auto"])),
        workload__phase=data.draw(st.sampled_from(["prefill", "decode"])),
        workload__batch=data.draw(st.integers(1, 3000)),
        workload__input_length=data.draw(st.integers(1, 5000)),
    )
    evaluation = evaluate(design)
    assert [d for d in evaluation.diagnostics if d.code == "internal"] == []
    time, memory = evaluation.time, evaluation.memory
    assert time is not None
    assert memory is not None
    assert sum(op.total_s for op in time.ops) == pytest.approx(time.step_s)
    assert 0 <= time.exposed_communication_s <= time.communication_s * (1 + 1e-9)
    assert all(item.bytes >= 0 for item in memory.items)
    keys = [*evaluation.quantities, *(f"op/{op.program}/{op.index}" for op in time.ops)]
    keys += [f"memory/{item.name}" for item in memory.items]
    keys += [f"tensor/{name}/{t.name}" for name, p in evaluation.programs.items() for t in tensors(p)]
    assert all(evaluation.explain(key) is not None for key in keys)


def test_that_a_torus_may_hold_experts() -> None:
    design = presets.load_design("palm-540b-decode-low-latency").replace(model=model("Qwen3 30B-A3B"))
    evaluation = evaluate(design)
    assert evaluation.time is not None
    assert any(op.kind == "dispatch" and op.communication_s > 0 for op in evaluation.time.ops)


def test_that_pipelines_of_experts_are_said_to_have_no_time() -> None:
    design = on_nodes(model("Mixtral 8x7B"), 2, 8, plan__mesh=MeshPlan(z=("nvlink",), pipeline=("ib",)))
    evaluation = evaluate(design)
    assert "expert_pipeline" in {d.code for d in evaluation.diagnostics}
    assert evaluation.time is None
