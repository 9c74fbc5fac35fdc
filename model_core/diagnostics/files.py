"""Diagnostics of files, fields and names."""

from __future__ import annotations

from typing import Final

from model_core.diagnostics.template import Severity, Template

_E = Severity.ERROR

CODES: Final[dict[str, Template]] = {
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
    "internal": Template(
        _E, "evaluation failed in {stage}: {reason}", "This is a bug of Meshwright; the design is unharmed."
    ),
}
