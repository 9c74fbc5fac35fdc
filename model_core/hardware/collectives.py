"""Volume and time of collectives (Pope A.1), elementwise over numbers or arrays."""

from __future__ import annotations

from collections.abc import Sequence

from model_core.arithmetic import Number, ceil_log2, maximum
from model_core.hardware.network import Level
from model_core.partition.program import CollectiveKind
from model_core.quantities import formula


def group_size(levels: Sequence[Level]) -> Number:
    """Return the number of chips in a group."""
    size: Number = 1
    for level in levels:
        size = size * level.size
    return size


@formula("collective_volume")
def volume_bytes(kind: CollectiveKind, buffer_bytes: Number, k: Number, large_k: bool = False) -> Number:
    """Bytes one chip receives in a collective.

    Formula: D · (K − 1)/K; all-reduce: 2 · D · (K − 1)/K
    Source: Pope A.1
    Args:
        kind: which collective.
        buffer_bytes: D, bytes per chip: output of an all-gather, input of a reduce-scatter, the
            buffer of an all-reduce or all-to-all.
        k: chips in the group.
        large_k: approximate (K − 1)/K as 1, as most formulas of the source do.
    """
    share = 1.0 if large_k else (k - 1) / k
    phases = 2 if kind is CollectiveKind.ALL_REDUCE else 1
    return phases * buffer_bytes * share


@formula("collective_time")
def transfer_s(
    kind: CollectiveKind, buffer_bytes: Number, levels: Sequence[Level], large_k: bool = False
) -> Number:
    """Time the links need for a collective, hops excluded.

    Formula: torus: D · (K − 1)/K / W with W summed over the axes used; all-to-all: the fullest link,
        D · ⌊k²/4⌋/k / W_axis on an axis of k; nodes: the slower of NVLink and network, each with its share
    Source: Pope A.1; JAX scaling book, sharding.md; Chan et al. 2007
    Args:
        kind: which collective.
        buffer_bytes: D as in `volume_bytes`.
        levels: physical axes of the group.
        large_k: as in `volume_bytes`.
    Assumes: the axes of a torus are used at once; the phases inside and across nodes are pipelined
    """
    if kind is CollectiveKind.ALL_TO_ALL:
        return _all_to_all_s(buffer_bytes, levels)
    phases = 2 if kind is CollectiveKind.ALL_REDUCE else 1
    if levels[0].kind in ("ring", "line"):
        bandwidth: Number = 0
        for level in levels:
            bandwidth = bandwidth + level.bandwidth
        return volume_bytes(kind, buffer_bytes, group_size(levels), large_k) / bandwidth
    return phases * _gather_over_nodes_s(buffer_bytes, levels, large_k)


def _gather_over_nodes_s(buffer_bytes: Number, levels: Sequence[Level], large_k: bool) -> Number:
    inside = _size_of(levels, "switch")
    slowest: Number = 0.0
    for level in levels:
        share = 1.0 if large_k else (level.size - 1) / level.size
        part = buffer_bytes / inside if level.kind == "network" else buffer_bytes
        slowest = maximum(slowest, part * share / level.bandwidth)
    return slowest


def _all_to_all_s(buffer_bytes: Number, levels: Sequence[Level]) -> Number:
    total, inside = group_size(levels), _size_of(levels, "switch")
    slowest: Number = 0.0
    for level in levels:
        if level.kind in ("ring", "line"):
            crossing = (level.size * level.size // 4) / level.size
        elif level.kind == "switch":
            crossing = (inside - 1) / total
        else:
            crossing = (total - inside) / total
        slowest = maximum(slowest, buffer_bytes * crossing / level.bandwidth)
    return slowest


def _size_of(levels: Sequence[Level], kind: str) -> Number:
    return group_size([level for level in levels if level.kind == kind])


@formula("hop_latency")
def hops_s(kind: CollectiveKind, levels: Sequence[Level]) -> Number:
    """Time of the hops of a collective, whatever its size.

    Formula: Σ over axes of hops · α; ring: ⌊k/2⌋ hops, line: k − 1, nodes: ⌈log₂ k⌉ steps; twice for
        an all-reduce
    Source: JAX scaling book, tpus.md (per-hop latency); the source papers leave it out
    Args:
        kind: which collective.
        levels: physical axes of the group.
    """
    total: Number = 0.0
    for level in levels:
        if level.kind == "ring":
            hops = level.size // 2
        elif level.kind == "line":
            hops = level.size - 1
        else:
            hops = ceil_log2(level.size)
        total = total + hops * level.latency
    return 2 * total if kind is CollectiveKind.ALL_REDUCE else total
