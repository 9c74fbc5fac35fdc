"""A fit as a calibration file and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from model_core.calibrate.fit import Fit

FORMAT = "calibration"
VERSION = 1


def calibration_document(fit: Fit) -> dict[str, Any]:
    """Return the content of a calibration file: the calibration, and the residual of every row used."""
    return {
        "meshwright": {"format": FORMAT, "version": VERSION},
        "calibration": fit.calibration.model_dump(mode="json", exclude_none=True),
        "spreads": {name: float(f"{spread:.2g}") for name, spread in fit.spreads.items()},
        "residuals": [
            {
                "id": residual.id,
                "measured": residual.measured,
                "predicted": float(f"{residual.predicted:.6g}"),
                "error": round(residual.error, 4),
                "held_out_error": round(residual.held_out, 4),
            }
            for residual in fit.residuals
        ],
    }


def calibration_text(fit: Fit) -> str:
    """Return a calibration file as text: one line for each factor, group and row."""
    return _written(calibration_document(fit), "") + "\n"


def _written(value: Any, indent: str) -> str:
    """Write JSON in which what holds no list or object of its own stays on one line."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(part, dict | list) for part in parts):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {_written(part, inner)}" for key, part in value.items()]
        opening, closing = "{", "}"
    else:
        lines, opening, closing = [_written(part, inner) for part in value], "[", "]"
    body = ",\n".join(f"{inner}{line}" for line in lines)
    return f"{opening}\n{body}\n{indent}{closing}"


def fit_lines(fit: Fit) -> Iterator[str]:
    """Yield the factors with their spread, the error of every group, and the residual of every row."""
    calibration = fit.calibration
    yield f"{calibration.name}: {calibration.chip}, {calibration.stack}"
    yield ""
    for factor in calibration.factors:
        spread = f"± {fit.spreads[factor.name]:.2g}" if factor.fitted else "fixed"
        yield f"  {factor.name:20} {factor.value:12.6g}  {spread}"
    yield ""
    for group in calibration.groups:
        yield f"  {group.name:32} {group.rows:4} rows   mean error {group.mean_error:6.1%}"
    yield f"  error band (rows predicted without their group): ± {calibration.error_band:.1%}"
    yield ""
    yield f"  {'row':44} {'measured':>12} {'fitted':>12} {'error':>8} {'held out':>9}"
    for row in fit.residuals:
        yield (
            f"  {row.id:44} {row.measured:12.5g} {row.predicted:12.5g} {row.error:+8.1%} {row.held_out:+9.1%}"
        )
