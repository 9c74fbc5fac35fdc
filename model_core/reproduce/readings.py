"""Reads single numbers from evaluations of preset designs."""

from __future__ import annotations

from model_core.evaluate import evaluate
from model_core.published.conditions import Library, design_of
from model_core.published.rows import Reading
from model_core.reproduce.values import Value
from model_core.results import Evaluation


def read(reading: Reading, library: Library) -> Value:
    """Return the number of a reading."""
    return value_of(evaluate(design_of(reading, library)), reading.key, reading.scale)


def value_of(evaluation: Evaluation, key: str, scale: float = 1.0) -> Value:
    """Return a number of an evaluation with its evidence and error band.

    Raises:
        ValueError: the design does not give this number; the message names its diagnostics.
    """
    quantity = evaluation.quantities.get(key)
    if quantity is None:
        found = "; ".join(diagnostic.message for diagnostic in evaluation.diagnostics)
        raise ValueError(f"{evaluation.design.name} gives no {key}: {found}")
    return Value(quantity.value * scale, quantity.evidence, quantity.error_band)
