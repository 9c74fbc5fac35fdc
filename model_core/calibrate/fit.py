"""Least squares on the logarithm of latency, with a jackknife that gives the error of a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from model_core.calibrate.batches import Latencies
from model_core.calibrate.measurements import Measurement, measurements
from model_core.hardware.calibration import Efficiency
from model_core.published.conditions import Library
from model_core.published.rows import CalibrationSetup, PublishedFile
from model_core.quantities import formula
from model_core.spec.calibration import CalibratedFactor, CalibrationGroup, CalibrationSpec

Array = NDArray[np.float64]

NOISE = 0.03
"""Relative scatter of a measured latency beside the rounding of its figure: run to run, and of the model."""
FEWEST_GROUPS = 5
"""With fewer groups, single rows are left out of the jackknife instead of groups."""
DIGITS = 4
"""Significant digits kept of a fitted factor; more would mean nothing."""


class FitError(ValueError):
    """Rows and factors do not make a fit; the message says why."""


@dataclass(frozen=True, slots=True)
class Residual:
    """How far the fit stays from one row. ``held_out``: error of a fit without its group (or without it)."""

    id: str
    group: str
    measured: float
    predicted: float
    held_out: float

    @property
    def error(self) -> float:
        """Relative error of the fit."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted calibration with the residual of every row and the jackknife spread of every factor."""

    calibration: CalibrationSpec
    residuals: tuple[Residual, ...]
    spreads: dict[str, float]


class _Problem:
    """The rows with their latencies stacked, as a function of the fitted factors."""

    def __init__(self, rows: Sequence[Measurement], setup: CalibrationSetup) -> None:
        self.rows = tuple(rows)
        self.free = tuple(factor for factor in setup.factors if factor.fitted)
        self._fixed = {factor.name: factor.value for factor in setup.factors if not factor.fitted}
        designs = [design for row in self.rows for design in (*row.over, *row.under)]
        self._latencies = Latencies(designs)
        self._measured = np.array([row.measured for row in self.rows])
        self._weights = np.array([1 / np.hypot(NOISE, row.uncertainty) for row in self.rows])

    def predicted(self, values: Array) -> Array:
        """Return what the fitted factors predict for each row."""
        free = dict(zip((factor.name for factor in self.free), values, strict=True))
        seconds = iter(self._latencies.seconds(Efficiency(**self._fixed, **free)))
        found = []
        for row in self.rows:
            over = sum(next(seconds) for _ in row.over)
            under = sum(next(seconds) for _ in row.under)
            found.append(over / under if row.under else over)
        return np.array(found)

    def log_errors(self, values: Array) -> Array:
        """Return the logarithm of predicted by measured."""
        return np.asarray(np.log(self.predicted(values) / self._measured))

    def solve(self, kept: NDArray[np.bool_]) -> Array:
        """Fit to some of the rows, starting from the values of the setup.

        Formula: min Σ ((ln T_predicted − ln T_measured) / σ)², σ² = 3 %² + the row's own uncertainty²
        """
        low = np.array([_bound(factor, factor.low, "low") for factor in self.free])
        high = np.array([_bound(factor, factor.high, "high") for factor in self.free])
        start = np.array([factor.value for factor in self.free])
        scale = np.maximum(np.abs(start), 1e-3 * (high - low))
        solution = least_squares(
            lambda x: (self.log_errors(x * scale) * self._weights)[kept],
            start / scale,
            bounds=(low / scale, high / scale),
        )
        return np.asarray(solution.x * scale)


def _bound(factor: CalibratedFactor, value: float | None, side: str) -> float:
    if value is None:
        raise FitError(f"the fitted factor {factor.name} has no {side} bound")
    return value


def fit_file(file: PublishedFile, library: Library) -> Fit:
    """Fit the calibration that a file of published rows describes.

    Args:
        file: rows, and the setup of the calibration.
        library: where presets named by the rows come from.
    Returns: the calibration, with residuals.

    Raises:
        FitError: there is nothing to fit, or there are fewer rows than factors.
    """
    setup = file.calibration
    if setup is None:
        raise FitError("the file describes no calibration")
    problem = _Problem(tuple(measurements(file, library)), setup)
    if len(problem.rows) <= len(problem.free):
        text = f"{len(problem.rows)} rows to fit {len(problem.free)} factors; there must be more rows than factors"
        raise FitError(text)
    everything = np.ones(len(problem.rows), dtype=bool)
    solution = np.array([float(f"{value:.{DIGITS}g}") for value in problem.solve(everything)])
    held_out, spread = _jackknife(problem, solution)
    residuals = tuple(
        Residual(row.id, row.group, row.measured, float(predicted), float(np.expm1(error)))
        for row, predicted, error in zip(problem.rows, problem.predicted(solution), held_out, strict=True)
    )
    calibration = _calibration(file, setup, problem, solution, residuals)
    spreads = {factor.name: float(value) for factor, value in zip(problem.free, spread, strict=True)}
    return Fit(calibration, residuals, spreads)


@formula("error_band")
def error_band(held_out: Array) -> float:
    """Relative error to expect of a prediction.

    Formula: root mean square of ln(predicted / measured), each row predicted from a fit without its group
    Source: jackknife over the groups of rows
    Args:
        held_out: those logarithms.
    """
    return float(np.sqrt(np.mean(held_out**2)))


def _jackknife(problem: _Problem, solution: Array) -> tuple[Array, Array]:
    """Refit without each group; return the errors of the rows left out, and the spread of the factors."""
    groups = [row.group for row in problem.rows]
    if len(set(groups)) < FEWEST_GROUPS:
        groups = [row.id for row in problem.rows]
    names = list(dict.fromkeys(groups))
    held_out = np.zeros(len(groups))
    found = np.tile(solution, (len(names), 1))
    for i, name in enumerate(names):
        left_out = np.array([group == name for group in groups])
        if np.count_nonzero(~left_out) > len(problem.free):
            found[i] = problem.solve(~left_out)
        held_out[left_out] = problem.log_errors(found[i])[left_out]
    spread = np.sqrt((len(names) - 1) / len(names) * np.sum((found - found.mean(axis=0)) ** 2, axis=0))
    return held_out, spread


def _calibration(
    file: PublishedFile,
    setup: CalibrationSetup,
    problem: _Problem,
    solution: Array,
    residuals: Sequence[Residual],
) -> CalibrationSpec:
    fitted = {factor.name: float(value) for factor, value in zip(problem.free, solution, strict=True)}
    # A quotient of two latencies says nothing about the error of a latency.
    latencies = [r for r, row in zip(residuals, problem.rows, strict=True) if not row.under]
    band = error_band(np.log1p([residual.held_out for residual in latencies]))
    groups: dict[str, list[float]] = {}
    for residual in residuals:
        groups.setdefault(residual.group, []).append(abs(residual.error))
    return CalibrationSpec(
        name=setup.name,
        chip=setup.chip,
        stack=setup.stack,
        source=file.source,
        date=setup.date,
        factors=tuple(
            factor.replace(value=fitted.get(factor.name, factor.value)) for factor in setup.factors
        ),
        groups=tuple(
            CalibrationGroup(name=name, rows=len(errors), mean_error=round(float(np.mean(errors)), 4))
            for name, errors in groups.items()
        ),
        error_band=round(band, 3),
    )
