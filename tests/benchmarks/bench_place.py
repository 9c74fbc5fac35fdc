"""Prints time and balance of placements: ``python -m tests.benchmarks.bench_place``."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from model_core.experts.balance import even_gpu_loads, max_over_mean
from model_core.experts.exact import lower_bound
from model_core.experts.load_files import read_loads
from model_core.experts.loads import ExpertLoads, zipf_loads
from model_core.experts.place import place
from model_core.experts.placement import Placement, PlacementRequest, Policy
from tests.unit.experts_public import public_map

REPEATS = 7
SAMPLES = Path(__file__).parents[3] / "shared" / "expert_load"
REQUESTS = {
    "288 on  32 / 4, groups kept": PlacementRequest(288, 32, 4, 8),
    "288 on  32 / 4, free": PlacementRequest(288, 32, 4, 1, Policy.GLOBAL),
    "288 on 144 / 18": PlacementRequest(288, 144, 18, 8, Policy.GLOBAL),
    "320 on 320 / 40": PlacementRequest(320, 320, 40, 8, Policy.GLOBAL),
}


def all_loads() -> Iterator[ExpertLoads]:
    """Yield made-up loads, and the measured ones where they are."""
    for exponent, seeds in ((0.3, 1), (0.6, 1), (1.0, 3), (1.2, 1)):
        for seed in range(seeds):
            yield zipf_loads(exponent, n_layers=58, n_experts=256, seed=seed)
    for path in sorted(SAMPLES.glob("*.json")):
        loads, _ = read_loads(path)
        if loads is not None:
            yield ExpertLoads(loads.counts[loads.has_load], loads.name, loads.evidence)


def balance(placement: Placement, loads: ExpertLoads) -> np.ndarray:
    """Return max / mean GPU load per layer."""
    return max_over_mean(even_gpu_loads(placement, loads.counts))


def public(loads: ExpertLoads, request: PlacementRequest) -> np.ndarray:
    """Return the balance that the public algorithm reaches."""
    groups = 1 if request.policy is Policy.GLOBAL else request.n_groups
    nodes = 1 if request.policy is Policy.GLOBAL else request.n_nodes
    slots = public_map(loads.counts, request.n_slots, groups, nodes, request.n_gpus)
    placement = Placement.of(slots, n_experts=loads.n_experts, n_gpus=request.n_gpus, n_nodes=request.n_nodes)
    return balance(placement, loads)


def main() -> None:
    """Place each loads for each deployment several times."""
    print(
        f"{'loads':22} {'slots on GPUs / nodes':28} {'ms: least, median':>18}  ours: mean, worst   public        bound"
    )
    for loads in all_loads():
        for name, request in REQUESTS.items():
            results = [place(loads, request) for _ in range(REPEATS)]
            placement = results[0].placement
            if placement is None:
                continue
            times = [result.seconds * 1e3 for result in results]
            ours, theirs = balance(placement, loads), public(loads, request)
            reached = even_gpu_loads(placement, loads.shares).max(axis=1)
            bound = lower_bound(loads.shares, request, reached) * request.n_gpus
            worse = int((ours > theirs * (1 + 1e-9)).sum())
            print(
                f"{loads.name:22} {name:28} {min(times):8.1f} {statistics.median(times):8.1f}  "
                f"{ours.mean():8.4f} {ours.max():7.4f}  {theirs.mean():7.4f} {theirs.max():7.4f} {bound.mean():7.4f}"
                + (f"  {worse} layers worse" if worse else "")
            )


if __name__ == "__main__":
    main()
