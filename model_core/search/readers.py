"""Reads many designs at once with the readers that `evaluate` uses: one column for each headline number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from model_core import metrics
from model_core.arithmetic import Number, where
from model_core.memory.budget import BudgetParts, kv_cache_bytes, program_bytes
from model_core.partition.checks import splits_evenly
from model_core.partition.cost import Rates
from model_core.partition.mesh import Mesh
from model_core.partition.program import LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.partition.structure import Structure
from model_core.results import ParameterCount
from model_core.spec.cluster import ClusterSpec
from model_core.spec.model import ModelSpec
from model_core.spec.plan import PlanSpec
from model_core.spec.workload import WorkloadSpec
from model_core.stages import Layout, bound_sizes, step_costs
from model_core.totals import BOUNDS, Totals, add_up
from model_core.units import (
    BYTES,
    CHIP_SECONDS,
    COUNT,
    ENERGY,
    RATIO,
    SECONDS,
    TOKEN_PRICE,
    TOKENS_PER_S,
    Dimension,
)

TIMES: Final = (
    "step_s",
    "latency_s",
    "compute_s",
    "memory_s",
    "communication_s",
    "exposed_communication_s",
    "mfu",
    "tokens_per_s",
    "cost_chip_s_per_token",
    "usd_per_million_tokens",
    "joules_per_token",
)
"""Columns that are empty (NaN) where no time can be given, or no price or power; keys as in `evaluate`."""

COLUMNS: Final = (
    "valid",
    "fits",
    "calibrated",
    "n_chips",
    "batch",
    "context",
    "memory_per_chip_bytes",
    "capacity_bytes",
    "max_context",
    *TIMES,
    "bound_by",
)
"""Every column of a sweep. ``valid``: no error but lack of memory; ``calibrated``: the times are predictions
and not bounds; ``bound_by``: index into `BOUND_NAMES`."""

DIMENSIONS: Final[Mapping[str, Dimension]] = {
    "step_s": SECONDS,
    "latency_s": SECONDS,
    "cost_chip_s_per_token": CHIP_SECONDS,
    "mfu": RATIO,
    "tokens_per_s": TOKENS_PER_S,
    "memory_per_chip_bytes": BYTES,
    "usd_per_million_tokens": TOKEN_PRICE,
    "joules_per_token": ENERGY,
    "n_chips": COUNT,
    "batch": COUNT,
    "context": COUNT,
}
"""Units of the columns that people read."""

MAXIMISED: Final = frozenset({"mfu", "tokens_per_s", "max_context", "batch", "context"})
"""Columns of which more is better."""

WHOLE: Final = frozenset({"n_chips", "batch", "context", "max_context"})
"""Columns of whole numbers; they are kept as floats so that NaN can say that there is none."""

BOUND_NAMES: Final = (*BOUNDS, "")
KINDS: Final[Mapping[str, Any]] = {
    "valid": np.bool_,
    "fits": np.bool_,
    "calibrated": np.bool_,
    "bound_by": np.uint8,
}


@dataclass(frozen=True, slots=True)
class Stacked:
    """Designs that share their programs, as specs whose numbers are arrays (`search.arrays`).

    Of the plan only numbers are read; its choices are in the structure and ``rates``. ``looped``: collectives
    run behind products at all. ``valid``: what was found without the sizes.
    """

    model: ModelSpec
    cluster: ClusterSpec
    workload: WorkloadSpec
    plan: PlanSpec
    parameters: ParameterCount
    mesh: Mesh
    rates: Rates
    looped: bool
    calibrated: bool
    valid: Number


def read_columns(
    stacked: Stacked, structure: Structure, programs: Mapping[str, LayerProgram]
) -> dict[str, Number]:
    """Return the columns of some designs that have the same structure and programs."""
    workload = stacked.workload
    columns: dict[str, Number] = {
        "calibrated": stacked.calibrated,
        "n_chips": stacked.cluster.n_chips,
        "batch": workload.batch,
        "context": workload.max_context,
        "capacity_bytes": stacked.cluster.chip.hbm_capacity,
    }
    layout = Layout(structure, programs, _sizes(stacked), ())
    columns["valid"] = stacked.valid & splits_evenly(structure, layout.sizes)
    columns |= _memory_columns(stacked, layout)
    columns |= _time_columns(stacked, layout, columns)
    columns["fits"] = columns["memory_per_chip_bytes"] <= columns["capacity_bytes"]
    has_steps = workload.n_steps > 0
    return columns if np.all(has_steps) else _without_empty(columns, has_steps)


def _sizes(stacked: Stacked) -> Sizes:
    """Bind the dimensions; arrays as floats, whose products do not overflow."""
    found = bound_sizes(stacked.model, stacked.workload, stacked.mesh.sizes, stacked.plan.microbatches)
    return Sizes({name: _as_float(size) for name, size in found.items()})


def _as_float(size: Number) -> Number:
    return size.astype(np.float64) if isinstance(size, np.ndarray) else size


def _parts(stacked: Stacked) -> BudgetParts:
    return BudgetParts(stacked.model, stacked.cluster, stacked.workload, stacked.plan, stacked.mesh.stages)


def _memory_columns(stacked: Stacked, layout: Layout) -> dict[str, Number]:
    parts, widths = _parts(stacked), stacked.rates.element_bytes
    held = program_bytes(parts, layout.programs, layout.sizes, widths, stacked.parameters, stacked.looped)
    block = layout.programs["block"]
    on_chip = kv_cache_bytes(block, layout.sizes, widths[Role.KV], parts.n_layers, 1)
    per_token = on_chip * stacked.plan.microbatches
    other = held - per_token * stacked.workload.max_context
    free = stacked.cluster.chip.hbm_capacity - other
    longest = metrics.longest_context(free, per_token, stacked.model.max_context)
    return {"memory_per_chip_bytes": held, "max_context": longest}


def _time_columns(stacked: Stacked, layout: Layout, known: Mapping[str, Number]) -> dict[str, Number]:
    model, workload, plan = stacked.model, stacked.workload, stacked.plan
    operations = step_costs(layout, stacked.rates, stacked.mesh, model.n_layers, plan.microbatches)
    sums = add_up((count, cost) for _, count, cost in operations)
    steps = workload.n_steps
    latency = metrics.latency_s(sums.step_s, steps)
    # As a NumPy number also where it is one number: no tokens then give NaN instead of an exception.
    tokens = np.multiply(workload.batch, workload.tokens_per_sequence, dtype=np.float64)
    chip, chips = stacked.cluster.chip, known["n_chips"]
    cost = metrics.cost_chip_s_per_token(chips, latency, tokens)
    price, power = chip.price_per_hour, chip.power
    return {
        "step_s": sums.step_s,
        "latency_s": latency,
        "compute_s": sums.compute_s,
        "memory_s": sums.memory_s,
        "communication_s": sums.communication_s,
        "exposed_communication_s": sums.exposed_s,
        "mfu": metrics.mfu(stacked.parameters.mfu, tokens, chips, chip.peak_bf16, latency),
        "tokens_per_s": metrics.tokens_per_s(tokens, latency),
        "cost_chip_s_per_token": cost,
        "usd_per_million_tokens": np.nan if price is None else metrics.usd_per_million_tokens(cost, price),
        "joules_per_token": np.nan if power is None else metrics.joules_per_token(cost, power),
        "bound_by": _bound_by(sums),
    }


def _without_empty(columns: dict[str, Number], has_steps: Number) -> dict[str, Number]:
    """Clear the times of phases without a step: they are unknown, and a decode without output is no design."""
    cleared = {name: np.where(has_steps, columns[name], np.nan) for name in TIMES}
    bound_by = np.where(has_steps, columns["bound_by"], len(BOUNDS))
    still = {name: columns[name] & has_steps for name in ("valid", "calibrated")}
    return {**columns, **cleared, **still, "bound_by": bound_by}


def _bound_by(sums: Totals) -> Number:
    """Return which of `BOUNDS` accounts for most of the step; the first of equals."""
    most: Number = sums.binding[BOUNDS[0]]
    found: Number = 0
    for index, name in enumerate(BOUNDS[1:], 1):
        part = sums.binding[name]
        found = where(part > most, index, found)
        most = where(part > most, part, most)
    return found
