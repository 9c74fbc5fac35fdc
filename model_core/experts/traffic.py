"""What tokens send across nodes under a placement, in closed form; and the report's facts about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from model_core.experts.arrays import Floats, Ints
from model_core.experts.placement import Placement
from model_core.experts.routing import RoutingModel, untouched
from model_core.quantities import formula

_CHUNK_CELLS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Bytes of one token on the wire: dispatch in FP8 with its scales, combine in BF16."""

    dispatch: float
    combine: float

    @property
    def both(self) -> float:
        """Dispatch and combine of one token at one destination."""
        return self.dispatch + self.combine


def token_bytes(d_model: int, block: int = 128, scale_bytes: int = 4) -> TokenBytes:
    """Return the bytes of one token's hidden state, dispatched and combined.

    Formula: dispatch = d_model + d_model / block x scale bytes; combine = 2 x d_model
    Source: DeepSeek-V3 report 3.3.2 and 3.3.3: dispatch FP8 in tiles of 1 x 128, combine BF16.

    Args:
        d_model: width of the hidden state.
        block: elements that share a scale.
        scale_bytes: bytes of a scale.
    """
    return TokenBytes(d_model + -(-d_model // block) * scale_bytes, 2.0 * d_model)


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Where a token goes: layers x nodes probabilities that it has an expert there.

    ``reach`` has one row per layer with load; a token's home is any node with equal probability.
    """

    reach: Floats
    bytes_per_node: TokenBytes

    @property
    def nodes_per_token(self) -> Floats:
        """Expected distinct nodes of a token, per layer."""
        nodes: Floats = self.reach.sum(axis=1)
        return nodes

    @property
    def remote_nodes_per_token(self) -> Floats:
        """Expected distinct nodes other than the token's own: the copies that cross the network."""
        remote: Floats = self.nodes_per_token * (1 - 1 / self.reach.shape[1])
        return remote

    @property
    def network_bytes_per_token(self) -> Floats:
        """Bytes that one token sends across nodes in a layer, dispatch and combine.

        Formula: remote nodes x (dispatch + combine bytes); several experts on a node cost one copy
        Source: DeepSeek-V3 report 3.2.2: a token crosses the network once per node, then goes on by NVLink.
        """
        return self.remote_nodes_per_token * self.bytes_per_node.both

    def matrix(self, layer: int) -> Floats:
        """Return nodes x nodes bytes per token: from its home (row) to each other node (column)."""
        n_nodes = self.reach.shape[1]
        to_node = np.tile(self.reach[layer] * self.bytes_per_node.both, (n_nodes, 1))
        np.fill_diagonal(to_node, 0.0)
        return to_node


def node_traffic(placement: Placement, routing: RoutingModel, sent: TokenBytes) -> Traffic:
    """Return the traffic across nodes when a token's copy goes to any replica of its expert alike.

    Args:
        placement: where the replicas are; one layer for each of the routing's.
        routing: fitted to the same layers.
        sent: bytes of a token.
    """
    return Traffic(1 - untouched(routing, _elsewhere(placement.hosted_by_node)), sent)


def gpus_per_token(placement: Placement, routing: RoutingModel) -> Floats:
    """Return the expected distinct GPUs of a token, per layer, replicas chosen alike."""
    hosted = placement.hosted
    step = max(1, _CHUNK_CELLS // hosted[0].size)
    parts = []
    for start in range(0, placement.n_layers, step):
        rows = slice(start, start + step)
        part = replace(
            routing,
            weights=routing.weights[rows],
            factors=routing.factors[rows],
            rates=routing.rates[rows],
        )
        parts.append((1 - untouched(part, _elsewhere(hosted[rows]))).sum(axis=1))
    return np.concatenate(parts)


def _elsewhere(hosted: Ints) -> Floats:
    """Return the probability that a token of an expert goes to another unit: layers x units x experts."""
    elsewhere: Floats = 1 - hosted / np.maximum(hosted.sum(axis=1, keepdims=True), 1)
    return elsewhere


@formula("experts_per_node_hidden")
def experts_per_node_hidden(nvlink_bytes_per_s: float, network_bytes_per_s: float) -> float:
    """Experts per node that NVLink reaches while the network brings one copy.

    Formula: NVLink bandwidth / network bandwidth
    Source: DeepSeek-V3 report 3.2.2: 160 GB/s / 50 GB/s = 3.2 experts per node on average
    Assumes: both hops overlap fully; a token crosses the network once per node.
    """
    return nvlink_bytes_per_s / network_bytes_per_s


@formula("experts_at_same_cost")
def experts_at_same_cost(node_limit: int, nvlink_bytes_per_s: float, network_bytes_per_s: float) -> int:
    """Experts per token at the same communication cost.

    Formula: node limit x NVLink bandwidth / network bandwidth, to the nearest whole number
    Source: DeepSeek-V3 report 3.2.2: 4 nodes x 3.2 experts per node, up to 13 experts
    Assumes: the experts of a token lie evenly on the nodes it goes to.
    """
    return round(node_limit * experts_per_node_hidden(nvlink_bytes_per_s, network_bytes_per_s))


@formula("two_hop_time")
def two_hop_seconds(
    nodes: float, experts: float, token_bytes: float, nvlink_bytes_per_s: float, network_bytes_per_s: float
) -> float:
    """Time of one token's two-hop dispatch on one GPU's links.

    Formula: max(nodes x bytes / network bandwidth, experts x bytes / NVLink bandwidth)
    Source: DeepSeek-V3 report 3.2.2: over the network once per node, then over NVLink once per expert
    Assumes: both hops overlap fully.
    """
    network = nodes * token_bytes / network_bytes_per_s
    return max(network, experts * token_bytes / nvlink_bytes_per_s)
