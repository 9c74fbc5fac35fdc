"""Classifies the configurations of a space: which of them are computed alike.

What is computed depends on a design only through a few things: the `Structure` of its layout, the kinds of
links under its mesh, and which of its optional numbers exist. A configuration is one variant of each part;
the batch enters by its common divisor with the number of chips, which decides what divides what.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from inspect import unwrap
from itertools import product
from math import prod
from typing import Any, Final, cast

import numpy as np

from model_core.arithmetic import ceil_div
from model_core.diagnostics import Diagnostic, has_errors
from model_core.hardware.calibration import BOUND
from model_core.hardware.network import Level, Network
from model_core.parameters import count_parameters
from model_core.partition.cost import Rates
from model_core.partition.mesh import Mesh, resolve_mesh
from model_core.partition.pipeline import pipeline_diagnostics
from model_core.partition.structure import structure_of
from model_core.schedule_plan import planned_problems
from model_core.search.arrays import Arrays, Rows, skeleton
from model_core.search.axes import BATCH
from model_core.search.numeric import NumericAxes
from model_core.search.space import Cancelled, SearchCancelledError, Space, variants_of
from model_core.spec.base import Spec
from model_core.spec.cluster import ClusterSpec
from model_core.spec.model import ModelSpec
from model_core.spec.plan import DTYPE_BYTES, PlanSpec
from model_core.spec.workload import WorkloadSpec
from model_core.stages import has_programs, rates_stage

ORDER: Final = ("model", "cluster", "plan", "workload")
MOST_TABLED: Final = 1 << 16
"""Chips up to which common divisors are looked up in a table of remainders."""


class Numbering:
    """Numbers things; equal keys have equal numbers, counted from the first seen."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, item: Any) -> int:
        """Return the number of a key; ``item`` is kept for a new one."""
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.items)
            self.items.append(item)
        return found


@dataclass(frozen=True, slots=True)
class Configuration:
    """One variant of each part.

    components: numbers of its model, cluster, plan, workload, mesh and rates. offset: number of its first
    design. valid: no errors but those that depend on the batch. alike: number of all that shapes the
    computation beside the structure. structures: number of the structure for each value of the batch.
    """

    components: tuple[int, ...]
    offset: int
    valid: bool
    alike: int
    structures: Rows


@dataclass(frozen=True, slots=True)
class LooseConfiguration:
    """One that is not evaluated as arrays: one of its parts is none, or no array reader covers it."""

    offset: int
    is_refused: bool


@dataclass(frozen=True, slots=True)
class _ReadPlan:
    """What matters of a plan: the choices that shape the structure, whether collectives overlap, errors."""

    choices: Hashable
    looped: bool
    is_faulty: bool


@dataclass(slots=True)
class Classifier:
    """Builds the variants of each part once and tells what each configuration is made of.

    ``refused``: why the first combination that is no design is none.
    """

    space: Space
    cancelled: Cancelled
    numeric: NumericAxes = field(init=False)
    batches: Rows | None = field(init=False)
    components: dict[str, list[Any]] = field(init=False)
    stacks: dict[tuple[str, bytes], Arrays] = field(default_factory=dict)
    structures: Numbering = field(default_factory=Numbering)
    alike: Numbering = field(default_factory=Numbering)
    refused: tuple[Diagnostic, ...] = ()
    _plans: list[PlanSpec | None] = field(default_factory=list)
    _read_plans: dict[int, _ReadPlan] = field(default_factory=dict)
    _heads: list[Hashable] = field(default_factory=list)
    _offsets: dict[str, list[int]] = field(default_factory=dict)
    _skeletons: Numbering = field(default_factory=Numbering)
    _skeleton_numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    _structure_rows: dict[Hashable, Rows] = field(default_factory=dict)
    _meshes: dict[Hashable, int | None] = field(default_factory=dict)
    _rates: dict[Hashable, int] = field(default_factory=dict)
    _faulty_rates: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numeric = NumericAxes.of(self.space)
        batch = next((a for a in self.space.axes if a.path == BATCH and a.is_numeric), None)
        self.batches = None if batch is None else np.array(batch.values, np.int64)
        self.components = {"mesh": [], "rates": []}
        for part in ORDER:
            found = variants_of(self.space, part, self.cancelled)
            self.refused = self.refused or found.refused
            self._offsets[part] = found.offsets
            self.components[part] = [s if s is None else self.numeric.apply(part, s) for s in found.specs]
        models: list[ModelSpec | None] = self.components["model"]
        self.components["parameters"] = [m if m is None else count_parameters(m) for m in models]
        self._heads = [m if m is None else (skeleton(m), m.n_heads, m.n_kv_heads) for m in models]
        self._plans = self.components["plan"]
        self.components["plan"] = [None] * len(self._plans)

    @property
    def n_batches(self) -> int:
        """Number of values of the batch."""
        return 1 if self.batches is None else len(self.batches)

    def configurations(self) -> Iterator[Configuration | LooseConfiguration]:
        """Yield every configuration.

        Raises:
            SearchCancelledError: it was cancelled.
        """
        choices = [range(len(self.components[part])) for part in ORDER]
        for numbers in product(*choices):
            if self.cancelled():
                raise SearchCancelledError
            offset = sum(self._offsets[part][i] for part, i in zip(ORDER, numbers, strict=True))
            m, c, p, w = numbers
            specs = [self.components["model"][m], self.components["cluster"][c], self._plans[p]]
            specs.append(self.components["workload"][w])
            known = all(spec is not None for spec in specs)
            yield self._configuration(numbers, specs, offset) if known else LooseConfiguration(offset, True)

    def _configuration(
        self, numbers: tuple[int, ...], specs: list[Spec], offset: int
    ) -> Configuration | LooseConfiguration:
        m, c, p, w = numbers
        model, cluster = cast(ModelSpec, specs[0]), cast(ClusterSpec, specs[1])
        plan, workload = cast(PlanSpec, specs[2]), cast(WorkloadSpec, specs[3])
        if not has_programs(model, workload):
            return LooseConfiguration(offset, is_refused=False)
        mesh = self._mesh(m, c, model, cluster, plan)
        if mesh is None:
            return LooseConfiguration(offset, is_refused=True)
        resolved: Mesh = self.components["mesh"][mesh]
        rates = self._rate(p, cluster, plan)
        faults = pipeline_diagnostics(model.n_layers, plan.microbatches, resolved.stages, plan.microbatches)
        read = self._read_plan(p, plan)
        valid = not (read.is_faulty or self._faulty_rates[rates] or has_errors(faults))
        calibrated = self.components["rates"][rates].efficiency is not BOUND
        key = (workload.phase, read.looped, calibrated, self._shapes(m, c, w, mesh, rates))
        return Configuration(
            (*numbers, mesh, rates),
            offset,
            valid,
            self.alike.number(key, key[:3]),
            self._structures(m, read, model, plan, workload, resolved),
        )

    def _read_plan(self, p: int, plan: PlanSpec) -> _ReadPlan:
        """Read a plan when a configuration first has it, so that a search begins and ends at once."""
        found = self._read_plans.get(p)
        if found is None:
            looped, is_faulty = (
                np.all(plan.collective_overlap > 0),
                has_errors(planned_problems(plan.schedule)),
            )
            found = self._read_plans[p] = _ReadPlan(_choices(plan), bool(looped), is_faulty)
            self.components["plan"][p] = _numbers_only(plan)
        return found

    def _mesh(self, m: int, c: int, model: ModelSpec, cluster: ClusterSpec, plan: PlanSpec) -> int | None:
        """Number the mesh; ``None`` where the plan assigns axes that the cluster lacks."""
        key = (m, c, plan.mesh)
        if key not in self._meshes:
            mesh = resolve_mesh(cluster, model, plan.mesh)
            if has_errors(mesh.diagnostics):
                self.refused = self.refused or mesh.diagnostics
                self._meshes[key] = None
            else:
                self._meshes[key] = len(self.components["mesh"])
                self.components["mesh"].append(_nameless(mesh))
        return self._meshes[key]

    def _rate(self, p: int, cluster: ClusterSpec, plan: PlanSpec) -> int:
        key = (id(cluster.chip), p)
        found = self._rates.get(key)
        if found is None:
            # Not the memoised one: the results of a sweep would drive out those of the live view.
            rates, diagnostics = cast(tuple[Rates, Any], unwrap(rates_stage)(cluster.chip, plan))
            found = self._rates[key] = len(self.components["rates"])
            self.components["rates"].append(rates)
            self._faulty_rates.append(has_errors(diagnostics))
        return found

    def _shapes(self, m: int, c: int, w: int, mesh: int, rates: int) -> tuple[int, ...]:
        parts = (("model", m), ("cluster", c), ("workload", w), ("mesh", mesh), ("rates", rates))
        return tuple(self._shape(name, number) for name, number in parts)

    def _shape(self, name: str, number: int) -> int:
        found = self._skeleton_numbers.get((name, number))
        if found is None:
            tree: Any = self.components[name][number]
            if name == "model":
                tree = (tree, self.components["parameters"][number])
            key = skeleton(tree)
            found = self._skeleton_numbers[name, number] = self._skeletons.number(key, None)
        return found

    def _structures(
        self, m: int, read: _ReadPlan, model: ModelSpec, plan: PlanSpec, workload: WorkloadSpec, mesh: Mesh
    ) -> Rows:
        own = None if self.batches is not None else workload.batch
        key = (self._heads[m], read.choices, tuple(mesh.sizes.values()), own)
        found = self._structure_rows.get(key)
        if found is None:
            batches = np.array([own]) if self.batches is None else self.batches
            found = self._structure_rows[key] = self._classes(model, plan, batches, mesh.sizes)
        return found

    def _classes(self, model: ModelSpec, plan: PlanSpec, batches: Rows, sizes: dict[str, int]) -> Rows:
        """Number the structure for every batch; only its common divisor with the mesh matters to it."""
        each = ceil_div(batches, plan.microbatches).astype(np.int64)
        divisors, which = _common_divisors(each, prod(sizes.values()))
        numbers = []
        for divisor in divisors:
            structure = structure_of(model, plan, int(divisor), sizes)
            numbers.append(self.structures.number(structure, structure))
        return np.array(numbers)[which]


def relabelled(codes: Rows) -> tuple[Rows, Rows]:
    """Return the codes that occur and, for each entry, which of them it is; small labels sort fast."""
    kinds = np.flatnonzero(np.bincount(codes))
    labels = np.zeros(int(codes.max()) + 1, np.uint16 if len(kinds) < 1 << 16 else np.int64)
    labels[kinds] = np.arange(len(kinds))
    return kinds, labels[codes]


def _common_divisors(numbers: Rows, chips: int) -> tuple[Rows, Rows]:
    """Return the common divisors with the number of chips that occur, and which of them each number has."""
    if chips > MOST_TABLED:
        divisors, which = np.unique(np.gcd(numbers, chips), return_inverse=True)
        return divisors, which.reshape(-1)
    table: Rows = np.gcd(np.arange(chips), chips)
    return relabelled(table[numbers % chips])


def _choices(plan: PlanSpec) -> Hashable:
    """Return the fields of a plan that may shape the structure: neither shares, formats nor the mesh."""
    return tuple(
        value
        for name, value in plan
        if name != "mesh" and not isinstance(value, float | np.ndarray) and value not in DTYPE_BYTES
    )


def _numbers_only(plan: PlanSpec) -> PlanSpec:
    """Keep the numbers of a plan; its choices are in the structure and the rates."""
    return PlanSpec.model_construct(
        collective_overlap=plan.collective_overlap,
        memory_reserve=plan.memory_reserve,
        kv_memory_share=plan.kv_memory_share,
        microbatches=plan.microbatches,
    )


def _nameless(mesh: Mesh) -> Mesh:
    """Drop what changes no number: names of physical axes, the assignment and its findings."""

    def levels(found: tuple[Level, ...]) -> tuple[Level, ...]:
        return tuple(replace(level, axis="") for level in found)

    network = Network({axis: levels(found) for axis, found in mesh.network.levels.items()})
    return Mesh(mesh.sizes, network, {}, (), mesh.stages, levels(mesh.between))
