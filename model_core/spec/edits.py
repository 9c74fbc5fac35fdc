"""Change one field of a description and say what is wrong instead of raising.

`edit` takes a value, `edit_text` what a person typed: a quantity, ``null``, ``4x4x8``, ``x, y`` or JSON.
`edit_texts` sets several fields that may be right only together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from model_core.diagnostics import Diagnostic
from model_core.spec.base import S, SourcedSpec, Spec, field_names, get_at, replace_at
from model_core.spec.errors import diagnostics_of, models_in, types_in
from model_core.units import COUNT, QuantityError, parse_quantity

V = TypeVar("V")


def edit(spec: S, path: str, value: Any) -> tuple[S | None, tuple[Diagnostic, ...]]:
    """Return a copy with the field at a dotted path changed, or the diagnostics that forbid it.

    A part that is empty is filled with its defaults where a field inside it is set, so that
    ``plan.mesh.x`` can be set on a plan without a mesh.
    """
    filled, problem = with_parents(spec, path)
    if problem is not None:
        return None, (problem,)
    try:
        return replace_at(filled, path, value), ()
    except AttributeError:
        return None, (unknown_field(filled, path),)
    except ValidationError as error:
        return None, diagnostics_of(error, _level(filled, path, error.title))


def edit_text(spec: S, path: str, text: str) -> tuple[S | None, tuple[Diagnostic, ...]]:
    """Like `edit`, for a value given as text."""
    filled, problem = with_parents(spec, path)
    if problem is not None:
        return None, (problem,)
    value, problem = read_text(filled, path, text)
    return edit(filled, path, value) if problem is None else (None, (problem,))


def edit_texts(spec: S, texts: Mapping[str, str]) -> tuple[S | None, tuple[Diagnostic, ...]]:
    """Set several fields by path. Those refused one by one are tried again together with their neighbours.

    So ``n_heads = 48`` and ``n_kv_heads = 48`` can replace 64 and 64, in any order.
    """
    return _edit_all(spec, texts, edit_text, _edit_together)


def edit_values(spec: S, values: Mapping[str, Any]) -> tuple[S | None, tuple[Diagnostic, ...]]:
    """Like `edit_texts`, for values."""
    return _edit_all(spec, values, edit, _set_together)


def _edit_all(
    spec: S,
    changes: Mapping[str, V],
    one: Callable[[S, str, V], tuple[S | None, tuple[Diagnostic, ...]]],
    together: Callable[[S, str, Mapping[str, V]], tuple[S | None, tuple[Diagnostic, ...]]],
) -> tuple[S | None, tuple[Diagnostic, ...]]:
    refused: dict[str, dict[str, V]] = {}
    for path, value in changes.items():
        changed, _ = one(spec, path, value)
        if changed is None:
            refused.setdefault(path.rpartition(".")[0], {})[path] = value
        else:
            spec = changed
    problems: list[Diagnostic] = []
    for parent, group in refused.items():
        changed, found = together(spec, parent, group)
        spec = spec if changed is None else changed
        problems += found
    return (None if problems else spec), tuple(problems)


def _edit_together(spec: S, parent: str, texts: Mapping[str, str]) -> tuple[S | None, tuple[Diagnostic, ...]]:
    """Set fields of one part in one step, so that only their final values have to agree."""
    spec, missing = with_parents(spec, next(iter(texts)))
    if missing is not None:
        return None, (missing,)
    readings = {path: read_text(spec, path, text) for path, text in texts.items()}
    problems = tuple(problem for _, problem in readings.values() if problem is not None)
    if problems:
        return None, problems
    return _set_together(spec, parent, {path: value for path, (value, _) in readings.items()})


def _set_together(
    spec: S, parent: str, changes: Mapping[str, Any]
) -> tuple[S | None, tuple[Diagnostic, ...]]:
    spec, missing = with_parents(spec, next(iter(changes)))
    if missing is not None:
        return None, (missing,)
    unknown = tuple(unknown_field(spec, path) for path in changes if field_at(spec, path) is None)
    if len(changes) == 1 or not parent or unknown:
        outcomes = [edit(spec, path, value) for path, value in changes.items()]
        found = tuple(diagnostic for _, part in outcomes for diagnostic in part)
        return (None if found else outcomes[-1][0]), found
    values = {path.rpartition(".")[2]: value for path, value in changes.items()}
    part = get_at(spec, parent)
    content = {**dict(part), **values}
    if isinstance(part, SourcedSpec):
        content["sources"] = tuple(s for s in part.sources if s.field not in values)
    return edit(spec, parent, content)


def read_text(spec: Spec, path: str, text: str) -> tuple[Any, Diagnostic | None]:
    """Read text as a value for the field at a path; the value is not checked yet."""
    field = field_at(spec, path)
    if field is None:
        return None, unknown_field(spec, path)
    try:
        return _value_of(text.strip(), field), None
    except (ValueError, RecursionError) as error:
        reason = f"{path.rpartition('.')[2]} is not valid JSON: {error}"
        values = {"reason": reason, "expected": 'Write for instance {"x": ["x"]} or [4, 4, 8].'}
        return None, Diagnostic("field_invalid", path, values)


def field_at(spec: Spec, path: str) -> FieldInfo | None:
    """Return the declaration of the field at a dotted path; ``None`` where there is none."""
    parent_path, _, name = path.rpartition(".")
    try:
        parent = get_at(spec, parent_path) if parent_path else spec
    except AttributeError:
        return None
    return type(parent).model_fields.get(name) if isinstance(parent, Spec) else None


def field_paths(spec: Spec, prefix: str = "") -> tuple[str, ...]:
    """List the dotted paths of all fields, parts before what they contain; sources are left out."""
    found: list[str] = []
    for name in type(spec).model_fields:
        if name == "sources":
            continue
        value = getattr(spec, name)
        found.append(f"{prefix}{name}")
        if isinstance(value, Spec):
            found.extend(field_paths(value, f"{prefix}{name}."))
    return tuple(found)


def unknown_field(spec: Spec, path: str) -> Diagnostic:
    """Say that a path names no field, with the fields at its level and the nearest paths."""
    paths = field_paths(spec)
    last = path.rpartition(".")[2]
    alike = [
        *get_close_matches(path, paths, 3, cutoff=0.75),
        *(p for p in paths if p.rpartition(".")[2] == last),
    ]
    nearest = ", ".join(dict.fromkeys(alike))
    known = ", ".join(field_names(spec, path))
    return Diagnostic(
        "field_unknown", path, {"field": path, "known": f"{known}; nearest: {nearest}" if nearest else known}
    )


def with_parents(spec: S, path: str) -> tuple[S, Diagnostic | None]:
    """Fill empty parts on the way to a field with their defaults, or say why they cannot be."""
    parts = path.split(".")
    for end in range(1, len(parts)):
        parent = ".".join(parts[:end])
        field = field_at(spec, parent)
        if field is None or get_at(spec, parent) is not None:
            continue
        for model in models_in(field.annotation):
            try:
                spec = replace_at(spec, parent, model())
            except ValidationError:
                values = {
                    "reason": f"{parent} is empty; its fields can only be set together",
                    "expected": f"Give an object with the fields {', '.join(model.model_fields)}.",
                }
                return spec, Diagnostic("field_invalid", parent, values)
    return spec, None


def _level(spec: Spec, path: str, title: str) -> str:
    """Return the path of the part that refused the value: its class is named in the error."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        parent = ".".join(parts[:end])
        if type(get_at(spec, parent)).__name__ == title:
            return parent
    return ""


def _value_of(text: str, field: FieldInfo) -> Any:
    types = set(types_in(field.annotation))
    if type(None) in get_args(field.annotation) and text.lower() in ("", "null", "none"):
        return None
    if text[:1] in ("{", "[") and (models_in(field.annotation) or tuple in types):
        return json.loads(text)
    if tuple in types:
        return _list_of(text.strip("()"), whole=int in types)
    if int in types:
        return _count_of(text)
    return text


def _list_of(text: str, whole: bool) -> tuple[Any, ...]:
    """Split ``4x4x8``, ``4,4,8``, ``x, y`` or ``xyz``."""
    if whole:
        return tuple(_count_of(part) for part in re.split(r"[x×*,\s]+", text) if part)
    if re.fullmatch(r"[xyz]+", text):
        return tuple(text)
    return tuple(part for part in re.split(r"[,\s]+", text) if part)


def _count_of(text: str) -> int | str:
    try:
        number = parse_quantity(text, COUNT)
    except QuantityError:
        return text
    return int(number) if number.is_integer() else text
