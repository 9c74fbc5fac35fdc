"""The facade: a placement for a request, or the diagnostics that say why there is none."""

from __future__ import annotations

import time
from dataclasses import dataclass

from model_core.diagnostics import Diagnostic, has_errors
from model_core.experts.arrays import Floats
from model_core.experts.dynamic import can_run
from model_core.experts.exact import place_exactly
from model_core.experts.feasibility import check_request
from model_core.experts.incremental import place_incrementally
from model_core.experts.loads import ExpertLoads
from model_core.experts.placement import Placement, PlacementRequest, Policy
from model_core.experts.policies import contiguous, place_by_groups, place_globally


@dataclass(frozen=True, slots=True, eq=False)
class PlacementResult:
    """A placement, the request it answers, what there is to say about it, and how long it took."""

    request: PlacementRequest
    placement: Placement | None
    diagnostics: tuple[Diagnostic, ...]
    seconds: float


def place(
    loads: ExpertLoads,
    request: PlacementRequest,
    previous: Placement | None = None,
    expert_bytes: float | None = None,
) -> PlacementResult:
    """Find a placement. Never raises for a bad request.

    Args:
        loads: layers x experts; a layer without load is placed as if all its experts had the same.
        request: slots, GPUs, nodes, groups and policy.
        previous: the placement that is loaded; the incremental policy starts from it.
        expert_bytes: weights of one expert, needed for a migration budget.

    Returns:
        The placement, or ``None`` with errors among the diagnostics; ``seconds`` is the time of the search.
    """
    found = check_request(request, loads.n_layers, loads.n_experts, previous)
    if has_errors(found):
        return PlacementResult(request, None, found, 0.0)
    shares = loads.shares
    start = time.perf_counter()
    placement = _find(shares, request, previous, expert_bytes)
    seconds = time.perf_counter() - start
    return PlacementResult(request, placement, found + _dynamic_problems(placement, request), seconds)


def _find(
    shares: Floats, request: PlacementRequest, previous: Placement | None, expert_bytes: float | None
) -> Placement:
    if request.policy is Policy.CONTIGUOUS:
        return contiguous(len(shares), int(shares.shape[1]), request)
    if request.policy is Policy.INCREMENTAL and previous is not None:
        return place_incrementally(shares, request, previous, _most_received(request, expert_bytes))
    if request.policy is Policy.EXACT:
        return place_exactly(shares, request)
    if request.groups_on_nodes:
        return place_by_groups(shares, request)
    return place_globally(shares, request)


def _most_received(request: PlacementRequest, expert_bytes: float | None) -> int | None:
    if request.migration_budget_bytes is None or not expert_bytes:
        return None
    return int(request.migration_budget_bytes // expert_bytes)


def _dynamic_problems(placement: Placement, request: PlacementRequest) -> tuple[Diagnostic, ...]:
    """Tell where a GPU that runs only some of its experts leaves an expert without a place."""
    if request.policy is not Policy.DYNAMIC or request.active_per_gpu is None:
        return ()
    stuck = [i for i, possible in enumerate(can_run(placement, request.active_per_gpu)) if not possible]
    if not stuck:
        return ()
    return (Diagnostic("place_cannot_run", "active", {"active": request.active_per_gpu, "layer": stuck[0]}),)
