"""From the conditions of a published row to the designs that reproduce it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from model_core.published.rows import PublishedFile, PublishedRow, Reading, Request
from model_core.spec.base import replace_at
from model_core.spec.cluster import ClusterSpec, NodeTopology
from model_core.spec.design import Design
from model_core.spec.model import ModelSpec
from model_core.spec.plan import AttentionSharding, FfnLayout, MeshPlan, PlanSpec
from model_core.spec.workload import Phase, WorkloadSpec


class Library(Protocol):
    """Where presets come from; the package ``presets`` is one."""

    def __hash__(self) -> int:
        """Two libraries are the same only if they are one object."""

    def load_design(self, name: str) -> Design:
        """Load a design."""

    def load_model(self, name: str) -> ModelSpec:
        """Load a model."""

    def load_cluster(self, name: str) -> ClusterSpec:
        """Load a cluster."""


def design_of(reading: Reading, library: Library, changes: Mapping[str, Any] | None = None) -> Design:
    """Return the design of a reading; ``model`` and ``cluster`` among its changes name presets."""
    design = library.load_design(reading.design)
    for path, value in {**reading.set, **(changes or {})}.items():
        if path == "model":
            design = design.replace(model=library.load_model(value))
        elif path == "cluster":
            design = design.replace(cluster=library.load_cluster(value))
        else:
            design = replace_at(design, path, value)
    return design


def request_designs(
    row: PublishedRow, request: Request, file: PublishedFile, library: Library
) -> Iterator[Design]:
    """Yield the prefill and, where there is more than one output token, the decoding of a request."""
    model = file.models.get(request.model) or library.load_model(request.model)
    cluster = _cluster(request, library)
    plan = _plan(request, file)
    workload = WorkloadSpec(
        phase=Phase.PREFILL, batch=request.batch, input_length=request.input_length, output_length=0
    )
    prefill = plan.replace(microbatches=request.prefill_microbatches)
    yield Design(name=row.id, model=model, cluster=cluster, workload=workload, plan=prefill)
    if request.output_length > 1:
        decode = workload.replace(phase=Phase.DECODE, output_length=request.output_length - 1)
        yield Design(name=row.id, model=model, cluster=cluster, workload=decode, plan=plan)


def _cluster(request: Request, library: Library) -> ClusterSpec:
    cluster = library.load_cluster(request.cluster)
    topology = cluster.topology
    if not isinstance(topology, NodeTopology):
        return cluster
    changes = {"n_nodes": request.nodes, "chips_per_node": request.chips_per_node}
    wanted = {name: value for name, value in changes.items() if value is not None}
    return cluster.replace(topology=topology.replace(**wanted)) if wanted else cluster


def _plan(request: Request, file: PublishedFile) -> PlanSpec:
    mesh = MeshPlan(pipeline=("ib",)) if request.pipeline else None
    common = {"ffn_layout": FfnLayout.WEIGHT_STATIONARY_1D, "attention_sharding": AttentionSharding.HEADS}
    return PlanSpec.model_validate({**common, "mesh": mesh, **file.plan, **request.plan})
