"""A reproduced number or curve with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from model_core.spec.base import Evidence

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """What a curve is drawn over."""

    quantity: str
    unit: str
    logarithmic: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a figure. ``notes``: what each point stands for, such as its chips and batch."""

    label: str
    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()
    evidence: Evidence = Evidence.MODELLED


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure as data, with the axes of the paper."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "title": self.title,
            "x": {"quantity": self.x.quantity, "unit": self.x.unit, "logarithmic": self.x.logarithmic},
            "y": {"quantity": self.y.quantity, "unit": self.y.unit, "logarithmic": self.y.logarithmic},
            "series": [
                {
                    "label": line.label,
                    "evidence": str(line.evidence),
                    "points": [list(point) for point in line.points],
                    "notes": list(line.notes),
                }
                for line in self.series
            ],
        }


@dataclass(frozen=True, slots=True)
class Value:
    """A number, or a curve, that the model gives. ``error_band``: relative; 0 where none is known."""

    number: float | None
    evidence: Evidence = Evidence.MODELLED
    error_band: float = 0.0
    curve: Curve | None = field(default=None, repr=False)

    @property
    def known(self) -> float:
        """The number.

        Raises:
            ValueError: this is a curve.
        """
        if self.number is None:
            raise ValueError("a curve has no single value")
        return self.number


_TRUST = (Evidence.PUBLISHED, Evidence.MEASURED, Evidence.MODELLED, Evidence.ASSUMED)


def combined(number: float, parts: Sequence[Value]) -> Value:
    """Return a number made of others: as certain as the least certain of them."""
    evidence = max((part.evidence for part in parts), key=_TRUST.index)
    return Value(number, evidence, max(part.error_band for part in parts))
