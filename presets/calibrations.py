"""Calibrations and published figures that come with the product."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from model_core.published.rows import PublishedFile
from model_core.spec.base import replace_at
from model_core.spec.calibration import AUTO, NONE, CalibrationSpec
from model_core.spec.design import Design

_FOLDER = Path(__file__).parent


@cache
def calibration_names() -> tuple[str, ...]:
    """List the calibrations."""
    return tuple(sorted(path.stem for path in (_FOLDER / "calibrations").glob("*.json")))


@cache
def load_calibration(name: str) -> CalibrationSpec:
    """Load a calibration; its file also holds the residual of every row that it was fitted to."""
    return CalibrationSpec.model_validate(_read("calibrations", name)["calibration"])


def calibrations_of(chip: str) -> tuple[CalibrationSpec, ...]:
    """Return the calibrations that were measured on a chip."""
    found = (load_calibration(name) for name in calibration_names())
    return tuple(calibration for calibration in found if calibration.chip == chip)


def with_calibration(design: Design) -> Design:
    """Give the chip of a design the calibration that the plan names, where it is one of another chip.

    It is then applied with a warning, never silently.
    """
    wanted = design.plan.calibration.lower()
    chip = design.cluster.chip
    if wanted in (AUTO, NONE) or any(wanted in (c.name.lower(), c.stack.lower()) for c in chip.calibrations):
        return design
    for name in calibration_names():
        calibration = load_calibration(name)
        if wanted in (calibration.name.lower(), calibration.stack.lower()):
            return replace_at(design, "cluster.chip.calibrations", (*chip.calibrations, calibration))
    return design


@cache
def published_names() -> tuple[str, ...]:
    """List the files of published figures."""
    return tuple(sorted(path.stem for path in (_FOLDER / "published").glob("*.json")))


@cache
def load_published(name: str) -> PublishedFile:
    """Load a file of published figures."""
    return PublishedFile.model_validate(_read("published", name))


def _read(folder: str, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((_FOLDER / folder / f"{name}.json").read_text(encoding="utf-8"))
    return content
