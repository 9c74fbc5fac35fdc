"""The few elementwise functions that readers need beside ``+ - * /``: the same for numbers and arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Number: TypeAlias = Any
"""A Python number or a NumPy array of numbers; every reader that counts accepts and returns either."""


def maximum(a: Number, b: Number) -> Number:
    """Return the larger of two, elementwise."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return max(a, b)


def minimum(a: Number, b: Number) -> Number:
    """Return the smaller of two, elementwise."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.minimum(a, b)
    return min(a, b)


def where(condition: Number, a: Number, b: Number) -> Number:
    """Return ``a`` where the condition holds and ``b`` elsewhere."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, a, b)
    return a if condition else b


def ceil_div(a: Number, b: Number) -> Number:
    """Return the quotient of whole numbers, rounded up.

    Arrays are divided in floating point, exact for whole numbers below 2**53 and many times faster than
    floor division of arrays.
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.ceil(a / b)
    return -(-a // b)


def ceil_log2(n: Number) -> Number:
    """Return the number of doublings that reach ``n``."""
    if isinstance(n, np.ndarray):
        return np.ceil(np.log2(n))
    return (int(n) - 1).bit_length()
