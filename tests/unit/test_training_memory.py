"""Properties of the training memory: parts add up, more sharing holds less, arrays equal numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import presets
from model_core.memory.training import held_microbatches
from model_core.memory.training_budget import (
    activations_in_flight,
    held_weights,
    kept_by_program,
    rank_bytes,
    rank_items,
    training_budget,
)
from model_core.parameters import count_parameters
from model_core.schedule import activation_memory, schedule
from model_core.schedule.registry import KINDS
from model_core.spec import Design, ModelSpec, TrainingSpec, replace_at
from model_core.training.inputs import memory_parts, training_inputs
from tests.unit.training_cases import gpt, parts_of

SMALL_MOE: dict[str, Any] = {
    "gated_ffn": True,
    "moe": {
        "n_routed_experts": 16,
        "n_shared_experts": 1,
        "n_experts_per_token": 4,
        "d_ff_expert": 512,
        "n_dense_layers": 1,
    },
}
SMALL_MLA = {
    "q_lora_rank": 256,
    "kv_lora_rank": 128,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
}
MODELS: dict[str, ModelSpec] = {
    "multihead": gpt(1024, 16, 8),
    "grouped-query": gpt(1024, 16, 8, n_kv_heads=8, gated_ffn=True, norm="rmsnorm"),
    "latent": gpt(1024, 16, 8, mla=SMALL_MLA),
    "experts": gpt(1024, 16, 8, **SMALL_MOE),
    "latent, experts, prediction": gpt(
        1024, 16, 8, mla=SMALL_MLA, n_mtp_layers=1, tied_embedding=False, **SMALL_MOE
    ),
}
RECOMPUTE = st.sampled_from(["none", "selective", "full"])
ALSO = st.lists(st.sampled_from(["norms", "mla_up_projection", "swiglu_output"]), unique=True).map(tuple)


def design_on(model: ModelSpec, training: dict[str, Any], kind: str = "1f1b", pp: int = 2) -> Design:
    design = presets.load_design("deepseek-v3-training").replace(model=model)
    design = replace_at(design, "cluster.topology.n_nodes", 4)
    design = replace_at(design, "workload", {"phase": "training", "batch": 256, "input_length": 1024})
    schedule = {"kind": kind, "pp": pp, "microbatches": 256 * pp // 32}
    return design.replace(plan=design.plan.replace(schedule=schedule, training=training))


def fullest(design: Design) -> float:
    inputs = training_inputs(design.model, design.cluster, design.workload, design.plan)
    assert inputs.schedule is not None
    parts = memory_parts(design, inputs, inputs.schedule, count_parameters(design.model))
    return max(budget.per_chip_bytes for budget in training_budget(parts))


@pytest.mark.parametrize("name", MODELS)
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_that_the_items_add_up_to_the_total(name: str, data: st.DataObject) -> None:
    training = TrainingSpec.model_validate(
        {
            "tp": data.draw(st.sampled_from([1, 2, 4])),
            "recompute": data.draw(RECOMPUTE),
            "recompute_also": data.draw(ALSO),
            "fused_attention": data.draw(st.booleans()),
            "dropout": data.draw(st.booleans()),
            "fp8_activation_cache": data.draw(st.booleans()),
            "zero_stage": data.draw(st.integers(0, 3)),
        }
    )
    kind = data.draw(st.sampled_from(["1f1b", "zb-h1", "zb-v", "dualpipe"]))
    parts = parts_of(MODELS[name], training, kind=kind, pp=2, microbatches=8, dp=4)
    for rank, budget in enumerate(training_budget(parts)):
        assert budget.per_chip_bytes == pytest.approx(rank_bytes(parts, rank), rel=1e-12)
        assert all(item.bytes > 0 for item in budget.items)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sequence", [True, False])
@pytest.mark.parametrize("kind", ["1f1b", "dualpipe"])
def test_that_arrays_of_designs_equal_one_design_after_the_other(
    name: str, sequence: bool, kind: str
) -> None:
    training = TrainingSpec(tp=4, cp=2, sequence_parallel=sequence, recompute_also=("norms",))
    rng = np.random.default_rng(3)
    count = 12
    batch, length = rng.integers(1, 5, count), 64 * rng.integers(1, 9, count)
    tp, cp, dp = (
        2 ** rng.integers(0, 4, count),
        2 ** rng.integers(0, 3, count),
        2 ** rng.integers(0, 5, count),
    )

    def total(b: Any, s: Any, t: Any, c: Any, d: Any, rank: int) -> Any:
        options: dict[str, Any] = {"micro_batch": b, "length": s, "dp": d, "axes": {"z": t, "c": c}}
        return rank_bytes(parts_of(MODELS[name], training, kind=kind, pp=4, microbatches=8, **options), rank)

    for rank in range(4):
        together = total(batch, length, tp, cp, dp, rank)
        for i in range(count):
            alone = total(int(batch[i]), int(length[i]), int(tp[i]), int(cp[i]), int(dp[i]), rank)
            assert together[i] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("field", "values"),
    [("tp", [1, 2, 4, 8]), ("cp", [1, 2, 4]), ("zero_stage", [0, 1, 2, 3]), ("micro_batch", [4, 2, 1])],
)
def test_that_more_sharing_never_holds_more(name: str, field: str, values: list[int]) -> None:
    held = [fullest(design_on(MODELS[name], {"ep": 16, field: value})) for value in values]
    if field == "cp" or (field == "tp" and MODELS[name].moe is not None):
        # Fewer replicas remain to share the optimizer states, which may weigh more than what is won.
        held = [min(held[0], value) for value in held]
    buffers = 0.02 * held[0] if field == "zero_stage" else 0.0
    assert all(after <= before + buffers for before, after in pairwise(held))


@pytest.mark.parametrize("name", MODELS)
def test_that_recomputation_and_narrow_formats_hold_less(name: str) -> None:
    unfused = {"fused_attention": False}
    steps: list[dict[str, Any]] = [
        unfused,
        {**unfused, "recompute": "selective"},
        {**unfused, "recompute": "selective", "recompute_also": ["norms"]},
        {**unfused, "recompute": "selective", "recompute_also": ["norms", "swiglu_output"]},
        {
            **unfused,
            "recompute": "selective",
            "recompute_also": ["norms", "swiglu_output"],
            "fp8_activation_cache": True,
        },
        {**unfused, "recompute": "full"},
    ]
    kept = []
    for step in steps:
        parts = parts_of(MODELS[name], TrainingSpec.model_validate(step))
        kept.append(
            sum(kept_by_program(parts)[block] for block in ("block", "moe_block") if block in parts.programs)
        )
    assert all(after < before for before, after in pairwise(kept))


def test_that_up_projections_computed_again_leave_only_the_latents() -> None:
    model = MODELS["latent"]
    kept = [
        kept_by_program(parts_of(model, TrainingSpec(recompute_also=also)))["block"]
        for also in ((), ("mla_up_projection",))
    ]
    heads, mla = model.n_heads, model.mla
    assert mla is not None
    expanded = heads * (2 * mla.qk_nope_head_dim + mla.qk_rope_head_dim + mla.v_head_dim)
    rotary = mla.qk_rope_head_dim
    assert kept[0] - kept[1] == pytest.approx(2 * 2048 * expanded, abs=2 * 2048 * 4 * rotary)


@pytest.mark.parametrize("kind", KINDS)
def test_that_held_microbatches_give_the_peak_of_the_schedule(kind: str) -> None:
    made, _ = schedule(kind, 4, 16, 2)
    assert made is not None
    sizes = np.random.default_rng(5).uniform(1, 9, made.layout.n_stages)
    expected = activation_memory(made, sizes).peak
    for rank, moments in enumerate(held_microbatches(made)):
        stages = made.layout.stage_of[:, rank]
        peak = max(float(np.dot(moment, sizes[stages])) for moment in moments)
        assert peak == pytest.approx(expected[rank])


@settings(deadline=None, max_examples=20)
@given(tp=st.sampled_from([1, 2, 4]), pp=st.sampled_from([1, 2, 4, 8]), name=st.sampled_from(sorted(MODELS)))
def test_that_all_ranks_together_hold_all_parameters(tp: int, pp: int, name: str) -> None:
    model = MODELS[name]
    parts = parts_of(model, TrainingSpec(tp=tp), pp=pp, microbatches=8)
    held = [held_weights(parts, rank) for rank in range(pp)]
    matrices = sum(tp * (weights.dense + weights.experts) for weights in held)
    groups = count_parameters(model).groups
    counted = sum(count for group, count in groups.items() if group != "norms")
    assert matrices > 0.98 * counted
    if tp == 1 and not model.n_mtp_layers and pp == 1:
        assert matrices == pytest.approx(counted, rel=2e-3)


def test_that_dualpipe_holds_two_copies_and_shares_the_optimizer_over_both() -> None:
    model = MODELS["multihead"].replace(tied_embedding=False)
    training = TrainingSpec(zero_stage=1)
    one, two = (
        parts_of(model, training, kind=kind, pp=2, microbatches=8, dp=4) for kind in ("1f1b", "dualpipe")
    )

    def item(parts: Any, rank: int, name: str) -> float:
        kept = kept_by_program(parts)
        return float(next(held for found, _, held in rank_items(parts, rank, kept) if found == name))

    both = item(one, 0, "weights") + item(one, 1, "weights")
    assert item(two, 0, "weights") == pytest.approx(both)
    states = item(one, 0, "optimizer moments") + item(one, 1, "optimizer moments")
    assert item(two, 0, "optimizer moments") == pytest.approx(states / 2)


def test_that_table_2_holds_in_activations() -> None:
    """DSV3 Table 2: PP chunks for 1F1B and ZB1P, PP + 1 for DualPipe."""
    model = MODELS["multihead"]
    for kind, chunks in (("1f1b", 8), ("zb-h1", 8), ("dualpipe", 9)):
        parts = parts_of(model, TrainingSpec(), kind=kind, pp=8, microbatches=20)
        kept = dict.fromkeys(kept_by_program(parts), 1.0)
        held = [activations_in_flight(parts, r, kept)["activations of dense blocks"] for r in range(8)]
        assert max(held) == chunks
