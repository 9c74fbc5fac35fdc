"""Diagnostics of a design: plan, cluster, training."""

from __future__ import annotations

from typing import Final

from model_core.diagnostics.template import Severity, Template

_E = Severity.ERROR
_W = Severity.WARNING
_I = Severity.INFO

CODES: Final[dict[str, Template]] = {
    "does_not_divide": Template(
        _E,
        "{dimension} = {size} does not divide by {axes} = {ways}",
        "Use a multiple of {ways} (the nearest are {below} and {above}), or spread {dimension} over fewer axes.",
    ),
    "padded": Template(
        _W,
        "{dimension} = {size} over {axes} = {ways} chips is padded to {padded}; {waste} of the work is padding",
        "Use a multiple of {ways}: {below} or {above}.",
    ),
    "heads_replicated": Template(
        _W,
        "{size} heads cannot be split over {ways} chips; they are replicated over {axes}",
        "Pad the heads to a multiple of {ways}, or shard attention over batch.",
    ),
    "batch_not_sharded": Template(
        _W,
        "batch {size} divides by no axis of the mesh: attention stays split over heads",
        "A batch that is a multiple of {ways} uses every chip.",
    ),
    "batch_partly_sharded": Template(
        _W,
        "batch {size} shards over {used} only; each KV cache shard is held by {replicas} chips",
        "A batch that is a multiple of {ways} uses every chip.",
    ),
    "out_of_memory": Template(
        _E,
        "{needed} per chip do not fit into {capacity}",
        "The largest item is {item} with {item_bytes}. Use more chips, a smaller batch or context, or a smaller dtype.",
    ),
    "mesh_axis_unknown": Template(
        _E,
        "the cluster has no axis {axis}",
        "Its axes are {known}; leave the mesh empty to assign them automatically.",
    ),
    "mesh_axis_reused": Template(_E, "the cluster axis {axis} is assigned twice", "Assign each axis once."),
    "mesh_axis_unused": Template(
        _E,
        "the cluster axis {axis} ({size} chips) is not assigned",
        "Assign {axis} to x, y, z or the pipeline.",
    ),
    "mesh_factors_wrong": Template(
        _E,
        "the factors {factors} are no split of the cluster axis {axis} ({size} chips)",
        "Factors of one axis multiply to its size, such as nvlink:4 and nvlink:2 of 8; only nvlink and ib have them.",
    ),
    "expert_heads_uneven": Template(
        _E,
        "{heads} heads do not divide by {ways} tensor-parallel chips",
        "Give the axis z a size that divides {heads}.",
    ),
    "tokens_padded": Template(
        _W,
        "{dimension} = {size} over {ways} chips is padded to {padded}; {waste} of the work is padding",
        "Use a multiple of {ways}: {below} or {above}.",
    ),
    "slots_uneven": Template(
        _W,
        "{slots} expert slots do not divide by {chips} chips; the fullest holds {most}",
        "Set plan.redundant_experts to {needed}, or use a number of chips that divides the experts.",
    ),
    "expert_pipeline": Template(
        _W,
        "pipeline stages of models with experts or latent attention have no time model",
        "Assign the axes under plan.mesh.pipeline to x, y or z.",
    ),
    "pipeline_too_long": Template(
        _E,
        "{stages} pipeline stages for {layers} layers: some stages would be empty",
        "Use at most {layers} stages.",
    ),
    "pipeline_uneven": Template(
        _W,
        "{layers} layers do not divide by {stages} stages; the fullest stage holds {most}",
        "The other stages wait for it as if there were {padded} layers; choose a number of stages that divides.",
    ),
    "microbatches_uneven": Template(
        _W,
        "batch {batch} does not divide by {parts} microbatches; each is taken as {each}",
        "Choose a number of microbatches that divides the batch.",
    ),
    "calibration_unknown": Template(
        _E,
        "the chip has no calibration named {name}; times are bounds at peak rates",
        "Its calibrations are {known}; auto takes that of the chip, none gives the bound.",
    ),
    "calibration_ambiguous": Template(
        _I,
        "{chip} has several calibrations; times are bounds until one is named",
        "Set plan.calibration to one of {known}.",
    ),
    "calibration_foreign": Template(
        _W,
        "the calibration {name} was measured on {measured}, not on {chip}",
        "Its factors are applied as an assumption; set plan.calibration to auto or none.",
    ),
    "slice_unavailable": Template(
        _W, "{shape} is not a slice shape of {chip}", "Nearest shapes that exist: {nearest}."
    ),
    "no_wraparound": Template(
        _I,
        "no wraparound links along {axes} of {shape}: collectives there take twice as long",
        "Wraparound needs {rule}.",
    ),
    "dtype_without_rate": Template(
        _W,
        "{chip} has no {dtype} arithmetic; {used} is used for the products",
        "Choose another dtype, or set the chip's rate.",
    ),
    "context_too_long": Template(
        _W,
        "context {context} is longer than the model's {limit} positions",
        "Shorten the input or the output.",
    ),
    "decode_without_output": Template(
        _E, "decode needs at least one output token", "Set the output length to 1 or more."
    ),
    "batch_prefill_sharding": Template(
        _I,
        "attention sharded over batch rarely pays in prefill",
        "Pope 3.3: in prefill, shard attention over heads unless the batch already is split.",
    ),
    "training_degrees": Template(
        _E,
        "{chips} chips do not divide by tp {tp} x cp {cp} x pp {pp} = {product}",
        "Choose degrees whose product divides the chips; data parallelism takes what is left.",
    ),
    "training_experts": Template(
        _E,
        "ep = {ep} does not fit: it must divide {experts} experts and the {ranks} ranks of a stage, and be a multiple of {least}",
        "Expert-parallel groups hold whole tensor- and context-parallel groups.",
    ),
    "training_batch": Template(
        _E,
        "batch {batch} does not divide by {dp} data-parallel ranks x {micro_batch} sequences in a microbatch",
        "Use a multiple of {ways}: {below} or {above}.",
    ),
    "training_microbatches": Template(
        _W,
        "the schedule has {given} microbatches, but batch, data parallelism and microbatch size give {derived}",
        "The step is computed with {derived}; set plan.schedule.microbatches to it.",
    ),
    "training_stages": Template(
        _E,
        "{count} stages with {total} layers are given; the schedule has {stages} stages and the model {layers} layers",
        "Give one number of layers for each stage, or leave plan.training.stage_layers empty.",
    ),
}
