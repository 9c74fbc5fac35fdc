"""What a rank holds in a training step, part by part, elementwise over numbers or arrays.

Activations are counted from the backward passes of the layer programs, microbatches in flight from the
pipeline schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from model_core.arithmetic import Number, maximum
from model_core.memo import memoised
from model_core.memory.budget import peak_bytes
from model_core.partition.program import (
    Collective,
    CollectiveKind,
    Einsum,
    LayerProgram,
    Local,
    LocalKind,
    Role,
    Tensor,
)
from model_core.partition.sizes import Sizes
from model_core.quantities import formula
from model_core.schedule.operations import OpKind, Schedule
from model_core.spec.model import ModelSpec
from model_core.spec.training import TrainingSpec
from model_core.training.layout import Degrees
from model_core.training.recompute import training_backward

STATE_BYTES = {"float32": 4, "bfloat16": 2}
FP8_BYTES = 1 + 4 / 128
"""An 8-bit number with its part of the scale of 128 numbers (DeepSeek-V3 report, 3.3.2)."""
E5M6_BYTES = 1.5 + 4 / 128
"""A 12-bit number: the inputs of the linear layer after attention (DeepSeek-V3 report, 3.3.3)."""
LOGIT_BYTES = 4
EXPERTS = "routed experts"


@dataclass(frozen=True, slots=True)
class StageContent:
    """How often a stage runs each program; ``tables`` are the embedding and output tables it holds."""

    programs: Mapping[str, int]
    layers: int

    def count(self, name: str) -> int:
        """Return how often a program runs for one microbatch."""
        return self.programs.get(name, 0)


def stage_contents(model: ModelSpec, stage_layers: tuple[int, ...]) -> tuple[StageContent, ...]:
    """Say what each stage runs: dense layers come first, prediction modules and the head are on the last.

    Source: DeepSeek-V3 report, 3.2.3 (embedding and head); 2.2 (a prediction module is one more block)
    """
    n_dense = model.n_layers if model.moe is None else model.moe.n_dense_layers
    last_kind = "block" if n_dense == model.n_layers else "moe_block"
    found, first = [], 0
    for stage, layers in enumerate(stage_layers):
        dense = min(max(n_dense - first, 0), layers)
        programs = {"block": dense, "moe_block": layers - dense}
        if stage == 0:
            programs["embedding"] = 1
        if stage == len(stage_layers) - 1:
            programs |= {"mtp": model.n_mtp_layers, "logits": 1 + model.n_mtp_layers}
            programs[last_kind] += model.n_mtp_layers
        found.append(StageContent({name: n for name, n in programs.items() if n}, layers))
        first += layers
    return tuple(found)


# ---- activations ---------------------------------------------------------------------------------


def _reads(program: LayerProgram) -> dict[str, str]:
    """Return what each tensor is read by: ``linear`` layers, ``activation`` functions, or both."""
    found: dict[str, str] = {}
    for op in program.ops:
        if isinstance(op, Einsum) and op.right.role is Role.WEIGHT:
            found[op.left.name] = "linear"
        elif isinstance(op, Local) and op.kind in (LocalKind.ACTIVATION, LocalKind.GATED_ACTIVATION):
            found |= {tensor.name: "activation" for tensor in op.inputs}
        elif isinstance(op, Collective) and op.kind is CollectiveKind.ALL_GATHER:
            found[op.input.name] = "gathered"
    for op in program.ops:
        if isinstance(op, Collective) and found.get(op.input.name) == "gathered":
            found[op.input.name] = found.get(op.output.name, "")
    return found


def _after_attention(program: LayerProgram) -> set[str]:
    return {
        op.output.name
        for op in program.ops
        if isinstance(op, Einsum) and op.right.role is not Role.WEIGHT and "M" not in op.output.sharding.dims
    }


def _kept_bytes(
    tensor: Tensor, reads: str, after_attention: bool, fp8: bool, widths: Mapping[Role, Number]
) -> Number:
    width = widths[tensor.role]
    if not fp8 or tensor.role is not Role.ACTIVATION or not reads:
        return width
    return E5M6_BYTES if after_attention else FP8_BYTES


@formula("training_saved")
def saved_bytes(
    program: LayerProgram, training: TrainingSpec, sizes: Sizes, widths: Mapping[Role, Number]
) -> Number:
    """Activations that one program keeps for its backward pass, of one microbatch on one rank.

    Formula: Σ over tensors that the derived backward pass reads and does not compute again of elements · bytes;
        dropout masks 1 byte; attention scores with dropout 2 + 1 + 2 bytes; log-sums of a fused kernel 4 bytes
    Source: counted from the layer program; Korthikanti et al. 2022, 4.1
    Args:
        program: a forward program.
        training: what is recomputed, and formats.
        sizes: sizes.
        widths: bytes of one element by role.
    """
    passes = training_backward(program, training)
    reads, mixed = _reads(program), _after_attention(program)
    total: Number = 0.0
    for tensor in passes.saved:
        fp8 = training.fp8_activation_cache
        width = _kept_bytes(tensor, reads.get(tensor.name, ""), tensor.name in mixed, fp8, widths)
        total = total + sizes.elements(tensor.sharding) * width
    if training.recompute == "full":
        return total
    saved = {tensor.name for tensor in passes.saved}
    return total + _log_sums(program, sizes) + (_dropout(program, sizes, saved) if training.dropout else 0.0)


def _log_sums(program: LayerProgram, sizes: Sizes) -> Number:
    """Return the bytes of the softmax denominators that a fused kernel keeps instead of the scores."""
    total: Number = 0.0
    for op in program.ops:
        if isinstance(op, Local) and op.kind is LocalKind.SOFTMAX and op.output.role is Role.ON_CHIP:
            dims = op.output.sharding
            rows: Number = 1
            for dim, axes in zip(dims.dims, dims.axes, strict=True):
                rows = rows * (1 if dim == "M" else sizes.local(dim, axes))
            total = total + 4 * rows
    return total


def _dropout(program: LayerProgram, sizes: Sizes, saved: set[str]) -> Number:
    """Return masks after attention and feedforward, and masks and results of kept attention scores."""
    total: Number = 0.0
    for op in program.ops:
        if isinstance(op, Local) and op.kind is LocalKind.ADD and op.output.role is Role.ACTIVATION:
            total = total + sizes.elements(op.output.sharding)
        if isinstance(op, Local) and op.kind is LocalKind.SOFTMAX and op.output.name in saved:
            total = total + 3 * sizes.elements(op.output.sharding)
        if isinstance(op, Local) and op.kind is LocalKind.LOOKUP:
            total = total + sizes.elements(program.outputs[0].sharding)
    return total


def logit_bytes(program: LayerProgram, sizes: Sizes) -> Number:
    """Return the logits of one microbatch in FP32; their gradient takes their place."""
    return LOGIT_BYTES * sizes.elements(program.outputs[0].sharding)


@formula("training_working")
def working_bytes(
    programs: Mapping[str, LayerProgram], training: TrainingSpec, sizes: Sizes, widths: Mapping[Role, Number]
) -> Number:
    """Memory that the layer at work takes beside what is kept.

    Formula: max over blocks of the fullest operation of its backward pass, without the tensors kept for it
    Source: counted from the layer program
    """
    most: Number = 0.0
    for name in ("block", "moe_block"):
        if name not in programs:
            continue
        passes = training_backward(programs[name], training)
        kept: Number = 0.0
        for tensor in passes.saved:
            kept = kept + sizes.elements(tensor.sharding) * widths[tensor.role]
        peak = peak_bytes((passes.input_gradient,), sizes, widths, looped=False)
        most = maximum(most, peak - kept)
    return most


@memoised(64)
def held_microbatches(schedule: Schedule) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return for each rank the fullest moments: microbatches held of each of its stages.

    Only moments at which no other holds as much of everything are listed, so that the peak is the largest of
    them whatever the stages hold.
    """
    backward_lane = np.where(schedule.op == OpKind.OVERLAPPED, schedule.lane2, schedule.lane)
    frees = (schedule.op != OpKind.FORWARD) & (schedule.op != OpKind.BACKWARD_INPUT)
    lanes = np.arange(schedule.layout.n_lanes)
    taken = schedule.runs_forward[:, None] & (schedule.lane[:, None] == lanes)
    freed = frees[:, None] & (backward_lane[:, None] == lanes)
    found = []
    for first, last in pairwise(schedule.offsets.tolist()):
        after = np.cumsum(taken[first:last].astype(np.int64) - freed[first:last], axis=0)
        found.append(_fullest(after + freed[first:last]))
    return tuple(found)


def _fullest(counts: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    rows = np.unique(counts, axis=0)
    as_much = (rows[:, None] >= rows[None]).all(axis=2)
    more = (rows[:, None] > rows[None]).any(axis=2)
    beaten = (as_much & more).any(axis=0)
    return tuple(tuple(int(value) for value in row) for row in rows[~beaten])


# ---- weights and their optimizer -----------------------------------------------------------------


@formula("zero_shares")
def zero_share(zero_stage: int, from_stage: int, ways: Number) -> Number:
    """Part of a state that one data-parallel rank holds.

    Formula: 1 / ways from its ZeRO stage on (1 optimizer, 2 gradients, 3 weights), else 1
    Source: Rajbhandari et al. 2020 (ZeRO)
    Args:
        zero_stage: stage in use.
        from_stage: stage from which this state is shared.
        ways: ranks that hold the same weights.
    """
    return 1 / ways if zero_stage >= from_stage else 1.0


@dataclass(frozen=True, slots=True)
class Held:
    """Weights of a rank in elements: of dense parts and of routed experts, with the copies of a pipeline."""

    dense: Number
    experts: Number


def stage_weights(
    programs: Mapping[str, LayerProgram], content: StageContent, sizes: Sizes, small: Number
) -> Held:
    """Return the elements that one rank of a stage stores; ``small``: biases of a layer on a rank."""
    dense: Number = 0.0
    experts: Number = 0.0
    for name, count in content.programs.items():
        stored = 1 if name == "logits" else count
        for tensor in programs[name].weights:
            held = sizes.elements(tensor.sharding) * stored
            if tensor.group == EXPERTS:
                experts = experts + held
            else:
                dense = dense + held
    return Held(dense + small * content.layers, experts)


@formula("training_states")
def state_bytes(
    held: Held, training: TrainingSpec, degrees: Degrees, copies: int
) -> Iterator[tuple[str, str, Number]]:
    """Weights, gradients and optimizer states of a rank.

    Formula: elements · bytes · share; dense parts are shared by dp · cp ranks, experts by those with the same
        experts, both times the copies of a pipeline in two directions
    Source: Rajbhandari et al. 2020; DeepSeek-V3 report, 3.2.3 and 3.3.3 (formats)
    Args:
        held: elements on the rank.
        training: ZeRO stage and formats.
        degrees: parallel degrees.
        copies: directions of the pipeline, each with its own weights and gradients.
    """
    zero = training.zero_stage
    parts = (
        ("weights", "weights", 3, STATE_BYTES[training.parameter_dtype]),
        ("gradients", "gradients", 2, STATE_BYTES[training.gradient_dtype]),
        ("master weights", "optimizer", 1, 4 if training.master_weights else 0),
        ("optimizer moments", "optimizer", 1, 2 * STATE_BYTES[training.moment_dtype]),
    )
    owners = (
        ("", held.dense, degrees.dp * degrees.cp * copies),
        ("expert ", held.experts, degrees.expert_dp * copies),
    )
    for name, kind, from_stage, width in parts:
        for prefix, elements, ways in owners:
            yield f"{prefix}{name}", kind, elements * width * zero_share(zero, from_stage, ways)
