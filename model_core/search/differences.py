"""How two designs differ, field by field, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from model_core.search.axes import MESH, label_of
from model_core.spec.base import SourcedSpec, Spec
from model_core.spec.design import Design

_DESCRIPTIVE = frozenset({"name", "notes", "sources", "calibrations"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One field with its value before and after, as texts."""

    path: str
    before: str
    after: str


def differences(first: Design, second: Design) -> tuple[Difference, ...]:
    """List the fields in which two designs differ; another model, cluster or chip counts as one."""
    return tuple(_of_specs(first, second, "", first, second))


def _of_specs(first: Spec, second: Spec, prefix: str, before: Design, after: Design) -> Iterator[Difference]:
    for name in type(first).model_fields:
        old, new = getattr(first, name), getattr(second, name)
        if name in _DESCRIPTIVE or old == new:
            continue
        path = f"{prefix}{name}"
        # A mesh is one choice for people, and so is another part with a name of its own.
        whole = path == MESH or (isinstance(old, SourcedSpec) and old.name != new.name)
        if isinstance(old, Spec) and type(old) is type(new) and not whole:
            yield from _of_specs(old, new, f"{path}.", before, after)
        else:
            yield Difference(path, _text(before, path, old), _text(after, path, new))


def _text(design: Design, path: str, value: Any) -> str:
    return label_of(design, path, value)
