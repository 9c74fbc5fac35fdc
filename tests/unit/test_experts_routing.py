"""Routing: the closed form against enumeration, against drawn tokens, and the report's facts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from model_core.experts.gates import Score, balance_logits, distinct_units, draw_tokens, send_to_replicas
from model_core.experts.loads import zipf_loads
from model_core.experts.place import place
from model_core.experts.placement import Placement, PlacementRequest, Policy
from model_core.experts.routing import RoutingModel, RoutingSpec, fit_routing, touched_groups, untouched
from model_core.experts.traffic import (
    experts_at_same_cost,
    experts_per_node_hidden,
    gpus_per_token,
    node_traffic,
    token_bytes,
    two_hop_seconds,
)

Floats = NDArray[np.float64]
V3 = RoutingSpec(256, 8, 8, 4)


def elsewhere_of(groups: int, experts: int) -> Floats:
    """Units are the groups themselves."""
    return 1 - np.repeat(np.eye(groups), experts // groups, axis=1)[None]


def subsets(model: RoutingModel) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every set of experts with its probability, by definition."""
    spec = model.spec
    size = spec.n_experts // spec.n_groups
    mass = {}
    for chosen in combinations(range(spec.n_experts), spec.n_per_token):
        touched = len({e // size for e in chosen})
        if touched <= spec.limit:
            mass[chosen] = float(np.prod(model.weights[0, list(chosen)]) * model.factors[0, touched])
    total = sum(mass.values())
    yield from ((chosen, value / total) for chosen, value in mass.items())


@pytest.mark.parametrize(
    "spec", [RoutingSpec(8, 3), RoutingSpec(8, 3, 4, 2), RoutingSpec(9, 4, 3, 2), RoutingSpec(6, 2, 3, 1)]
)
def test_that_the_closed_form_is_the_sum_over_all_sets(spec: RoutingSpec) -> None:
    shares = np.random.default_rng(1).dirichlet(np.full(spec.n_experts, 8.0))[None]
    model = fit_routing(shares, spec)
    elsewhere = np.random.default_rng(2).random((1, 2, spec.n_experts))
    by_sum = np.zeros(2)
    rates = np.zeros(spec.n_experts)
    groups = np.zeros(spec.limit + 1)
    for chosen, probability in subsets(model):
        by_sum += probability * elsewhere[0][:, list(chosen)].prod(axis=1)
        rates[list(chosen)] += probability
        groups[len({e // (spec.n_experts // spec.n_groups) for e in chosen})] += probability
    assert untouched(model, elsewhere)[0] == pytest.approx(by_sum, rel=1e-9)
    assert model.rates[0] == pytest.approx(rates, rel=1e-6)
    assert touched_groups(model)[0] == pytest.approx(groups, abs=1e-12)


def test_that_the_fit_meets_the_shares() -> None:
    shares = zipf_loads(0.6, n_layers=4, n_experts=256).shares
    model = fit_routing(shares, V3)
    assert model.rates == pytest.approx(8 * shares, rel=1e-3)
    assert model.misfit < 1e-3
    assert model.clipped == 0


def test_that_a_share_no_gate_can_reach_is_cut() -> None:
    """Zipf 1.0 gives the hottest of 256 experts 16 % of the load; 8 experts per token allow 12.5 %."""
    model = fit_routing(zipf_loads(1.0, n_layers=1, n_experts=256).shares, RoutingSpec(256, 8))
    assert model.clipped == 1
    assert model.rates.max() == pytest.approx(0.999, rel=1e-3)
    assert model.rates.sum() == pytest.approx(8, rel=1e-3)


def test_that_even_loads_without_limit_are_hypergeometric() -> None:
    model = fit_routing(np.full((1, 256), 1 / 256), RoutingSpec(256, 8, 8, 8))
    expected = 8 * (1 - comb(224, 8) / comb(256, 8))
    nodes = (1 - untouched(model, elsewhere_of(8, 256))).sum()
    assert nodes == pytest.approx(expected, rel=1e-9)
    assert touched_groups(model)[0] @ np.arange(9) == pytest.approx(expected, rel=1e-9)


def test_that_even_loads_open_groups_up_to_the_limit() -> None:
    """A gate that ranks groups by their best expert touches min(limit, groups of the unlimited top 8)."""
    free = fit_routing(np.full((1, 256), 1 / 256), RoutingSpec(256, 8, 8, 8))
    limited = fit_routing(np.full((1, 256), 1 / 256), V3)
    expected = touched_groups(free)[0] @ np.minimum(np.arange(9), 4)
    assert touched_groups(limited)[0] @ np.arange(5) == pytest.approx(expected, rel=1e-9)
    chosen = draw_tokens(np.zeros(256), V3, 20_000, np.random.default_rng(0), group_top=1)
    assert distinct_units(chosen, np.arange(256) // 32) == pytest.approx(expected, rel=2e-3)


def test_that_drawn_tokens_keep_to_the_rules_of_the_gate() -> None:
    chosen = draw_tokens(np.linspace(0, 3, 256), V3, 500, np.random.default_rng(3))
    assert chosen.shape == (500, 8)
    assert all(len(set(row)) == 8 for row in chosen.tolist())
    assert max(len(set(row)) for row in (chosen // 32).tolist()) <= 4


@pytest.mark.parametrize(("score", "exponent"), [("sigmoid", 0.0), ("sigmoid", 0.4), ("softmax", 0.4)])
def test_that_closed_form_and_gate_agree(score: Score, exponent: float) -> None:
    """Nodes within 1 %, GPUs within 2 % of tokens drawn through a gate with the same expert loads."""
    generator = np.random.default_rng(4)
    shares = zipf_loads(exponent, n_layers=1, n_experts=256, seed=2).shares
    model = fit_routing(shares, V3)
    logits = balance_logits(model.rates[0], V3, generator, score=score, n_tokens=4_096, iterations=16)
    chosen = draw_tokens(logits, V3, 12_000, generator, score=score)
    for units, tolerance in ((8, 0.01), (32, 0.02)):
        closed = (1 - untouched(model, elsewhere_of(units, 256))).sum()
        drawn = distinct_units(chosen, np.arange(256) // (256 // units))
        assert drawn == pytest.approx(closed, rel=tolerance)


@pytest.mark.parametrize("policy", [Policy.HIERARCHICAL, Policy.GLOBAL])
def test_that_traffic_of_a_placement_agrees_with_drawn_tokens(policy: Policy) -> None:
    """Replicas are chosen alike; the hierarchical policy keeps a token on the nodes of its groups."""
    generator = np.random.default_rng(5)
    loads = zipf_loads(0.4, n_layers=1, n_experts=256, seed=1)
    placement = place(loads, PlacementRequest(288, 32, 4, 8, policy)).placement
    assert placement is not None
    model = fit_routing(loads.shares, V3)
    traffic = node_traffic(placement, model, token_bytes(7168))
    logits = balance_logits(model.rates[0], V3, generator, n_tokens=4_096, iterations=16)
    chosen = draw_tokens(logits, V3, 12_000, generator)
    units = send_to_replicas(chosen, placement.hosted[0], generator)
    assert distinct_units(units, np.arange(32) // 8) == pytest.approx(traffic.nodes_per_token[0], rel=0.015)
    assert distinct_units(units, np.arange(32)) == pytest.approx(
        gpus_per_token(placement, model)[0], rel=0.02
    )


def test_that_groups_on_nodes_send_less_than_experts_anywhere() -> None:
    loads = zipf_loads(0.4, n_layers=2, n_experts=256)
    model = fit_routing(loads.shares, V3)
    nodes = {}
    for policy in (Policy.HIERARCHICAL, Policy.GLOBAL):
        placement = place(loads, PlacementRequest(320, 64, 8, 8, policy)).placement
        assert placement is not None
        nodes[policy] = node_traffic(placement, model, token_bytes(7168)).nodes_per_token.mean()
    assert nodes[Policy.HIERARCHICAL] <= 4 < nodes[Policy.GLOBAL]


def test_that_traffic_is_counted_once_per_node_and_not_at_home() -> None:
    placement = Placement.of([[0, 1, 2, 3]], n_experts=4, n_gpus=4, n_nodes=2)
    model = fit_routing(np.full((1, 4), 0.25), RoutingSpec(4, 3))
    traffic = node_traffic(placement, model, token_bytes(256))
    assert traffic.nodes_per_token[0] == pytest.approx(2, rel=1e-3)
    assert traffic.remote_nodes_per_token[0] == pytest.approx(1, rel=1e-3)
    sent = token_bytes(256).both
    assert traffic.network_bytes_per_token[0] == pytest.approx(sent, rel=1e-3)
    assert traffic.matrix(0) == pytest.approx(np.array([[0, sent], [sent, 0]]), rel=1e-3)


def test_that_a_token_is_dispatched_in_fp8_and_combined_in_bf16() -> None:
    assert token_bytes(7168).dispatch == 7168 + 56 * 4
    assert token_bytes(7168).combine == 2 * 7168


def test_that_nvlink_keeps_up_with_3_2_experts_per_node() -> None:
    """DeepSeek-V3 report 3.2.2: 160 / 50 GB/s; up to 13 experts on 4 nodes at the same cost."""
    nvlink, network = 160e9, 50e9
    assert experts_per_node_hidden(nvlink, network) == pytest.approx(3.2)
    assert experts_at_same_cost(4, nvlink, network) == 13
    eight = two_hop_seconds(4, 8, 7168, nvlink, network)
    assert two_hop_seconds(4, 4 * 3.2, 7168, nvlink, network) == pytest.approx(eight)
    assert two_hop_seconds(4, 13, 7168, nvlink, network) == pytest.approx(eight, rel=0.02)
    assert two_hop_seconds(4, 16, 7168, nvlink, network) > 1.2 * eight


@pytest.mark.parametrize(
    "spec", [RoutingSpec(9, 3, 2, 1), RoutingSpec(8, 5, 4, 2), RoutingSpec(7, 2), RoutingSpec(8, 8)]
)
def test_that_an_impossible_gate_is_refused(spec: RoutingSpec) -> None:
    with pytest.raises(ValueError, match=r"divide|fewer|visits all"):
        fit_routing(np.full((1, 8 if spec.n_experts == 7 else spec.n_experts), 0.1), spec)
