"""Validation errors as diagnostics: which field, what is wrong with it, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from model_core.diagnostics import Diagnostic
from model_core.units import Dimension

MAX_SHOWN = 40
MAX_DIAGNOSTICS = 100

_WRONG = {
    "missing": "is missing",
    "enum": "= {shown} is not one of its choices",
    "literal_error": "= {shown} is not one of its choices",
    "greater_than": "= {shown} is too small",
    "greater_than_equal": "= {shown} is too small",
    "less_than": "= {shown} is too large",
    "less_than_equal": "= {shown} is too large",
    "finite_number": "is not a finite number",
    "string_too_long": "is too long",
    "string_unicode": "is not valid Unicode text",
    "too_short": "= {shown} has too few entries",
    "too_long": "= {shown} has too many entries",
    "model_type": "= {shown} is not an object with fields",
    "model_attributes_type": "= {shown} is not an object with fields",
    "dict_type": "= {shown} is not an object with fields",
    "tuple_type": "= {shown} is not a list",
    "string_type": "= {shown} is not text",
}
_WRONG_KIND = {"int": "a whole number", "bool": "true or false", "float": "a number"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an error is: its path, the models met there and the last field on the way."""

    path: tuple[str, ...]
    owner: type[BaseModel] | None
    field: FieldInfo | None
    models: tuple[type[BaseModel], ...]

    @property
    def name(self) -> str:
        """The last part of the path, for messages."""
        if not self.path:
            return "the design"
        return ".".join(self.path[-2:]) if self.path[-1].isdigit() else self.path[-1]


def diagnostics_of(error: ValidationError, prefix: str = "") -> tuple[Diagnostic, ...]:
    """Turn pydantic's errors into diagnostics with dotted field paths.

    Args:
        error: what a `Spec` raised.
        prefix: the path of that `Spec` in the design; empty for the design itself.
    """
    root = _model_named(error.title)
    items = error.errors(include_url=False)[:MAX_DIAGNOSTICS]
    return tuple(_diagnostic(item, root, prefix) for item in items)


def _diagnostic(item: ErrorDetails, root: type[BaseModel] | None, prefix: str) -> Diagnostic:
    place = _walk(item["loc"], root)
    path = ".".join([prefix, *place.path] if prefix else place.path)
    if item["type"] == "extra_forbidden":
        known = tuple(place.owner.model_fields) if place.owner else ()
        near = get_close_matches(place.name, known, 1)
        text = f"{', '.join(known)}. Nearest: {near[0]}" if near else ", ".join(known)
        return Diagnostic("field_unknown", path, {"field": place.name, "known": text})
    if item["type"].startswith("union_tag"):
        path = f"{path}.kind" if path else "kind"
        kinds = ", ".join(str(m.model_fields["kind"].default) for m in place.models)
        values = {
            "reason": f"{place.name} has no kind that is known",
            "expected": f"Set kind to one of: {kinds}.",
        }
        return Diagnostic("field_invalid", path, values)
    if item["type"] == "value_error" and (place.field is None or place.models):
        return _disagreement(item, place, path)
    return Diagnostic(
        "field_invalid", path, {"reason": _reason(item, place), "expected": _expected(item, place)}
    )


def _disagreement(item: ErrorDetails, place: _Place, path: str) -> Diagnostic:
    """Name the field that a rule between several fields begins with, where it does."""
    reason = item["msg"].removeprefix("Value error, ")
    first = re.match(r"([\w.]+) = ", reason)
    if first and any(first[1].partition(".")[0] in model.model_fields for model in place.models):
        path = f"{path}.{first[1]}" if path else first[1]
    return Diagnostic(
        "field_invalid", path, {"reason": reason, "expected": "Change one of the two so that they agree."}
    )


def _reason(item: ErrorDetails, place: _Place) -> str:
    kind, shown = item["type"], _shown(item["input"])
    if kind == "value_error":
        return f"{place.name}: {item['msg'].removeprefix('Value error, ')}"
    if kind in _WRONG:
        return f"{place.name} {_WRONG[kind].format(shown=shown)}"
    wanted = _WRONG_KIND.get(kind.partition("_")[0])
    if wanted:
        return f"{place.name} = {shown} is not {wanted}"
    return f"{place.name} = {shown}: {item['msg'][:1].lower()}{item['msg'][1:]}"


def _expected(item: ErrorDetails, place: _Place) -> str:
    if place.field is None:
        fields = [name for model in place.models[:1] for name in model.model_fields]
        return f"Give an object with the fields {', '.join(fields)}." if fields else "See the documentation."
    annotation, metadata = place.field.annotation, tuple(_metadata(place.field))
    text = _expected_value(annotation, metadata, item["input"])
    nothing = " Leave it empty (null) for none." if type(None) in get_args(annotation) else ""
    return f"{text}{nothing}"


def _expected_value(annotation: Any, metadata: tuple[Any, ...], given: Any) -> str:
    dimension = next((m for m in metadata if isinstance(m, Dimension)), None)
    choices = tuple(_choices(annotation))
    models = models_in(annotation)
    if dimension is not None:
        article = "an" if dimension.name[0] in "aeiou" else "a"
        return f"Write {article} {dimension.name}, for instance {dimension.examples}{_range(metadata)}."
    if choices:
        near = get_close_matches(str(given), choices, 1)
        return f"Choose one of: {', '.join(choices)}.{f' Nearest: {near[0]}.' if near else ''}"
    if models:
        return f"Give an object with the fields {', '.join(models[0].model_fields)}."
    return f"Give {_plain_type(annotation, metadata)}{_range(metadata)}."


def _plain_type(annotation: Any, metadata: tuple[Any, ...]) -> str:
    types = set(types_in(annotation))
    length = _length(metadata)
    if get_origin(annotation) is tuple:
        return f"a list of {length}{'whole numbers' if int in types else 'names'}"
    if bool in types:
        return "true or false"
    if int in types:
        return "a whole number"
    return f"text of {length}characters" if length else "text"


def _range(metadata: tuple[Any, ...]) -> str:
    low = next((m.ge for m in metadata if isinstance(m, Ge)), None)
    high = next((m.le for m in metadata if isinstance(m, Le)), None)
    above = next((m.gt for m in metadata if isinstance(m, Gt)), None)
    below = next((m.lt for m in metadata if isinstance(m, Lt)), None)
    parts = [
        f"from {low:,}" if low is not None and high is not None else "",
        f"to {high:,}" if high is not None else "",
        f"of {low:,} or more" if low is not None and high is None else "",
        f"above {above:,}" if above is not None else "",
        f"below {below:,}" if below is not None else "",
    ]
    text = " ".join(part for part in parts if part)
    return f", {text}" if text else ""


def _length(metadata: tuple[Any, ...]) -> str:
    low = next((m.min_length for m in metadata if isinstance(m, MinLen)), None)
    high = next((m.max_length for m in metadata if isinstance(m, MaxLen)), None)
    if low is not None and high is not None:
        return f"{low:,} to {high:,} "
    return f"at most {high:,} " if high is not None else ""


def _walk(loc: tuple[int | str, ...], root: type[BaseModel] | None) -> _Place:
    place = _Place((), None, None, (root,) if root else ())
    for part in loc:
        place = _step(place, part)
    return place


def _step(place: _Place, part: int | str) -> _Place:
    if isinstance(part, int):
        return _Place((*place.path, str(part)), place.owner, place.field, place.models)
    owner = next((model for model in place.models if part in model.model_fields), None)
    if owner is not None:
        field = owner.model_fields[part]
        return _Place((*place.path, part), owner, field, models_in(field.annotation))
    tagged = tuple(
        m for m in place.models if "kind" in m.model_fields and m.model_fields["kind"].default == part
    )
    if tagged:
        return _Place(place.path, place.owner, place.field, tagged)
    owner = place.models[0] if place.models else None
    return _Place((*place.path, part[:MAX_SHOWN]), owner, None, ())


def _model_named(name: str) -> type[BaseModel] | None:
    pending = [BaseModel]
    while pending:
        model = pending.pop()
        if model.__name__ == name:
            return model
        pending.extend(model.__subclasses__())
    return None


def types_in(annotation: Any) -> Iterator[Any]:
    """Yield every class inside an annotation, through unions, tuples and Annotated."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    outer = get_origin(annotation) or annotation
    if isinstance(outer, type):
        yield outer
    for inner in get_args(annotation):
        yield from types_in(inner)


def models_in(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Return the pydantic models that a value with this annotation may be."""
    return tuple(t for t in types_in(annotation) if isinstance(t, type) and issubclass(t, BaseModel))


def _choices(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from (str(value) for value in get_args(annotation))
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (str(member.value) for member in annotation)
    else:
        for inner in get_args(annotation):
            yield from _choices(inner)


def unit_of(field: FieldInfo) -> Dimension | None:
    """Return the kind of quantity that a field holds; ``None`` for counts, choices and parts."""
    return next((entry for entry in _metadata(field) if isinstance(entry, Dimension)), None)


def _metadata(field: FieldInfo) -> Iterator[Any]:
    """Yield units and limits, also those inside an optional annotation."""
    yield from field.metadata
    yield from _annotated_metadata(field.annotation)


def _annotated_metadata(annotation: Any) -> Iterator[Any]:
    for inner in get_args(annotation):
        if isinstance(inner, FieldInfo):
            yield from inner.metadata
        elif isinstance(inner, Dimension):
            yield inner
        else:
            yield from _annotated_metadata(inner)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    text = repr(value) if not isinstance(value, list | tuple) else "[" + ", ".join(map(repr, value[:5])) + "]"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
