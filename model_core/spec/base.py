"""The frozen base of every description, and the one way to change a field."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from model_core.spec.errors import diagnostics_of

__all__ = [
    "Evidence",
    "FieldSource",
    "SourcedSpec",
    "Spec",
    "diagnostics_of",
    "field_names",
    "get_at",
    "replace_at",
]


class Evidence(StrEnum):
    """How far a number can be trusted."""

    PUBLISHED = "published"
    MEASURED = "measured"
    MODELLED = "modelled"
    ASSUMED = "assumed"


class Spec(BaseModel):
    """Immutable input data; unknown fields are refused, so that a typo is never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def replace(self, **changes: Any) -> Self:
        """Return a validated copy with some fields changed.

        Pydantic's own ``model_copy(update=…)`` does not validate. Parts that are not named keep
        their identity, which the memoised stages of the evaluation rely on.

        Raises:
            pydantic.ValidationError: a value is not right for its field.
        """
        return type(self).model_validate({**dict(self), **changes})


class FieldSource(Spec):
    """Where the value of one field comes from."""

    field: str
    source: str
    evidence: Evidence = Evidence.PUBLISHED


class SourcedSpec(Spec):
    """A description whose values carry their sources, field by field."""

    name: str
    sources: tuple[FieldSource, ...] = ()

    def source_of(self, field: str) -> FieldSource:
        """Return the source of a field; an edited or unsourced value counts as assumed."""
        for entry in self.sources:
            if entry.field == field:
                return entry
        return FieldSource(field=field, source="entered by the user", evidence=Evidence.ASSUMED)


S = TypeVar("S", bound=Spec)


def get_at(spec: Spec, path: str) -> Any:
    """Read the field at a dotted path such as ``"cluster.chip.hbm_bandwidth"``.

    Raises:
        AttributeError: the path names no field; the message holds the first wrong part.
    """
    value: Any = spec
    for name in path.split("."):
        if not isinstance(value, BaseModel) or name not in type(value).model_fields:
            raise AttributeError(name)
        value = getattr(value, name)
    return value


def replace_at(spec: S, path: str, value: Any) -> S:
    """Return a copy with the field at a dotted path changed; a changed value loses its old source.

    Raises:
        AttributeError: the path names no field.
        pydantic.ValidationError: the value is not right for the field.
    """
    head, _, rest = path.partition(".")
    if head not in type(spec).model_fields:
        raise AttributeError(head)
    if rest:
        child = getattr(spec, head)
        if not isinstance(child, Spec):
            raise AttributeError(rest.partition(".")[0])
        changed = spec.replace(**{head: replace_at(child, rest, value)})
    else:
        changed = spec.replace(**{head: value})
    if isinstance(changed, SourcedSpec) and head not in ("sources", "name") and changed != spec:
        return changed.replace(sources=tuple(s for s in changed.sources if not _covers(path, s.field)))
    return changed


def _covers(path: str, field: str) -> bool:
    """Tell whether a change at a path touches what a source speaks of."""
    return field == path or field.startswith(f"{path}.")


def field_names(spec: Spec, path: str) -> tuple[str, ...]:
    """List the fields beside the first wrong part of a path, for messages."""
    value: Any = spec
    for name in path.split("."):
        if not isinstance(value, BaseModel) or name not in type(value).model_fields:
            break
        value = getattr(value, name)
    return tuple(type(value).model_fields) if isinstance(value, BaseModel) else ()
