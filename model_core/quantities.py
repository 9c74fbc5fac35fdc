"""A number that knows where it comes from: unit, formula, the values of its terms and its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc
from typing import Any, TypeVar

from model_core.spec.base import Evidence
from model_core.units import Dimension, format_quantity

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Formula:
    """One formula as the papers print it; the cards of the application are made from these records."""

    id: str
    title: str
    expression: str
    source: str
    assumes: str = ""


FORMULAS: dict[str, Formula] = {}
_SECTIONS = ("Formula:", "Source:", "Assumes:", "Args:", "Returns:", "Raises:")


def formula(identifier: str) -> Callable[[F], F]:
    """Register the decorated function's docstring as the formula ``identifier``.

    The first line is the title; the sections ``Formula:``, ``Source:`` and ``Assumes:`` fill the card.
    """

    def register(function: F) -> F:
        doc = getdoc(function) or ""
        FORMULAS[identifier] = Formula(
            identifier,
            doc.partition("\n")[0].rstrip("."),
            _section(doc, "Formula:"),
            _section(doc, "Source:"),
            _section(doc, "Assumes:"),
        )
        return function

    return register


def _section(doc: str, name: str) -> str:
    lines: list[str] = []
    inside = False
    for line in doc.splitlines():
        text = line.strip()
        head = next((s for s in _SECTIONS if text.startswith(s)), None)
        if head is not None:
            inside = head == name
            text = text.removeprefix(head).strip()
        elif not text:
            inside = False
        if inside and text:
            lines.append(text)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Term:
    """One symbol of a formula with its value."""

    symbol: str
    meaning: str
    value: float
    dimension: Dimension

    @property
    def text(self) -> str:
        """The value as people read it."""
        return format_quantity(self.value, self.dimension, 4)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A shown number: its value in SI, its dimension, and the formula card behind it.

    ``note`` says when a fallback filled the value in, or when it is a bound and not a prediction.
    ``error_band``: relative error to expect of a calibrated prediction; 0 where none is known.
    """

    key: str
    label: str
    value: float
    dimension: Dimension
    formula: Formula
    terms: tuple[Term, ...]
    evidence: Evidence
    note: str = ""
    error_band: float = 0.0

    @property
    def text(self) -> str:
        """The value as people read it."""
        return format_quantity(self.value, self.dimension)
