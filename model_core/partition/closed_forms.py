"""The closed forms of Pope for the communication of a feedforward layer, for any F/E, plain or gated.

They approximate (K − 1)/K as 1. The product counts its layer programs instead; these forms explain the
counts, choose the automatic mesh and serve the tests as oracles.
"""

from __future__ import annotations

from math import sqrt

from model_core.arithmetic import Number
from model_core.quantities import formula


@formula("closed_form_1d")
def stationary_1d_elements(tokens: Number, d_model: Number) -> Number:
    """Communication of the 1D weight-stationary layout.

    Formula: T = 2 · B·L·E / bandwidth
    Source: Pope 3.2.1
    Args:
        tokens: B·L.
        d_model: E.
    Returns: elements per chip; times the bytes of one and over the bandwidth gives T.
    Assumes: K ≫ 1
    """
    return 2 * tokens * d_model


@formula("closed_form_2d")
def stationary_2d_elements(
    tokens: Number, d_model: Number, d_ff: Number, x: Number, yz: Number, gated: bool = False
) -> Number:
    """Communication of the 2D weight-stationary layout.

    Formula: T = B·L · (2·E/X + m·F/(Y·Z)) / bandwidth; m = 2 plain, 3 gated (two inputs, one output)
    Source: Pope 3.2.2 and A.2.1
    Args:
        tokens: B·L.
        d_model: E.
        d_ff: F.
        x: X, chips that split E.
        yz: Y·Z, chips that split F.
        gated: whether the layer has a gate matrix.
    Returns: elements per chip.
    Assumes: K ≫ 1
    """
    return tokens * (2 * d_model / x + (3 if gated else 2) * d_ff / yz)


@formula("optimal_x")
def optimal_x(chips: float, d_model: float, d_ff: float, gated: bool = False) -> float:
    """Best X of the 2D weight-stationary layout.

    Formula: X = √(2·E·n / (m·F)); for F = 4·E, plain: X = 0.5·√n, Y·Z = 2·√n
    Source: Pope A.2.1, generalised to any F/E
    Args:
        chips: n.
        d_model: E.
        d_ff: F.
        gated: m = 3 gated, 2 plain.
    """
    return sqrt(2 * d_model * chips / ((3 if gated else 2) * d_ff))


@formula("closed_form_weight_gathered")
def weight_gathered_elements(
    tokens: Number, d_model: Number, d_ff: Number, gathered: Number, chips: Number, gated: bool = False
) -> Number:
    """Communication of the weight-gathered layouts.

    Formula: T = (m·E·F·N/n + 2·B·L·E/N) / bandwidth; m = 2 plain, 3 gated
    Source: Pope 3.2.3 and A.2.2
    Args:
        tokens: B·L.
        d_model: E.
        d_ff: F.
        gathered: N, chips over which the weights are gathered: X, X·Y or X·Y·Z.
        chips: n.
        gated: whether the layer has a gate matrix.
    Returns: elements per chip.
    Assumes: K ≫ 1; at N = n the activations do not move at all, which the form overstates
    """
    return (3 if gated else 2) * d_model * d_ff * gathered / chips + 2 * tokens * d_model / gathered


@formula("optimal_n")
def optimal_gathered(tokens: float, d_ff: float, chips: float, gated: bool = False) -> float:
    """Best number of chips to gather weights over.

    Formula: N = √(2·B·L·n / (m·F)); plain: N = √(B·L·n/F)
    Source: Pope 3.2.3 and A.2.2
    Args:
        tokens: B·L.
        d_ff: F.
        chips: n.
        gated: m = 3 gated, 2 plain.
    """
    return sqrt(2 * tokens * chips / ((3 if gated else 2) * d_ff))
