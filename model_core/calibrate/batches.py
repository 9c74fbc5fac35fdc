"""Latencies of many designs at once: designs with the same programs are stacked into arrays.

The readers are those of `model_core.evaluate`; only the efficiency changes between two calls, so that a
fit costs a few passes over arrays instead of one evaluation per row.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model_core.arithmetic import Number
from model_core.hardware.calibration import BOUND, Efficiency
from model_core.hardware.network import Level, Network
from model_core.partition.cost import Rates
from model_core.partition.mesh import Mesh
from model_core.partition.sizes import Sizes
from model_core.spec.design import Design
from model_core.stages import Layout, layout_stage, mesh_stage, rates_stage, step_costs

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Case:
    """What the latency of one design, or of a stack of designs, depends on."""

    layout: Layout
    rates: Rates
    mesh: Mesh
    n_layers: Number
    microbatches: Number
    n_steps: Number

    def key(self) -> Hashable:
        """Equal for cases that can be stacked: the same programs on the same kinds of network."""
        levels = self.mesh.network.levels.items()
        kinds = tuple((axis, level.kind) for axis, found in levels for level in found)
        programs = tuple(id(program) for program in self.layout.programs.values())
        return programs, kinds, tuple(level.kind for level in self.mesh.between), self.rates.large_k

    def latency_s(self, efficiency: Efficiency) -> Number:
        """Return the latency as `totals.add_up` counts it, without its parts."""
        rates = replace(self.rates, efficiency=efficiency)
        costs = step_costs(self.layout, rates, self.mesh, self.n_layers, self.microbatches)
        return self.n_steps * sum(count * (cost.busy_s + cost.exposed_s) for _, count, cost in costs)


class Latencies:
    """The latencies of the phases of some designs as a function of the efficiency."""

    def __init__(self, designs: Sequence[Design]) -> None:
        """Stack the designs; each must have layer programs and at least one step."""
        self._count = len(designs)
        groups: dict[Hashable, list[tuple[int, _Case]]] = {}
        for index, design in enumerate(designs):
            case = _case(design)
            groups.setdefault(case.key(), []).append((index, case))
        self._groups = [
            (np.array([index for index, _ in members]), _stacked([case for _, case in members]))
            for members in groups.values()
        ]

    def seconds(self, efficiency: Efficiency) -> Array:
        """Return the latency of each design."""
        found = np.empty(self._count)
        for indices, case in self._groups:
            found[indices] = case.latency_s(efficiency)
        return found


def _case(design: Design) -> _Case:
    mesh = mesh_stage(design.cluster, design.model, design.plan.mesh)
    layout = layout_stage(design.model, design.workload, design.plan, mesh)
    rates, _ = rates_stage(design.cluster.chip, design.plan)
    return _Case(
        layout,
        replace(rates, efficiency=BOUND),
        mesh,
        design.model.n_layers,
        design.plan.microbatches,
        design.workload.n_steps,
    )


def _stacked(cases: Sequence[_Case]) -> _Case:
    first = cases[0]
    letters = first.layout.sizes.values
    sizes = {name: _array([case.layout.sizes.values[name] for case in cases]) for name in letters}
    axes = first.mesh.network.levels
    network = {axis: _levels([case.mesh.network.levels[axis] for case in cases]) for axis in axes}
    mesh = replace(
        first.mesh,
        network=Network(network),
        stages=_array([case.mesh.stages for case in cases]),
        between=_levels([case.mesh.between for case in cases]),
    )
    return _Case(
        replace(first.layout, sizes=Sizes(sizes)),
        _rates([case.rates for case in cases]),
        mesh,
        _array([case.n_layers for case in cases]),
        _array([case.microbatches for case in cases]),
        _array([case.n_steps for case in cases]),
    )


def _rates(found: Sequence[Rates]) -> Rates:
    first = found[0]
    return replace(
        first,
        matmul_flops_per_s=_array([rates.matmul_flops_per_s for rates in found]),
        attention_flops_per_s=_array([rates.attention_flops_per_s for rates in found]),
        hbm_bytes_per_s=_array([rates.hbm_bytes_per_s for rates in found]),
        hidden_share=_array([rates.hidden_share for rates in found]),
        element_bytes={
            role: _array([rates.element_bytes[role] for rates in found]) for role in first.element_bytes
        },
    )


def _levels(columns: Sequence[tuple[Level, ...]]) -> tuple[Level, ...]:
    """Stack the levels of several networks, place by place."""
    return tuple(
        replace(
            place[0],
            size=_array([level.size for level in place]),
            bandwidth=_array([level.bandwidth for level in place]),
            latency=_array([level.latency for level in place]),
        )
        for place in zip(*columns, strict=True)
    )


def _array(numbers: Sequence[Number]) -> Array:
    return np.array(numbers, dtype=np.float64)
