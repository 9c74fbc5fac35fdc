"""Migration, the incremental policy, dynamic redundancy, and the judgement of placements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_core.experts.balance import even_gpu_loads
from model_core.experts.dynamic import can_run, route_step
from model_core.experts.judge import ExpertCosts, judge
from model_core.experts.loads import ExpertLoads, zipf_loads
from model_core.experts.migration import Links, migration, received_experts
from model_core.experts.place import place
from model_core.experts.placement import Placement, PlacementRequest, Policy
from model_core.experts.routing import RoutingSpec, fit_routing
from model_core.experts.surface import trade_offs
from model_core.experts.traffic import token_bytes
from model_core.spec import Evidence

EXPERT_BYTES = 3 * 7168 * 2048
COSTS = ExpertCosts(EXPERT_BYTES, token_bytes(7168), Links())
REQUEST = PlacementRequest(40, 8, 2, 4)


def placed(loads: ExpertLoads, request: PlacementRequest, previous: Placement | None = None) -> Placement:
    result = place(loads, request, previous, EXPERT_BYTES)
    assert result.placement is not None, result.diagnostics
    return result.placement


def test_that_an_unchanged_placement_migrates_nothing() -> None:
    placement = placed(zipf_loads(1.0, n_layers=2, n_experts=32), REQUEST)
    moved = migration(placement, placement, EXPERT_BYTES, Links())
    assert (moved.bytes, moved.seconds, moved.received.tolist()) == (0, 0, [0, 0])


def test_that_slots_may_trade_places_on_a_gpu_for_nothing() -> None:
    one = Placement.of([[0, 1, 2, 3]], n_experts=4, n_gpus=2)
    other = Placement.of([[1, 0, 3, 2]], n_experts=4, n_gpus=2)
    assert received_experts(one, other).tolist() == [0]


def test_that_migration_prefers_the_own_node_and_shares_the_sending() -> None:
    """Expert 0 is on GPU 0; GPUs 1 (same node) and 2, 3 (other node) receive it."""
    before = Placement.of([[0, 1, 2, 3]], n_experts=4, n_gpus=4, n_nodes=2)
    after = Placement.of([[0, 0, 0, 0]], n_experts=4, n_gpus=4, n_nodes=2)
    moved = migration(before, after, 100.0, Links(nvlink_bytes_per_s=100.0, network_bytes_per_s=50.0))
    assert moved.received.tolist() == [3]
    assert moved.network_experts == 2
    assert moved.bytes == 300
    # GPU 0 sends two copies over the network: 200 bytes at 50 bytes/s.
    assert moved.seconds == 4


def test_that_copies_share_the_sending() -> None:
    before = Placement.of([[0, 0, 1, 1]], n_experts=2, n_gpus=4, n_nodes=2)
    after = Placement.of([[0, 0, 0, 0]], n_experts=2, n_gpus=4, n_nodes=2)
    moved = migration(before, after, 100.0, Links(network_bytes_per_s=50.0))
    assert moved.seconds == 2


@given(st.integers(0, 10_000), st.integers(0, 30), st.booleans())
@settings(max_examples=60, deadline=None)
def test_that_incremental_never_exceeds_its_budget(seed: int, experts: int, keep: bool) -> None:
    before = zipf_loads(1.0, n_layers=3, n_experts=32, seed=seed)
    now = zipf_loads(1.0, n_layers=3, n_experts=32, seed=seed + 1)
    previous = placed(before, REQUEST)
    request = replace(
        REQUEST,
        policy=Policy.INCREMENTAL,
        keep_groups=keep,
        migration_budget_bytes=EXPERT_BYTES * (experts + 0.5),
    )
    placement = placed(now, request, previous)
    assert received_experts(previous, placement).sum() <= experts
    assert placement.duplicates == 0
    assert (placement.replicas >= 1).all()
    hottest = even_gpu_loads(placement, now.shares).max(axis=1)
    assert (hottest <= even_gpu_loads(previous, now.shares).max(axis=1) * (1 + 1e-9)).all()
    if keep:
        assert ((placement.hosted_by_node > 0) == (previous.hosted_by_node > 0)).all()


def test_that_more_budget_balances_better() -> None:
    now = zipf_loads(0.8, n_layers=6, n_experts=64, seed=1)
    request = PlacementRequest(80, 16, policy=Policy.INCREMENTAL)
    previous = placed(now, replace(request, policy=Policy.CONTIGUOUS))
    levels = []
    for experts in (0, 10, 40, 10_000):
        limited = replace(request, migration_budget_bytes=experts * EXPERT_BYTES)
        levels.append(even_gpu_loads(placed(now, limited, previous), now.shares).max(axis=1).sum())
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == even_gpu_loads(previous, now.shares).max(axis=1).sum()
    assert levels[3] * 16 < 6 * 1.05


def test_that_incremental_separates_twins_that_are_loaded() -> None:
    loads = ExpertLoads(np.array([[8.0, 4, 2, 1]]), "test", Evidence.ASSUMED)
    twins = Placement.of([[0, 0, 1, 2, 3, 1]], n_experts=4, n_gpus=2)
    request = PlacementRequest(6, 2, policy=Policy.INCREMENTAL)
    placement = placed(loads, request, twins)
    assert twins.duplicates == 1
    assert placement.duplicates == 0


@pytest.mark.parametrize(
    ("previous", "part"),
    [
        (Placement.of(np.tile(np.arange(32), (2, 1)), n_experts=32, n_gpus=8, n_nodes=2), "32 slots"),
        (Placement.of(np.tile(np.arange(40) % 32, (3, 1)), n_experts=32, n_gpus=8, n_nodes=2), "3 layers"),
        (Placement.of(np.tile(np.arange(40), (2, 1)), n_experts=40, n_gpus=8, n_nodes=2), "40 experts"),
    ],
)
def test_that_a_previous_placement_must_fit(previous: Placement, part: str) -> None:
    request = replace(REQUEST, policy=Policy.INCREMENTAL)
    result = place(zipf_loads(1.0, n_layers=2, n_experts=32), request, previous)
    assert result.placement is None
    assert part in result.diagnostics[0].message


@given(st.integers(0, 10_000), st.sampled_from([2, 3, 4]), st.booleans())
@settings(max_examples=25, deadline=None)
def test_that_dynamic_routing_keeps_its_limits(seed: int, active: int, thorough: bool) -> None:
    loads = zipf_loads(0.8, n_layers=2, n_experts=16, seed=seed)
    placement = placed(loads, PlacementRequest(32, 8, policy=Policy.DYNAMIC, active_per_gpu=active))
    if not can_run(placement, active).all():
        return
    step = zipf_loads(0.8, n_layers=2, n_experts=16, seed=seed + 1).shares
    routing = route_step(placement, step, active, thorough=thorough)
    assert (routing.active.reshape(2, 8, 4).sum(axis=2) <= active).all()
    assert not routing.slot_loads[~routing.active].any()
    assert routing.gpu_loads.sum(axis=1) == pytest.approx(1)
    for layer in range(2):
        slots = placement.physical_to_logical[layer]
        assert np.bincount(slots, routing.slot_loads[layer], 16) == pytest.approx(step[layer])
        assert set(slots[routing.active[layer]]) == set(range(16))
    assert (routing.bound <= routing.gpu_loads.max(axis=1) * (1 + 1e-6)).all()


def test_that_dynamic_redundancy_follows_loads_that_a_fixed_placement_cannot() -> None:
    """DeepSeek-V3 report 3.4.1: 16 experts hosted on a GPU, 9 run in a step."""
    mean = zipf_loads(0.6, n_layers=1, n_experts=64, seed=0, drift=0.3, n_steps=4)
    assert mean.steps is not None
    step = mean.steps[3] / mean.steps[3].sum()
    fixed = placed(mean, PlacementRequest(72, 8, policy=Policy.GLOBAL))
    hosted = placed(mean, PlacementRequest(128, 8, policy=Policy.DYNAMIC, active_per_gpu=9))
    quick = route_step(hosted, step, 9).gpu_loads.max()
    thorough = route_step(hosted, step, 9, thorough=True).gpu_loads.max()
    assert thorough <= quick
    assert quick < even_gpu_loads(fixed, step).max()


def test_that_an_expert_without_a_place_to_run_is_told() -> None:
    loads = zipf_loads(0.0, n_layers=1, n_experts=8)
    crowded = Placement.of([[0, 1, 2, 3, 4, 5, 6, 7, 6, 7, 6, 7]], n_experts=8, n_gpus=2)
    assert can_run(crowded, 4).tolist() == [False]
    assert can_run(crowded, 6).tolist() == [True]
    assert (
        place(loads, PlacementRequest(12, 2, policy=Policy.DYNAMIC, active_per_gpu=4)).placement is not None
    )


def test_that_a_judgement_holds_every_figure() -> None:
    loads = zipf_loads(0.5, n_layers=3, n_experts=32, seed=1)
    previous = placed(loads, replace(REQUEST, policy=Policy.CONTIGUOUS))
    routing = fit_routing(loads.shares, RoutingSpec(32, 4, 4, 2))
    verdict = judge(placed(loads, REQUEST), loads, REQUEST, COSTS, routing, previous)
    assert (verdict.lower_bound <= verdict.max_over_mean * (1 + 1e-9)).all()
    assert verdict.slot_bytes_per_gpu == 3 * 5 * EXPERT_BYTES
    assert verdict.redundant_bytes_per_gpu == 3 * (5 - 32 / 8) * EXPERT_BYTES
    document = verdict.to_json()
    assert document["balance"]["mean"] == pytest.approx(np.mean(document["balance"]["max_over_mean"]))
    assert document["migration_bytes"] == document["migrated_experts"] * EXPERT_BYTES > 0
    assert 0 < document["cross_node_traffic"]["remote_nodes_per_token"] < 1 + 1e-9


def test_that_layers_without_load_count_as_even_and_cost_nothing() -> None:
    counts = np.vstack([np.zeros(32), zipf_loads(1.0, n_layers=1, n_experts=32).counts])
    loads = ExpertLoads(counts, "test", Evidence.ASSUMED)
    previous = placed(loads, replace(REQUEST, policy=Policy.CONTIGUOUS))
    verdict = judge(placed(loads, REQUEST), loads, REQUEST, COSTS, previous=previous)
    assert verdict.max_over_mean[0] == verdict.lower_bound[0] == 1
    assert verdict.mean_balance == verdict.worst_balance == verdict.max_over_mean[1]
    assert verdict.migration is not None
    assert len(verdict.migration.received) == 1
    assert verdict.slot_bytes_per_gpu == 5 * EXPERT_BYTES


def test_that_twins_void_the_bound_for_even_splits() -> None:
    loads = ExpertLoads(np.array([[6.0, 1, 1]]), "test", Evidence.ASSUMED)
    twins = Placement.of([[0, 0, 1, 2]], n_experts=3, n_gpus=2)
    verdict = judge(twins, loads, PlacementRequest(4, 2, policy=Policy.GLOBAL), COSTS)
    assert verdict.duplicates == 1
    assert verdict.lower_bound[0] <= verdict.max_over_mean[0]


def test_that_routing_on_the_fly_is_at_least_as_even() -> None:
    loads = zipf_loads(1.0, n_layers=2, n_experts=32)
    request = replace(REQUEST, policy=Policy.CONTIGUOUS)
    placement = placed(loads, request)
    even = judge(placement, loads, request, COSTS)
    best = judge(placement, loads, request, COSTS, on_the_fly=True)
    assert (best.max_over_mean <= even.max_over_mean * (1 + 1e-9)).all()
    assert (best.lower_bound <= best.max_over_mean * (1 + 1e-9)).all()


def test_that_trade_offs_are_columns_over_slots_and_policies() -> None:
    loads = zipf_loads(0.5, n_layers=2, n_experts=32, seed=1)
    routing = fit_routing(loads.shares, RoutingSpec(32, 4, 4, 2))
    previous = placed(loads, replace(REQUEST, policy=Policy.CONTIGUOUS))
    table, problems = trade_offs(
        loads,
        REQUEST,
        COSTS,
        slots=[32, 40, 48, 50],
        policies=[Policy.HIERARCHICAL, Policy.GLOBAL],
        routing=routing,
        previous=previous,
    )
    assert table.slots.tolist() == [32, 40, 48] * 2
    assert {len(column) for column in (table.balance, table.seconds, table.requests, table.judgements)} == {6}
    assert [d.code for d in problems] == ["place_not_even"] * 2
    assert (np.diff(table.balance[3:]) < 1e-3).all(), "more slots balance better"
    assert table.network_bytes_per_token[0] < table.network_bytes_per_token[3]
    assert table.redundant_bytes_per_gpu.tolist()[:3] == [0, 2 * EXPERT_BYTES, 4 * EXPERT_BYTES]
    assert 0 in table.best()
