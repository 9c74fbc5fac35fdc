"""Pipeline-parallel inference: layers split over stages, a batch in microbatches that follow each other.

Source: NVIDIA FasterTransformer, ParallelGpt and getLocalBatchSize: every step lets all microbatches through
all stages before the next begins, because the last stage samples the tokens that the first needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model_core.arithmetic import Number, ceil_div, maximum
from model_core.diagnostics import Diagnostic
from model_core.hardware.calibration import BOUND, collective_start_s, derated
from model_core.hardware.network import Level
from model_core.partition.cost import OpCost, Rates
from model_core.partition.notation import Sharding
from model_core.partition.program import Role
from model_core.partition.sizes import Sizes
from model_core.quantities import formula

SEND = "send"


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each program lies on the critical path of a step; ``sends``: from stage to stage."""

    embedding: Number
    block: Number
    logits: Number
    sends: Number


@formula("pipeline_step")
def critical_counts(n_layers: Number, stages: Number, microbatches: Number) -> Counts:
    """Passes on the critical path of one step of a pipeline.

    Formula: T_step = Σ over stages of T_stage + (m − 1) · T_slowest; the slowest stage has ⌈n_layers / S⌉ layers
    Source: NVIDIA FasterTransformer, ParallelGpt: microbatches follow each other, steps do not overlap
    Args:
        n_layers: layers of the model.
        stages: S, pipeline stages.
        microbatches: m, parts of the batch.
    Assumes: the slowest stage also looks tokens up and makes logits; sending does not overlap with work
    """
    block = n_layers + (microbatches - 1) * stage_layers(n_layers, stages)
    crossings = maximum(stages - 1, 0)
    sends = crossings + (microbatches - 1) * (crossings > 0)
    return Counts(microbatches, block, microbatches, sends)


def stage_layers(n_layers: Number, stages: Number) -> Number:
    """Return the layers of the fullest stage."""
    return ceil_div(n_layers, stages)


@formula("pipeline_send")
def send_cost(activations: Sharding, sizes: Sizes, rates: Rates, levels: Sequence[Level]) -> OpCost:
    """Time to send a microbatch's activations to the next stage.

    Formula: bytes of a chip's shard / bandwidth of one link + latency of one hop
    Source: NVIDIA FasterTransformer, ParallelGpt: ncclSend and ncclRecv between stages
    Args:
        activations: sharding of the activations between two layers.
        sizes: sizes on one chip.
        rates: bytes of an element, efficiency.
        levels: physical axes that hold the stages.
    Assumes: each chip of a stage sends its own shard, over the slowest of these axes
    """
    if rates.efficiency is not BOUND:
        levels = derated(levels, rates.efficiency)
    sent = sizes.elements(activations) * rates.element_bytes[Role.ACTIVATION]
    transfer: Number = 0.0
    hop: Number = 0.0
    for level in levels:
        links = 2 if level.kind == "ring" else 1
        transfer = maximum(transfer, sent * links / level.bandwidth)
        hop = maximum(hop, level.latency)
    hop = hop + collective_start_s(levels, rates.efficiency)
    return OpCost(0, SEND, collective_bytes=sent, transfer_s=transfer, hops_s=hop, exposed_s=transfer + hop)


def pipeline_diagnostics(n_layers: int, batch: int, stages: int, microbatches: int) -> tuple[Diagnostic, ...]:
    """Say where layers do not divide by the stages, or the batch by the microbatches."""
    found = []
    if stages > n_layers:
        values = {"stages": stages, "layers": n_layers}
        found.append(Diagnostic("pipeline_too_long", "plan.mesh.pipeline", values))
    elif n_layers % stages:
        most = stage_layers(n_layers, stages)
        values = {"layers": n_layers, "stages": stages, "most": most, "padded": most * stages}
        found.append(Diagnostic("pipeline_uneven", "plan.mesh.pipeline", values))
    if batch % microbatches:
        values = {"batch": batch, "parts": microbatches, "each": ceil_div(batch, microbatches)}
        found.append(Diagnostic("microbatches_uneven", "plan.microbatches", values))
    return tuple(found)
