"""Targets of a search as people type them: ``tpot<=30ms``, ``mfu>=40%``, ``chips<=64``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

import numpy as np

from model_core.diagnostics import Diagnostic
from model_core.search.arrays import Rows
from model_core.search.readers import DIMENSIONS, MAXIMISED
from model_core.spec.workload import Phase
from model_core.units import (
    Dimension,
    QuantityError,
    format_quantity,
    parse_quantity,
)


@dataclass(frozen=True, slots=True)
class Measure:
    """Something to bound or optimise: its column, and the phase in which it exists (or any)."""

    column: str
    phase: Phase | None = None

    @property
    def dimension(self) -> Dimension:
        """The unit of its column."""
        return DIMENSIONS[self.column]

    @property
    def sign(self) -> float:
        """1 where less is better, −1 where more is."""
        return -1.0 if self.column in MAXIMISED else 1.0


MEASURES: Final[Mapping[str, Measure]] = {
    "tpot": Measure("step_s", Phase.DECODE),
    "ttft": Measure("latency_s", Phase.PREFILL),
    "latency": Measure("latency_s"),
    "memory": Measure("memory_per_chip_bytes"),
    "mfu": Measure("mfu"),
    "cost": Measure("cost_chip_s_per_token"),
    "usd": Measure("usd_per_million_tokens"),
    "energy": Measure("joules_per_token"),
    "throughput": Measure("tokens_per_s"),
    "batch": Measure("batch"),
    "context": Measure("context"),
    "chips": Measure("n_chips"),
}
"""``tpot``: time of a decode step; ``ttft``: time to prefill the input; ``latency``: of the whole phase;
``usd``: of a million tokens; ``energy``: of a token. The last two need the price and power of the chip."""

FITS: Final = "memory of the chip"
_TARGET = re.compile(r"\s*([a-z_]+)\s*(<=|>=|≤|≥|<|>|=)\s*(.+?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a measure. ``text`` is how it was written."""

    name: str
    measure: Measure
    at_most: bool
    bound: float
    text: str

    def met_by(self, columns: Mapping[str, Rows], relaxed: float = 0.0) -> Rows:
        """Tell which designs meet the target, or would if its bound were relaxed by a share."""
        values = columns[self.measure.column]
        slack = 1 + relaxed if self.at_most else 1 - relaxed
        # A bound typed in round units must not be missed by the last bit of a float.
        bound = self.bound * slack
        tolerance = 1e-12 * abs(bound)
        met: Rows = values <= bound + tolerance if self.at_most else values >= bound - tolerance
        return met

    def show(self, value: float) -> str:
        """Write a value of the measure for people."""
        return format_quantity(value, self.measure.dimension)


def parse_target(text: str, phase: Phase) -> tuple[Target | None, tuple[Diagnostic, ...]]:
    """Read a target for designs of a phase; says what is wrong with it otherwise."""
    match = _TARGET.fullmatch(text)
    if match is None:
        return None, (_problem(text, "it is not NAME<=VALUE or NAME>=VALUE", _how_to()),)
    name, sign, amount = match.groups()
    measure, problems = measure_named(name, phase, text)
    if measure is None:
        return None, problems
    try:
        bound = parse_quantity(amount, measure.dimension)
    except QuantityError as error:
        return None, (_problem(text, str(error), f"Write for instance {name}<={_example(measure)}."),)
    return Target(name, measure, sign in ("<=", "≤", "<", "="), bound, text.strip()), ()


def measure_named(name: str, phase: Phase, text: str = "") -> tuple[Measure | None, tuple[Diagnostic, ...]]:
    """Look a measure up for designs of a phase."""
    measure = MEASURES.get(name)
    if measure is None:
        near = get_close_matches(name, MEASURES, 1)
        hint = f"{_how_to()}{f' Nearest: {near[0]}.' if near else ''}"
        return None, (_problem(text or name, f"there is no {name[:40]!r}", hint),)
    if measure.phase not in (None, phase):
        other = "tpot" if phase is Phase.DECODE else "ttft"
        reason = f"{name} is a number of {measure.phase}, and the design is {phase}"
        return None, (_problem(text or name, reason, f"Use {other}, or set workload.phase."),)
    return measure, ()


def _problem(text: str, reason: str, expected: str) -> Diagnostic:
    values = {"target": repr(text.strip()[:60]), "reason": reason, "expected": expected}
    return Diagnostic("target_invalid", "", values)


def _how_to() -> str:
    return f"Bound one of {', '.join(MEASURES)}, for instance tpot<=30ms or mfu>=40%."


def _example(measure: Measure) -> str:
    return measure.dimension.examples.partition(",")[0]


def all_met(targets: tuple[Target, ...], columns: Mapping[str, Rows]) -> Rows:
    """Tell which designs meet every target."""
    met = np.ones(len(columns["valid"]), np.bool_)
    for target in targets:
        met &= target.met_by(columns)
    return met
