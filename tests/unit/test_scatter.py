"""Sums over chips scattered into the hidden or into the batch or sequence dimension (Pope 3.5)."""

from __future__ import annotations

import numpy as np
import pytest

import presets
from model_core import Evaluation, evaluate
from model_core.partition.execute import VirtualMesh, execute
from model_core.partition.layers import embedding_program, logits_program
from model_core.partition.structure import structure_of
from model_core.spec import AttentionSharding, FfnLayout, PlanSpec, ScatterInto, replace_at
from tests.unit import dense_reference
from tests.unit.test_execute import MESHES, check_bytes, random_values, run_block, sizes_of, small_model

TOKENS = [ScatterInto.BATCH, ScatterInto.SEQUENCE]


@pytest.mark.parametrize("layout", list(FfnLayout))
@pytest.mark.parametrize("sharding", list(AttentionSharding))
@pytest.mark.parametrize("into", TOKENS)
@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("parallel", [True, False])
def test_that_every_layout_equals_the_unsharded_block(
    layout: FfnLayout,
    sharding: AttentionSharding,
    into: ScatterInto,
    mesh: dict[str, int],
    parallel: bool,
) -> None:
    plan = PlanSpec(ffn_layout=layout, attention_sharding=sharding, scatter_into=into)
    model = small_model(parallel_block=parallel)
    if into is ScatterInto.BATCH:
        run_block(model, plan, mesh, batch=16, length=1, past=3)
    else:
        run_block(model, plan, mesh, batch=16, length=16, past=0)


@pytest.mark.parametrize("layout", list(FfnLayout))
@pytest.mark.parametrize("into", TOKENS)
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_that_embedding_and_logits_equal_the_unsharded_ones(
    layout: FfnLayout, into: ScatterInto, mesh: dict[str, int]
) -> None:
    model = small_model()
    structure = structure_of(model, PlanSpec(ffn_layout=layout, scatter_into=into), 16, mesh)
    sizes = sizes_of(model, mesh, 16, 16, 0)
    live = structure.mesh_axes
    virtual = VirtualMesh(live, tuple(mesh[a] for a in live))
    embedding, logits = embedding_program(structure), logits_program(structure)
    values = random_values(embedding, sizes)
    run = execute(embedding, virtual, sizes, values)
    np.testing.assert_array_equal(run.whole(embedding.outputs[0]), values["table"][values["tokens"]])
    check_bytes(embedding, run.received, sizes)
    assert embedding.outputs[0].sharding == logits.inputs[0].sharding
    values = random_values(logits, sizes)
    run = execute(logits, virtual, sizes, values)
    last = dense_reference.norm(model, values["x"][:, -1], values["scale"])
    np.testing.assert_allclose(run.whole(logits.outputs[0]), last @ values["table"], rtol=1e-4, atol=1e-5)
    check_bytes(logits, run.received, sizes)


def moved(evaluation: Evaluation, *kinds: str) -> float:
    assert evaluation.time is not None
    return sum(
        op.collective_bytes for op in evaluation.time.ops if op.kind in kinds and op.program == "block"
    )


def test_that_the_choice_moves_equally_many_activations_but_norms_fewer() -> None:
    """Korthikanti et al. 2022: each chip normalises its own tokens; Pope 3.5: the volume is the same."""
    hidden = presets.load_design("palm-540b-decode-high-throughput")
    batch = replace_at(hidden, "plan.scatter_into", "batch")
    first, second = evaluate(hidden), evaluate(batch)
    assert second.ok
    kinds = ("all-gather", "reduce-scatter", "all-to-all")
    assert moved(second, *kinds) == pytest.approx(moved(first, *kinds))
    assert moved(second, "all-reduce") < moved(first, "all-reduce")


def test_that_tokens_that_do_not_divide_are_named() -> None:
    decode = presets.load_design("palm-540b-decode-low-latency")
    few = replace_at(replace_at(decode, "plan.scatter_into", "batch"), "workload.batch", 8)
    assert ("does_not_divide", "workload.batch") in {(d.code, d.path) for d in evaluate(few).diagnostics}
    one = replace_at(decode, "plan.scatter_into", "sequence")
    found = {(d.code, d.path) for d in evaluate(one).diagnostics}
    assert ("does_not_divide", "workload.input_length") in found
    prefill = presets.load_design("palm-540b-prefill-low-latency")
    assert evaluate(replace_at(prefill, "plan.scatter_into", "sequence")).ok
