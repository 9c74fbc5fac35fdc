"""Published figures of training steps: times, throughput, activations and Table 2 of DeepSeek-V3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from model_core.evaluate import evaluate
from model_core.parameters import count_parameters
from model_core.published.conditions import Library
from model_core.reproduce.readings import value_of
from model_core.reproduce.values import Value, combined
from model_core.results import Evaluation
from model_core.schedule import Durations, activation_memory, parameter_copies, schedule, simulate
from model_core.spec.cluster import NodeTopology
from model_core.spec.design import Design
from model_core.spec.model import ModelSpec
from model_core.spec.plan import PlanSpec
from model_core.spec.workload import WorkloadSpec
from model_core.training.costs import all_passes, backward_hidden_share, backward_s, training_rates
from model_core.training.evaluation import training_stage
from model_core.training.inputs import training_inputs
from model_core.training.korthikanti import GptShape, model_flops


def _gpt(shape: dict[str, Any]) -> ModelSpec:
    """Return a GPT model as Megatron-LM trains it: plain feedforward of 4h, layer norm, biases left out."""
    width, heads = shape["d_model"], shape["n_heads"]
    fixed = {"gated_ffn": False, "norm": "layernorm", "n_kv_heads": heads, "d_head": width // heads}
    return ModelSpec.model_validate({"name": f"GPT, width {width}", "d_ff": 4 * width, **fixed, **shape})


def _design(library: Library, conditions: dict[str, Any]) -> Design:
    cluster = library.load_cluster(conditions["cluster"])
    topology = cluster.topology
    if not isinstance(topology, NodeTopology):
        raise TypeError(f"{conditions['cluster']} has no nodes")
    places = {"n_nodes": conditions["nodes"], "chips_per_node": conditions["chips_per_node"]}
    batch, length = conditions["batch"], conditions["length"]
    return Design(
        name="published training step",
        model=_gpt(conditions["model"]),
        cluster=cluster.replace(topology=topology.replace(**places)),
        workload=WorkloadSpec.model_validate({"phase": "training", "batch": batch, "input_length": length}),
        plan=PlanSpec.model_validate(
            {"schedule": conditions["schedule"], "training": conditions["training"]}
        ),
    )


def _evaluated(library: Library, conditions: dict[str, Any]) -> tuple[Design, Evaluation]:
    design = _design(library, conditions)
    return design, evaluate(design)


def training(library: Library, key: str, **conditions: Any) -> Value:
    """One number of a training step of a GPT model."""
    return value_of(_evaluated(library, conditions)[1], key)


def samples_per_chip(library: Library, **conditions: Any) -> Value:
    """Sequences per second and chip."""
    design, evaluation = _evaluated(library, conditions)
    step = value_of(evaluation, "step_s")
    return combined(design.workload.batch / step.known / design.cluster.n_chips, [step])


def megatron_flops(library: Library, factor: int, **conditions: Any) -> Value:
    """FLOPs per second and chip by the formula of Narayanan et al. 2021, whose factor 96 counts recomputation."""
    design, evaluation = _evaluated(library, conditions)
    step = value_of(evaluation, "step_s")
    model, workload = design.model, design.workload
    shape = GptShape(workload.input_length, 1, model.d_model, model.n_heads, model.n_layers, model.vocab_size)
    blocks = factor / 72 * model_flops(_without_head(shape), workload.batch)
    head = model_flops(shape, workload.batch) - model_flops(_without_head(shape), workload.batch)
    return combined((blocks + head) / step.known / design.cluster.n_chips, [step])


def _without_head(shape: GptShape) -> GptShape:
    return GptShape(shape.s, shape.b, shape.h, shape.a, shape.layers, 0, shape.t)


def model_flops_per_chip(library: Library, **conditions: Any) -> Value:
    """Model FLOPs per second and chip."""
    design, evaluation = _evaluated(library, conditions)
    used = value_of(evaluation, "mfu")
    return combined(used.known * design.cluster.chip.peak_bf16, [used])


def block_activations(library: Library, **conditions: Any) -> Value:
    """Activations of the blocks on the fullest rank, without embedding, head and the layer at work."""
    design = _design(library, conditions)
    parameters = count_parameters(design.model)
    result = training_stage(design.model, design.cluster, design.workload, design.plan, parameters)
    blocks = [
        sum(item.bytes for item in budget.items if item.name == "activations of dense blocks")
        for budget in result.ranks
    ]
    return Value(max(blocks))


def layer_pass(library: Library, which: str, **conditions: Any) -> Value:
    """Time of the forward or the backward pass of one layer."""
    design, evaluation = _evaluated(library, conditions)
    inputs = training_inputs(design.model, design.cluster, design.workload, design.plan)
    rates, _ = training_rates(design, inputs)
    passes = all_passes(design, inputs, rates)["block"]
    backward = float(backward_s(passes, backward_hidden_share(rates)))
    value = float(passes.forward.total_s) if which == "forward" else backward
    return combined(value, [value_of(evaluation, "step_s")])


def middle_pair(library: Library, design: str) -> Value:
    """Time of an overlapped pair on a rank in the middle of the pipeline."""
    found = library.load_design(design)
    result = training_stage(
        found.model, found.cluster, found.workload, found.plan, count_parameters(found.model)
    )
    times = result.times
    if times is None or times.stages.pair_s is None:
        raise ValueError(f"{design} has no overlapped pairs")
    pairs = times.stages.pair_s
    return combined(float(pairs[len(pairs) // 2]), [value_of(evaluate(found), "step_s")])


def fits(library: Library, design: str) -> Value:
    """Whether the fullest rank fits: 1 or 0."""
    memory = evaluate(library.load_design(design)).memory
    return Value(float(memory is not None and memory.fits))


def table_2(_library: Library, kind: str, pp: int, microbatches: int, what: str) -> Value:
    """Bubble, activations or parameters of a schedule, simulated in units of F (DeepSeek-V3 report, Table 2)."""
    made, problems = schedule(kind, pp, microbatches)
    if made is None:
        raise ValueError("; ".join(problem.message for problem in problems))
    if what == "activations":
        return Value(float(activation_memory(made).peak.max()))
    if what == "parameters":
        return Value(float(parameter_copies(made)))
    simulation, found = simulate(made, Durations(1.0, 1.0, 1.0, 3.0))
    if simulation is None:
        raise ValueError("; ".join(problem.message for problem in found))
    # Per rank: without a barrier between steps a rank begins its next one when it has ended its own.
    return Value(float(simulation.iteration_bubble_s.min()))


TRAINING_COMPUTATIONS: dict[str, Callable[..., Value]] = {
    "training": training,
    "samples_per_chip": samples_per_chip,
    "megatron_flops": megatron_flops,
    "model_flops": model_flops_per_chip,
    "block_activations": block_activations,
    "layer_pass": layer_pass,
    "middle_pair": middle_pair,
    "table_2": table_2,
    "fits": fits,
}
"""Computations of training steps by the name that published rows use."""
