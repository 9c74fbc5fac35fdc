"""Published figures of expert placement, and the public algorithm on measured loads.

Measured loads: DeepSeek-V3 expert counts of SGLang's published statistics (sgl-project/sglang issue 6017).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from model_core.experts.balance import even_gpu_loads, max_over_mean
from model_core.experts.load_files import read_loads
from model_core.experts.loads import ExpertLoads, zipf_loads
from model_core.experts.map_files import read_map
from model_core.experts.place import place
from model_core.experts.placement import Placement, PlacementRequest, Policy
from model_core.experts.routing import RoutingSpec, fit_routing
from model_core.experts.traffic import (
    experts_at_same_cost,
    experts_per_node_hidden,
    node_traffic,
    token_bytes,
)
from tests.unit.experts_public import public_map

SHARED = Path(__file__).parents[3] / "shared"
SAMPLES = ["decode_in1000out1000", "decode_in2000out100", "prefill_in1024", "prefill_in4096"]
# Slots, GPUs, nodes, groups: prefill unit (DeepSeek-V3 report 3.4.1), decode unit (3.4.2), and the later
# decode unit of production (deepseek-ai/open-infra-index, day 6: EP144, 18 nodes, 2 routed experts per GPU).
UNITS = {"prefill": (288, 32, 4, 8), "decode": (320, 320, 40, 8), "production": (288, 144, 18, 8)}


def sample(name: str) -> ExpertLoads:
    path = SHARED / "expert_load" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    loads, found = read_loads(path)
    assert found == ()
    assert loads is not None
    return loads


def balance_of(placement: Placement, loads: ExpertLoads) -> np.ndarray:
    return max_over_mean(even_gpu_loads(placement, loads.counts))[loads.has_load]


def public_balance(loads: ExpertLoads, unit: tuple[int, int, int, int]) -> np.ndarray:
    n_slots, n_gpus, n_nodes, n_groups = unit
    slots = public_map(loads.counts[loads.has_load], n_slots, n_groups, n_nodes, n_gpus)
    placement = Placement.of(slots, n_experts=loads.n_experts, n_gpus=n_gpus, n_nodes=n_nodes)
    return max_over_mean(even_gpu_loads(placement, loads.counts[loads.has_load]))


def our_balance(loads: ExpertLoads, unit: tuple[int, int, int, int], policy: Policy) -> np.ndarray:
    placement = place(loads, PlacementRequest(*unit, policy)).placement
    assert placement is not None
    assert placement.duplicates == 0
    return balance_of(placement, loads)


@pytest.mark.parametrize(
    ("document", "loads_name", "unit", "published"),
    [
        ("sglang_prefill.json", "prefill_in1024", "prefill", 1.166),
        ("sglang_decode.json", "decode_in1000out1000", "decode", 1.662),
    ],
)
def test_that_a_map_of_the_public_algorithm_is_judged_as_published(
    document: str, loads_name: str, unit: str, published: float
) -> None:
    """Maps made by deepseek-ai/EPLB from these loads: max / mean 1.166 and 1.662 (mean over layers)."""
    path = SHARED / "export" / "example_documents" / "eplb" / document
    if not path.exists():
        pytest.skip(f"{path} is not here")
    loads = sample(loads_name)
    _, n_gpus, n_nodes, _ = UNITS[unit]
    placement, found = read_map(path, n_experts=256, n_gpus=n_gpus, n_nodes=n_nodes)
    assert found == ()
    assert placement is not None
    theirs = balance_of(placement, loads)
    assert theirs.mean() == pytest.approx(published, abs=5e-4)
    assert public_balance(loads, UNITS[unit]) == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", SAMPLES)
def test_that_measured_loads_are_balanced_at_least_as_well_as_by_the_public_algorithm(
    name: str, unit: str
) -> None:
    """On every layer, although the public algorithm may put two replicas of an expert on one GPU."""
    loads = sample(name)
    ours = our_balance(loads, UNITS[unit], Policy.HIERARCHICAL)
    assert (ours <= public_balance(loads, UNITS[unit]) * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_that_zipf_loads_are_balanced_within_the_known_figures(seed: int) -> None:
    """Zipf 1.0, 58 layers, 288 slots, 32 GPUs, 4 nodes: at most 1.421 with groups kept, 1.01 without."""
    loads = zipf_loads(1.0, n_layers=58, n_experts=256, seed=seed)
    kept = our_balance(loads, UNITS["prefill"], Policy.HIERARCHICAL)
    assert kept.mean() <= 1.41
    assert (kept <= public_balance(loads, UNITS["prefill"]) * (1 + 1e-9)).all()
    free = our_balance(loads, (288, 32, 1, 1), Policy.GLOBAL)
    assert free.max() <= 1.01


@pytest.mark.parametrize("exponent", [0.3, 0.6, 1.2])
@pytest.mark.parametrize("unit", UNITS)
def test_that_no_layer_of_zipf_loads_is_worse_than_by_the_public_algorithm(
    exponent: float, unit: str
) -> None:
    loads = zipf_loads(exponent, n_layers=58, n_experts=256)
    ours = our_balance(loads, UNITS[unit], Policy.HIERARCHICAL)
    assert (ours <= public_balance(loads, UNITS[unit]) * (1 + 1e-9)).all()


@pytest.mark.parametrize(("unit", "per_gpu"), [("prefill", 9), ("decode", 1), ("production", 2)])
def test_that_the_units_have_the_slots_of_the_report(unit: str, per_gpu: int) -> None:
    """DeepSeek-V3 report 3.4.1: 32 redundant experts, 8 + 1 per GPU; 3.4.2: one expert per GPU."""
    assert PlacementRequest(*UNITS[unit]).slots_per_gpu == per_gpu


def test_that_nvlink_carries_3_2_experts_per_node_and_13_in_all() -> None:
    """DeepSeek-V3 report 3.2.2: NVLink 160 GB/s, InfiniBand 50 GB/s, at most 4 nodes."""
    assert experts_per_node_hidden(160e9, 50e9) == pytest.approx(3.2)
    assert experts_at_same_cost(4, 160e9, 50e9) == 13


def test_that_a_token_goes_to_at_most_4_nodes() -> None:
    """DeepSeek-V3 report 3.2.2: each token is dispatched to at most 4 nodes; 8 nodes hold a group each."""
    loads = zipf_loads(0.5, n_layers=2, n_experts=256)
    routing = fit_routing(loads.shares, RoutingSpec(256, 8, 8, 4))
    placement = place(loads, PlacementRequest(256, 64, 8, 8)).placement
    assert placement is not None
    nodes = node_traffic(placement, routing, token_bytes(7168)).nodes_per_token
    assert ((nodes > 3.8) & (nodes <= 4)).all()
