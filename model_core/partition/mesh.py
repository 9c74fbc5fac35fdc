"""Assigns the logical axes x, y, z of the layouts to the physical axes of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

from model_core.diagnostics import Diagnostic
from model_core.hardware.network import Network, has_wraparound, physical_levels
from model_core.hardware.slices import slice_exists, slices_near
from model_core.partition.closed_forms import stationary_2d_elements
from model_core.spec.cluster import ClusterSpec, NodeTopology, TorusTopology
from model_core.spec.model import ModelSpec
from model_core.spec.plan import MeshPlan


@dataclass(frozen=True, slots=True)
class Mesh:
    """Sizes of the logical axes, the network under each, and the assignment used."""

    sizes: dict[str, int]
    network: Network
    assignment: dict[str, tuple[str, ...]]
    diagnostics: tuple[Diagnostic, ...]


def automatic_assignment(cluster: ClusterSpec, model: ModelSpec) -> MeshPlan:
    """Choose the assignment used when a plan names none.

    On a torus, x takes the axes that minimise the communication of the 2D weight-stationary layout
    (`closed_forms.stationary_2d_elements`), y and z the rest in order. Nodes put NVLink on z and the
    network on y: x stays empty and tensor parallelism is innermost.
    """
    if isinstance(cluster.topology, NodeTopology):
        return MeshPlan(y=("ib",), z=("nvlink",))
    names = tuple(cluster.axes)
    proper = [c for size in range(1, len(names)) for c in combinations(names, size)] or [names]

    def elements(x_axes: tuple[str, ...]) -> float:
        x = prod(cluster.axes[a] for a in x_axes)
        yz = cluster.n_chips / x
        return float(stationary_2d_elements(1, model.d_model, model.d_ff, x, yz, model.gated_ffn))

    x_axes = min(proper, key=elements)
    rest = [a for a in names if a not in x_axes]
    return MeshPlan(x=x_axes, y=tuple(rest[:1]), z=tuple(rest[1:]))


def resolve_mesh(cluster: ClusterSpec, model: ModelSpec, plan: MeshPlan | None) -> Mesh:
    """Bind the logical axes; a wrong assignment gives diagnostics and the automatic one is used."""
    chosen = plan if plan is not None else automatic_assignment(cluster, model)
    diagnostics = _wrong_assignment(cluster, chosen)
    if diagnostics:
        chosen = automatic_assignment(cluster, model)
    levels = physical_levels(cluster)
    assignment = chosen.axes()
    network = {
        axis: tuple(levels[name] for name in names if levels[name].size > 1)
        for axis, names in assignment.items()
    }
    sizes = {axis: prod(levels[name].size for name in names) for axis, names in assignment.items()}
    return Mesh(sizes, Network(network), assignment, (*diagnostics, *_torus_findings(cluster)))


def _wrong_assignment(cluster: ClusterSpec, plan: MeshPlan) -> tuple[Diagnostic, ...]:
    known = cluster.axes
    found: list[Diagnostic] = []
    seen: set[str] = set()
    for logical, names in plan.axes().items():
        for name in names:
            path = f"plan.mesh.{logical}"
            if name not in known:
                found.append(Diagnostic("mesh_axis_unknown", path, {"axis": name, "known": ", ".join(known)}))
            elif name in seen:
                found.append(Diagnostic("mesh_axis_reused", path, {"axis": name}))
            seen.add(name)
    found += [
        Diagnostic("mesh_axis_unused", "plan.mesh", {"axis": name, "size": size})
        for name, size in known.items()
        if size > 1 and name not in seen
    ]
    return tuple(found)


_WRAP_RULES = {
    "cubes_of_4": "every axis to be a multiple of 4",
    "axis_of_16": "an axis of 16",
    "none": "a slice with wraparound links",
    "all": "more than one chip",
}


def _torus_findings(cluster: ClusterSpec) -> tuple[Diagnostic, ...]:
    topology = cluster.topology
    if not isinstance(topology, TorusTopology):
        return ()
    found = []
    if not slice_exists(topology):
        nearest = ", ".join("x".join(map(str, shape)) for shape in slices_near(topology))
        values: dict[str, object] = {
            "shape": cluster.shape_text,
            "chip": cluster.chip.name,
            "nearest": nearest,
        }
        found.append(Diagnostic("slice_unavailable", "cluster.topology.shape", values))
    open_axes = [a for a, size in cluster.axes.items() if size > 1 and not has_wraparound(topology, a)]
    if open_axes:
        rule = _WRAP_RULES[topology.wrap]
        values = {"axes": ", ".join(open_axes), "shape": cluster.shape_text, "rule": rule}
        found.append(Diagnostic("no_wraparound", "cluster.topology.shape", values))
    return tuple(found)
