"""The editor of a field, chosen from what its description in the core says it takes."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from types import NoneType
from typing import Any, get_args

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo
from PySide6.QtWidgets import QWidget

from app.i18n import tr, tr_text
from app.panels.wording import evidence_name
from app.widgets.choices import CheckEdit, ChoiceBox
from app.widgets.quantity_edit import MAX_COUNT, IntEdit, QuantityEdit
from model_core.spec import Design, FieldSource, SourcedSpec, Spec
from model_core.spec.errors import unit_of
from model_core.units import COUNT

Choices = Iterable[tuple[str, str]]


def make_editor(field: FieldInfo, choices: Choices = ()) -> QWidget:
    """Return a choice box where there are choices, else a check box or a number field."""
    optional = NoneType in get_args(field.annotation)
    dimension = unit_of(field)
    if choices:
        return ChoiceBox(choices)
    if field.annotation is bool:
        return CheckEdit()
    if dimension is None and field.annotation is float:
        dimension = COUNT
    number = IntEdit(*_limits(field), optional) if dimension is None else QuantityEdit(dimension, optional)
    if optional:
        number.setPlaceholderText(tr("none"))
    return number


def description(spec: type[Spec], name: str) -> str:
    """Return what the core says about a field, in the user's language."""
    return tr_text(spec.model_fields[name].description or "")


def source_at(design: Design, path: str) -> FieldSource | None:
    """Return where the value at a path comes from; none where a part keeps no sources."""
    spec: Any = design
    owner: SourcedSpec | None = None
    rest: list[str] = []
    for name in path.split("."):
        rest.append(name)
        spec = getattr(spec, name, None)
        if isinstance(spec, SourcedSpec):
            owner, rest = spec, []
    return None if owner is None else owner.source_of(".".join(rest))


def tooltip(text: str, source: FieldSource | None) -> str:
    """Return a field's tooltip: what it is, and where its value comes from."""
    if source is None:
        return f"<p>{escape(text)}</p>"
    origin = tr(
        "{evidence}: {source}", evidence=evidence_name(source.evidence), source=tr_text(source.source)
    )
    return f"<p>{escape(text)}</p><p>{escape(origin)}</p>"


def _limits(field: FieldInfo) -> tuple[int, int]:
    lowest = next((int(m.ge) for m in field.metadata if isinstance(m, Ge)), 0)  # type: ignore[call-overload]
    highest = next((int(m.le) for m in field.metadata if isinstance(m, Le)), MAX_COUNT)  # type: ignore[call-overload]
    return lowest, highest
