"""The trade-off of slots, balance, traffic and migration over many requests, as columns to plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_core.diagnostics import Diagnostic, has_errors
from model_core.experts.arrays import Floats, Ints
from model_core.experts.judge import ExpertCosts, Judgement, judge
from model_core.experts.loads import ExpertLoads
from model_core.experts.place import place
from model_core.experts.placement import Placement, PlacementRequest, Policy
from model_core.experts.routing import RoutingModel


@dataclass(frozen=True, slots=True, eq=False)
class TradeOffs:
    """One row per request that could be met; every column has as many values.

    ``balance`` is the mean over layers of max / mean GPU load, ``worst_balance`` that of the worst layer.
    """

    requests: tuple[PlacementRequest, ...]
    judgements: tuple[Judgement, ...]
    slots: Ints
    balance: Floats
    worst_balance: Floats
    lower_bound: Floats
    network_bytes_per_token: Floats
    migration_bytes: Floats
    redundant_bytes_per_gpu: Floats
    seconds: Floats

    def best(self) -> list[int]:
        """Return the rows that no other row beats in slots, balance, traffic and migration alike."""
        columns = (self.slots, self.balance, self.network_bytes_per_token, self.migration_bytes)
        table = np.column_stack([np.nan_to_num(np.asarray(c, float)) for c in columns])
        beats = (table[:, None] <= table[None]).all(axis=2) & (table[:, None] < table[None]).any(axis=2)
        return [int(row) for row in np.flatnonzero(~beats.any(axis=0))]


def trade_offs(
    loads: ExpertLoads,
    base: PlacementRequest,
    costs: ExpertCosts,
    *,
    slots: Sequence[int],
    policies: Iterable[Policy],
    routing: RoutingModel | None = None,
    previous: Placement | None = None,
) -> tuple[TradeOffs, tuple[Diagnostic, ...]]:
    """Place and judge for every number of slots and every policy.

    Args:
        loads: layers x experts.
        base: GPUs, nodes and groups of all requests.
        costs: bytes and links.
        slots: numbers of slots to try.
        policies: policies to try.
        routing: for the traffic.
        previous: for the migration.

    Returns:
        The rows, and the diagnostics of requests that could not be met.
    """
    rows: list[tuple[PlacementRequest, Judgement, float]] = []
    problems: list[Diagnostic] = []
    for policy in policies:
        for count in slots:
            request = replace(base, n_slots=count, policy=policy)
            result = place(loads, request, previous, costs.expert_bytes)
            if result.placement is None:
                problems += [d for d in result.diagnostics if has_errors((d,))]
                continue
            verdict = judge(result.placement, loads, request, costs, routing, previous)
            rows.append((request, verdict, result.seconds))
    return _columns(rows), tuple(problems)


def _columns(rows: list[tuple[PlacementRequest, Judgement, float]]) -> TradeOffs:
    verdicts = tuple(verdict for _, verdict, _ in rows)
    return TradeOffs(
        tuple(request for request, _, _ in rows),
        verdicts,
        np.array([v.placement.n_slots for v in verdicts], np.intp),
        np.array([v.mean_balance for v in verdicts]),
        np.array([v.worst_balance for v in verdicts]),
        np.array([v.mean_lower_bound for v in verdicts]),
        np.array([_network_bytes(v) for v in verdicts]),
        np.array([0.0 if v.migration is None else v.migration.bytes for v in verdicts]),
        np.array([v.redundant_bytes_per_gpu for v in verdicts]),
        np.array([seconds for _, _, seconds in rows]),
    )


def _network_bytes(verdict: Judgement) -> float:
    return np.nan if verdict.traffic is None else float(verdict.traffic.network_bytes_per_token.mean())
