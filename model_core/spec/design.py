"""A design: the user's whole input."""

from __future__ import annotations

from pydantic import Field

from model_core.spec.base import Spec
from model_core.spec.cluster import ClusterSpec
from model_core.spec.model import ModelSpec
from model_core.spec.plan import PlanSpec
from model_core.spec.workload import WorkloadSpec


class Design(Spec):
    """Model, cluster, workload and plan; everything that is shown follows from it."""

    name: str = Field(max_length=200, description="Name of the design")
    notes: str = Field(default="", max_length=100_000, description="Free text for the review")
    model: ModelSpec = Field(description="The Transformer")
    cluster: ClusterSpec = Field(description="The chips and their network")
    workload: WorkloadSpec = Field(description="Phase, batch and lengths")
    plan: PlanSpec = Field(default=PlanSpec(), description="Layout, mesh and dtypes")
