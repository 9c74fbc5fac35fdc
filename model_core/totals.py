"""Adds the operations of a step up to its times, elementwise: one design or an array of designs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from model_core.arithmetic import Number, maximum, where

BOUNDS = (
    "compute",
    "weight loading",
    "KV loading",
    "activation traffic",
    "communication",
    "fixed costs",
)
"""What can bind a step, in the order in which ties are resolved."""

LOADS = ("weight loading", "KV loading", "activation traffic")
"""Those of `BOUNDS` that go through the memory, in the order of the fields of `Timed`."""


class Timed(Protocol):
    """Times of one operation, as in `partition.cost.OpCost` and `results.OpTime`."""

    @property
    def compute_s(self) -> Number:
        """Arithmetic."""

    @property
    def weight_s(self) -> Number:
        """Loading of weights."""

    @property
    def kv_s(self) -> Number:
        """Loading of the cache."""

    @property
    def activation_s(self) -> Number:
        """Activations that pass through memory."""

    @property
    def fixed_s(self) -> Number:
        """Cost whatever the size."""

    @property
    def communication_s(self) -> Number:
        """Collective, hidden or not."""

    @property
    def exposed_s(self) -> Number:
        """Collective, what is not hidden."""


@dataclass(slots=True)
class Totals:
    """Sums over the operations of a step; ``binding`` holds the time that each of `BOUNDS` accounts for."""

    step_s: Number = 0.0
    compute_s: Number = 0.0
    memory_s: Number = 0.0
    communication_s: Number = 0.0
    exposed_s: Number = 0.0
    binding: dict[str, Number] = field(default_factory=lambda: dict.fromkeys(BOUNDS, 0.0))


def add_up(operations: Iterable[tuple[Number, Timed]]) -> Totals:
    """Add up operations, each with how often it runs.

    Formula: step = Σ count · (max(T_compute, T_weights + T_KV + T_activations) + T_exposed + T_fixed)
    Source: Pope 2 and 3.5
    """
    sums = Totals()
    # Operations of one program run equally often: added up first, they are multiplied once.
    for _, run in groupby(operations, key=lambda item: id(item[0])):
        first, *others = run
        once = _Sums()
        for _, op in (first, *others):
            once.add(op)
        once.into(sums, first[0])
    return sums


@dataclass(slots=True)
class _Sums:
    """Sums over operations that run equally often; a zero that is a plain number costs no array work."""

    busy_s: Number = 0.0
    compute_s: Number = 0.0
    loading_s: Number = 0.0
    communication_s: Number = 0.0
    exposed_s: Number = 0.0
    binding: dict[str, Number] = field(default_factory=dict)

    def add(self, op: Timed) -> None:
        """Add one operation."""
        if not _is_zero(op.communication_s):
            self.communication_s = _plus(self.communication_s, op.communication_s)
            self.exposed_s = _plus(self.exposed_s, op.exposed_s)
        if not _is_zero(op.fixed_s):
            self._bind("fixed costs", op.fixed_s)
            self.busy_s = _plus(self.busy_s, op.fixed_s)
        parts = (op.weight_s, op.kv_s, op.activation_s)
        loads = [(name, part) for name, part in zip(LOADS, parts, strict=True) if not _is_zero(part)]
        if not loads:
            if not _is_zero(op.compute_s):
                self.compute_s = _plus(self.compute_s, op.compute_s)
                self.busy_s = _plus(self.busy_s, op.compute_s)
                self._bind("compute", op.compute_s)
            return
        loading: Number = 0.0
        for _, part in loads:
            loading = _plus(loading, part)
        busy = maximum(op.compute_s, loading)
        computes = op.compute_s >= loading
        computing = where(computes, op.compute_s, 0.0)
        self.compute_s = _plus(self.compute_s, op.compute_s)
        self.loading_s = _plus(self.loading_s, loading)
        self.busy_s = _plus(self.busy_s, busy)
        self._bind("compute", computing)
        for name, part in loads:
            # Where loading binds, it is all of the busy time; else none of it.
            self._bind(name, busy - computing if len(loads) == 1 else where(computes, 0.0, part))

    def _bind(self, name: str, part: Number) -> None:
        if not _is_zero(part):
            self.binding[name] = _plus(self.binding.get(name, 0.0), part)

    def into(self, sums: Totals, count: Number) -> None:
        """Add all of it to the sums of the step, ``count`` times."""
        sums.step_s = _plus(sums.step_s, count * _plus(self.busy_s, self.exposed_s))
        sums.compute_s = _plus(sums.compute_s, count * self.compute_s)
        sums.memory_s = _plus(sums.memory_s, count * self.loading_s)
        sums.communication_s = _plus(sums.communication_s, count * self.communication_s)
        sums.exposed_s = _plus(sums.exposed_s, count * self.exposed_s)
        for name, part in {**self.binding, "communication": self.exposed_s}.items():
            sums.binding[name] = _plus(sums.binding[name], count * part)


def _is_zero(part: Number) -> bool:
    return isinstance(part, float) and part == 0.0


def _plus(total: Number, part: Number) -> Number:
    if _is_zero(part):
        return total
    return part if _is_zero(total) else total + part
