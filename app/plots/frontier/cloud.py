"""The designs around the current one, swept in a worker: points, frontiers, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from model_core.diagnostics import Diagnostic
from model_core.search.arrays import Rows
from model_core.search.axes import BATCH, make_axis
from model_core.search.choices import default_axes
from model_core.search.pareto import Frontier, frontiers, latency_column, pareto_indices
from model_core.search.readers import MAXIMISED
from model_core.search.space import SearchCancelledError, make_space
from model_core.search.sweep import SweepResult, sweep
from model_core.spec import Design, Phase
from model_core.spec.base import replace_at

PATHS: Final = {
    "batch": (BATCH,),
    "slice": ("cluster.topology.shape", "cluster.topology"),
    "layout": ("plan.ffn_layout",),
    "attention": ("plan.attention_sharding",),
    "weights": ("plan.weight_dtype",),
    "kv": ("plan.kv_dtype",),
    "mesh": ("plan.mesh",),
}
"""What may be swept, by the names that the bar of the view uses."""

SWEPT_AT_FIRST: Final = frozenset(("batch", "slice", "layout", "attention", "weights"))
BATCHES: Final = 11
"""Powers of two that are swept as batches, from 1 on; more of them where the design's own batch is large."""

MOST_BATCH: Final = 10**7
SAME: Final = 0.005
"""Difference of two designs, as a part of their coordinates, that cannot be seen."""

WEIGHTS: Final = "plan.weight_dtype"
COST: Final = "cost_chip_s_per_token"


def swept_batches(design: Design) -> tuple[int, ...]:
    """Return powers of two up to at least four times the batch, as far as a design may have them."""
    last = (4 * design.workload.batch - 1).bit_length()
    return tuple(1 << k for k in range(max(BATCHES, last + 1)) if 1 << k <= MOST_BATCH)


@dataclass(frozen=True, slots=True)
class Wish:
    """What to sweep around a design, and what to set against the latency (a column)."""

    design: Design
    swept: frozenset[str] = SWEPT_AT_FIRST
    y: str = COST

    def same_designs(self, other: Wish) -> bool:
        """Whether another wish is about the same designs: the given ones differ along swept fields only."""
        if self.swept != other.swept or self.y != other.y:
            return False
        if "batch" in self.swept and swept_batches(self.design) != swept_batches(other.design):
            return False
        return self._settled(self.design) == self._settled(other.design)

    def _settled(self, design: Design) -> Design:
        """Set what is swept, and what changes no number, to fixed values."""
        changed = design.replace(name="", notes="")
        values: dict[str, Any] = {
            "layout": ("plan.ffn_layout", self.design.plan.ffn_layout),
            "attention": ("plan.attention_sharding", self.design.plan.attention_sharding),
            "weights": (WEIGHTS, self.design.plan.weight_dtype),
        }
        for name in self.swept & values.keys():
            path, value = values[name]
            changed = replace_at(changed, path, value)
        if "batch" in self.swept:
            changed = replace_at(changed, BATCH, 1)
        workload = changed.workload.replace(latency_target=None)
        return changed.replace(workload=workload)


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """A swept space: ``numbers`` of the designs that fit and have a time, with their coordinates."""

    wish: Wish
    result: SweepResult
    x: str
    numbers: Rows
    xs: Rows
    ys: Rows
    fronts: tuple[Frontier, ...]

    @property
    def y(self) -> str:
        """The column set against the latency."""
        return self.wish.y

    @property
    def total(self) -> int:
        """Number of designs looked at."""
        return self.result.space.size

    @property
    def higher_is_better(self) -> bool:
        """Whether more of `y` is better."""
        return self.y in MAXIMISED

    def position(self, number: int) -> tuple[float, float]:
        """Return the coordinates of a design."""
        columns = self.result.columns
        return float(columns[self.x][number]), float(columns[self.y][number])

    def on_front(self) -> Rows:
        """Return the numbers of all designs on a frontier."""
        found = [front.numbers for front in self.fronts]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def is_on_front(self, x: float, y: float) -> bool:
        """Whether these are the coordinates of a design on a frontier."""
        on = self.on_front()
        xs, ys = self.result.columns[self.x][on], self.result.columns[self.y][on]
        return bool(np.any(np.isclose(xs, x, rtol=SAME, atol=0) & np.isclose(ys, y, rtol=SAME, atol=0)))

    def best_within(self, seconds: float) -> int | None:
        """Return the best design that is as fast as asked for."""
        inside = np.flatnonzero(self.xs <= seconds * (1 + 1e-9))
        if not len(inside):
            return None
        values = -self.ys[inside] if self.higher_is_better else self.ys[inside]
        return int(self.numbers[inside[np.argmin(values)]])


@dataclass(frozen=True, slots=True)
class NoCloud:
    """A sweep without a design to show, and why."""

    wish: Wish
    problems: tuple[Diagnostic, ...]
    total: int = 0


def sweep_cloud(
    wish: Wish, cancelled: Callable[[], bool], progress: Callable[[int, int], None] | None = None
) -> Cloud | NoCloud | None:
    """Sweep the designs of a wish; ``None`` if cancelled. What is swept are choices of inference."""
    if wish.design.workload.phase is Phase.TRAINING:
        return NoCloud(wish, ())
    fixed = [path for name, paths in PATHS.items() if name not in wish.swept for path in paths]
    # Without the design's own batch the cloud stays the same while the batch is dragged.
    batches = make_axis(wish.design, BATCH, swept_batches(wish.design))[0] if "batch" in wish.swept else None
    given = () if batches is None else (batches,)
    space, problems = make_space(wish.design, default_axes(wish.design, (), fixed, given))
    if space is None:
        return NoCloud(wish, problems)
    try:
        result, problems = sweep(space, cancelled, progress)
    except SearchCancelledError:
        return None
    if result is None:
        return NoCloud(wish, problems, space.size)
    return _cloud(wish, result)


def _cloud(wish: Wish, result: SweepResult) -> Cloud | NoCloud:
    x = latency_column(wish.design.workload.phase)
    numbers = np.flatnonzero(result.usable & ~np.isnan(result.columns[wish.y]))
    if not len(numbers):
        return NoCloud(wish, (), result.space.size)
    xs, ys = result.columns[x][numbers], result.columns[wish.y][numbers]
    return Cloud(wish, result, x, numbers, xs, ys, frontiers(result, wish.y, (WEIGHTS,)))


def best_of(cloud: Cloud, numbers: Iterable[int]) -> list[int]:
    """Order designs by latency, those that no other of them beats first."""
    given = np.fromiter(numbers, np.int64)
    columns = cloud.result.columns
    x, y = columns[cloud.x][given], columns[cloud.y][given]
    on = pareto_indices(x, -y if cloud.higher_is_better else y)
    rest = np.setdiff1d(np.arange(len(given)), on)
    rest = rest[np.lexsort((y[rest], x[rest]))]
    return [int(n) for n in given[np.concatenate((on, rest))]]
