"""Evaluations as documents: the JSON of the command line and the table of a notebook."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from model_core.results import Evaluation, MemoryBudget, OpTime, TimeBudget

AT_LEAST: Final = frozenset(
    (
        "step_s",
        "latency_s",
        "cost_chip_s_per_token",
        "usd_per_million_tokens",
        "joules_per_token",
        "gpu_hours_per_trillion_tokens",
    )
)
"""Numbers that can only be higher than at peak rates."""
AT_MOST: Final = frozenset(("mfu", "hfu", "tokens_per_s"))
"""Numbers that can only be lower than at peak rates."""

TRAINING_ROW: Final = "training"
"""Kind of the rows of a training step: each holds all work, loading or communication of one kind."""


def bound_sign(evaluation: Evaluation, key: str) -> str:
    """Return the sign of a number that is a bound at peak rates; nothing for any other."""
    if evaluation.time is None or evaluation.time.calibrated:
        return ""
    return "≥" if key in AT_LEAST else "≤" if key in AT_MOST else ""


def collectives(time: TimeBudget) -> tuple[OpTime, ...]:
    """Return what communicates in a step."""
    return tuple(
        op
        for op in time.ops
        if op.kind not in ("einsum", "local") and (op.kind != TRAINING_ROW or op.communication_s > 0)
    )


def collective_name(op: OpTime) -> str:
    """Name a collective; communication of a training step by what it serves."""
    return op.name if op.kind == TRAINING_ROW else op.kind


def collective_bytes(op: OpTime) -> float | None:
    """Return the bytes that a chip receives; ``None`` where only the time is known."""
    return op.collective_bytes if op.kind != TRAINING_ROW or op.collective_bytes else None


def collective_axes(op: OpTime) -> str:
    """Return the mesh axes of a collective in order, or the cluster axis that a stage sends along."""
    return op.axes if op.kind == "send" else "".join(sorted(op.axes))


_HEADLINE: Final = (
    "mfu",
    "hfu",
    "tokens_per_s",
    "cost_chip_s_per_token",
    "usd_per_million_tokens",
    "joules_per_token",
    "gpu_hours_per_trillion_tokens",
    "bubble_fraction",
)


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the evaluation as plain JSON data in SI units; unknown parts are ``None``."""
    parameters = evaluation.parameters
    return {
        "design": evaluation.design.name,
        "diagnostics": [d.to_json() for d in evaluation.diagnostics],
        "parameters": None
        if parameters is None
        else {
            "total": parameters.total,
            "active": parameters.active,
            "groups": dict(parameters.groups),
            "convention": parameters.convention,
        },
        "kv_cache": {
            "bytes_per_token": evaluation.value("kv_bytes_per_token"),
            "max_context": _whole(evaluation.value("max_context")),
        },
        "memory": None if evaluation.memory is None else _memory(evaluation.memory),
        "time": None if evaluation.time is None else _time(evaluation.time),
        "collectives": [] if evaluation.time is None else _collectives(evaluation.time),
        **{key: evaluation.value(key) for key in _HEADLINE},
        "quantities": {key: q.value for key, q in evaluation.quantities.items()},
        "calibration": _calibration(evaluation),
        "evidence": {key: str(q.evidence) for key, q in evaluation.quantities.items()},
        "notes": {key: q.note for key, q in evaluation.quantities.items() if q.note},
    }


def _calibration(evaluation: Evaluation) -> dict[str, Any] | None:
    """Name what the times rest on; ``None``: they are bounds at peak rates."""
    used = evaluation.calibration
    if used is None:
        return None
    return {"name": used.name, "chip": used.chip, "stack": used.stack, "error_band": used.error_band}


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _memory(memory: MemoryBudget) -> dict[str, Any]:
    return {
        "capacity_bytes": memory.capacity_bytes,
        "per_chip_bytes": memory.per_chip_bytes,
        "fits": memory.fits,
        "items": [
            {"name": i.name, "bytes": i.bytes, "kind": i.kind, "detail": i.detail} for i in memory.items
        ],
    }


def _time(time: TimeBudget) -> dict[str, Any]:
    return {
        "latency_s": time.latency_s,
        "step_s": time.step_s,
        "compute_s": time.compute_s,
        "memory_s": time.memory_s,
        "communication_s": time.communication_s,
        "exposed_communication_s": time.exposed_communication_s,
        "bound_by": time.bound_by,
        "calibrated": time.calibrated,
    }


def _collectives(time: TimeBudget) -> list[dict[str, Any]]:
    return [
        {
            "op": collective_name(op),
            "axes": collective_axes(op),
            "tensor": op.tensor,
            "bytes_per_chip": collective_bytes(op),
            "time_s": op.communication_s,
            "exposed_s": op.exposed_s,
            "program": op.program,
            "count": op.count,
        }
        for op in collectives(time)
    ]


def evaluation_html(evaluation: Evaluation) -> str:
    """Return the headline numbers and the findings as an HTML table."""
    rows = "".join(
        f"<tr><th>{escape(q.label)}</th><td>{escape(q.text)}</td><td>{escape(str(q.evidence))}</td></tr>"
        for q in evaluation.quantities.values()
    )
    findings = "".join(
        f"<li>{escape(str(d.severity))}: {escape(d.path)}: {escape(d.message)}</li>"
        for d in evaluation.diagnostics
    )
    return f"<b>{escape(evaluation.design.name)}</b><table>{rows}</table><ul>{findings}</ul>"
