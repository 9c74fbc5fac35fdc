"""Axes of plots: linear and logarithmic, their round values, and the plot area that they span."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from app.plots.scene import Ink, Rect, Run, SceneBuilder
from app.plots.text import TINY, text_at, width_of
from app.theme import Role

LEFT: Final = 64.0
ABOVE: Final = 24.0
BELOW: Final = 42.0
RIGHT: Final = 18.0
_STEPS: Final = (
    (1.0,),
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0),
)
_WIDE_TICK: Final = 74.0
_TALL_TICK: Final = 34.0


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """One axis. ``write`` labels a value; ``powers_of_two`` rules a logarithmic axis in doublings."""

    title: str
    low: float
    high: float
    log: bool
    write: Callable[[float], str]
    powers_of_two: bool = False

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies, 0 to 1 inside."""
        if self.log:
            value = max(value, 1e-300)
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """Return the value at a share of the axis."""
        if self.log:
            return math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        return self.low + share * (self.high - self.low)

    def ticks(self, most: int) -> tuple[float, ...]:
        """Return round values inside, as many as there is room for."""
        most = max(most, 2)
        if not self.log:
            return _linear_ticks(self.low, self.high, most)
        return (
            _doublings(self.low, self.high, most)
            if self.powers_of_two
            else _decades(self.low, self.high, most)
        )


def axis_over(
    values: Iterable[float],
    title: str,
    write: Callable[[float], str],
    log: bool = True,
    powers_of_two: bool = False,
) -> PlotAxis:
    """Make an axis that spans some values with a margin; a linear one starts at zero."""
    kept = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    low, high = (min(kept), max(kept)) if kept else (1.0, 10.0)
    if not log:
        return PlotAxis(title, min(low, 0.0), high * 1.08 if high > 0 else 1.0, False, write)
    margin = max((high / low) ** 0.06, 1.08)
    return PlotAxis(title, low / margin, high * margin, True, write, powers_of_two)


def _linear_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return tuple(step * i for i in range(first, math.floor(high / step + 1e-9) + 1))


def _decades(low: float, high: float, most: int) -> tuple[float, ...]:
    best: tuple[float, ...] = ()
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        found = tuple(m * 10.0**k for k in exponents for m in steps if low <= m * 10.0**k <= high)
        if len(found) <= most:
            best = found
    return best or tuple(10.0**k for k in exponents[:: 1 + len(exponents) // most] if low <= 10.0**k <= high)


def _doublings(low: float, high: float, most: int) -> tuple[float, ...]:
    exponents = range(math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9) + 1)
    return tuple(2.0**k for k in exponents[:: 1 + (len(exponents) - 1) // most])


@dataclass(frozen=True, slots=True)
class PlotArea:
    """A rectangle with an axis below and one at its left: values to positions and back."""

    rect: Rect
    x: PlotAxis
    y: PlotAxis

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the position of a point."""
        return self.rect.x + self.x.share(x) * self.rect.w, self.rect.bottom - self.y.share(y) * self.rect.h

    def inside(self, x: float, y: float) -> bool:
        """Whether a point lies in the area."""
        return -1e-6 <= self.x.share(x) <= 1 + 1e-6 and -1e-6 <= self.y.share(y) <= 1 + 1e-6


def plot_area(builder: SceneBuilder, place: Rect, x: PlotAxis, y: PlotAxis) -> PlotArea:
    """Draw grid, labels and titles of the axes into a place; return the area between them."""
    rect = Rect(place.x + LEFT, place.y + ABOVE, place.w - LEFT - RIGHT, place.h - ABOVE - BELOW)
    area = PlotArea(rect, x, y)
    _rule_x(builder, area)
    _rule_y(builder, area)
    builder.line(
        (rect.x, rect.y), (rect.x, rect.bottom), (rect.right, rect.bottom), ink=Ink(Role.FIELD_BORDER)
    )
    builder.items.append(text_at(rect.right, rect.bottom + 34, (_title(x.title),), 1.0))
    builder.items.append(text_at(place.x, place.y + 11, (_title(y.title),)))
    return area


def _title(text: str) -> Run:
    return Run(text, TINY, True, Role.TEXT_MUTED)


def _rule_x(builder: SceneBuilder, area: PlotArea) -> None:
    rect = area.rect
    last = -math.inf
    for value in area.x.ticks(int(rect.w / _WIDE_TICK)):
        x, _ = area.at(value, area.y.low)
        builder.line((x, rect.y), (x, rect.bottom), ink=Ink(Role.GRID))
        text = area.x.write(value)
        half = width_of(text, TINY) / 2
        if x - half > last + 6:
            builder.items.append(
                text_at(x, rect.bottom + 16, (Run(text, TINY, False, Role.TEXT_MUTED),), 0.5)
            )
            last = x + half


def _rule_y(builder: SceneBuilder, area: PlotArea) -> None:
    rect = area.rect
    for value in area.y.ticks(int(rect.h / _TALL_TICK)):
        _, y = area.at(area.x.low, value)
        builder.line((rect.x, y), (rect.right, y), ink=Ink(Role.GRID))
        text = (Run(area.y.write(value), TINY, False, Role.TEXT_MUTED),)
        builder.items.append(text_at(rect.x - 7, y + 4, text, 1.0))


def compact(value: float) -> str:
    """Write a large count in the space of a tick: ``65,536``, ``100 k``, ``2 M``, ``1 G``."""
    if value < 1e5 or (value < 1e8 and value % 1000):
        return f"{value:,.0f}"
    for power, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= power:
            return f"{value / power:,.4g} {unit}"
    return f"{value:,.0f}"
