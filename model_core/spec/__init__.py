"""Frozen inputs: model, cluster, workload, plan and the design that joins them."""

from model_core.spec.base import Evidence, FieldSource, SourcedSpec, Spec, get_at, replace_at
from model_core.spec.calibration import CalibrationSpec
from model_core.spec.cluster import ChipSpec, ClusterSpec, NodeTopology, TorusTopology
from model_core.spec.design import Design
from model_core.spec.model import MlaSpec, ModelSpec, MoeSpec
from model_core.spec.plan import (
    DTYPE_BYTES,
    AttentionSharding,
    BlockForm,
    DispatchMode,
    FfnLayout,
    MeshPlan,
    PlanSpec,
    ScatterInto,
)
from model_core.spec.schedule import ScheduleSpec
from model_core.spec.training import TrainingSpec
from model_core.spec.workload import Phase, WorkloadSpec

__all__ = [
    "DTYPE_BYTES",
    "AttentionSharding",
    "BlockForm",
    "CalibrationSpec",
    "ChipSpec",
    "ClusterSpec",
    "Design",
    "DispatchMode",
    "Evidence",
    "FfnLayout",
    "FieldSource",
    "MeshPlan",
    "MlaSpec",
    "ModelSpec",
    "MoeSpec",
    "NodeTopology",
    "Phase",
    "PlanSpec",
    "ScatterInto",
    "ScheduleSpec",
    "SourcedSpec",
    "Spec",
    "TorusTopology",
    "TrainingSpec",
    "WorkloadSpec",
    "get_at",
    "replace_at",
]
