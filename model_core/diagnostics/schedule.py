"""Diagnostics of pipeline schedules."""

from __future__ import annotations

from typing import Final

from model_core.diagnostics.template import Severity, Template

_E = Severity.ERROR

CODES: Final[dict[str, Template]] = {
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
}
