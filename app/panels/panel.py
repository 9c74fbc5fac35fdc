"""The base of the panels that edit one part of the design."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from app.document import DesignDocument
from app.i18n import tr_diagnostic
from app.panels.binding import Binding
from app.panels.editors import Choices, description, source_at, tooltip
from app.panels.fields import make_binding
from app.panels.group import Group
from app.panels.rows import settle_row
from app.widgets.form import Form
from model_core.diagnostics import Severity
from model_core.results import Evaluation
from model_core.spec import Design, FieldSource, Spec

_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)
_Said = tuple[str, Severity, str]


class FieldPanel(QWidget):
    """Rows of fields bound to the document; what is wrong is said under the field it concerns.

    Subclasses add groups and fields in their constructor and end it with `start`.
    """

    def __init__(self, document: DesignDocument, part: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"{part}_panel")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.document = document
        self.part = part
        self._bindings: dict[str, Binding] = {}
        self._forms: dict[str, Form] = {}
        self._sources: dict[str, FieldSource | None] = {}
        self._hidden: set[str] = set()
        self._said: dict[str, _Said] = {}
        self._shown: object = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 4, 0, 8)
        self._layout.setSpacing(0)

    def start(self) -> None:
        """Show the document and follow it from now on."""
        self._layout.addStretch(1)
        self.document.design_changed.connect(self._on_design_changed)
        self.document.evaluation_changed.connect(self._on_evaluation_changed)
        self._on_design_changed(self.document.design)
        if self.document.evaluation is not None:
            self._on_evaluation_changed(self.document.evaluation)

    def add_form(self) -> Form:
        """Add a form without a heading."""
        form = Form(self)
        self._layout.addWidget(form)
        return form

    def add_group(self, title: str, unfolded: bool = True) -> Group:
        """Add a form under a heading."""
        group = Group(title, unfolded, self)
        self._layout.addWidget(group)
        return group

    def add_field(self, form: Form, spec: type[Spec], path: str, label: str, choices: Choices = ()) -> None:
        """Add a field of the design with the editor that suits it."""
        self.add_binding(form, make_binding(self.document, spec, path, label, choices), spec)

    def add_binding(self, form: Form, binding: Binding, spec: type[Spec]) -> None:
        """Add a field with an editor of its own."""
        path = binding.path
        text = description(spec, path.rpartition(".")[2])
        self.add_row(form, path, binding.label, binding.editor, text)
        self._bindings[path] = binding
        binding.refusal_changed.connect(self._show_messages)

    def add_row(self, form: Form, path: str, label: str, widget: QWidget, text: str) -> None:
        """Add a row that is no single field; what is said about ``path`` appears under it."""
        form.add(path, label, widget, text)
        settle_row(form, label, widget)
        self._forms[path] = form

    def set_row_visible(self, path: str, visible: bool) -> None:
        """Show or hide a row; what concerns a hidden one is said under the next that is above it."""
        if (path in self._hidden) is visible:
            (self._hidden.discard if visible else self._hidden.add)(path)
            self._forms[path].set_row_visible(path, visible)

    def focus_field(self, path: str) -> bool:
        """Bring the field at a path (or the nearest above it) into view and give it the focus.

        Returns:
            Whether this panel has such a field.
        """
        row = self._row_of(path)
        if not row:
            return False
        form = self._forms[row]
        self._unfold(form)
        editor = form.editor(row)
        area = self._scroll_area()
        if area is not None:
            area.ensureWidgetVisible(editor)
        editor.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return True

    def error(self, path: str) -> str:
        """Return what is said under a field; empty if nothing."""
        return self._forms[path].error(path)

    def editor(self, path: str) -> QWidget:
        """Return the editor of a field."""
        return self._forms[path].editor(path)

    def show_design(self, design: Design) -> None:
        """Show what is no plain field. Called when the part of the design changed."""

    def show_evaluation(self, evaluation: Evaluation) -> None:
        """Show what was computed. Called for every evaluation."""

    def shown_part(self, design: Design) -> object:
        """Return what this panel shows; while it stays equal, nothing is updated."""
        return getattr(design, self.part)

    def _on_design_changed(self, design: Design) -> None:
        part = self.shown_part(design)
        if part == self._shown:
            return
        self._shown = part
        self.show_design(design)
        for path, binding in self._bindings.items():
            binding.show_design(design)
            self._show_source(path, source_at(design, path))

    def _show_source(self, path: str, source: FieldSource | None) -> None:
        if path in self._sources and self._sources[path] == source:
            return
        self._sources[path] = source
        editor = self._forms[path].editor(path)
        editor.setToolTip(tooltip(editor.accessibleDescription(), source))

    def _on_evaluation_changed(self, evaluation: Evaluation) -> None:
        self.show_evaluation(evaluation)
        self._show_messages()

    def _show_messages(self) -> None:
        said = self._messages()
        if said == self._said:
            return
        self._said = said
        by_form: dict[Form, dict[str, _Said]] = {form: {} for form in self._forms.values()}
        for path, entry in said.items():
            form = self._forms[path]
            by_form[form][path] = entry
            if entry[1] is not Severity.INFO:
                self._unfold(form)
        # All of a form at once: a line that is taken back and said again would lay the whole column out twice.
        for form, errors in by_form.items():
            form.set_errors(errors)

    def _messages(self) -> dict[str, _Said]:
        found: dict[str, list[_Said]] = {}
        evaluation = self.document.evaluation
        for diagnostic in evaluation.diagnostics if evaluation is not None else ():
            row = self._row_of(diagnostic.path)
            if row:
                message, hint = tr_diagnostic(diagnostic)
                found.setdefault(row, []).append((message, diagnostic.severity, hint))
        for path, binding in self._bindings.items():
            if binding.refusal:
                found[path] = [(binding.refusal, Severity.ERROR, "")]
        return {path: _joined(entries) for path, entries in found.items()}

    def _row_of(self, path: str) -> str:
        while path:
            if path in self._forms and path not in self._hidden and not _holder(self._forms[path]).isHidden():
                return path
            path = path.rpartition(".")[0]
        return ""

    def _unfold(self, form: Form) -> None:
        group = _holder(form)
        if isinstance(group, Group):
            group.unfold()

    def _scroll_area(self) -> QScrollArea | None:
        widget = self.parentWidget()
        while widget is not None and not isinstance(widget, QScrollArea):
            widget = widget.parentWidget()
        return widget


def _holder(form: Form) -> QWidget:
    """Return the group of a form, which may be hidden, or the form itself; a folded group is not hidden."""
    parent = form.parentWidget()
    return parent if isinstance(parent, Group) else form


def _joined(entries: list[_Said]) -> _Said:
    ordered = sorted(entries, key=lambda entry: _ORDER.index(entry[1]))
    texts = "\n".join(text for text, _, _ in ordered)
    hints = "\n".join(dict.fromkeys(hint for _, _, hint in ordered if hint))
    return texts, ordered[0][1], hints
