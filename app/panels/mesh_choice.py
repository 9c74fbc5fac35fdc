"""Which logical axis, or the pipeline, each physical axis of the cluster serves, as the mesh editor shows it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from model_core.spec import ClusterSpec, Design, MeshPlan

LOGICAL_AXES = ("x", "y", "z")
PIPELINE = "pipeline"
ROLES = (*LOGICAL_AXES, PIPELINE)


def assignment_of(mesh: MeshPlan | None, design: Design) -> dict[str, str]:
    """Return the logical axis of every physical axis, or the pipeline; empty text where the mesh leaves it out.

    Without a mesh, or with no more of it than a pipeline, the one that is chosen automatically counts.
    """
    chosen = mesh
    if chosen is None or not any(chosen.axes().values()):
        chosen = _automatic(design, () if chosen is None else chosen.pipeline)
    roles = {**chosen.axes(), PIPELINE: chosen.pipeline}
    served = {physical: role for role, names in roles.items() for physical in names}
    return {physical: served.get(physical, "") for physical in axes_of(mesh, design.cluster)}


def axes_of(mesh: MeshPlan | None, cluster: ClusterSpec) -> dict[str, int]:
    """Return the physical axes and their sizes; in place of one that the mesh names in factors, the factors."""
    factors: dict[str, dict[str, int]] = {}
    for name in () if mesh is None else mesh.names():
        axis, _, size = name.partition(":")
        if size.isdigit():
            factors.setdefault(axis, {})[name] = int(size)
    return {
        name: size
        for axis, whole in cluster.axes.items()
        for name, size in factors.get(axis, {axis: whole}).items()
    }


def mesh_from(assignment: Mapping[str, str]) -> MeshPlan:
    """Return the mesh of an assignment; axes of one logical axis keep the cluster's order."""
    return MeshPlan(
        **{
            logical: tuple(physical for physical, chosen in assignment.items() if chosen == logical)
            for logical in ROLES
        }
    )


def stages_of(design: Design) -> int:
    """Return the pipeline stages that the mesh makes."""
    mesh = design.plan.mesh
    sizes = axes_of(mesh, design.cluster)
    return prod(sizes.get(name, 1) for name in (() if mesh is None else mesh.pipeline))


def with_cluster(design: Design, cluster: ClusterSpec) -> Design:
    """Return the design on another cluster; a mesh that names axes it lacks becomes automatic."""
    from model_core.partition.mesh import assignment_problems

    changed = design.replace(cluster=cluster)
    mesh = design.plan.mesh
    if mesh is None or not assignment_problems(cluster, mesh):
        return changed
    return changed.replace(plan=design.plan.replace(mesh=None))


def _automatic(design: Design, pipeline: tuple[str, ...]) -> MeshPlan:
    # Imported on use: the numerics behind it are not needed to show a window.
    from model_core.partition.mesh import automatic_assignment

    return automatic_assignment(design.cluster, design.model, pipeline)
