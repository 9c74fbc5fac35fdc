"""The public expert load balancer, written from its description, to compare with; slow and plain.

Source: README of deepseek-ai/EPLB. Groups are packed to nodes, experts replicated within each node, replicas
packed to GPUs. Packing takes the heaviest item first to the lightest pack that has room; replication gives
each further slot to the expert with the highest load per replica. Where the groups do not divide over the
nodes, all is done once over all GPUs. It may put two replicas of an expert on one GPU.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def packed(weights: list[float], n_packs: int) -> list[list[int]]:
    """Return the items of each pack; all packs get the same number."""
    room = len(weights) // n_packs
    packs: list[list[int]] = [[] for _ in range(n_packs)]
    if room == 1:
        return [[item] for item in range(n_packs)]
    totals = [0.0] * n_packs
    for item in sorted(range(len(weights)), key=lambda i: -weights[i]):
        open_packs = [pack for pack in range(n_packs) if len(packs[pack]) < room]
        lightest = min(open_packs, key=totals.__getitem__)
        packs[lightest].append(item)
        totals[lightest] += weights[item]
    return packs


def replicated(loads: list[float], n_slots: int) -> list[int]:
    """Return the replicas of each expert."""
    counts = [1] * len(loads)
    for _ in range(n_slots - len(loads)):
        hottest = max(range(len(loads)), key=lambda e: loads[e] / counts[e])
        counts[hottest] += 1
    return counts


def public_layer(loads: Floats, n_slots: int, n_groups: int, n_nodes: int, n_gpus: int) -> list[int]:
    """Return the expert in each slot of one layer."""
    if n_groups % n_nodes:
        n_groups = n_nodes = 1
    size = len(loads) // n_groups
    groups = packed([float(loads[g * size : (g + 1) * size].sum()) for g in range(n_groups)], n_nodes)
    slots: list[int] = []
    for node in groups:
        experts = [g * size + e for g in node for e in range(size)]
        own = [float(loads[e]) for e in experts]
        counts = replicated(own, n_slots // n_nodes)
        replicas = [i for i, count in enumerate(counts) for _ in range(count)]
        gpus = packed([own[i] / counts[i] for i in replicas], n_gpus // n_nodes)
        slots += [experts[replicas[r]] for gpu in gpus for r in gpu]
    return slots


def public_map(loads: Floats, n_slots: int, n_groups: int, n_nodes: int, n_gpus: int) -> NDArray[np.intp]:
    """Return layers x slots."""
    return np.array([public_layer(row, n_slots, n_groups, n_nodes, n_gpus) for row in loads], np.intp)
