"""Diagnostics: what is wrong with an input, where, and what would be right.

Every code is in `CATALOGUE`, with a message and a hint template; both are filled from ``values``. The
templates are the keys of the translations, so that a front end can show them in another language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How much a diagnostic matters: an error makes ``check`` fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Template:
    """The severity and the texts of one diagnostic code."""

    severity: Severity
    message: str
    hint: str


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

CATALOGUE: dict[str, Template] = {
    "file_unreadable": Template(
        _E, "cannot read {file}: {reason}", "Check that the file exists and may be read."
    ),
    "file_unwritable": Template(
        _E, "cannot write {file}: {reason}", "Check that the folder exists and may be written to."
    ),
    "file_too_large": Template(
        _E, "the file has {size}; a design has at most {limit}", "Choose a Meshwright design file."
    ),
    "file_not_json": Template(
        _E,
        "line {line}, column {column}: {reason}",
        "The file may be truncated; open a backup or the recovery copy.",
    ),
    "file_foreign": Template(
        _E,
        "this is not a Meshwright design: {reason}",
        'A design file is a JSON object with "meshwright": {{"format": "design", "version": {version}}}.',
    ),
    "file_newer": Template(
        _E,
        "the file has version {found}; this Meshwright reads up to version {known}",
        "Open it with a newer Meshwright. The file was left as it is.",
    ),
    "field_invalid": Template(_E, "{reason}", "{expected}"),
    "field_unknown": Template(_E, "there is no field {field}", "Known fields here: {known}."),
    "preset_unknown": Template(
        _E, "there is no file and no preset named {name}", "Nearest names: {nearest}."
    ),
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
    "fit_impossible": Template(
        _E,
        "no calibration can be fitted: {reason}",
        "A file of rows names its factors under calibration, and marks the rows to fit with fit.",
    ),
    "row_unknown": Template(
        _E,
        "no published row has an id that begins with {id}",
        "reproduce without --only prints all of {known}.",
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
    "above_target": Template(
        _W,
        "{latency} per {unit} is above the target of {target}",
        "Raise chips, lower batch, or use int8 weights.",
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
    "axis_invalid": Template(_E, "{axis} cannot be an axis: {reason}", "{expected}"),
    "space_invalid": Template(
        _E,
        "no combination of the axes is a design; the first: {reason}",
        "Change or leave out one of the axes.",
    ),
    "space_too_large": Template(
        _E,
        "{count} designs do not fit into memory at once; at most {limit}",
        "Write them to a file as they come, ask for the frontier only, or shorten an axis.",
    ),
    "target_invalid": Template(_E, "{target} is not a target: {reason}", "{expected}"),
    "no_design": Template(
        _E,
        "none of {count} designs meets {targets}",
        "Alone within the memory, the best that can be had is {best}.",
    ),
    "no_design_fits": Template(
        _E,
        "none of {count} designs is valid and fits into the memory",
        "Allow more chips, a smaller batch or context, or formats with fewer bytes.",
    ),
    "calibration_mixed": Template(
        _W,
        "some designs of this search are calibrated, others are bounds, which look faster than they run",
        "To compare bounds with bounds, set plan.calibration=none.",
    ),
    "pair_mismatch": Template(
        _E, "prefill and decode differ in {what}: {first} and {second}", "Make them the same."
    ),
    "pair_wrong_phase": Template(_E, "a pair needs a {phase} design here", "Set workload.phase={phase}."),
    "schedule_unknown": Template(_E, "there is no schedule {kind}", "Nearest names: {nearest}."),
    "schedule_size": Template(
        _E,
        "{kind} cannot run {microbatches} microbatches on {pp} ranks; it needs {rule}",
        "Nearest sizes that are valid: {nearest}.",
    ),
    "schedule_chunks": Template(
        _E, "{count} chunks on each rank cannot be interleaved", "Choose from 1 to {limit}."
    ),
    "schedule_too_large": Template(
        _E,
        "{count} operations on {pp} ranks are more than can be handled",
        "Use at most {limit} operations and {ranks} ranks.",
    ),
    "schedule_incomplete": Template(
        _E,
        "{operation} of microbatch {microbatch} (direction {direction}) does not run exactly once on stage {stage}; wrong in {count} places",
        "Every microbatch needs one F, and one B or one I with one W, on every stage.",
    ),
    "schedule_deadlock": Template(
        _E,
        "{operation} on rank {rank} waits forever for {other} on rank {other_rank}; {count} ranks are stuck",
        "The orders of the ranks contradict each other: run {other} earlier, or {operation} later.",
    ),
    "schedule_not_in_pytorch": Template(
        _E,
        "PyTorch's schedule file cannot hold {kind}: a stage there lives on one rank",
        "Export DualPipeV, which has the same order with each stage on one rank.",
    ),
    "loads_too_large": Template(
        _E, "the file has {size}; expert loads have at most {limit}", "Record fewer steps, or sum them first."
    ),
    "loads_syntax": Template(
        _E,
        "{place}: {reason}",
        "Expert loads and maps are JSON, CSV, or files of torch.save that hold tensors.",
    ),
    "loads_unsafe": Template(
        _E,
        "{place}: the file asks for {name}, which only running code could give; nothing was run",
        "Save the tensors alone, for instance torch.save({{'logical_count': counts}}, path).",
    ),
    "loads_missing": Template(
        _E, "the file has no entry {names}; it has {found}", "Rename the entry, or choose another file."
    ),
    "loads_ragged": Template(
        _E,
        "{place} has {found} values where the first has {wanted}",
        "Every layer needs one value for each expert.",
    ),
    "loads_not_number": Template(
        _E, "{place} is {found}, which is no number of tokens", "Loads are finite numbers, 0 or more."
    ),
    "loads_wrong_shape": Template(
        _E,
        "{place} has the shape {found}",
        "Expert loads are layers x experts, or steps x layers x experts.",
    ),
    "loads_too_many": Template(
        _E,
        "{place} has {layers} layers and {experts} experts; at most {most} are read",
        "Check that rows are layers and columns experts.",
    ),
    "map_wrong_shape": Template(
        _E, "{place} has the shape {found}", "A map is layers x slots, with a logical expert in each."
    ),
    "map_uneven": Template(
        _E,
        "the map has {slots} slots, which do not divide by {gpus} GPUs",
        "Give the GPUs that the map is for.",
    ),
    "map_not_expert": Template(
        _E, "{place} is {found}, which is no expert", "Experts are whole numbers from 0 to {last}."
    ),
    "map_without_expert": Template(
        _E, "layer {layer} of the map has no replica of expert {expert}", "Every expert needs a slot."
    ),
    "place_not_positive": Template(_E, "{size} is less than 1", "Use a whole number of 1 or more."),
    "place_too_many_gpus": Template(
        _E, "{gpus} GPUs are more than experts can be placed on here", "Use at most {most} GPUs."
    ),
    "place_not_even": Template(
        _E, "{what} = {size} does not divide by {by} = {ways}", "The nearest that do: {nearest}."
    ),
    "place_groups_uneven": Template(
        _E, "{experts} experts do not divide into {groups} groups", "Nearest numbers of groups: {nearest}."
    ),
    "place_too_few_slots": Template(
        _E, "{slots} slots cannot hold {experts} experts", "Use at least {least} slots."
    ),
    "place_too_many_slots": Template(
        _E,
        "with {slots} slots per GPU and {experts} experts to choose from, a GPU would hold an expert twice",
        "Use at most {most} slots.",
    ),
    "place_groups_not_kept": Template(
        _W,
        "{groups} groups do not divide by {nodes} nodes: the experts of a group are spread over all nodes",
        "Groups stay on one node with these numbers of groups: {nearest}.",
    ),
    "place_active_out_of_range": Template(
        _E,
        "a GPU cannot run {active} experts in a step",
        "Use {least} (so that all experts run) to {most} (its slots).",
    ),
    "place_cannot_run": Template(
        _E,
        "with {active} experts per GPU in a step, an expert of layer {layer} has no GPU to run on",
        "Use more slots, or run more experts in a step.",
    ),
    "place_previous_missing": Template(
        _E, "the incremental policy changes a placement, and none is given", "Give the one that is loaded."
    ),
    "place_previous_differs": Template(
        _E,
        "the previous placement has {found} {what} where {wanted} are asked for",
        "Give a placement of the same layers, slots and experts.",
    ),
    "place_share_impossible": Template(
        _I,
        "{count} experts have more load than one visit of every token",
        "For the traffic their loads are cut to that; a gate that picks {k} experts gives none more than 1/{k}.",
    ),
    "internal": Template(
        _E, "evaluation failed in {stage}: {reason}", "This is a bug of Meshwright; the design is unharmed."
    ),
}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a code of `CATALOGUE`, the field it concerns and the values of its texts.

    ``path`` is a dotted field path such as ``"workload.batch"``; empty for the whole file.
    """

    code: str
    path: str
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def template(self) -> Template:
        """The catalogue entry."""
        return CATALOGUE[self.code]

    @property
    def severity(self) -> Severity:
        """Error, warning or info."""
        return self.template.severity

    @property
    def message(self) -> str:
        """What is wrong, in English."""
        return self.template.message.format(**self.values)

    @property
    def hint(self) -> str:
        """What would be right, in English."""
        return self.template.hint.format(**self.values)

    def to_json(self) -> dict[str, str]:
        """Return the fields that the command line prints."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
        }


def has_errors(diagnostics: tuple[Diagnostic, ...]) -> bool:
    """Tell whether any diagnostic is an error."""
    return any(d.severity is Severity.ERROR for d in diagnostics)
