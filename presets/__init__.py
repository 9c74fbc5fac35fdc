"""Preset models, chips, clusters, workloads and designs, every value with its source."""

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
    "load_chip",
    "load_cluster",
    "load_design",
    "load_model",
    "load_workload",
    "names",
    "nearest",
    "title",
]
