"""What `model_core.evaluate` returns: plain immutable data that every view and export reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from model_core.diagnostics import Diagnostic, has_errors
from model_core.partition.program import LayerProgram
from model_core.quantities import Quantity
from model_core.spec.calibration import CalibrationSpec
from model_core.spec.design import Design


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters by matrix group. ``active``: those one token multiplies with (see `convention`)."""

    total: int
    active: int
    mfu: int
    groups: Mapping[str, int]
    convention: str


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One line of the memory budget of a chip."""

    name: str
    bytes: float
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Memory of one chip (the fullest), itemised. ``kind``: weights, kv, activations, buffers, reserve."""

    capacity_bytes: float
    items: tuple[MemoryItem, ...]

    @property
    def per_chip_bytes(self) -> float:
        """Sum of the items."""
        return sum(item.bytes for item in self.items)

    @property
    def fits(self) -> bool:
        """Whether the items fit into the chip."""
        return self.per_chip_bytes <= self.capacity_bytes


@dataclass(frozen=True, slots=True)
class OpTime:
    """Time of one operation of a program in one execution of it, on every chip alike.

    ``count`` is how often it runs in one step (layers). Arithmetic and the loading of weights, KV and
    activations of one operation overlap: the longer counts in ``busy_s``. ``exposed_s`` is what of a
    collective is not hidden behind a product. ``activation_s`` and ``fixed_s`` (a cost whatever the size)
    are zero without a calibration.
    """

    program: str
    index: int
    name: str
    kind: str
    count: int
    flops: float = 0.0
    weight_bytes: float = 0.0
    kv_bytes: float = 0.0
    collective_bytes: float = 0.0
    compute_s: float = 0.0
    weight_s: float = 0.0
    kv_s: float = 0.0
    activation_s: float = 0.0
    fixed_s: float = 0.0
    communication_s: float = 0.0
    exposed_s: float = 0.0
    latency_part_s: float = 0.0
    axes: str = ""
    tensor: str = ""

    @property
    def busy_s(self) -> float:
        """Time the chip's cores or memory are taken."""
        return max(self.compute_s, self.loading_s) + self.fixed_s

    @property
    def loading_s(self) -> float:
        """Time to load weights, KV and activations."""
        return self.weight_s + self.kv_s + self.activation_s

    @property
    def total_s(self) -> float:
        """Contribution to the step, all executions."""
        return self.count * (self.busy_s + self.exposed_s)


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """Time of one step (decode: one token of each sequence; prefill: the whole input)."""

    step_s: float
    latency_s: float
    compute_s: float
    memory_s: float
    communication_s: float
    exposed_communication_s: float
    bound_by: str
    ops: tuple[OpTime, ...]
    calibrated: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything known about a design; parts that could not be computed are ``None``.

    ``programs`` maps ``"embedding"``, ``"block"``, ``"moe_block"`` and ``"logits"`` to their layer programs, as
    far as the model has them; ``sizes``
    binds their dimension letters and mesh axes to numbers; ``quantities`` holds the headline and
    derived numbers by key, each with its formula card. ``calibration`` is what the times rest on; without
    one they are bounds at peak rates.
    """

    design: Design
    diagnostics: tuple[Diagnostic, ...] = ()
    parameters: ParameterCount | None = None
    memory: MemoryBudget | None = None
    time: TimeBudget | None = None
    programs: Mapping[str, LayerProgram] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    calibration: CalibrationSpec | None = None

    @property
    def ok(self) -> bool:
        """Whether the design has no error."""
        return not has_errors(self.diagnostics)

    def value(self, key: str) -> float | None:
        """Return a quantity's number, or ``None`` where it could not be computed."""
        quantity = self.quantities.get(key)
        return None if quantity is None else quantity.value

    def explain(self, key: str) -> Quantity | None:
        """Return the card of any number: see `model_core.explain.explain` for the keys."""
        from model_core.explain import explain

        return explain(self, key)

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``meshwright evaluate --json`` prints."""
        from model_core.report import evaluation_json

        return evaluation_json(self)

    def _repr_html_(self) -> str:
        from model_core.report import evaluation_html

        return evaluation_html(self)
