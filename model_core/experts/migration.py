"""What it takes to get from one placement to another: experts sent, bytes, seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model_core.experts.arrays import Bools, Floats, Ints
from model_core.experts.placement import Placement


@dataclass(frozen=True, slots=True)
class Links:
    """What a GPU can send, and at the same time receive: within its node and across nodes, bytes/s."""

    nvlink_bytes_per_s: float = 160e9
    network_bytes_per_s: float = 50e9


@dataclass(frozen=True, slots=True, eq=False)
class Migration:
    """Experts that GPUs have to receive, per layer, and the time when all links carry them at once.

    ``network_experts`` of them have no copy on the receiver's node and cross the network.
    """

    received: Ints
    network_experts: int
    bytes: float
    seconds: float


def received_experts(previous: Placement, placement: Placement) -> Ints:
    """Count, per layer, the experts that a GPU hosts now and did not before."""
    received: Ints = ((placement.hosted > 0) & (previous.hosted == 0)).sum(axis=(1, 2))
    return received


def migration(previous: Placement, placement: Placement, expert_bytes: float, links: Links) -> Migration:
    """Cost a change of placement.

    A GPU gets each missing expert from its own node where a copy is there, else from the other nodes; the
    copies share the sending evenly.

    Formula: bytes = experts received x bytes of an expert;
        seconds = max over GPUs of max(NVLink bytes / NVLink bandwidth, network bytes / network bandwidth),
        sent or received, whichever is more.
    Assumes: links carry both directions at full rate, and nothing else.

    Args:
        previous: the placement that is loaded, of the same layers, experts and GPUs.
        placement: the placement wanted.
        expert_bytes: weights of one expert.
        links: bandwidths of a GPU.
    """
    before, after = previous.hosted > 0, placement.hosted > 0
    missing = after & ~before
    near, far = _by_distance(before, missing, placement.n_nodes)
    near_sent = _sent(before, near, placement.n_nodes)
    far_sent = _sent(before, far, 1)
    near_bytes = _busiest(near, near_sent) * expert_bytes
    far_bytes = _busiest(far, far_sent) * expert_bytes
    seconds = max(near_bytes / links.nvlink_bytes_per_s, far_bytes / links.network_bytes_per_s)
    received = missing.sum(axis=(1, 2))
    return Migration(received, int(far.sum()), float(received.sum() * expert_bytes), float(seconds))


def _by_distance(before: Bools, missing: Bools, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Split what is missing into experts that the receiver's node has a copy of and others."""
    n_layers, n_gpus, n_experts = before.shape
    on_node = before.reshape(n_layers, n_nodes, n_gpus // n_nodes, n_experts).any(axis=2)
    copy_near = np.repeat(on_node, n_gpus // n_nodes, axis=1)
    return missing & copy_near, missing & ~copy_near


def _sent(before: Bools, wanted: Bools, n_parts: int) -> Floats:
    """Return layers x GPUs experts sent, the copies of an expert within each part sharing evenly."""
    n_layers, n_gpus, n_experts = before.shape
    shape = (n_layers, n_parts, n_gpus // n_parts, n_experts)
    copies = before.reshape(shape)
    demand = wanted.reshape(shape).sum(axis=2, keepdims=True)
    each = demand / np.maximum(copies.sum(axis=2, keepdims=True), 1)
    sent: Floats = (copies * each).sum(axis=3).reshape(n_layers, n_gpus)
    return sent


def _busiest(received: Bools, sent: Floats) -> float:
    """Return the most experts that one GPU receives or sends, over all layers."""
    return float(max(received.sum(axis=(0, 2)).max(), sent.sum(axis=0).max()))
