"""The main window: headline on top, inputs at the left, views in the middle, explanation and problems around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QByteArray, QMimeData, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QPaintEvent
from PySide6.QtWidgets import QMainWindow, QTabWidget, QToolBar, QVBoxLayout, QWidget

from app.actions.edit import EditActions
from app.actions.figure import FigureActions
from app.actions.file import FileActions
from app.actions.help import HelpActions
from app.actions.paper import PaperActions
from app.actions.presets import PresetCommands
from app.actions.registry import ActionRegistry, ActionSpec, plain_text
from app.actions.schedule import ScheduleActions
from app.actions.search import SearchActions
from app.actions.view import ViewActions
from app.document import DesignDocument
from app.i18n import tr, tr_text
from app.panels.cluster import ClusterPanel
from app.panels.effects import ExplainColumn
from app.panels.headline import HeadlineStrip
from app.panels.model import ModelPanel
from app.panels.plan import PlanPanel
from app.panels.problems import ProblemsPanel
from app.panels.schedule import SchedulePanel
from app.panels.workload import WorkloadPanel
from app.plots.gantt.page import SchedulePage
from app.plots.lazy_page import LazyPage
from app.plots.scene_view import SceneView
from app.plots.views import SCHEDULE, SEARCH, TABS, VIEWS
from app.storage.recovery import RecoveryStore
from app.storage.settings import LAYOUT_VERSION, Settings
from app.theme import Theme
from app.theme.icons import icon
from app.theme.manager import ThemeManager
from app.windows.banner import RecoveryBanner
from app.windows.docks import Dock, InputColumn
from app.windows.help import ShortcutsDialog, open_about, shortcut_text
from app.windows.menus import fill_menu_bar, make_toolbar
from app.windows.palette import CommandPalette, Entry
from app.windows.preferences import PreferencesDialog
from app.windows.problem_count import show_count
from app.windows.status import StatusBar
from model_core.spec import Design

_LEFT: Final = Qt.DockWidgetArea.LeftDockWidgetArea
_RIGHT: Final = Qt.DockWidgetArea.RightDockWidgetArea
_BOTTOM: Final = Qt.DockWidgetArea.BottomDockWidgetArea
_SUFFIX: Final = ".json"
_ANNOUNCE_MS: Final = 6000
MINIMUM_SIZE: Final = (1024, 640)


class MainWindow(QMainWindow):
    """One window on one document.

    Without ``settings`` nothing is remembered.
    """

    language_chosen = Signal(str)
    first_painted = Signal()
    closed = Signal()

    def __init__(
        self,
        document: DesignDocument,
        themes: ThemeManager,
        settings: Settings | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName("main_window")
        self.setMinimumSize(*MINIMUM_SIZE)
        self.setAcceptDrops(True)
        self._document = document
        self._themes = themes
        self._settings = settings
        self._recovery: RecoveryStore | None = None
        self._leaving = False
        self._painted = False
        self._make_contents()
        self._files = FileActions(document, settings, self)
        self._presets = PresetCommands(document, self._files)
        self._registry = ActionRegistry(self)
        self._make_actions()
        self._palette = CommandPalette(self)
        self._initial_state = QByteArray()
        self._arrange()
        self._connect()

    @property
    def registry(self) -> ActionRegistry:
        """The window's actions."""
        return self._registry

    @property
    def document(self) -> DesignDocument:
        """The document shown."""
        return self._document

    @property
    def schedule(self) -> SchedulePage:
        """The tab page of the schedule."""
        return self._schedule

    def _make_contents(self) -> None:
        document = self._document
        self.banner = RecoveryBanner(self)
        self.tabs = QTabWidget(self)
        self.tabs.setObjectName("views")
        for view in VIEWS:
            page = SceneView(view, document, self._themes, self.tabs)
            self.tabs.addTab(page, tr_text(view.title))
        self._schedule = SchedulePage(document, self._themes, self.tabs)
        self.tabs.addTab(self._schedule, tr_text(SCHEDULE.title))
        self.pages = {tab.id: LazyPage(tab.id, document, self._themes, self.tabs) for tab in SEARCH}
        for tab in SEARCH:
            self.tabs.addTab(self.pages[tab.id], tr_text(tab.title))
        center = QWidget(self)
        center.setProperty("panel", True)
        center.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(center)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.banner)
        column.addWidget(self.tabs, 1)
        self.setCentralWidget(center)
        self.inputs = InputColumn(self)
        self._panels = {
            "model": ModelPanel(document, self),
            "cluster": ClusterPanel(document, self),
            "workload": WorkloadPanel(document, self),
            "plan": PlanPanel(document, self),
            "schedule": SchedulePanel(document, self),
        }
        titles = (tr("Model"), tr("Cluster"), tr("Workload"), tr("Plan"), tr("Schedule"))
        self.inputs.set_panels(
            [
                (f"section_{part}", title, self._panels[part])
                for part, title in zip(self._panels, titles, strict=True)
            ]
        )
        self._make_docks()
        self._headline = QToolBar(tr("Headline"), self)
        self._headline.setObjectName("headline_bar")
        self._headline.setMovable(False)
        self._headline.addWidget(HeadlineStrip(document, self._headline))
        self.setStatusBar(StatusBar(document, self))

    def _make_docks(self) -> None:
        document = self._document
        self.inputs_dock = Dock("dock_inputs", tr("Inputs"), self.inputs, self)
        self.explain = ExplainColumn(document, self)
        self.explain_dock = Dock("dock_explain", tr("Explain"), self.explain, self)
        problems = ProblemsPanel(document, self)
        problems.field_requested.connect(self.focus_field)
        self.problems_dock = Dock("dock_problems", tr("Problems"), problems, self)
        self.setCorner(Qt.Corner.BottomLeftCorner, _LEFT)
        self.setCorner(Qt.Corner.BottomRightCorner, _BOTTOM)
        for area, dock in self._docks():
            self.addDockWidget(area, dock)

    def _docks(self) -> tuple[tuple[Qt.DockWidgetArea, Dock], ...]:
        return ((_LEFT, self.inputs_dock), (_RIGHT, self.explain_dock), (_BOTTOM, self.problems_dock))

    def _make_actions(self) -> None:
        titles = [tr_text(tab.title) for tab in TABS]
        self._registry.add(self._files.specs())
        self._registry.add(EditActions(self._document).specs())
        self._registry.add(ViewActions(self, self._themes).specs([tab.id for tab in TABS], titles))
        self._registry.add(self._dock_specs())
        self._registry.add(FigureActions(self._document, self._themes, self._settings, self, self).specs())
        self._registry.add(ScheduleActions(self._document, self._settings, self, self).specs())
        self._registry.add(PaperActions(self).specs())
        self._registry.add(SearchActions(self._document, self).specs())
        self._registry.add(HelpActions(self).specs())
        self._registry.tint(self._themes.theme)
        views = [f"view.show_{tab.id}" for tab in TABS]
        docks = [spec.id for spec in self._dock_specs()]
        fill_menu_bar(self, self._registry, self._files, views, docks)
        self.addToolBar(make_toolbar(self, self._registry))
        self.addToolBarBreak()
        self.addToolBar(self._headline)

    def _dock_specs(self) -> tuple[ActionSpec, ...]:
        return tuple(
            ActionSpec(
                f"view.{dock.objectName()}",
                tr("Show panel: {panel}", panel=dock.windowTitle()),
                partial(_toggle, dock),
                checked=partial(_is_shown, dock),
            )
            for _, dock in self._docks()
        )

    def _arrange(self) -> None:
        self.resizeDocks([self.inputs_dock, self.explain_dock], [336, 304], Qt.Orientation.Horizontal)
        self.resizeDocks([self.problems_dock], [128], Qt.Orientation.Vertical)
        self._initial_state = self.saveState(LAYOUT_VERSION)
        if self._settings is None:
            self.resize(1440, 900)
            return
        geometry, state = self._settings.window_layout()
        if geometry.isEmpty() or not self.restoreGeometry(geometry):
            self._size_to_screen()
        if not state.isEmpty():
            self.restoreState(state, LAYOUT_VERSION)
        self.inputs.fold(self._settings.collapsed)

    def _size_to_screen(self) -> None:
        available = self.screen().availableGeometry()
        self.resize(min(1600, available.width()), min(1000, available.height()))
        if available.width() <= 1440:
            self.setWindowState(Qt.WindowState.WindowMaximized)

    def _connect(self) -> None:
        document = self._document
        for signal in (
            document.design_changed,
            document.evaluation_changed,
            document.baseline_changed,
            document.path_changed,
            document.undo_stack.indexChanged,
            document.undo_stack.cleanChanged,
        ):
            signal.connect(self._on_document_changed)
        document.evaluation_changed.connect(self._show_problem_count)
        for _, dock in self._docks():
            dock.visibilityChanged.connect(self._on_dock_shown)
        self._themes.theme_changed.connect(self._on_theme_changed)
        self._on_theme_changed(self._themes.theme)
        self._on_document_changed()
        self._show_problem_count()

    def offer_recovery(self, recovery: RecoveryStore) -> None:
        """Offer the snapshots of sessions that died."""
        self._recovery = recovery
        self.banner.offer(recovery.lost_sessions(), self._restore)

    def open_path(self, path: Path) -> None:
        """Open a design file."""
        self._files.open_path(path)

    def current_view(self) -> SceneView | SchedulePage | LazyPage:
        """Return the view of the current tab."""
        page = self.tabs.currentWidget()
        assert isinstance(page, SceneView | SchedulePage | LazyPage)
        return page

    def current_page(self) -> LazyPage | None:
        """Return the tab page of the current view, where it is one that searches."""
        return self.pages.get(self.current_view_id())

    def show_paper(self, identifier: str) -> None:
        """Show a figure or table of a paper, recomputed."""
        from app.plots.paper.page import ReproducePage

        self.tabs.setCurrentWidget(self.pages["reproduce"])
        page = self.pages["reproduce"].page
        assert isinstance(page, ReproducePage)
        page.show_item(identifier)

    def current_view_id(self) -> str:
        """Return the id of the current tab's view."""
        return TABS[self.tabs.currentIndex()].id

    def current_part(self) -> str:
        """Return the part that the current view shows; empty where it has none."""
        return self.current_view().part

    def announce(self, text: str) -> None:
        """Say for a few seconds that something was done."""
        self.statusBar().showMessage(text, _ANNOUNCE_MS)

    def show_view(self, index: int) -> None:
        """Bring a tab to the front."""
        self.tabs.setCurrentIndex(index)
        self.tabs.currentWidget().setFocus(Qt.FocusReason.ShortcutFocusReason)

    def focus_field(self, path: str) -> None:
        """Bring the field at a design path into view, with the cursor in it."""
        part = "schedule" if path.startswith("plan.schedule") else path.partition(".")[0]
        if part in self._panels:
            self.inputs_dock.show()
            self.inputs.unfold(f"section_{part}")
            self._panels[part].focus_field(path)

    def zoom_fit(self) -> None:
        """Show all of the current view."""
        self.current_view().fit()

    def zoom_by(self, factor: float) -> None:
        """Zoom the current view."""
        self.current_view().zoom_by(factor)

    def reset_layout(self) -> None:
        """Put docks and toolbars back to where they were at first."""
        self.restoreState(self._initial_state, LAYOUT_VERSION)
        self.inputs.fold(frozenset())

    def show_palette(self) -> None:
        """Open the command palette."""
        self._palette.open_with(self._entries())

    def show_preferences(self) -> None:
        """Open the preferences."""
        dialog = PreferencesDialog(self._settings, self._themes, self)
        dialog.language_chosen.connect(self.language_chosen)
        dialog.open()

    def show_shortcuts(self) -> None:
        """Open the list of shortcuts."""
        actions = [self._registry.action(spec.id) for spec in self._registry.specs]
        ShortcutsDialog(actions, self).open()

    def show_about(self) -> None:
        """Open the text about the application."""
        open_about(self)

    def leave(self) -> None:
        """Close without asking: the document goes on elsewhere, or its changes were given up."""
        self._leaving = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask about unsaved changes; remember the arrangement."""
        if self._document.modified and not self._leaving:
            event.ignore()
            self._files.guard.proceed(self.leave)
            return
        if self._settings is not None:
            self._settings.save_window_layout(self.saveGeometry(), self.saveState(LAYOUT_VERSION))
            self._settings.collapsed = self.inputs.folded
        self._schedule.stop()
        self.explain.effects.stop()
        for page in self.pages.values():
            page.stop()
        event.accept()
        self.closed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Tell when the window was first seen."""
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            self.first_painted.emit()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take a design file."""
        if _dropped_file(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the dropped design file."""
        path = _dropped_file(event.mimeData())
        if path is not None:
            event.acceptProposedAction()
            self._files.open_path(path)

    def _restore(self, design: Design, origin: Path | None, discard: Callable[[], object]) -> None:
        self._files.restore(design, origin, partial(self._on_restored, discard))

    def _on_restored(self, discard: Callable[[], object]) -> None:
        # The old snapshot goes only when the new session's own is on the disk.
        if self._recovery is not None:
            self._recovery.flush()
        discard()

    def _entries(self) -> Iterator[Entry]:
        for spec in self._registry.specs:
            action = self._registry.action(spec.id)
            if action.isEnabled() and spec.id != "view.palette":
                yield Entry(
                    plain_text(action.text()), action.trigger, spec.icon, shortcut_text(action), spec.id
                )
        for command in self._presets.commands():
            yield Entry(command.text, command.run, command.icon)

    def _on_document_changed(self, *_: object) -> None:
        name = self._document.design.name
        self.setWindowTitle(f"{name}[*] — Meshwright")
        self.setWindowModified(self._document.modified)
        self._registry.refresh()

    def _on_dock_shown(self, _visible: bool) -> None:
        self._registry.refresh()

    def _show_problem_count(self, *_: object) -> None:
        evaluation = self._document.evaluation
        show_count(self.problems_dock.title.remark, () if evaluation is None else evaluation.diagnostics)

    def _on_theme_changed(self, theme: Theme) -> None:
        self._registry.tint(theme)
        self._registry.refresh()
        for index, tab in enumerate(TABS):
            self.tabs.setTabIcon(index, icon(tab.id, theme))
        if self._settings is not None:
            self._settings.theme = self._themes.choice


def _toggle(dock: Dock) -> None:
    dock.setVisible(dock.isHidden())


def _is_shown(dock: Dock) -> bool:
    return not dock.isHidden()


def _dropped_file(data: QMimeData) -> Path | None:
    urls = data.urls()
    if len(urls) == 1 and urls[0].isLocalFile():
        path = Path(urls[0].toLocalFile())
        return path if path.name.endswith(_SUFFIX) else None
    return None
