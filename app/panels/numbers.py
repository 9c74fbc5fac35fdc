"""Numbers as people read them, the same in the headline and on the card."""

from __future__ import annotations

import re

from model_core.quantities import Quantity
from model_core.units import (
    CHIP_SECONDS,
    RATIO,
    SECONDS,
    TOKENS_PER_S,
    Dimension,
    format_number,
    format_quantity,
)

MISSING = "—"
_WORD = re.compile(r"[^\W\d]\w*")


def value_text(value: float, dimension: Dimension, digits: int = 3) -> str:
    """Write a value: ``9.67 chip·ms`` rather than ``9.67 mchip·s``, ``6,617 tok/s`` rather than ``6.62 ktok/s``."""
    if dimension is CHIP_SECONDS:
        number, _, unit = format_quantity(value, SECONDS, digits).rpartition(" ")
        return f"{number} chip·{unit}"
    if dimension is TOKENS_PER_S and 1 <= abs(value) < 1e6:
        return f"{format_number(value, max(digits, 4))} {dimension.unit}"
    return format_quantity(value, dimension, digits)


def quantity_text(quantity: Quantity) -> str:
    """Write the value of a quantity."""
    return value_text(quantity.value, quantity.dimension)


def change_text(change: float, dimension: Dimension) -> str:
    """Write a difference with its sign; of shares, in percentage points."""
    sign = "+" if change > 0 else "−"
    if dimension is RATIO:
        return f"{sign}{format_number(abs(change) * 100, 2)} pp"
    return sign + value_text(abs(change), dimension, 2)


def filled_in(quantity: Quantity) -> str:
    """Write the formula with values in place of its symbols; empty where it names more than its terms.

    Only the first case of a formula with several is filled in.
    """
    expression = quantity.formula.expression.partition(";")[0]
    values = {term.symbol: value_text(term.value, term.dimension, 4) for term in quantity.terms}
    words = set(_WORD.findall(expression))
    if not words or not words <= set(values):
        return ""
    return _WORD.sub(lambda match: values[match[0]], expression)
