"""The itemised memory of one rank of a training step: stages, microbatches in flight, buffers, reserve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from model_core.arithmetic import Number, where
from model_core.memory.training import (
    Held,
    StageContent,
    held_microbatches,
    logit_bytes,
    saved_bytes,
    stage_weights,
    state_bytes,
    working_bytes,
)
from model_core.partition.program import CollectiveKind, LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.quantities import formula
from model_core.results import MemoryBudget, MemoryItem
from model_core.schedule.operations import Schedule
from model_core.schedule.registry import KINDS
from model_core.spec.model import ModelSpec
from model_core.spec.training import TrainingSpec
from model_core.training.layout import Degrees

PARTS = {"block": "activations of dense blocks", "moe_block": "activations of expert blocks"}
ENDS = "activations of embedding and head"
EMA_BYTES = 4


@dataclass(frozen=True, slots=True)
class TrainingParts:
    """What the memory of a training step depends on.

    ``widths``: bytes of one element by role; ``small``: parameters of a layer that no program holds (biases), on
    one rank; ``positions``: learned positions, on the first stage.
    """

    model: ModelSpec
    training: TrainingSpec
    degrees: Degrees
    schedule: Schedule
    contents: tuple[StageContent, ...]
    programs: Mapping[str, LayerProgram]
    sizes: Sizes
    widths: Mapping[Role, Number]
    combine_bytes: Number
    capacity: Number
    reserve: Number
    small: Number = 0.0
    positions: Number = 0.0

    @property
    def copies(self) -> int:
        """Directions of the pipeline, each with its own copy of the weights."""
        return self.schedule.layout.n_directions

    def stages_of(self, rank: int) -> tuple[int, ...]:
        """Return the stage of each lane of a rank."""
        return tuple(int(stage) for stage in self.schedule.layout.stage_of[:, rank])


def _tables(parts: TrainingParts, stages: tuple[int, ...]) -> Number:
    """Return the elements of tables that a rank needs beside those of its stages, or has twice.

    The last stage has its own copy of a tied embedding, and prediction modules one of the embedding, unless the
    rank holds the first stage as well.
    """
    model, programs = parts.model, parts.programs
    first, last = 0 in stages, len(parts.contents) - 1 in stages
    table = parts.sizes.elements(programs["embedding"].weights[0].sharding)
    extra: Number = 0.0
    shares = first and parts.training.shared_embedding_with_mtp
    if last and model.n_mtp_layers and not shares:
        extra = extra + table
    if last and model.n_mtp_layers and not parts.training.shared_embedding_with_mtp:
        extra = extra + table
    if first and last and model.tied_embedding:
        extra = extra - table
    return extra


def held_weights(parts: TrainingParts, rank: int) -> Held:
    """Return the elements of the weights that one rank stores, of all its stages."""
    stages = parts.stages_of(rank)
    dense: Number = _tables(parts, stages) + (parts.positions if 0 in stages else 0.0)
    experts: Number = 0.0
    for stage in stages:
        held = stage_weights(parts.programs, parts.contents[stage], parts.sizes, parts.small)
        dense, experts = dense + held.dense, experts + held.experts
    return Held(dense, experts)


def kept_by_program(parts: TrainingParts) -> dict[str, Number]:
    """Return what each program keeps of one microbatch."""
    return {
        name: saved_bytes(program, parts.training, parts.sizes, parts.widths)
        for name, program in parts.programs.items()
    }


@formula("training_activations")
def activations_in_flight(parts: TrainingParts, rank: int, kept: Mapping[str, Number]) -> dict[str, Number]:
    """Activations of all microbatches in flight on a rank at its fullest moment, by kind of layer.

    Formula: max over moments of the schedule of Σ over stages of microbatches held · Σ over its layers of kept bytes
    Source: DSV3 Table 2 for the counts; Korthikanti et al. 2022, 4.2.3 (first stage of a pipeline)
    Args:
        parts: what it depends on.
        rank: rank of the pipeline.
        kept: bytes that each program keeps of one microbatch.
    """
    stages = parts.stages_of(rank)
    most: Number = -1.0
    found: dict[str, Number] = {}
    for moment in held_microbatches(parts.schedule)[rank]:
        now = _moment(parts, stages, moment, kept)
        total: Number = 0.0
        for part in now.values():
            total = total + part
        fuller = total > most
        found = {name: where(fuller, part, found.get(name, 0.0)) for name, part in now.items()}
        most = where(fuller, total, most)
    return found


def _moment(
    parts: TrainingParts, stages: tuple[int, ...], moment: tuple[int, ...], kept: Mapping[str, Number]
) -> dict[str, Number]:
    now: dict[str, Number] = dict.fromkeys((*PARTS.values(), ENDS), 0.0)
    for stage, held in zip(stages, moment, strict=True):
        for name, count in parts.contents[stage].programs.items():
            label = PARTS.get(name, ENDS)
            now[label] = now[label] + held * count * kept[name]
    return now


@formula("training_dispatch")
def dispatch_buffers(parts: TrainingParts) -> Number:
    """Buffers of the all-to-all: tokens that arrive at experts, and results on their way back.

    Formula: tokens of the rank's experts · d_model · (dispatch bytes + combine bytes), twice where a forward and a
        backward run at once
    Source: DeepSeek-V3 report, 3.2.1 and 3.3.3 (dispatch in FP8, combine in BF16)
    Assumes: buffers hold a balanced load; kernels that reserve for the worst case hold more
    """
    program = parts.programs.get("moe_block")
    if program is None:
        return 0.0
    pairs = 2 if KINDS[parts.schedule.kind].overlaps else 1
    total: Number = 0.0
    for _, op in program.collectives():
        if op.kind is CollectiveKind.DISPATCH:
            elements = parts.sizes.elements(op.output.sharding)
            total = total + pairs * elements * (parts.widths[Role.DISPATCHED] + parts.combine_bytes)
    return total


def _gathered_weights(parts: TrainingParts) -> Number:
    """Return two layers of whole weights, which ZeRO-3 gathers: one at work, one on its way."""
    if parts.training.zero_stage < 3:
        return 0.0
    largest: Number = 0.0
    for name in ("block", "moe_block"):
        if name in parts.programs:
            held: Number = 0.0
            for tensor in parts.programs[name].weights:
                held = held + parts.sizes.elements(tensor.sharding) * parts.widths[Role.WEIGHT]
            largest = where(held > largest, held, largest)
    return 2 * largest


def _messages(parts: TrainingParts) -> Number:
    """Return what is sent to and received from the neighbours: one microbatch each way and lane."""
    layout = parts.schedule.layout
    if layout.pp == 1:
        return 0.0
    x = next(p for name, p in parts.programs.items() if name in PARTS).inputs[0]
    return 2 * layout.n_lanes * parts.sizes.elements(x.sharding) * parts.widths[Role.ACTIVATION]


def rank_items(
    parts: TrainingParts, rank: int, kept: Mapping[str, Number]
) -> Iterator[tuple[str, str, Number]]:
    """Yield what a rank holds: name, kind and bytes."""
    stages = parts.stages_of(rank)
    yield from state_bytes(held_weights(parts, rank), parts.training, parts.degrees, parts.copies)
    for name, held in activations_in_flight(parts, rank, kept).items():
        yield name, "activations", held
    if len(parts.contents) - 1 in stages:
        yield "logits", "activations", logit_bytes(parts.programs["logits"], parts.sizes)
    work = working_bytes(parts.programs, parts.training, parts.sizes, parts.widths)
    yield "layer at work", "activations", work
    yield "dispatch buffers", "buffers", dispatch_buffers(parts)
    yield "gathered weights", "buffers", _gathered_weights(parts)
    yield "pipeline messages", "buffers", _messages(parts)
    yield "reserve", "reserve", parts.capacity * parts.reserve


def rank_bytes(parts: TrainingParts, rank: int) -> Number:
    """Sum of the items of a rank, elementwise."""
    total: Number = 0.0
    for *_, held in rank_items(parts, rank, kept_by_program(parts)):
        total = total + held
    return total


@formula("training_memory")
def training_budget(parts: TrainingParts) -> tuple[MemoryBudget, ...]:
    """Itemise the memory of each rank of one pipeline.

    Formula: Σ of weights, gradients, optimizer states, activations in flight, buffers and reserve
    Source: DeepSeek-V3 report, 3.2.3; Korthikanti et al. 2022, 4
    """
    kept = kept_by_program(parts)
    return tuple(
        MemoryBudget(
            float(parts.capacity),
            tuple(
                MemoryItem(name, float(held), kind, _detail(parts, rank, kind))
                for name, kind, held in rank_items(parts, rank, kept)
                if held
            ),
        )
        for rank in range(parts.schedule.pp)
    )


def _detail(parts: TrainingParts, rank: int, kind: str) -> str:
    stages = parts.stages_of(rank)
    listed = ", ".join(str(stage) for stage in stages)
    if kind == "activations":
        most = max(sum(moment) for moment in held_microbatches(parts.schedule)[rank])
        unit = "chunks" if parts.schedule.layout.n_chunks > 1 else "microbatches"
        return f"stages {listed}; {most} {unit} in flight"
    if kind == "reserve":
        return f"{parts.reserve:.0%} of the memory"
    return f"stages {listed}"


@formula("training_ema")
def ema_bytes(parts: TrainingParts, rank: int) -> Number:
    """Host memory of the moving average of the weights, of one rank.

    Formula: elements · 4 bytes, shared like the optimizer states
    Source: DeepSeek-V3 report, 3.2.3: kept in CPU memory, updated after each step
    Assumes: kept in FP32
    """
    if not parts.training.ema_on_host:
        return 0.0
    held, degrees = held_weights(parts, rank), parts.degrees
    dense_ways = degrees.dp * degrees.cp * parts.copies
    return EMA_BYTES * (held.dense / dense_ways + held.experts / (degrees.expert_dp * parts.copies))
