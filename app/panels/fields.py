"""Fields as data: rows and groups that a panel makes editors for, and the binding that suits a field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_origin

from app.document import DesignDocument
from app.panels.binding import Binding, bind
from app.panels.editors import Choices, make_editor
from app.panels.list_edit import ChecksBinding, ChecksEdit, CountsBinding, CountsEdit
from app.panels.ratio_edit import RatioBinding, RatioEdit
from model_core.spec import Design, Spec
from model_core.spec.errors import unit_of
from model_core.units import RATIO

Shown = Callable[[Design], bool]


def always(_design: Design) -> bool:
    """Say that a row or a group applies to every design."""
    return True


@dataclass(frozen=True)
class FieldRow:
    """One field: its dotted path, its label, its choices if it has some, and the designs it applies to.

    ``make`` makes a binding of the field's own in place of the one that its type suggests; ``empty`` is
    what an editor shows where there is no value.
    """

    path: str
    label: str
    choices: tuple[tuple[str, str], ...] = ()
    shown: Shown = always
    make: Callable[[DesignDocument, str, str], Binding] | None = None
    empty: str = ""


@dataclass(frozen=True)
class FieldGroup:
    """Rows of one part of the design under a heading, what they say in a few words, and where they apply.

    Without a ``digest`` the panel says that itself.
    """

    title: str
    spec: type[Spec]
    rows: tuple[FieldRow, ...]
    digest: Callable[[Design], str] | None = None
    shown: Shown = always


def row_binding(document: DesignDocument, spec: type[Spec], row: FieldRow) -> Binding:
    """Return the binding of a row, with the editor in it."""
    if row.make is not None:
        return row.make(document, row.path, row.label)
    binding = make_binding(document, spec, row.path, row.label, row.choices)
    if isinstance(binding.editor, CountsEdit):
        binding.editor.setPlaceholderText(row.empty)
    return binding


def make_binding(
    document: DesignDocument, spec: type[Spec], path: str, label: str, choices: Choices = ()
) -> Binding:
    """Return a binding for a field, with the editor that suits what the core says the field takes."""
    field = spec.model_fields[path.rpartition(".")[2]]
    if get_origin(field.annotation) is tuple:
        offered = tuple(choices)
        if offered:
            return ChecksBinding(document, path, label, ChecksEdit(offered))
        return CountsBinding(document, path, label, CountsEdit())
    if unit_of(field) is RATIO:
        return RatioBinding(document, path, label, RatioEdit(label))
    return bind(document, path, label, make_editor(field, choices))
