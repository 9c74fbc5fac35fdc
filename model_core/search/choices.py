"""The axes along which a recommendation is looked for, when the user does not name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from model_core.hardware.slices import slice_shapes
from model_core.search.arrays import Rows
from model_core.search.axes import BATCH, MESH, Axis, make_axis
from model_core.search.axis_text import mesh_assignments, nodes_of
from model_core.search.space import Space
from model_core.spec.base import get_at
from model_core.spec.cluster import NodeTopology, TorusTopology
from model_core.spec.design import Design
from model_core.spec.plan import AttentionSharding, FfnLayout
from model_core.stages import has_programs

INPUT: Final = "workload.input_length"
MOST_BATCH: Final = 1024
MOST_CHIPS: Final = 256
LONGEST_INPUT: Final = 1 << 20
REFINED: Final = 32
"""Steps, at least, that a numeric axis is cut into when it is looked at again around the best."""


def default_axes(
    design: Design,
    measures: Iterable[str],
    fixed: Sequence[str] = (),
    axes: Sequence[Axis] = (),
) -> tuple[Axis, ...]:
    """Return the axes of a search: those given, and for every other choice all that can be had.

    Layouts, attention shardings, mesh assignments, slice shapes of the same chip, batches in powers of two,
    formats of weights and cache; input lengths where the context is a target or the goal.

    Args:
        design: the design; its own values are always among those searched.
        measures: names of the goal and the targets.
        fixed: paths that keep their value.
        axes: axes that replace those of the same part of the design.
    """
    taken = [*fixed, *(axis.path for axis in axes)]
    found = list(axes)
    for path, values in _candidates(design, frozenset(measures)).items():
        if any(_overlap(path, other) for other in taken):
            continue
        own = get_at(design, path)
        axis, _ = make_axis(design, path, values if own in values else [own, *values])
        if axis is not None and len(axis.values) > 1:
            found.append(axis)
    return tuple(found)


def _overlap(first: str, second: str) -> bool:
    return first == second or first.startswith(f"{second}.") or second.startswith(f"{first}.")


def _candidates(design: Design, measures: frozenset[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {
        **_slices(design),
        **_layouts(design),
        "plan.weight_dtype": _formats(design),
        "plan.kv_dtype": _formats(design),
        BATCH: _powers(MOST_BATCH * (16 if "batch" in measures else 1), design.workload.batch),
    }
    if "context" in measures:
        found[INPUT] = _powers(LONGEST_INPUT, design.workload.input_length)
    return found


def _layouts(design: Design) -> dict[str, list[Any]]:
    """Layouts and meshes; of models with experts only the meshes that are there, as their layout follows."""
    if not has_programs(design.model, design.workload):
        return {MESH: [None]}
    return {
        "plan.ffn_layout": list(FfnLayout),
        "plan.attention_sharding": list(AttentionSharding),
        MESH: [None, *mesh_assignments(design.cluster)],
    }


def _slices(design: Design) -> dict[str, list[Any]]:
    topology, chips = design.cluster.topology, design.cluster.n_chips
    if isinstance(topology, TorusTopology):
        return {"cluster.topology.shape": list(slice_shapes(topology, max(MOST_CHIPS, chips)))}
    assert isinstance(topology, NodeTopology)
    most = max(MOST_CHIPS, chips) // topology.chips_per_node
    return {"cluster.topology": list(nodes_of(topology, most))}


def _formats(design: Design) -> list[Any]:
    return ["bfloat16", "int8", "fp8"] if design.cluster.chip.peak_fp8 is not None else ["bfloat16", "int8"]


def _powers(most: int, own: int) -> list[Any]:
    return sorted({own, *(1 << k for k in range(most.bit_length()) if 1 << k <= most)})


def refined_axes(space: Space, top: Rows, fixed: Iterable[str]) -> tuple[Axis, ...]:
    """Return the axes to look at again around the best designs.

    Structural axes keep the values that the best designs have; the batch and the input length get values in
    between their neighbours.

    Args:
        space: the space searched.
        top: numbers of its best designs, best first.
        fixed: paths whose values must not change.
    """
    keep = frozenset(fixed)
    return tuple(_refined(space, axis, top, axis.path in keep) for axis in space.axes)


def _refined(space: Space, axis: Axis, top: Rows, is_given: bool) -> Axis:
    stride, length = space.strides[axis.path], len(axis.values)
    indices = np.unique(top // stride % length)
    if axis.path not in (BATCH, INPUT) or is_given:
        return _subset(axis, [int(i) for i in indices])
    best = int(top[0] // stride % length)
    low, high = axis.values[max(best - 1, 0)], axis.values[min(best + 1, length - 1)]
    # Steps of a power of two meet the batches that the chips can share evenly.
    step = 1 << max(0, ((high - low) // REFINED).bit_length() - 1)
    between = range(low - low % step + step, high + 1, step)
    values = sorted({low, *between, *(axis.values[int(i)] for i in indices)})
    return Axis(axis.path, tuple(values), tuple(map(str, values)))


def _subset(axis: Axis, indices: Sequence[int]) -> Axis:
    return Axis(axis.path, tuple(axis.values[i] for i in indices), tuple(axis.labels[i] for i in indices))
