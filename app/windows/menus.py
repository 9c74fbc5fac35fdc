"""Menus and toolbar: views of the action registry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMainWindow, QMenu, QPushButton, QSizePolicy, QToolBar, QToolButton, QWidget

from app.actions.file import FileActions
from app.actions.registry import ActionRegistry
from app.i18n import tr
from app.plots.paper.catalogue import ITEM_IDS
from app.plots.views import SEARCH
from app.windows.help import shortcut_text


class RecentMenu(QMenu):
    """The files opened lately, listed when the menu opens."""

    def __init__(self, files: FileActions, parent: QWidget) -> None:
        super().__init__(tr("Open &recent"), parent)
        self._files = files
        self.aboutToShow.connect(self._fill)
        self.triggered.connect(self._on_triggered)

    def _fill(self) -> None:
        self.clear()
        paths = self._files.recent()
        for number, path in enumerate(paths, 1):
            action = self.addAction(f"&{number % 10}  {path.name.replace('&', '&&')}")
            action.setData(str(path))
            action.setToolTip(str(path))
        if paths:
            self.addSeparator()
            self.addAction(tr("&Clear this list"))
        else:
            self.addAction(tr("None yet")).setEnabled(False)

    def _on_triggered(self, action: QAction) -> None:
        if action.data():
            self._files.open_path(Path(action.data()))
        else:
            self._files.clear_recent()


class ExamplesMenu(QMenu):
    """The preset designs."""

    def __init__(self, files: FileActions, parent: QWidget) -> None:
        super().__init__(tr("Open &example"), parent)
        self._files = files
        self.aboutToShow.connect(self._fill)
        self.triggered.connect(self._on_triggered)

    def _fill(self) -> None:
        from presets import names

        if self.isEmpty():
            for name in names("designs"):
                self.addAction(name)

    def _on_triggered(self, action: QAction) -> None:
        self._files.open_preset(action.text().replace("&", ""))


def _add(menu: QMenu | QToolBar, registry: ActionRegistry, ids: Iterable[str]) -> None:
    for identifier in ids:
        if identifier == "-":
            menu.addSeparator()
        else:
            menu.addAction(registry.action(identifier))


def fill_menu_bar(
    window: QMainWindow, registry: ActionRegistry, files: FileActions, views: list[str], docks: list[str]
) -> None:
    """Fill the menu bar."""
    bar = window.menuBar()
    file = bar.addMenu(tr("&File"))
    _add(file, registry, ("file.new", "file.open"))
    file.addMenu(RecentMenu(files, file))
    file.addMenu(ExamplesMenu(files, file))
    _add(
        file,
        registry,
        (
            "-",
            "file.save",
            "file.save_as",
            "-",
            "figure.export",
            "figure.export_print",
            "figure.copy",
            "-",
            "schedule.export_perfetto",
            "schedule.export_csv",
            "-",
            "file.quit",
        ),
    )
    edit = bar.addMenu(tr("&Edit"))
    _add(edit, registry, ("edit.undo", "edit.redo", "-", "edit.pin_baseline", "edit.clear_baseline"))
    _add(edit, registry, ("-", "edit.preferences"))
    view = bar.addMenu(tr("&View"))
    _add(view, registry, ("view.palette", "-", *views, "-", "view.zoom_fit", "view.zoom_in", "view.zoom_out"))
    _add(view, registry, ("-", *docks, "view.reset_layout", "-", "view.dark"))
    _add(view, registry, ("-", "schedule.figure_5"))
    search = bar.addMenu(tr("&Search"))
    _add(search, registry, ("search.recommend", "search.pairing", "-"))
    _add(search, registry, [f"view.show_{tab.id}" for tab in SEARCH])
    figures = bar.addMenu(tr("Fi&gures"))
    _add(figures, registry, [f"paper.{identifier}" for identifier in ITEM_IDS])
    helping = bar.addMenu(tr("&Help"))
    _add(helping, registry, ("help.shortcuts", "help.about"))


def make_toolbar(window: QMainWindow, registry: ActionRegistry) -> QToolBar:
    """Make the toolbar: files, undo, baseline; at the right the palette and the export."""
    bar = QToolBar(tr("Toolbar"), window)
    bar.setObjectName("toolbar")
    bar.setMovable(False)
    bar.setIconSize(QSize(18, 18))
    _add(bar, registry, ("file.open", "file.save", "-", "edit.undo", "edit.redo", "-", "edit.pin_baseline"))
    pin = bar.widgetForAction(registry.action("edit.pin_baseline"))
    if isinstance(pin, QToolButton):
        pin.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    spacer = QWidget(bar)
    spacer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    bar.addWidget(spacer)
    bar.addWidget(_palette_button(bar, registry))
    bar.addSeparator()
    _add(bar, registry, ("view.zoom_fit", "view.dark", "figure.export"))
    export = bar.widgetForAction(registry.action("figure.export"))
    if isinstance(export, QToolButton):
        export.setObjectName("export_button")
        export.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    return bar


def _palette_button(bar: QToolBar, registry: ActionRegistry) -> QPushButton:
    action = registry.action("view.palette")
    keys = shortcut_text(action)
    button = QPushButton(tr("Search commands and presets   {keys}", keys=keys), bar)
    button.setObjectName("palette_button")
    button.setToolTip(action.toolTip())
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.clicked.connect(action.trigger)
    return button
