"""Chooses the layout of a design from its costs, and finds where another one becomes the best.

No rule is written down here: all layouts are evaluated by the readers of `evaluate`. Pope 4.1's rule
(prefill: weight-stationary or weight-gathered by the tokens in the batch; decode: 2D weight-stationary)
is what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np

from model_core.search.arrays import Rows
from model_core.search.axes import BATCH, Axis, make_axis
from model_core.search.pareto import latency_column
from model_core.search.space import make_space
from model_core.search.sweep import SweepResult, sweep
from model_core.spec.design import Design
from model_core.spec.plan import AttentionSharding, FfnLayout

LAYOUT: Final = "plan.ffn_layout"
SHARDING: Final = "plan.attention_sharding"
TIE: Final = 1 + 1e-9
MOST_BATCH: Final = 1 << 20
EXACT: Final = 4096


@dataclass(frozen=True, slots=True)
class Choice:
    """One layout of the feedforward layer with one sharding of the attention."""

    layout: FfnLayout
    sharding: AttentionSharding


@dataclass(frozen=True, slots=True)
class Ranked:
    """A choice with what it costs: latency as in `latency_column`, seconds; memory of a chip, bytes."""

    choice: Choice
    latency_s: float
    memory_per_chip_bytes: float
    fits: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """From ``batch`` sequences (``tokens`` in a step) on, ``after`` is cheaper than ``before``."""

    batch: int
    tokens: int
    before: Choice
    after: Choice


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """The layouts of a design that are valid, cheapest first; those that do not fit come last.

    Of equally cheap ones the design's own comes first. ``switches``: where another choice becomes the best
    as the batch grows, memory set aside.
    """

    ranking: tuple[Ranked, ...]
    switches: tuple[Switch, ...]

    @property
    def best(self) -> Ranked | None:
        """The cheapest that fits, if any does."""
        return self.ranking[0] if self.ranking and self.ranking[0].fits else None

    @property
    def runner_up(self) -> Ranked | None:
        """The cheapest that fits and costs more than the best."""
        best = self.best
        others = (r for r in self.ranking if best is not None and r.fits)
        return next((r for r in others if best and r.latency_s > best.latency_s * TIE), None)

    @property
    def margin(self) -> float | None:
        """By what share the runner-up is slower; ``None`` where there is none."""
        best, other = self.best, self.runner_up
        return None if best is None or other is None else other.latency_s / best.latency_s - 1


def best_layout(design: Design, most_batch: int | None = None) -> LayoutChoice:
    """Evaluate all layouts and attention shardings of a design and choose.

    Formula: argmin over valid layouts of the latency; on the same chips that is also the cheapest
    Source: Pope 3.2, 3.3 and 4.1
    Args:
        design: the design; its own layout and sharding do not matter.
        most_batch: how far to look for switches; by default as far as the batch, and at least 1024.
    """
    result = _sweep(design, ())
    latency = result.columns[latency_column(design.workload.phase)]
    possible = np.flatnonzero(result.columns["valid"] & ~np.isnan(latency))
    fits = result.columns["fits"]
    own = Choice(design.plan.ffn_layout, design.plan.attention_sharding)
    ranking = [
        Ranked(
            _choice(result, int(number)),
            float(latency[number]),
            float(result.columns["memory_per_chip_bytes"][number]),
            bool(fits[number]),
        )
        for number in possible
    ]
    ranking.sort(key=lambda ranked: (not ranked.fits, ranked.latency_s))
    tied = [r for r in ranking if r.fits and r.latency_s <= ranking[0].latency_s * TIE]
    tied.sort(key=lambda ranked: ranked.choice != own)
    ranking[: len(tied)] = tied
    most = most_batch or min(MOST_BATCH, max(1024, design.workload.batch))
    return LayoutChoice(tuple(ranking), switch_points(design, most))


def switch_points(design: Design, most_batch: int) -> tuple[Switch, ...]:
    """Find the batches at which another choice becomes the best.

    Looks at the batches that the chips can share evenly (divisors and multiples of their number), so that
    what is found is a matter of size and not of remainders. Memory is set aside.

    Args:
        design: the design.
        most_batch: largest batch looked at.
    """
    batches = _even_batches(design.cluster.n_chips, most_batch)
    coarse = _best_per_batch(design, batches)
    found: list[Switch] = []
    for i in range(1, len(batches)):
        if coarse[i] == coarse[i - 1]:
            continue
        found += _between(design, batches[i - 1], batches[i])
    return tuple(found)


def _even_batches(chips: int, most: int) -> list[int]:
    """Divisors of the number of chips, then its multiples, each at most an eighth above the one before."""
    batches = [n for n in range(1, min(chips, most) + 1) if chips % n == 0]
    while batches[-1] + chips <= most:
        last = batches[-1]
        batches.append(last + max(1, last // 8 // chips) * chips)
    return batches


def _between(design: Design, low: int, high: int) -> list[Switch]:
    """Find the switches in (low, high], among the batches that divide as well as the two."""
    step = gcd(low, high)
    batches = list(range(low, high + 1, max(step, (high - low) // EXACT // step * step)))
    best = _best_per_batch(design, batches)
    length = design.workload.step_length
    return [
        Switch(batches[i], batches[i] * length, best[i - 1], best[i])
        for i in range(1, len(batches))
        if best[i] != best[i - 1]
    ]


def _best_per_batch(design: Design, batches: Sequence[int]) -> list[Choice]:
    result = _sweep(design, batches)
    latency = result.columns[latency_column(design.workload.phase)]
    cost: Rows = np.where(result.columns["valid"], latency, np.inf).reshape(-1, len(batches))
    stride = len(batches)
    # Equally cheap choices (over axes of size one they are the same) make no switch: stay with the last.
    best: list[int] = []
    for column in cost.T:
        equal = column <= column.min() * TIE
        best.append(best[-1] if best and equal[best[-1]] else int(np.argmax(equal)))
    return [_choice(result, row * stride) for row in best]


def _sweep(design: Design, batches: Sequence[int]) -> SweepResult:
    axes = [_axis(design, LAYOUT, list(FfnLayout)), _axis(design, SHARDING, list(AttentionSharding))]
    if batches:
        axes.append(_axis(design, BATCH, batches))
    space, _ = make_space(design, axes)
    assert space is not None, "distinct fields make a space"
    result, problems = sweep(space)
    if result is None:
        raise ValueError("; ".join(problem.message for problem in problems))
    return result


def _axis(design: Design, path: str, values: Sequence[object]) -> Axis:
    axis, problems = make_axis(design, path, values)
    if axis is None:
        raise ValueError("; ".join(problem.message for problem in problems))
    return axis


def _choice(result: SweepResult, number: int) -> Choice:
    values = result.space.values_of(number)
    return Choice(values[LAYOUT], values[SHARDING])
