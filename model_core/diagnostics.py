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
        _E, "the cluster axis {axis} ({size} chips) is not assigned", "Assign {axis} to x, y or z."
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
    "time_not_modelled": Template(
        _W,
        "{what} has no layer program yet: no time is given, and weights are taken as split over all chips",
        "Parameters, KV cache and the sum of the memory are exact; nothing is guessed for the time.",
    ),
    "training_not_modelled": Template(
        _W,
        "training has no time or activation model yet",
        "Weights and parameters are given; choose prefill or decode for the rest.",
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
