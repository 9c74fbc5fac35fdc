"""Diagnostics of sweeps, recommendations and fits."""

from __future__ import annotations

from typing import Final

from model_core.diagnostics.template import Severity, Template

_E = Severity.ERROR
_W = Severity.WARNING

CODES: Final[dict[str, Template]] = {
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
    "above_target": Template(
        _W,
        "{latency} per {unit} is above the target of {target}",
        "Raise chips, lower batch, or use int8 weights.",
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
}
