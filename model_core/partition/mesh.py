"""Assigns the logical axes x, y, z of the layouts to the physical axes of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from model_core.arithmetic import Number
from model_core.diagnostics import Diagnostic
from model_core.hardware.network import Level, Network, has_wraparound, physical_levels
from model_core.hardware.slices import slice_exists, slices_near
from model_core.partition.closed_forms import stationary_2d_elements
from model_core.spec.cluster import ClusterSpec, NodeTopology, TorusTopology
from model_core.spec.model import ModelSpec
from model_core.spec.plan import MeshPlan


@dataclass(frozen=True, slots=True)
class Mesh:
    """Sizes of the logical axes, the network under each, and the assignment used.

    ``stages`` pipeline stages lie on the levels ``between``.
    """

    sizes: dict[str, int]
    network: Network
    assignment: dict[str, tuple[str, ...]]
    diagnostics: tuple[Diagnostic, ...]
    stages: Number = 1
    between: tuple[Level, ...] = ()


def automatic_assignment(cluster: ClusterSpec, model: ModelSpec, pipeline: tuple[str, ...] = ()) -> MeshPlan:
    """Choose the assignment used when a plan names none, beside the axes of a pipeline.

    On a torus, x takes the axes that minimise the communication of the 2D weight-stationary layout
    (`closed_forms.stationary_2d_elements`), y and z the rest in order. Nodes put NVLink on z and the
    network on y: x stays empty and tensor parallelism is innermost.
    """
    names = tuple(name for name in cluster.axes if name not in pipeline)
    if isinstance(cluster.topology, NodeTopology):
        y, z = (tuple(a for a in names if a == axis) for axis in ("ib", "nvlink"))
        return MeshPlan(y=y, z=z, pipeline=pipeline)
    proper = [c for size in range(1, len(names)) for c in combinations(names, size)] or [names]
    chips = prod(cluster.axes[a] for a in names)

    def elements(x_axes: tuple[str, ...]) -> float:
        x = prod(cluster.axes[a] for a in x_axes)
        return float(stationary_2d_elements(1, model.d_model, model.d_ff, x, chips / x, model.gated_ffn))

    x_axes = min(proper, key=elements)
    rest = [a for a in names if a not in x_axes]
    return MeshPlan(x=x_axes, y=tuple(rest[:1]), z=tuple(rest[1:]), pipeline=pipeline)


def resolve_mesh(cluster: ClusterSpec, model: ModelSpec, plan: MeshPlan | None) -> Mesh:
    """Bind the logical axes; a wrong assignment gives diagnostics and the automatic one is used."""
    chosen = plan if plan is not None else automatic_assignment(cluster, model)
    if chosen.pipeline and not any(chosen.axes().values()):
        chosen = automatic_assignment(cluster, model, chosen.pipeline)
    diagnostics = assignment_problems(cluster, chosen)
    if diagnostics:
        chosen = automatic_assignment(cluster, model)
    levels = _with_factors(physical_levels(cluster), chosen)
    assignment = chosen.axes()
    network = {axis: _used(levels, names) for axis, names in assignment.items()}
    sizes = {axis: prod(levels[name].size for name in names) for axis, names in assignment.items()}
    return Mesh(
        sizes,
        Network(network),
        assignment,
        (*diagnostics, *_torus_findings(cluster)),
        prod(levels[name].size for name in chosen.pipeline),
        _used(levels, chosen.pipeline),
    )


def _used(levels: dict[str, Level], names: tuple[str, ...]) -> tuple[Level, ...]:
    return tuple(levels[name] for name in names if levels[name].size > 1)


def factor_of(name: str) -> tuple[str, int] | None:
    """Read a factor of a physical axis, such as ``nvlink:4``; none for a whole axis."""
    axis, colon, size = name.partition(":")
    return (axis, int(size)) if colon and size.isdigit() and int(size) > 0 else None


def _with_factors(levels: dict[str, Level], plan: MeshPlan) -> dict[str, Level]:
    """Add the factors that a plan names: parts of a switch or a network have its bandwidth and latency."""
    found = dict(levels)
    for name in plan.names():
        factor = factor_of(name)
        if factor is not None:
            found[name] = replace(levels[factor[0]], axis=name, size=factor[1])
    return found


def _wrong_factors(cluster: ClusterSpec, plan: MeshPlan) -> tuple[Diagnostic, ...]:
    """Say of each axis that is named in factors whether they multiply to its size."""
    named: dict[str, list[int]] = {}
    for name in plan.names():
        factor = factor_of(name)
        if factor is not None:
            named.setdefault(factor[0], []).append(factor[1])
    found = []
    splittable = isinstance(cluster.topology, NodeTopology)
    for axis, factors in named.items():
        size = cluster.axes.get(axis, 0)
        if not splittable or prod(factors) != size or axis in plan.names():
            values = {"axis": axis, "size": size, "factors": " x ".join(map(str, factors))}
            found.append(Diagnostic("mesh_factors_wrong", "plan.mesh", values))
    return tuple(found)


def assignment_problems(cluster: ClusterSpec, plan: MeshPlan) -> tuple[Diagnostic, ...]:
    """Say what keeps a mesh from being one of a cluster: axes that it lacks, uses twice or leaves out."""
    wrong = _wrong_factors(cluster, plan)
    return wrong or _wrong_axes(cluster, plan)


def _wrong_axes(cluster: ClusterSpec, plan: MeshPlan) -> tuple[Diagnostic, ...]:
    known = cluster.axes
    found: list[Diagnostic] = []
    seen: set[str] = set()
    for logical, names in {**plan.axes(), "pipeline": plan.pipeline}.items():
        for name in names:
            path = f"plan.mesh.{logical}"
            factor = factor_of(name)
            if factor is not None:
                seen.add(factor[0])
                continue
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
