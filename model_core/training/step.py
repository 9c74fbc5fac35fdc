"""Time of a training step: stage times from the layer programs, run through the pipeline schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_core.arithmetic import Number, maximum
from model_core.hardware.calibration import collective_start_s, derated
from model_core.hardware.collectives import hops_s, transfer_s
from model_core.hardware.network import Level
from model_core.memory.training import STATE_BYTES, Held, stage_weights
from model_core.partition.cost import Rates
from model_core.partition.program import CollectiveKind, Role
from model_core.quantities import formula
from model_core.schedule.operations import Floats, Schedule
from model_core.schedule.overlap import PairComponents, overlap_pair
from model_core.schedule.registry import KINDS
from model_core.schedule.simulate import Durations, Simulation, simulate
from model_core.schedule.step import StepTimes, step_times
from model_core.training.costs import Passes, backward_hidden_share, backward_s
from model_core.training.inputs import TrainingInputs

BLOCKS = ("block", "moe_block")


@dataclass(frozen=True, slots=True, eq=False)
class StageTimes:
    """Times of each stage for one microbatch [stages]: F, I, W, and of the pairs of each rank [pp].

    F and I contain ``gather_s``, the exposed gathering of shared weights, each; W contains ``scatter_s``, the exposed
    summing of gradients.
    """

    forward_s: Floats
    input_s: Floats
    weight_s: Floats
    pair_s: Floats | None
    send_s: float
    gather_s: Floats
    scatter_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTimes:
    """A simulated training step."""

    stages: StageTimes
    simulation: Simulation
    step: StepTimes
    reduce_s: Floats
    optimizer_s: Floats
    passes: Mapping[str, Passes]

    @property
    def step_s(self) -> float:
        """From the first operation to the end of the last optimizer step."""
        return self.step.step_s


@formula("training_send")
def send_s(inputs: TrainingInputs, rates: Rates) -> float:
    """Time of the message between neighbouring pipeline stages.

    Formula: bytes of a rank's shard of the residual stream / bandwidth of one link + latency + start
    Source: Narayanan et al. 2021, 4.1 (each tensor-parallel rank sends its own part)
    """
    levels = derated(inputs.layout.between, rates.efficiency)
    if not levels:
        return 0.0
    x = next(inputs.programs[name] for name in BLOCKS if name in inputs.programs).inputs[0]
    elements = inputs.sizes.elements(x.sharding)
    if not inputs.structure.split_tokens:
        elements = elements / inputs.layout.degrees.tp
    sent = elements * rates.element_bytes[Role.ACTIVATION]
    slowest = max(sent / level.bandwidth + level.latency for level in levels)
    return float(slowest + collective_start_s(levels, rates.efficiency))


def _sum(inputs: TrainingInputs, times: Mapping[str, float]) -> Floats:
    """Add the times of the programs of each stage up."""
    return np.array(
        [sum(n * times[name] for name, n in c.programs.items()) for c in inputs.contents], np.float64
    )


@formula("training_stage_times")
def stage_times(
    inputs: TrainingInputs, made: Schedule, passes: Mapping[str, Passes], rates: Rates, held: Sequence[Held]
) -> StageTimes:
    """Times of each stage for one microbatch.

    Formula: F, I, W: Σ over the programs of a stage of their passes, and what sharing of weights and gradients adds;
        F&B of a rank: max(computation, all-to-all) + ends
    Source: DeepSeek-V3 report, 3.2.1 (what overlaps in a pair), Figure 4
    Args:
        inputs: layout and programs of stages.
        made: the schedule.
        passes: of each program.
        rates: rates of the chip.
        held: weights of each stage on one rank.
    Assumes: collectives of the tensor parallelism are not overlapped by another microbatch
    """
    hidden = backward_hidden_share(rates)
    splits = made.layout.n_directions > 1 or bool(np.any(made.op == 2))
    inward = {name: float(p.inward.total_s) for name, p in passes.items()}
    outward = {name: float(p.outward.total_s) for name, p in passes.items()}
    if not splits:
        # Only a backward pass that is not cut in two can hide collectives of one half behind the other.
        outward = {name: float(backward_s(p, hidden)) - inward[name] for name, p in passes.items()}
    forward = _sum(inputs, {name: float(p.forward.total_s) for name, p in passes.items()})
    inward_s, outward_s = _sum(inputs, inward), _sum(inputs, outward)
    gathers, scatters = _sharing(inputs, held, rates, forward, inward_s + outward_s)
    stages = StageTimes(
        forward + gathers,
        inward_s + gathers,
        outward_s + scatters,
        None,
        send_s(inputs, rates),
        gathers,
        scatters,
    )
    return (
        replace(stages, pair_s=_pairs(inputs, made, passes, stages)) if KINDS[made.kind].overlaps else stages
    )


@formula("training_sharing")
def sharing_s(
    kind: CollectiveKind, held: Held, layers: int, inputs: TrainingInputs, rates: Rates, beside: Number
) -> Number:
    """Time to gather the weights of a stage, or to sum its gradients, for one microbatch.

    Formula: bytes of the stage over the links of the ranks that share it + (latency of hops + start) · layers;
        overlapped: less the pass beside it
    Source: Rajbhandari et al. 2020, 7 (ZeRO-3: weights gathered in forward and again in backward); ZeRO-2 sums the
        gradients of each microbatch, as no rank keeps all of them
    Args:
        kind: all-gather of weights or reduce-scatter of gradients.
        held: weights of the stage on one rank.
        layers: of the stage; each has a collective of its own.
        inputs: groups and formats.
        rates: efficiency of the links.
        beside: time of the pass that an overlapped collective runs beside.
    """
    training, layout = inputs.training, inputs.layout
    gathers = kind is CollectiveKind.ALL_GATHER
    width = STATE_BYTES[training.parameter_dtype if gathers else training.gradient_dtype]
    total: Number = 0.0
    for elements, levels in ((held.dense, layout.replicas), (held.experts, layout.expert_replicas)):
        if levels and elements:
            links = derated(levels, rates.efficiency)
            each = _collective_s(kind, elements * width / max(layers, 1), links, rates)
            total = total + max(layers, 1) * each
    return maximum(total - beside, 0.0) if training.overlap_gradients else total


def scatters_each_microbatch(inputs: TrainingInputs) -> bool:
    """Say whether gradients are summed for each microbatch: shared ones cannot accumulate on one rank."""
    return inputs.training.zero_stage >= 2 and inputs.layout.microbatches > 1


def _sharing(
    inputs: TrainingInputs, held: Sequence[Held], rates: Rates, forward: Floats, backward: Floats
) -> tuple[Floats, Floats]:
    """Return what gathering weights adds to F and to I, and summing gradients to W, of each stage."""
    gathers, scatters = np.zeros(len(held)), np.zeros(len(held))
    for s, (one, content) in enumerate(zip(held, inputs.contents, strict=True)):
        if inputs.training.zero_stage >= 3:
            kind = CollectiveKind.ALL_GATHER
            gathers[s] = float(sharing_s(kind, one, content.layers, inputs, rates, forward[s]))
        if scatters_each_microbatch(inputs):
            kind = CollectiveKind.REDUCE_SCATTER
            scatters[s] = float(sharing_s(kind, one, content.layers, inputs, rates, backward[s]))
    return gathers, scatters


def _pairs(
    inputs: TrainingInputs, made: Schedule, passes: Mapping[str, Passes], stages: StageTimes
) -> Floats:
    """Return the time of a pair on each rank: the mean of a forward of one of its stages beside the other's backward."""
    routed = _sum(inputs, {n: float(p.forward.routed_s + p.inward.routed_s) for n, p in passes.items()})
    whole = stages.forward_s + stages.input_s + stages.weight_s
    ends = _ends_s(passes.get("moe_block"))
    pairs = np.zeros(made.pp)
    for rank in range(made.pp):
        held = made.layout.stage_of[:, rank]
        both, talk = float(whole[held].mean()), float(routed[held].mean())
        pairs[rank] = max(both - talk, talk) + (ends if talk else 0.0)
    return pairs


def _ends_s(passes: Passes | None) -> float:
    """Return what the all-to-all at the ends of a pair cannot hide: from the timeline of one layer."""
    if passes is None or not passes.forward.routed_s:
        return 0.0
    half = [float(p.work_s + p.collective_s) / 2 for p in (passes.forward, passes.inward, passes.outward)]
    components = PairComponents(
        attention_forward_s=half[0],
        dispatch_forward_s=float(passes.forward.dispatch_s),
        mlp_forward_s=half[0],
        combine_forward_s=float(passes.forward.combine_s),
        combine_backward_s=float(passes.inward.dispatch_s),
        mlp_input_s=half[1],
        mlp_weight_s=half[2],
        dispatch_backward_s=float(passes.inward.combine_s),
        attention_input_s=half[1],
        attention_weight_s=half[2],
    )
    timeline = overlap_pair(components)
    return timeline.span_s - max(timeline.computation_s, timeline.communication_s)


@formula("training_reduce")
def reduce_s(
    held: Held, inputs: TrainingInputs, rates: Rates, forward: Number = 0.0, backward: Number = 0.0
) -> Number:
    """Time to sum the gradients of a stage over the ranks that hold its weights, and to share new weights.

    Formula: ZeRO 0: all-reduce of gradients; else reduce-scatter of gradients (from ZeRO 2 on with each microbatch, if
        there are several) + all-gather of weights (ZeRO 3: with each microbatch); dense parts and experts over their
        own groups; overlapped: less the last backward pass and the first forward pass
    Source: Rajbhandari et al. 2020; Megatron-LM README (overlap-grad-reduce, overlap-param-gather)
    Args:
        held: weights of the stage on one rank.
        inputs: groups and formats.
        rates: efficiency of the links.
        forward: F of the stage, beside which weights are gathered.
        backward: B of the stage, beside which gradients are reduced.
    """
    training, layout = inputs.training, inputs.layout
    gradient, weight = STATE_BYTES[training.gradient_dtype], STATE_BYTES[training.parameter_dtype]
    gradients: Number = 0.0
    weights: Number = 0.0
    for elements, levels in ((held.dense, layout.replicas), (held.experts, layout.expert_replicas)):
        if not levels:
            continue
        links = derated(levels, rates.efficiency)
        kind = CollectiveKind.REDUCE_SCATTER if training.zero_stage else CollectiveKind.ALL_REDUCE
        if not scatters_each_microbatch(inputs):
            gradients = gradients + _collective_s(kind, elements * gradient, links, rates)
        if training.zero_stage in (1, 2):
            weights = weights + _collective_s(CollectiveKind.ALL_GATHER, elements * weight, links, rates)
    if training.overlap_gradients:
        return maximum(gradients - backward, 0.0) + maximum(weights - forward, 0.0)
    return gradients + weights


def _collective_s(kind: CollectiveKind, size: Number, levels: tuple[Level, ...], rates: Rates) -> Number:
    return (
        transfer_s(kind, size, levels) + hops_s(kind, levels) + collective_start_s(levels, rates.efficiency)
    )


@formula("training_optimizer")
def optimizer_s(held: Held, inputs: TrainingInputs, rates: Rates, copies: int) -> Number:
    """Time of the optimizer on one rank: it reads gradients and states and writes states and weights.

    Formula: elements of the rank's share · (gradient + 2 · (master + moments) + weight) bytes / HBM bandwidth
    Source: AdamW reads and writes every state once; it is bound by memory
    Args:
        held: weights on the rank.
        inputs: formats and sharing.
        rates: memory bandwidth.
        copies: directions of the pipeline.
    """
    training, degrees = inputs.training, inputs.layout.degrees
    states = (4 if training.master_weights else 0) + 2 * STATE_BYTES[training.moment_dtype]
    moved = STATE_BYTES[training.gradient_dtype] + 2 * states + STATE_BYTES[training.parameter_dtype]
    shared = training.zero_stage > 0
    dense = held.dense / (degrees.dp * degrees.cp * copies if shared else 1)
    experts = held.experts / (degrees.expert_dp * copies if shared else 1)
    return (dense + experts) * moved / (rates.hbm_bytes_per_s * rates.efficiency.hbm_share)


def training_times(
    inputs: TrainingInputs, made: Schedule, passes: Mapping[str, Passes], rates: Rates, small: Number
) -> TrainingTimes:
    """Simulate a training step.

    Args:
        inputs: layout, programs and stages.
        made: the schedule.
        passes: of each program.
        rates: rates of the chip.
        small: biases of a layer on one rank.
    """
    held = [stage_weights(inputs.programs, content, inputs.sizes, small) for content in inputs.contents]
    stages = stage_times(inputs, made, passes, rates, held)
    durations = Durations(stages.forward_s, stages.input_s, stages.weight_s, stages.pair_s, stages.send_s)
    simulation, problems = simulate(made, durations)
    if simulation is None:
        raise ValueError("; ".join(problem.message for problem in problems))
    backward = stages.input_s + stages.weight_s
    reduces = np.array(
        [
            float(reduce_s(one, inputs, rates, forward=stages.forward_s[s], backward=backward[s]))
            for s, one in enumerate(held)
        ]
    )
    copies = made.layout.n_directions
    optimizers = np.array(
        [
            sum(
                float(optimizer_s(held[stage], inputs, rates, copies))
                for stage in made.layout.stage_of[:, rank]
            )
            for rank in range(made.pp)
        ]
    )
    step = step_times(simulation, reduces, optimizers)
    return TrainingTimes(stages, simulation, step, reduces, optimizers, passes)
