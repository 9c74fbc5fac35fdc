"""Quantities: text such as ``"400 Gb/s"`` to SI numbers and back.

A whitelist parser on purpose: general unit libraries read ``Gb`` as gilbert. Everything inside the
core is in SI base units (bytes, seconds, FLOPs); this module is where text meets numbers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """One kind of quantity: its SI unit, the unit texts it accepts and how it is shown.

    ``lead`` is the part of the unit that stands before the prefix (``chip·ms``); values below
    ``plain_below`` are written out with grouped thousands instead of a prefix.
    """

    name: str
    unit: str
    factors: dict[str, float] = field(repr=False)
    examples: str
    binary: bool = False
    lead: str = ""
    plain_below: float = 0.0

    def accepts(self) -> str:
        """Return what a user may type, for messages and tooltips."""
        return self.examples


def _bytes_factors(suffix: str) -> dict[str, float]:
    byte = {f"{p}B{suffix}": f for p, f in (DECIMAL | BINARY).items()}
    bit = {f"{p}b{suffix}": f / 8 for p, f in (DECIMAL | BINARY).items()}
    long_bit = {f"{p}bit{suffix}": f / 8 for p, f in DECIMAL.items()}
    return byte | bit | long_bit


def _bandwidth_factors() -> dict[str, float]:
    per_second = _bytes_factors("/s")
    aliases = {f"{p}Bps": f for p, f in (DECIMAL | BINARY).items()}
    bit_aliases = {f"{p}bps": f / 8 for p, f in DECIMAL.items()}
    return per_second | aliases | bit_aliases


def _flops_factors() -> dict[str, float]:
    names = ("FLOP/s", "FLOPS", "FLOPs/s", "OP/s", "OPS", "OPs/s")
    return {f"{p}{name}": f for p, f in DECIMAL.items() for name in names}


BYTES = Dimension("bytes", "B", _bytes_factors(""), "32 GiB, 80 GB", binary=True)
BYTES_PER_S = Dimension("bandwidth", "B/s", _bandwidth_factors(), "50 GB/s, 400 Gb/s, 1.2 TB/s")
FLOPS_PER_S = Dimension("arithmetic rate", "FLOP/s", _flops_factors(), "275 TFLOP/s, 1.98 PFLOP/s")
FLOPS = Dimension("arithmetic", "FLOP", {f"{p}FLOP": f for p, f in DECIMAL.items()}, "1.2 TFLOP")
SECONDS = Dimension(
    "time",
    "s",
    {"s": 1.0, "min": 60.0, "h": 3600.0} | {f"{p}s": f for p, f in SMALL.items()},
    "30 ms, 1 us, 1.9 s",
    plain_below=math.inf,
)
COUNT = Dimension("count", "", dict(DECIMAL) | {"B": 1e9}, "64, 2048, 2k, 540.4B")
RATIO = Dimension("ratio", "", {"": 1.0, "%": 0.01}, "30 %, 0.3")
TOKENS_PER_S = Dimension(
    "throughput",
    "tok/s",
    {f"{p}tok/s": f for p, f in DECIMAL.items()},
    "2200 tok/s",
    plain_below=1e6,
)
CHIP_SECONDS = Dimension(
    "cost",
    "chip·s",
    {"chip·s": 1.0} | {f"chip·{p}s": f for p, f in SMALL.items()},
    "28 chip·ms",
    lead="chip·",
    plain_below=math.inf,
)
PRICE = Dimension("price", "USD/h", {"USD/h": 1.0, "$/h": 1.0}, "3.5 USD/h")
TOKEN_PRICE = Dimension("price", "USD/Mtok", {"USD/Mtok": 1.0}, "0.5 USD/Mtok")
POWER = Dimension("power", "W", {f"{p}W": f for p, f in DECIMAL.items()}, "700 W, 1.2 kW")
ENERGY = Dimension("energy", "J", {f"{p}J": f for p, f in (DECIMAL | SMALL).items()}, "0.3 J, 2 kJ")

_NUMBER = re.compile(r"([-+]?(?:\d[\d,_ ]*)?(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(.*)", re.DOTALL)


class QuantityError(ValueError):
    """A text is not a quantity of the dimension asked for; the message says what would be."""


def parse_quantity(text: str | float, dimension: Dimension) -> float:
    """Read a quantity as a number in the dimension's SI unit.

    Args:
        text: a number (already SI) or text such as ``"50 GB/s"``; a bare number in text is SI too.
        dimension: what is expected.

    Returns:
        The value in ``dimension.unit``.

    Raises:
        QuantityError: names what is wrong with the text and gives examples that are right.
    """
    if isinstance(text, bool):
        raise QuantityError(f"expected {_article(dimension)}, for instance {dimension.examples}")
    if isinstance(text, int | float):
        return _finite(float(text), str(text), dimension)
    stripped = text.strip()
    match = _NUMBER.fullmatch(stripped)
    digits = re.sub(r"[,_ ]", "", match[1]) if match else ""
    try:
        number = float(digits)
    except ValueError:
        raise QuantityError(
            f"{stripped[:40]!r} does not start with a number; expected {_article(dimension)}, "
            f"for instance {dimension.examples}"
        ) from None
    unit = match[2].strip() if match else ""
    if unit in dimension.factors:
        factor = dimension.factors[unit]
    elif unit == "":
        factor = 1.0
    else:
        raise QuantityError(
            f"{unit[:40]!r} is not a unit of {dimension.name}; write for instance {dimension.examples}"
        )
    return _finite(number * factor, stripped, dimension)


def _article(dimension: Dimension) -> str:
    return f"{'an' if dimension.name[0] in 'aeiou' else 'a'} {dimension.name}"


def _finite(value: float, text: str, dimension: Dimension) -> float:
    if not math.isfinite(value):
        raise QuantityError(f"{text[:40]!r} is not a finite {dimension.name}")
    return value


def format_number(value: float, digits: int = 3) -> str:
    """Format with a number of significant digits, thousands grouped, without trailing noise."""
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    decimals = max(0, digits - 1 - magnitude)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def format_quantity(value: float, dimension: Dimension, digits: int = 3) -> str:
    """Write a value for people: ``format_quantity(5e10, BYTES_PER_S) == "50 GB/s"``."""
    if not math.isfinite(value):
        return "—" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if dimension is RATIO:
        return f"{format_number(value * 100, digits)} %"
    if dimension is COUNT:
        return _format_count(value, digits)
    if 1 <= abs(value) < dimension.plain_below:
        return f"{format_number(value, max(digits, 4) if abs(value) >= 1000 else digits)} {dimension.unit}"
    return _with_unit(value, dimension, digits, dimension.binary and abs(value) >= 1024)


def _with_unit(value: float, dimension: Dimension, digits: int, binary: bool) -> str:
    text, scale = _best_unit(abs(value), _written_units(dimension, binary))
    return f"{format_number(value / scale, digits)} {text}".rstrip()


@lru_cache(maxsize=64)
def _written_units(dimension: Dimension, binary: bool) -> tuple[tuple[str, float], ...]:
    """Units that a value is written with, smallest first; other spellings are only read."""
    prefixes = BINARY if binary else {p: f for p, f in (DECIMAL | SMALL).items() if p not in ("K", "u", "μ")}
    unit = dimension.unit.removeprefix(dimension.lead)
    texts = ((f"{dimension.lead}{prefix}{unit}", factor) for prefix, factor in prefixes.items())
    usable = [item for item in texts if item[0] in dimension.factors]
    return tuple(sorted(usable, key=lambda item: item[1]))


def _format_count(value: float, digits: int) -> str:
    if abs(value) >= 1e9:
        return f"{format_number(value / 1e9, max(digits, 5))} B"
    if float(value).is_integer():
        return f"{int(value):,}"
    return format_number(value, digits)


def _best_unit(magnitude: float, units: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    """Choose the largest unit that leaves at least 1, the smallest where none does."""
    if magnitude == 0:
        return next(item for item in units if item[1] == 1.0)
    fitting = [item for item in units if item[1] <= magnitude * (1 + 1e-12)]
    return fitting[-1] if fitting else units[0]


def exact_text(value: float, dimension: Dimension) -> str:
    """Write a value so that `parse_quantity` reads back exactly the same number.

    Where rounding in binary spoils the usual prefix (2.039 TB/s), the next smaller one serves (2,039 GB/s).
    """
    for digits in (3, 6, 9, 12):
        for text in (format_quantity(value, dimension, digits), *_other_units(value, dimension, digits)):
            if parse_quantity(text, dimension) == value:
                return text
    return repr(value)


def _other_units(value: float, dimension: Dimension, digits: int) -> list[str]:
    """The value in decimal units, in the one that fits best and in the next smaller one."""
    if dimension in (RATIO, COUNT):
        return []
    units = _written_units(dimension, binary=False)
    best = units.index(_best_unit(abs(value), units))
    return [
        f"{format_number(value / f, digits)} {u}" for u, f in reversed(units[max(best - 1, 0) : best + 1])
    ]


def _parser(dimension: Dimension) -> BeforeValidator:
    def read(raw: Any) -> Any:
        return parse_quantity(raw, dimension) if isinstance(raw, str | int | float) else raw

    return BeforeValidator(read)


Bytes = Annotated[float, _parser(BYTES), Field(gt=0), BYTES]
BytesPerS = Annotated[float, _parser(BYTES_PER_S), Field(gt=0), BYTES_PER_S]
FlopsPerS = Annotated[float, _parser(FLOPS_PER_S), Field(gt=0), FLOPS_PER_S]
Seconds = Annotated[float, _parser(SECONDS), Field(ge=0), SECONDS]
UsdPerHour = Annotated[float, _parser(PRICE), Field(ge=0), PRICE]
Watts = Annotated[float, _parser(POWER), Field(gt=0), POWER]
Ratio = Annotated[float, _parser(RATIO), Field(ge=0, le=1), RATIO]
