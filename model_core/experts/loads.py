"""Expert loads: how many tokens visited each expert of each layer, measured or made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from model_core.experts.arrays import Bools, Floats
from model_core.spec.base import Evidence

MAX_LAYERS: Final = 2_000
MAX_EXPERTS: Final = 8_192


@dataclass(frozen=True, slots=True, eq=False)
class ExpertLoads:
    """Tokens that visited each expert: layers x experts, not negative; layers without any are dense layers.

    ``steps`` holds the same by time, steps x layers x experts, where the statistics have it.
    """

    counts: Floats
    name: str
    evidence: Evidence
    steps: Floats | None = None

    def __post_init__(self) -> None:
        for array in (self.counts, self.steps):
            if array is not None:
                array.flags.writeable = False

    @property
    def n_layers(self) -> int:
        """Layers, those without load included."""
        return len(self.counts)

    @property
    def n_experts(self) -> int:
        """Routed experts of a layer."""
        return int(self.counts.shape[1])

    @property
    def shares(self) -> Floats:
        """Each expert's share of its layer's load; rows sum to 1, all equal where a layer has no load."""
        totals = self.counts.sum(axis=1, keepdims=True)
        even = np.full_like(self.counts, 1 / self.n_experts)
        shares: Floats = np.divide(self.counts, totals, out=even, where=totals > 0)
        return shares

    @property
    def has_load(self) -> Bools:
        """Which layers have any load."""
        present: Bools = self.counts.max(axis=1) > 0
        return present

    @property
    def hottest_over_mean(self) -> Floats:
        """Load of the hottest expert over the mean, per layer; 1 where there is no load."""
        peak: Floats = self.shares.max(axis=1) * self.n_experts
        return peak


def zipf_loads(
    exponent: float,
    *,
    n_layers: int,
    n_experts: int,
    seed: int = 0,
    noise: float = 0.0,
    drift: float = 0.0,
    n_steps: int = 1,
    tokens_per_step: float = 1e6,
) -> ExpertLoads:
    """Make up loads: Zipf by rank, the ranks shuffled in each layer.

    Formula: load(rank) ~ rank^-exponent x exp(noise x N(0, 1)); from step to step a share ``drift`` of the
        experts of each layer trade their places.
    Assumes: the order of the experts is independent between layers.

    Args:
        exponent: 0 is even; about 0.6 resembles measured decode loads.
        n_layers: layers.
        n_experts: experts of a layer.
        seed: of the pseudorandom numbers; the same seed gives the same loads.
        noise: standard deviation of the logarithm of a load around its rank's.
        drift: share of the experts whose loads are shuffled among each other at each step, 0 to 1.
        n_steps: steps; the counts are their sum.
        tokens_per_step: load of one layer in one step.

    Returns:
        The loads, assumed; with ``steps`` where there are several.
    """
    generator = np.random.default_rng(seed)
    by_rank = np.arange(1, n_experts + 1) ** -float(exponent)
    current = np.stack([by_rank[generator.permutation(n_experts)] for _ in range(n_layers)])
    current *= np.exp(noise * generator.standard_normal(current.shape))
    current *= tokens_per_step / current.sum(axis=1, keepdims=True)
    steps = np.empty((n_steps, n_layers, n_experts))
    for step in range(n_steps):
        if step:
            current = _drifted(current, drift, generator)
        steps[step] = current
    name = f"Zipf {exponent:g}, seed {seed}"
    return ExpertLoads(steps.sum(axis=0), name, Evidence.ASSUMED, steps if n_steps > 1 else None)


def _drifted(loads: Floats, drift: float, generator: np.random.Generator) -> Floats:
    """Shuffle the loads of a share of the experts of each layer among each other."""
    moving = round(drift * loads.shape[1])
    after = loads.copy()
    for row in after:
        chosen = generator.choice(row.size, moving, replace=False)
        row[chosen] = row[generator.permutation(chosen)]
    return after
