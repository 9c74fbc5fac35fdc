"""Placements out of files: the maps that engines read, and those that the command line prints."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from model_core.diagnostics import Diagnostic
from model_core.experts.arrays import Floats
from model_core.experts.placement import Placement
from model_core.experts.tables import Problems, missing, parse_json, read_text, read_torch, to_array

_NAMES: Final = ("physical_to_logical_map", "physical_to_logical")


def read_map(
    path: str | Path, *, n_experts: int, n_gpus: int, n_nodes: int
) -> tuple[Placement | None, Problems]:
    """Read a map of physical slots to logical experts.

    JSON or ``.pt`` with ``physical_to_logical_map`` (SGLang) or ``physical_to_logical`` (the command line),
    layers x slots.

    Args:
        path: the file.
        n_experts: experts of a layer; each needs a replica.
        n_gpus: GPUs that the slots are on, in order.
        n_nodes: nodes that the GPUs are on, in order.

    Returns:
        The placement, or ``None`` and the diagnostics with the place of what is wrong. Never raises.
    """
    file = Path(path)
    if file.suffix.lower() in (".pt", ".pth"):
        array, name, problems = read_torch(file, _NAMES)
    else:
        array, name, problems = _from_json(file)
    if array is None:
        return None, problems
    problem = _fault(array, name, n_experts, n_gpus)
    if problem is not None:
        return None, (problem,)
    return Placement.of(array, n_experts=n_experts, n_gpus=n_gpus, n_nodes=n_nodes), ()


def _from_json(path: Path) -> tuple[Floats | None, str, Problems]:
    text, problems = read_text(path)
    if text is None:
        return None, "", problems
    document, problems = parse_json(text)
    if problems:
        return None, "", problems
    if not isinstance(document, dict):
        array, problems = to_array(document, _NAMES[0])
        return array, _NAMES[0], problems
    name = next((name for name in _NAMES if name in document), None)
    if name is None:
        return None, "", (missing(_NAMES, list(document)),)
    array, problems = to_array(document[name], name)
    return array, name, problems


def _fault(array: Floats, name: str, n_experts: int, n_gpus: int) -> Diagnostic | None:
    if array.ndim != 2:
        found = " x ".join(str(size) for size in array.shape)
        return Diagnostic("map_wrong_shape", "", {"place": name, "found": found})
    if array.shape[1] % n_gpus:
        values = {"slots": array.shape[1], "gpus": n_gpus}
        return Diagnostic("map_uneven", "", values)
    wrong = np.argwhere((array < 0) | (array >= n_experts) | (array != np.floor(array)))
    if wrong.size:
        layer, slot = (int(index) for index in wrong[0])
        values = {
            "place": f"{name}[{layer}][{slot}]",
            "found": f"{array[layer, slot]:g}",
            "last": n_experts - 1,
        }
        return Diagnostic("map_not_expert", "", values)
    return _without_replica(array, n_experts)


def _without_replica(array: Floats, n_experts: int) -> Diagnostic | None:
    for layer, row in enumerate(array):
        absent = np.setdiff1d(np.arange(n_experts), row.astype(np.intp))
        if absent.size:
            return Diagnostic("map_without_expert", "", {"layer": layer, "expert": int(absent[0])})
    return None
