"""What a group of chips sees of the network: links per level, bandwidth and hops.

A mesh axis of a layout lies on physical axes of the cluster. The cost of a collective over some mesh
axes depends only on the `Level`s that these physical axes form, so a `Network` holds them per axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from model_core.arithmetic import Number
from model_core.spec.cluster import ClusterSpec, NodeTopology, TorusTopology

LevelKind = Literal["ring", "line", "switch", "network"]


@dataclass(frozen=True, slots=True)
class Level:
    """One physical axis of a group.

    kind: ring (torus axis with wraparound), line (without), switch (NVLink inside a node), network
    (network cards across nodes). bandwidth: bytes/s that one chip can send or receive along it, all
    its links of this axis together. latency: seconds per hop or step.
    """

    axis: str
    kind: LevelKind
    size: Number
    bandwidth: Number
    latency: Number


@dataclass(frozen=True, slots=True)
class Network:
    """The levels that each mesh axis lies on."""

    levels: Mapping[str, tuple[Level, ...]]

    def of(self, axes: str) -> tuple[Level, ...]:
        """Return the levels that a collective over some mesh axes uses."""
        return tuple(level for axis in axes for level in self.levels[axis])


def has_wraparound(topology: TorusTopology, axis: str) -> bool:
    """Tell whether a torus axis has wraparound links.

    Source: JAX scaling book, tpus.md: v4 and v5p wrap only slices made of full 4x4x4 cubes; v5e and
        v6e wrap only an axis of 16.
    """
    size = dict(zip("xyz", topology.shape, strict=False))[axis]
    if size <= 2 and topology.wrap != "all":
        return False
    return {
        "cubes_of_4": len(topology.shape) == 3 and all(n % 4 == 0 for n in topology.shape),
        "axis_of_16": size % 16 == 0,
        "all": True,
        "none": False,
    }[topology.wrap]


def physical_levels(cluster: ClusterSpec) -> dict[str, Level]:
    """Describe each physical axis of a cluster."""
    topology = cluster.topology
    if isinstance(topology, NodeTopology):
        return {
            "ib": Level("ib", "network", topology.n_nodes, topology.nic_bandwidth, topology.nic_latency),
            "nvlink": Level(
                "nvlink",
                "switch",
                topology.chips_per_node,
                topology.nvlink_bandwidth,
                topology.nvlink_latency,
            ),
        }
    levels = {}
    for axis, size in cluster.axes.items():
        wraps = has_wraparound(topology, axis)
        links = 2 if wraps else 1
        kind: LevelKind = "ring" if wraps else "line"
        levels[axis] = Level(axis, kind, size, links * topology.link_bandwidth, topology.hop_latency)
    return levels
