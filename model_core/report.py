"""Evaluations as documents: the JSON of the command line and the table of a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from model_core.results import Evaluation, MemoryBudget, TimeBudget


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
        "mfu": evaluation.value("mfu"),
        "tokens_per_s": evaluation.value("tokens_per_s"),
        "cost_chip_s_per_token": evaluation.value("cost_chip_s_per_token"),
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
            "op": op.kind,
            "axes": "".join(sorted(op.axes)),
            "tensor": op.tensor,
            "bytes_per_chip": op.collective_bytes,
            "time_s": op.communication_s,
            "exposed_s": op.exposed_s,
            "program": op.program,
            "count": op.count,
        }
        for op in time.ops
        if op.kind not in ("einsum", "local")
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
