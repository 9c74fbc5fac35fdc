"""Evaluates designs one by one where no array reader covers them: experts, latent attention, training."""

from __future__ import annotations

from typing import Any

import numpy as np

from model_core.diagnostics import Severity
from model_core.evaluate import evaluate
from model_core.search.arrays import Rows
from model_core.search.readers import BOUND_NAMES, COLUMNS, KINDS, TIMES
from model_core.search.space import Space
from model_core.spec.design import Design


def single_columns(space: Space, numbers: Rows) -> dict[str, Rows]:
    """Return the columns of some designs of a space, each from its own evaluation."""
    rows = [_row(space.design_at(int(number))[0]) for number in numbers]
    return {
        name: np.array([row.get(name, np.nan) for row in rows], KINDS.get(name, np.float64))
        for name in COLUMNS
    }


def _row(design: Design | None) -> dict[str, Any]:
    empty = {"valid": False, "fits": False, "bound_by": len(BOUND_NAMES) - 1}
    if design is None:
        return empty
    found = evaluate(design)
    errors = [d for d in found.diagnostics if d.severity is Severity.ERROR and d.code != "out_of_memory"]
    row = {
        **empty,
        "valid": not errors,
        "calibrated": found.time is not None and found.time.calibrated,
        "n_chips": design.cluster.n_chips,
        "batch": design.workload.batch,
        "context": design.workload.max_context,
        "capacity_bytes": design.cluster.chip.hbm_capacity,
        "fits": found.memory is not None and found.memory.fits,
    }
    for name in ("memory_per_chip_bytes", "max_context", *TIMES):
        value = found.value(name)
        row[name] = np.nan if value is None else value
    if found.time is not None:
        row["bound_by"] = BOUND_NAMES.index(found.time.bound_by)
    return row
