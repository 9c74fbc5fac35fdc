"""Preset models, chips, clusters, workloads and designs, every value with its source."""

from presets.calibrations import (
    calibration_names,
    calibrations_of,
    load_calibration,
    load_published,
    published_names,
    with_calibration,
)
from presets.loader import (
    KINDS,
    Kind,
    UnknownPresetError,
    load_chip,
    load_cluster,
    load_design,
    load_model,
    load_workload,
    names,
    nearest,
    title,
)

__all__ = [
    "KINDS",
    "Kind",
    "UnknownPresetError",
    "calibration_names",
    "calibrations_of",
    "load_calibration",
    "load_chip",
    "load_cluster",
    "load_design",
    "load_model",
    "load_published",
    "load_workload",
    "names",
    "nearest",
    "published_names",
    "title",
    "with_calibration",
]
