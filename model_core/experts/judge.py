"""Everything a placement is judged on, at once: balance and its bound, traffic, migration, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from model_core.experts.arrays import Bools, Floats
from model_core.experts.balance import best_split, even_gpu_loads, max_over_mean
from model_core.experts.bounds import flexible_bound
from model_core.experts.dynamic import route_step
from model_core.experts.exact import lower_bound
from model_core.experts.loads import ExpertLoads
from model_core.experts.migration import Links, Migration, migration
from model_core.experts.placement import Placement, PlacementRequest, Policy
from model_core.experts.routing import RoutingModel
from model_core.experts.traffic import TokenBytes, Traffic, node_traffic


@dataclass(frozen=True, slots=True)
class ExpertCosts:
    """What experts and tokens weigh: weights of one expert of one layer, and a token on the wire."""

    expert_bytes: float
    token: TokenBytes
    links: Links


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """The figures of one placement; lists have one value per layer, 1 for balance and bound without load.

    ``gpu_loads`` are layers x GPUs in shares of the layer's load. ``lower_bound`` is, like
    ``max_over_mean``, relative to the mean GPU. ``traffic`` and ``migration`` cover the layers with load
    (``has_load``); they are ``None`` without a routing, or without a placement before.
    """

    placement: Placement
    has_load: Bools
    gpu_loads: Floats
    max_over_mean: Floats
    lower_bound: Floats
    duplicates: int
    slot_bytes_per_gpu: float
    redundant_bytes_per_gpu: float
    traffic: Traffic | None
    migration: Migration | None

    @property
    def mean_balance(self) -> float:
        """Mean of max / mean GPU load over the layers with load: a step visits all of them."""
        return _mean(self.max_over_mean[self.has_load])

    @property
    def worst_balance(self) -> float:
        """Max / mean GPU load of the worst layer."""
        return float(self.max_over_mean.max())

    @property
    def mean_lower_bound(self) -> float:
        """Mean of the lower bound over the layers with load."""
        return _mean(self.lower_bound[self.has_load])

    def to_json(self) -> dict[str, Any]:
        """Return the figures in the words of the command line."""
        return {
            **self.placement.to_json(),
            "balance": {
                "max_over_mean": self.max_over_mean.tolist(),
                "mean": self.mean_balance,
                "max": self.worst_balance,
            },
            "lower_bound": self.lower_bound.tolist(),
            "duplicates": self.duplicates,
            "cross_node_traffic": None if self.traffic is None else _traffic_json(self.traffic),
            "migration_bytes": 0.0 if self.migration is None else self.migration.bytes,
            "migration_seconds": 0.0 if self.migration is None else self.migration.seconds,
            "migrated_experts": 0 if self.migration is None else int(self.migration.received.sum()),
            "memory": {
                "slot_bytes_per_gpu": self.slot_bytes_per_gpu,
                "redundant_bytes_per_gpu": self.redundant_bytes_per_gpu,
            },
        }


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 1.0


def _traffic_json(traffic: Traffic) -> dict[str, Any]:
    return {
        "nodes_per_token": float(traffic.nodes_per_token.mean()),
        "remote_nodes_per_token": float(traffic.remote_nodes_per_token.mean()),
        "bytes_per_token": float(traffic.network_bytes_per_token.mean()),
        "per_layer": {
            "nodes_per_token": traffic.nodes_per_token.tolist(),
            "bytes_per_token": traffic.network_bytes_per_token.tolist(),
        },
    }


def judge(
    placement: Placement,
    loads: ExpertLoads,
    request: PlacementRequest,
    costs: ExpertCosts,
    routing: RoutingModel | None = None,
    previous: Placement | None = None,
    *,
    on_the_fly: bool = False,
    thorough: bool = False,
) -> Judgement:
    """Judge a placement.

    Args:
        placement: the placement.
        loads: the loads of its layers.
        request: the constraints that the bound is for.
        costs: bytes and links.
        routing: fitted to the layers with load; for the traffic.
        previous: what was loaded before; for the migration.
        on_the_fly: split each expert's load over its replicas in the best way instead of evenly.
        thorough: dynamic policy: choose what runs by integer programs, some tenths of a second per layer.
    """
    loaded = loads.has_load
    shares = loads.shares
    gpu_loads = _gpu_loads(placement, shares, request, on_the_fly, thorough) * loaded[:, None]
    bound = _bound(placement, shares, request, gpu_loads.max(axis=1), on_the_fly) * placement.n_gpus
    n_layers = int(loaded.sum()) or placement.n_layers
    redundant = placement.slots_per_gpu - placement.n_experts / placement.n_gpus
    used = placement.of_layers(loaded)
    return Judgement(
        placement,
        loaded,
        gpu_loads,
        max_over_mean(gpu_loads),
        np.where(loaded, bound, 1.0),
        placement.duplicates,
        n_layers * placement.slots_per_gpu * costs.expert_bytes,
        n_layers * redundant * costs.expert_bytes,
        None if routing is None else node_traffic(used, routing, costs.token),
        None
        if previous is None
        else migration(previous.of_layers(loaded), used, costs.expert_bytes, costs.links),
    )


def _gpu_loads(
    placement: Placement, shares: Floats, request: PlacementRequest, on_the_fly: bool, thorough: bool
) -> Floats:
    if request.policy is Policy.DYNAMIC and request.active_per_gpu is not None:
        return route_step(placement, shares, request.active_per_gpu, thorough=thorough).gpu_loads
    if on_the_fly or request.policy is Policy.DYNAMIC:
        return best_split(placement, shares).gpu_loads
    return even_gpu_loads(placement, shares)


def _bound(
    placement: Placement, shares: Floats, request: PlacementRequest, hottest: Floats, on_the_fly: bool
) -> Floats:
    """Return the bound that holds for how the load is split; twins on a GPU void the even one."""
    is_dynamic = request.policy is Policy.DYNAMIC
    if is_dynamic or on_the_fly or placement.duplicates:
        active = request.active_per_gpu if is_dynamic else None
        return flexible_bound(
            shares, placement.n_gpus, placement.n_gpus * (active or placement.slots_per_gpu)
        )
    return lower_bound(shares, request, hottest)
