"""Reads an axis as people type it: ``path=v1,v2``, ``path=1:1024:*2``, ``path=all`` or names of presets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Final, Literal, get_args, get_origin

from model_core.diagnostics import Diagnostic
from model_core.hardware.slices import slice_shapes
from model_core.search.axes import LONGEST_AXIS, MESH, Axis, axis_problem, make_axis
from model_core.spec.base import Spec
from model_core.spec.cluster import ClusterSpec, NodeTopology, TorusTopology
from model_core.spec.design import Design
from model_core.spec.edits import field_at, read_text, unknown_field, with_parents
from model_core.spec.errors import types_in, unit_of
from model_core.spec.plan import MeshPlan
from model_core.units import COUNT, Dimension, QuantityError, parse_quantity

ALL: Final = "all"
HOW_TO: Final = (
    "Write path=v1,v2,… or a range path=first:last:*factor or path=first:last:+step, "
    "for instance workload.batch=1:1024:*2; choices may be written path=all."
)


@dataclass(frozen=True, slots=True)
class PresetPart:
    """The presets that an axis over a whole part may name."""

    names: tuple[str, ...]
    load: Callable[[str], Spec]


class _AxisError(ValueError):
    """What is wrong with the text of an axis."""


def parse_axis(
    design: Design, text: str, presets: Mapping[str, PresetPart] | None = None
) -> tuple[Axis | None, tuple[Diagnostic, ...]]:
    """Read one axis.

    Args:
        design: the design that is swept.
        text: ``path=values``; values are separated by commas outside brackets. A value is what ``--set``
            takes, a range ``first:last:*factor``, ``first:last:+step`` or ``first:last``, ``all`` for all
            choices, slice shapes or mesh assignments, or for a part the name of a preset, ``*`` for any.
        presets: for paths of whole parts (``"cluster"``) the presets that may be named.
    """
    path, equals, body = text.partition("=")
    path = path.strip()
    if not equals or not path or not body.strip():
        return None, (axis_problem(path or text[:60], "it is not PATH=VALUES", HOW_TO),)
    filled, problem = with_parents(design, path)
    if problem is not None:
        return None, (problem,)
    try:
        values, labels = _values(filled, path, body, presets or {})
    except _AxisError as error:
        return None, (axis_problem(path, str(error), HOW_TO),)
    except LookupError:
        return None, (unknown_field(design, path),)
    return make_axis(design, path, values, labels)


def _values(
    design: Design, path: str, body: str, presets: Mapping[str, PresetPart]
) -> tuple[list[Any], tuple[str, ...]]:
    preset = presets.get(path)
    values: list[Any] = []
    labels: list[str] = []
    for token in _split(body):
        if preset is not None and not token.startswith("{"):
            names = _matching(token, preset.names)
            values += [preset.load(name) for name in names]
            labels += names
        else:
            values += _field_values(design, path, token)
        if len(values) > LONGEST_AXIS:
            raise _AxisError(f"it has more than {LONGEST_AXIS:,} values")
    return values, tuple(labels) if len(labels) == len(values) else ()


def _split(body: str) -> Iterator[str]:
    """Yield the values between commas that are outside brackets and quotes."""
    depth, quoted, token = 0, False, ""
    for letter in body:
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in "[{(":
            depth += 1
        elif not quoted and letter in ")}]":
            depth -= 1
        if letter == "," and depth == 0 and not quoted:
            yield token.strip()
            token = ""
        else:
            token += letter
    yield token.strip()


def _matching(token: str, names: Sequence[str]) -> list[str]:
    pattern = "*" if token == ALL else token
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        near = ", ".join(sorted(names, key=lambda name: _distance(name, token))[:3])
        raise _AxisError(f"no preset is named {token[:60]!r}; nearest: {near}")
    return found


def _distance(name: str, token: str) -> float:
    from difflib import SequenceMatcher

    return -SequenceMatcher(None, name, token.lower()).ratio()


def _field_values(design: Design, path: str, token: str) -> list[Any]:
    if token == ALL:
        return list(_choices(design, path))
    if ":" in token and token[:1] not in ("{", "[", '"'):
        return _range(design, path, token)
    value, problem = read_text(design, path, token)
    if problem is not None:
        raise _AxisError(problem.message) if problem.code != "field_unknown" else LookupError(path)
    return [value]


def _choices(design: Design, path: str) -> Sequence[Any]:
    """Return all values of a field with choices, all mesh assignments, or all slice shapes of a chip."""
    if path == MESH:
        return [None, *mesh_assignments(design.cluster)]
    topology = design.cluster.topology
    if path == "cluster.topology.shape" and isinstance(topology, TorusTopology):
        return slice_shapes(topology)
    field = field_at(design, path)
    if field is None:
        raise LookupError(path)
    for kind in types_in(field.annotation):
        if issubclass(kind, Enum):
            return list(kind)
        if kind is bool:
            return [False, True]
    literals = _literals(field.annotation)
    if not literals:
        raise _AxisError("it has no list of choices")
    return literals


def _literals(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for inner in get_args(annotation) for value in _literals(inner)]


def mesh_assignments(cluster: ClusterSpec) -> list[MeshPlan]:
    """List the ways to put the physical axes of a cluster on the logical axes x, y and z.

    Axes on one logical axis keep the cluster's order, except that nodes put the network before NVLink.
    """
    names = tuple(cluster.axes)
    plans = []
    for logical in product("xyz", repeat=len(names)):
        taken = {axis: tuple(n for n, on in zip(names, logical, strict=True) if on == axis) for axis in "xyz"}
        plans.append(MeshPlan(**taken))
    return plans


def _range(design: Design, path: str, token: str) -> list[Any]:
    field = field_at(design, path)
    if field is None:
        raise LookupError(path)
    types = set(types_in(field.annotation))
    dimension = unit_of(field) or COUNT
    whole = int in types and float not in types
    if not (whole or float in types) or bool in types or tuple in types:
        raise _AxisError("only numbers have ranges")
    parts = token.split(":")
    if not 2 <= len(parts) <= 3:
        raise _AxisError(f"{token[:60]!r} is not a range")
    first, last = (_number(part, dimension) for part in parts[:2])
    step = parts[2].strip() if len(parts) == 3 else "+1"
    numbers = _steps(first, last, step, dimension)
    return [int(number) if whole and float(number).is_integer() else number for number in numbers]


def _steps(first: float, last: float, step: str, dimension: Dimension) -> list[float]:
    if step[:1] in ("*", "×"):
        factor = _number(step[1:], COUNT)
        if factor <= 1 or first <= 0 or last < first:
            raise _AxisError("a range with a factor needs 0 < first <= last and a factor above 1")
        count = math.floor(math.log(last / first) / math.log(factor) + 1e-9) + 1
        _check_length(count)
        return [_rounded(first * factor**index) for index in range(count)]
    width = _number(step.removeprefix("+"), dimension)
    if width <= 0 or last < first:
        raise _AxisError("a range needs first <= last and a step above 0")
    count = math.floor((last - first) / width + 1e-9) + 1
    _check_length(count)
    return [_rounded(first + index * width) for index in range(count)]


def _rounded(value: float) -> float:
    """Drop what binary fractions add: the third of 10 %, 20 %, … is 30 %."""
    return float(f"{value:.12g}")


def _check_length(count: int) -> None:
    if count > LONGEST_AXIS:
        raise _AxisError(f"it has more than {LONGEST_AXIS:,} values")


def _number(text: str, dimension: Dimension) -> float:
    try:
        return parse_quantity(text, dimension)
    except QuantityError as error:
        raise _AxisError(str(error)) from None


def nodes_of(topology: NodeTopology, most: int) -> tuple[NodeTopology, ...]:
    """List the sizes in which nodes are had: parts of one node, and whole nodes up to ``most``."""
    inside = [1 << k for k in range(topology.chips_per_node.bit_length()) if 1 << k < topology.chips_per_node]
    parts = [topology.replace(n_nodes=1, chips_per_node=chips) for chips in inside]
    counts = [1 << k for k in range(most.bit_length()) if 1 << k <= most]
    return (*parts, *(topology.replace(n_nodes=count) for count in counts))
