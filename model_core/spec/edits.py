"""Change one field of a description and say what is wrong instead of raising.

`edit` takes a value, `edit_text` what a person typed: a quantity, ``null``, ``4x4x8``, ``x, y`` or JSON.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from model_core.diagnostics import Diagnostic
from model_core.spec.base import S, Spec, field_names, get_at, replace_at
from model_core.spec.errors import diagnostics_of, models_in, types_in
from model_core.units import COUNT, QuantityError, parse_quantity


def edit(spec: S, path: str, value: Any) -> tuple[S | None, tuple[Diagnostic, ...]]:
    """Return a copy with the field at a dotted path changed, or the diagnostics that forbid it.

    A part that is empty is filled with its defaults where a field inside it is set, so that
    ``plan.mesh.x`` can be set on a plan without a mesh.
    """
    filled, problem = _with_parents(spec, path)
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
    filled, problem = _with_parents(spec, path)
    if problem is not None:
        return None, (problem,)
    field = field_at(filled, path)
    if field is None:
        return None, (unknown_field(filled, path),)
    try:
        value = _value_of(text.strip(), field)
    except (ValueError, RecursionError) as error:
        reason = f"{path.rpartition('.')[2]} is not valid JSON: {error}"
        values = {"reason": reason, "expected": 'Write for instance {"x": ["x"]} or [4, 4, 8].'}
        return None, (Diagnostic("field_invalid", path, values),)
    return edit(filled, path, value)


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
    alike = [*get_close_matches(path, paths, 3), *(p for p in paths if p.rpartition(".")[2] == last)]
    nearest = ", ".join(dict.fromkeys(alike))
    known = ", ".join(field_names(spec, path))
    return Diagnostic(
        "field_unknown", path, {"field": path, "known": f"{known}; nearest: {nearest}" if nearest else known}
    )


def _with_parents(spec: S, path: str) -> tuple[S, Diagnostic | None]:
    """Fill empty parts on the way to a field with their defaults."""
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
