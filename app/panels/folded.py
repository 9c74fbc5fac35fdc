"""Panels of folded groups, whose rows are made when they are first needed."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.document import DesignDocument
from app.panels.editors import source_at
from app.panels.fields import FieldGroup, row_binding
from app.panels.group import Group
from app.panels.panel import FieldPanel
from model_core.spec import Design


class FoldedPanel(FieldPanel):
    """Groups that are folded at first. A window with all their rows at once would open noticeably later."""

    def __init__(self, document: DesignDocument, part: str, parent: QWidget | None = None) -> None:
        super().__init__(document, part, parent)
        self._groups: dict[Group, FieldGroup] = {}
        self._unmade: dict[str, Group] = {}

    def add_folded(self, content: FieldGroup) -> Group:
        """Add a folded group, described by its content."""
        group = self.add_group(content.title, unfolded=False)
        self._groups[group] = content
        self._unmade.update({row.path: group for row in content.rows})
        group.unfolding.connect(self._on_unfolding)
        return group

    def is_made(self, path: str) -> bool:
        """Tell whether the row of a field of a folded group is there already."""
        return path not in self._unmade

    def show_design(self, design: Design) -> None:
        """Show the groups and rows that apply to the design, and what is in each group."""
        for group, content in self._groups.items():
            shown = content.shown(design)
            group.setVisible(shown)
            if shown and content.digest is not None:
                group.set_digest(content.digest(design))
            self._show_rows(group, design)

    def editor(self, path: str) -> QWidget:
        """Return the editor of a field."""
        self._make_row(path)
        return super().editor(path)

    def error(self, path: str) -> str:
        """Return what is said under a field; empty if nothing."""
        self._make_row(path)
        return super().error(path)

    def _row_of(self, path: str) -> str:
        self._make_row(path)
        return super()._row_of(path)

    def _make_row(self, path: str) -> None:
        group = self._unmade.get(path)
        if group is not None and not group.isHidden():
            self._make_rows(group)

    def _on_unfolding(self) -> None:
        group = self.sender()
        if isinstance(group, Group) and self._make_rows(group):
            self._show_messages()

    def _make_rows(self, group: Group) -> bool:
        """Make the rows of a group, unless there are; tell whether this made them."""
        content, design = self._groups[group], self.document.design
        if content.rows[0].path not in self._unmade:
            return False
        for row in content.rows:
            del self._unmade[row.path]
            binding = row_binding(self.document, content.spec, row)
            self.add_binding(group.form, binding, content.spec)
            binding.show_design(design)
            self._show_source(row.path, source_at(design, row.path))
        self._show_rows(group, design)
        return True

    def _show_rows(self, group: Group, design: Design) -> None:
        for row in self._groups[group].rows:
            if row.path not in self._unmade:
                self.set_row_visible(row.path, row.shown(design))
