"""What is wrong with a request for a placement, and the nearest sizes that work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from model_core.diagnostics import Diagnostic
from model_core.experts.placement import Placement, PlacementRequest, Policy

MAX_GPUS: Final = 16_384


def check_request(
    request: PlacementRequest, n_layers: int, n_experts: int, previous: Placement | None
) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a request; empty where it can be met.

    Args:
        request: the request.
        n_layers: layers of the loads.
        n_experts: experts of a layer.
        previous: the placement before, where one is given.
    """
    sizes = tuple(_sizes(request, n_experts))
    if sizes:
        return sizes
    return (
        *_slots(request, n_experts),
        *_groups(request),
        *_previous(request, n_layers, n_experts, previous),
    )


def _sizes(request: PlacementRequest, n_experts: int) -> Iterator[Diagnostic]:
    sizes = {
        "slots": request.n_slots,
        "gpus": request.n_gpus,
        "nodes": request.n_nodes,
        "groups": request.n_groups,
    }
    wrong = [name for name, size in sizes.items() if size < 1]
    if wrong:
        yield from (Diagnostic("place_not_positive", name, {"size": sizes[name]}) for name in wrong)
        return
    if request.n_gpus > MAX_GPUS:
        yield Diagnostic("place_too_many_gpus", "gpus", {"gpus": request.n_gpus, "most": MAX_GPUS})
    if request.n_gpus % request.n_nodes:
        yield _not_even("gpus", "GPUs", request.n_gpus, "nodes", request.n_nodes)
    if n_experts % request.n_groups:
        nearest = _nearest_divisors(n_experts, request.n_groups)
        values = {"groups": request.n_groups, "experts": n_experts, "nearest": nearest}
        yield Diagnostic("place_groups_uneven", "groups", values)
    if request.n_slots % request.n_gpus:
        yield _not_even("slots", "slots", request.n_slots, "GPUs", request.n_gpus)


def _not_even(path: str, what: str, size: int, by: str, ways: int) -> Diagnostic:
    nearest = _nearest_multiples(size, ways)
    values = {"what": what, "size": size, "by": by, "ways": ways, "nearest": nearest}
    return Diagnostic("place_not_even", path, values)


def _nearest_multiples(size: int, ways: int) -> str:
    below = size // ways * ways
    return f"{below}, {below + ways}" if below else str(ways)


def _nearest_divisors(number: int, wanted: int) -> str:
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    below = [d for d in divisors if d < wanted][-1:]
    above = [d for d in divisors if d > wanted][:1]
    return ", ".join(str(d) for d in below + above)


def _slots(request: PlacementRequest, n_experts: int) -> Iterator[Diagnostic]:
    if request.n_slots < n_experts:
        least = -(-n_experts // request.n_gpus) * request.n_gpus
        values = {"slots": request.n_slots, "experts": n_experts, "least": least}
        yield Diagnostic("place_too_few_slots", "slots", values)
    nodes = request.n_nodes if request.groups_on_nodes else 1
    reachable = n_experts // nodes
    if request.slots_per_gpu > reachable and request.policy is not Policy.INCREMENTAL:
        values = {
            "slots": request.slots_per_gpu,
            "experts": reachable,
            "most": reachable * request.n_gpus,
        }
        yield Diagnostic("place_too_many_slots", "slots", values)
    if request.policy is Policy.DYNAMIC:
        yield from _active(request, n_experts)


def _active(request: PlacementRequest, n_experts: int) -> Iterator[Diagnostic]:
    active = request.slots_per_gpu if request.active_per_gpu is None else request.active_per_gpu
    least = -(-n_experts // request.n_gpus)
    if not least <= active <= request.slots_per_gpu:
        values = {"active": active, "least": least, "most": request.slots_per_gpu}
        yield Diagnostic("place_active_out_of_range", "active", values)


def _groups(request: PlacementRequest) -> Iterator[Diagnostic]:
    wanted = request.keep_groups or request.policy is Policy.HIERARCHICAL
    if wanted and request.n_nodes > 1 and not request.groups_divide:
        nearest = _nearest_multiples(request.n_groups, request.n_nodes)
        values = {"groups": request.n_groups, "nodes": request.n_nodes, "nearest": nearest}
        yield Diagnostic("place_groups_not_kept", "groups", values)


def _previous(
    request: PlacementRequest, n_layers: int, n_experts: int, previous: Placement | None
) -> Iterator[Diagnostic]:
    if previous is None:
        if request.policy is Policy.INCREMENTAL:
            yield Diagnostic("place_previous_missing", "previous", {})
        return
    pairs = {"layers": (previous.n_layers, n_layers), "experts": (previous.n_experts, n_experts)}
    if request.policy is Policy.INCREMENTAL:
        pairs["slots"] = (previous.n_slots, request.n_slots)
    for what, (found, wanted) in pairs.items():
        if found != wanted:
            values = {"what": what, "found": found, "wanted": wanted}
            yield Diagnostic("place_previous_differs", "previous", values)
            return
