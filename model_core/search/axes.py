"""The axes of a sweep: a field of the design and the values it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from model_core.diagnostics import Diagnostic
from model_core.search.arrays import is_number
from model_core.spec.cluster import NodeTopology, TorusTopology
from model_core.spec.design import Design
from model_core.spec.edits import edit, field_at, unknown_field, with_parents
from model_core.spec.errors import unit_of
from model_core.spec.plan import MeshPlan
from model_core.units import exact_text

LONGEST_AXIS: Final = 100_000
PARTS: Final = ("model", "cluster", "workload", "plan")
BATCH: Final = "workload.batch"
MESH: Final = "plan.mesh"

NUMERIC: Final = frozenset(
    (
        *(f"workload.{name}" for name in ("batch", "input_length", "output_length", "cached_length")),
        "workload.prefill_chunk",
        *(f"cluster.chip.{name}" for name in ("peak_bf16", "peak_int8", "peak_fp8")),
        *(f"cluster.chip.{name}" for name in ("hbm_capacity", "hbm_bandwidth", "price_per_hour", "power")),
        *(f"cluster.topology.{name}" for name in ("link_bandwidth", "hop_latency")),
        *(f"cluster.topology.{name}" for name in ("nvlink_bandwidth", "nvlink_latency")),
        *(f"cluster.topology.{name}" for name in ("nic_bandwidth", "nic_latency")),
        *(f"plan.{name}" for name in ("collective_overlap", "memory_reserve", "kv_memory_share")),
    )
)
"""Fields that change numbers and never what is computed (the batch's divisors are looked at apart)."""

_ABOVE_ZERO: Final = frozenset({"plan.collective_overlap"})
"""Numeric only where no value is zero: without overlap other buffers are held."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One field and its values; ``labels`` name the values for people."""

    path: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]

    @property
    def part(self) -> str:
        """The part of the design that the field belongs to."""
        return self.path.partition(".")[0]

    @property
    def is_numeric(self) -> bool:
        """Whether the values become an array instead of designs of their own."""
        if self.path not in NUMERIC or not all(is_number(value) for value in self.values):
            return False
        return self.path not in _ABOVE_ZERO or all(value > 0 for value in self.values)

    def plain(self, index: int) -> Any:
        """Return a value as plain data: a number or text; parts by their label."""
        value = self.values[index]
        if isinstance(value, int | float | bool) or value is None:
            return value
        return self.labels[index]


def make_axis(
    design: Design, path: str, values: Sequence[Any], labels: Sequence[str] = ()
) -> tuple[Axis | None, tuple[Diagnostic, ...]]:
    """Check the values of an axis one by one; rules between fields are left to the combinations.

    Args:
        design: where the field is looked up.
        path: dotted path of a field or of a whole part.
        values: values as `edit` takes them.
        labels: names of the values; by default they are written out.
    """
    if path.partition(".")[0] not in PARTS:
        reason = f"it is not inside {', '.join(PARTS[:-1])} or {PARTS[-1]}"
        return None, (axis_problem(path, reason, "Sweep for instance workload.batch or cluster."),)
    if not values or len(values) > LONGEST_AXIS:
        reason = f"it has {len(values):,} values" if values else "it has no values"
        return None, (axis_problem(path, reason, f"Give 1 to {LONGEST_AXIS:,} values."),)
    reader = _value_reader(design, path)
    if reader is None:
        return None, (unknown_field(design, path),)
    read: list[Any] = []
    found: list[Diagnostic] = []
    for value in values:
        try:
            read.append(reader.validate_python(value))
        except ValidationError:
            found += edit(design, path, value)[1] or (
                axis_problem(path, f"{value!r} is not a value of it", "Choose another value."),
            )
    if found:
        return None, tuple(found)
    texts = tuple(labels) or tuple(label_of(design, path, value) for value in read)
    return Axis(path, tuple(read), texts), ()


def _value_reader(design: Design, path: str) -> TypeAdapter[Any] | None:
    field = field_at(with_parents(design, path)[0], path)
    if field is None:
        return None
    annotation: Any = field.annotation
    return TypeAdapter(Annotated[annotation, *field.metadata] if field.metadata else annotation)


def axis_problem(path: str, reason: str, expected: str) -> Diagnostic:
    """Say why a field cannot be an axis."""
    return Diagnostic("axis_invalid", path, {"axis": path, "reason": reason, "expected": expected})


def label_of(design: Design, path: str, value: Any) -> str:
    """Name a value for people: quantities with their unit, parts by their name."""
    if isinstance(value, BaseModel):
        return _part_label(value)
    if isinstance(value, tuple):
        separator = "x" if all(isinstance(item, int) for item in value) else ","
        return separator.join(map(str, value))
    if value is None:
        return "automatic" if path == MESH else "none"
    field = field_at(design, path)
    unit = unit_of(field) if field is not None else None
    return str(value) if unit is None else exact_text(value, unit)


def _part_label(part: BaseModel) -> str:
    if isinstance(part, MeshPlan):
        return " ".join(f"{axis}={'+'.join(names)}" for axis, names in part.axes().items() if names)
    if isinstance(part, NodeTopology):
        return f"{part.n_nodes} x {part.chips_per_node}"
    if isinstance(part, TorusTopology):
        return "x".join(map(str, part.shape))
    return str(getattr(part, "name", "")) or type(part).__name__
