"""Published bubble formulas with the domains in which they hold. The product simulates; these explain.

In all of them F, B = I + W and F&B are the times of one stage (one chunk) and M is the number of
microbatches. PP is the number of ranks; in those of DualPipe and DualPipeV that of stages, which DSV3
Table 2 counts (twice the ranks of DualPipeV). The functions work elementwise on arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from model_core.quantities import FORMULAS, formula
from model_core.schedule.operations import Schedule
from model_core.schedule.simulate import StageDurations

Number = Any
"""A float or an array of floats."""
STAGES_TWICE: Final = "PP = 2 · ranks"


@formula("bubble_1f1b")
def bubble_1f1b(pp: Number, forward_s: Number, input_s: Number, weight_s: Number) -> Number:
    """Bubble of GPipe, 1F1B and interleaved 1F1B.

    Formula: (PP − 1)(F + B)
    Source: DSV3 Table 2; Narayanan et al. 2021, 2.2 (interleaved: F and B of one chunk)
    Assumes: equal stages, no p2p time; interleaved: M ≥ PP

    Args:
        pp: ranks.
        forward_s: F of one chunk.
        input_s: I of one chunk.
        weight_s: W of one chunk.

    Returns:
        Idle seconds of every rank between the first start and the last end.
    """
    return (pp - 1) * (forward_s + input_s + weight_s)


@formula("bubble_zb1p")
def bubble_zb1p(pp: Number, forward_s: Number, input_s: Number, weight_s: Number) -> Number:
    """Bubble of ZB-H1 (ZB1P).

    Formula: (PP − 1)(F + B − 2W)
    Source: DSV3 Table 2; Qi et al. 2023, Table 2
    Assumes: equal stages, no p2p time, W ≤ F, W ≤ I and M ≥ PP

    Args:
        pp: ranks.
        forward_s: F.
        input_s: I.
        weight_s: W.

    Returns:
        Idle seconds of every rank between the first start and the last end.
    """
    return (pp - 1) * (forward_s + input_s - weight_s)


@formula("bubble_zb2p")
def bubble_zb2p(pp: Number, forward_s: Number, input_s: Number, weight_s: Number) -> Number:
    """Bubble of ZB-2P between iterations.

    Formula: (PP − 1)(F + B − 3W), at least 0
    Source: Qi et al. 2023, Table 2 (ZB-H2: T_F + T_B − 2 T_W, where T_B is I)
    Assumes: equal stages, no p2p time, W ≤ F and M ≥ 2PP − 1; no rank waits for all others between iterations

    Args:
        pp: ranks.
        forward_s: F.
        input_s: I.
        weight_s: W.

    Returns:
        Idle seconds per iteration of every rank.
    """
    return np.maximum((pp - 1) * (forward_s + input_s - 2 * weight_s), 0.0)


@formula("bubble_zbv")
def bubble_zbv(pp: Number, forward_s: Number, input_s: Number, weight_s: Number) -> Number:
    """Bubble of ZB-V between iterations.

    Formula: 0
    Source: Qi et al. 2024 (V-ZB)
    Assumes: equal stages, no p2p time, F = I = W; no rank waits for all others between iterations

    Args:
        pp: ranks.
        forward_s: F of one chunk.
        input_s: I of one chunk.
        weight_s: W of one chunk.

    Returns:
        Idle seconds per iteration of every rank.
    """
    return 0.0 * (pp + forward_s + input_s + weight_s)


@formula("bubble_chimera")
def bubble_chimera(
    pp: Number, forward_s: Number, input_s: Number, weight_s: Number, microbatches: Number
) -> Number:
    """Bubble of Chimera with concatenated units.

    Formula: (PP − 2)(B + (M/PP − 1)(B − F))
    Source: Li and Hoefler 2021, 3.1 and 3.3 for M = PP; for more units fitted to the simulation here
    Assumes: equal stages, no p2p time, B ≥ F

    Args:
        pp: ranks.
        forward_s: F.
        input_s: I.
        weight_s: W.
        microbatches: M, over both directions.

    Returns:
        Idle seconds of every rank between the first start and the last end.
    """
    backward_s = input_s + weight_s
    return (pp - 2) * (backward_s + (microbatches / pp - 1) * (backward_s - forward_s))


@formula("bubble_dualpipe_published")
def bubble_dualpipe_published(pp: Number, input_s: Number, weight_s: Number, pair_s: Number) -> Number:
    """Bubble of DualPipe and DualPipeV as published.

    Formula: (PP/2 − 1)(F&B + B − 3W)
    Source: DSV3 Table 2
    Assumes: equal stages, no p2p time, I = F, W ≤ I and max(F, B) ≤ F&B ≤ F + B

    Args:
        pp: stages.
        input_s: I.
        weight_s: W.
        pair_s: F&B.

    Returns:
        Idle seconds of the ranks in the middle (at the turn of the V), which idle most.
    """
    return (pp / 2 - 1) * (pair_s + input_s - 2 * weight_s)


@formula("bubble_dualpipe")
def bubble_dualpipe(
    pp: Number, forward_s: Number, input_s: Number, weight_s: Number, pair_s: Number
) -> Number:
    """Bubble of DualPipe and DualPipeV as simulated.

    Formula: k (F&B − W − min(W, I)) + max(k F, k I − F) with k = PP/2 − 1
    Source: closed form of the simulated DSV3 Figure 5
    Assumes: equal stages, no p2p time, max(F, B) ≤ F&B ≤ F + B

    Args:
        pp: stages.
        forward_s: F.
        input_s: I.
        weight_s: W.
        pair_s: F&B.

    Returns:
        Idle seconds of the ranks in the middle (at the turn of the V), which idle most.
    """
    k = pp / 2 - 1
    steady = k * (pair_s - weight_s - np.minimum(weight_s, input_s))
    return steady + np.maximum(k * forward_s, k * input_s - forward_s)


@dataclass(frozen=True, slots=True)
class BubbleFormula:
    """A formula's value for one schedule, and whether the schedule is in its domain.

    ``between_iterations``: compare it with `Simulation.iteration_bubble_s`, else with
    `Simulation.bubble_s`; in both with the largest of all ranks. ``symbols`` says what PP is where it is not the ranks.
    """

    id: str
    value_s: float
    holds: bool
    between_iterations: bool = False
    symbols: str = ""

    @property
    def expression(self) -> str:
        """The formula as printed, with what its PP is where that is not the number of ranks."""
        printed = FORMULAS[self.id].expression
        return f"{printed}; {self.symbols}" if self.symbols else printed

    @property
    def domain(self) -> str:
        """Where it holds."""
        return FORMULAS[self.id].assumes


@dataclass(frozen=True, slots=True)
class _Case:
    """The symbols of a schedule whose stages are alike (means, where they are not)."""

    pp: int
    n_stages: int
    microbatches: int
    forward_s: float
    input_s: float
    weight_s: float
    pair_s: float
    even: bool

    @property
    def pair_between(self) -> bool:
        backward_s = self.input_s + self.weight_s
        longest, sum_s = max(self.forward_s, backward_s), self.forward_s + backward_s
        return longest <= self.pair_s * (1 + 1e-12) and self.pair_s <= sum_s * (1 + 1e-12)


def bubble_formulas(schedule: Schedule, durations: StageDurations) -> tuple[BubbleFormula, ...]:
    """Return the formulas of a schedule's kind with their values; none for a kind that has none."""
    make = _BY_KIND.get(schedule.kind)
    return () if make is None else make(_case(schedule, durations))


def _case(schedule: Schedule, durations: StageDurations) -> _Case:
    times = (durations.forward_s, durations.input_s, durations.weight_s)
    forward_s, input_s, weight_s = (float(t.mean()) for t in times)
    pair = durations.pair_s
    alike = all(np.ptp(t) == 0 for t in (*times, *(() if pair is None else (pair,))))
    return _Case(
        schedule.pp,
        schedule.layout.n_stages,
        schedule.microbatches,
        forward_s,
        input_s,
        weight_s,
        forward_s + input_s + weight_s if pair is None else float(pair.mean()),
        alike and not durations.p2p_s.any(),
    )


def _plain(c: _Case) -> tuple[BubbleFormula, ...]:
    value = bubble_1f1b(c.pp, c.forward_s, c.input_s, c.weight_s)
    return (BubbleFormula("bubble_1f1b", value, c.even),)


def _interleaved(c: _Case) -> tuple[BubbleFormula, ...]:
    value = bubble_1f1b(c.pp, c.forward_s, c.input_s, c.weight_s)
    return (BubbleFormula("bubble_1f1b", value, c.even and c.microbatches >= c.pp),)


def _zb1p(c: _Case) -> tuple[BubbleFormula, ...]:
    value = bubble_zb1p(c.pp, c.forward_s, c.input_s, c.weight_s)
    holds = c.weight_s <= min(c.forward_s, c.input_s) and c.microbatches >= c.pp
    return (BubbleFormula("bubble_zb1p", value, c.even and holds),)


def _zb2p(c: _Case) -> tuple[BubbleFormula, ...]:
    value = float(bubble_zb2p(c.pp, c.forward_s, c.input_s, c.weight_s))
    holds = c.weight_s <= c.forward_s and c.microbatches >= 2 * c.pp - 1
    return (BubbleFormula("bubble_zb2p", value, c.even and holds, between_iterations=True),)


def _zbv(c: _Case) -> tuple[BubbleFormula, ...]:
    holds = c.even and c.forward_s == c.input_s == c.weight_s
    return (BubbleFormula("bubble_zbv", 0.0, holds, between_iterations=True),)


def _chimera(c: _Case) -> tuple[BubbleFormula, ...]:
    value = bubble_chimera(c.pp, c.forward_s, c.input_s, c.weight_s, c.microbatches)
    return (BubbleFormula("bubble_chimera", value, c.even and c.input_s + c.weight_s >= c.forward_s),)


def _dualpipe(c: _Case) -> tuple[BubbleFormula, ...]:
    published = bubble_dualpipe_published(c.n_stages, c.input_s, c.weight_s, c.pair_s)
    exact = float(bubble_dualpipe(c.n_stages, c.forward_s, c.input_s, c.weight_s, c.pair_s))
    within = c.even and c.pair_between
    published_holds = within and c.input_s == c.forward_s and c.weight_s <= c.input_s
    symbols = STAGES_TWICE if c.n_stages == 2 * c.pp else ""
    return (
        BubbleFormula("bubble_dualpipe_published", published, published_holds, symbols=symbols),
        BubbleFormula("bubble_dualpipe", exact, within, symbols=symbols),
    )


_BY_KIND: Final[dict[str, Callable[[_Case], tuple[BubbleFormula, ...]]]] = {
    "gpipe": _plain,
    "1f1b": _plain,
    "interleaved": _interleaved,
    "zb-h1": _zb1p,
    "zb-2p": _zb2p,
    "zb-v": _zbv,
    "chimera": _chimera,
    "dualpipe": _dualpipe,
    "dualpipev": _dualpipe,
}
