"""Backward passes of the blocks of training, run chip by chip against finite differences, and read for experts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from model_core.partition.backward import backward
from model_core.partition.execute import VirtualMesh, execute
from model_core.partition.program import CollectiveKind, Einsum, LayerProgram, Role
from model_core.spec import ModelSpec, TrainingSpec
from model_core.training.programs import dense_program, expert_program, head_program, training_structure
from model_core.training.recompute import recompute_of, training_backward
from tests.unit.test_execute import random_values
from tests.unit.test_expert_execution import double, sizes_for, small

Array = NDArray[Any]
CHOICES: list[tuple[str, tuple[str, ...]]] = [
    ("none", ()),
    ("none", ("norms", "mla_up_projection", "swiglu_output")),
    ("full", ()),
]


def check(
    model: ModelSpec, program: LayerProgram, mesh: dict[str, int], recompute: str, also: tuple[str, ...]
) -> None:
    """Compare every gradient with the slope of the forward pass."""
    sizes = sizes_for(model, mesh, 2, 4, 0)
    values = double(random_values(program, sizes))
    live = program.mesh_axes
    chips = VirtualMesh(live, tuple(mesh[axis] for axis in live))
    passes = backward(program, recompute_of(recompute, also))
    forward = execute(program, chips, sizes, values)
    out = program.outputs[0]
    rng = np.random.default_rng(1)
    seed = rng.normal(size=forward.whole(out).shape)
    kept = {t.name: forward.tensors[t.name] for t in passes.saved}
    weights = {t.name: values[t.name] for t in program.weights}
    inward = execute(passes.input_gradient, chips, sizes, {**kept, **weights, f"d {out.name}": seed})
    handed = {t.name: inward.tensors[t.name] for t in passes.passed}
    outward = execute(passes.weight_gradient, chips, sizes, {**kept, **weights, **handed})
    gradients = {"x": inward.whole(passes.input_gradient.outputs[0])}
    for tensor, output in zip(program.weights, passes.weight_gradient.outputs, strict=True):
        gradients[tensor.name] = outward.whole(output)

    def loss(changed: dict[str, Array]) -> float:
        return float(np.sum(seed * execute(program, chips, sizes, changed).whole(out)))

    for name, gradient in gradients.items():
        direction, step = rng.normal(size=values[name].shape), 1e-6
        above, below = ({**values, name: values[name] + sign * step * direction} for sign in (1, -1))
        slope = (loss(above) - loss(below)) / (2 * step)
        assert float(np.sum(gradient * direction)) == pytest.approx(slope, rel=3e-5, abs=1e-6), name


@pytest.mark.parametrize(("recompute", "also"), CHOICES)
@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("tp", [1, 2, 4])
@pytest.mark.parametrize("latent", [True, False])
def test_that_gradients_of_training_blocks_equal_finite_differences(
    recompute: str, also: tuple[str, ...], split: bool, tp: int, latent: bool
) -> None:
    model = small(moe=None) if latent else small(mla=None, moe=None)
    mesh = {"x": 1, "y": 1, "c": 1, "z": tp}
    check(model, dense_program(training_structure(model, mesh, split, True)), mesh, recompute, also)


@pytest.mark.parametrize("split", [True, False])
def test_that_gradients_of_the_head_equal_finite_differences(split: bool) -> None:
    model = small(moe=None)
    mesh = {"x": 1, "y": 1, "c": 1, "z": 4}
    check(model, head_program(training_structure(model, mesh, split, True)), mesh, "none", ())


def test_that_an_expert_block_sends_gradients_the_ways_of_its_tokens() -> None:
    """DSV3 Figure 4: the backward pass has a dispatch and a combine as well, and no result is kept for it."""
    model = small()
    program = expert_program(training_structure(model, {"x": 2, "y": 4, "z": 1}, True, True))
    passes = training_backward(program, TrainingSpec(recompute_also=("swiglu_output",)))
    kinds = [op.kind for _, op in passes.input_gradient.collectives()]
    assert kinds.count(CollectiveKind.DISPATCH) == kinds.count(CollectiveKind.COMBINE) == 1
    saved = {tensor.name for tensor in passes.saved}
    assert "expert tokens" in saved
    assert not any(name.endswith(" out") or name == "combined" for name in saved)
    assert not [op for op in passes.weight_gradient.collectives() if op[1].routing is not None]


def test_that_expert_weights_have_gradients_of_their_own_tokens_only() -> None:
    model = small()
    program = expert_program(training_structure(model, {"x": 2, "y": 4, "z": 1}, True, True))
    passes = training_backward(program, TrainingSpec())
    with_gradient = [t for t in program.weights if t.name != "gate bias"]
    for tensor, gradient in zip(with_gradient, passes.weight_gradient.outputs, strict=True):
        assert gradient.sharding.dims == tensor.sharding.dims
        assert gradient.sharding.partial == ("" if tensor.group == "routed experts" else "xy"), tensor.name


def test_that_context_parallelism_keeps_shards_of_keys_and_scatters_their_gradients() -> None:
    model = small(mla=None, moe=None)
    program = dense_program(training_structure(model, {"c": 2, "z": 2}, True, True))
    passes = training_backward(program, TrainingSpec(cp=2, tp=2))
    assert {t.sharding.axes_of("L") for t in passes.saved if t.name in ("key", "value")} == {"c"}
    scatters = [op for _, op in passes.input_gradient.collectives() if op.axes == "c"]
    assert [op.kind for op in scatters].count(CollectiveKind.REDUCE_SCATTER) == 2


def test_that_the_two_halves_have_twice_the_products_of_weights() -> None:
    model = small()
    program = expert_program(training_structure(model, {"x": 2, "y": 4, "z": 1}, True, True))
    passes = training_backward(program, TrainingSpec())
    products = [op for op in program.ops if isinstance(op, Einsum)]
    of_weights = [op for op in products if op.right.role is Role.WEIGHT]
    outward = [op for op in passes.weight_gradient.ops if isinstance(op, Einsum)]
    assert len(outward) == len(of_weights)
