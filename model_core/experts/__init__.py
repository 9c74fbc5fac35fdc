"""Expert placement: measured or synthetic loads, where experts and their replicas sit, and what that costs."""

from model_core.experts.loads import ExpertLoads, zipf_loads
from model_core.experts.placement import Placement, PlacementRequest, Policy

__all__ = ["ExpertLoads", "Placement", "PlacementRequest", "Policy", "zipf_loads"]
