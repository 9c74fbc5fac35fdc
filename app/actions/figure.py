"""The current view as a figure: to a file, or to the clipboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QSizeF
from PySide6.QtWidgets import QFileDialog, QWidget

from app.actions.dialogs import open_message
from app.actions.registry import ActionSpec
from app.actions.shell import Shell
from app.document import DesignDocument
from app.i18n import tr
from app.plots.views import SCHEDULE, view_named
from app.storage.settings import Settings
from app.theme import PRINT, Theme
from app.theme.manager import ThemeManager

if TYPE_CHECKING:
    from app.figures.page import Page
    from app.figures.schedule import ScheduleFigure

PAGE_SIZE: Final = QSizeF(1600, 900)
PIXEL_SCALE: Final = 2.0
SUFFIXES: Final = ("png", "svg", "pdf")


class FigureActions(QObject):
    """Writes what the current view shows, with its title, its legend and the design's parameters."""

    def __init__(
        self,
        document: DesignDocument,
        themes: ThemeManager,
        settings: Settings | None,
        shell: Shell,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._document = document
        self._themes = themes
        self._settings = settings
        self._shell = shell
        self._window = window
        self._theme: Theme = themes.theme

    def specs(self) -> tuple[ActionSpec, ...]:
        """Describe the actions."""
        return (
            ActionSpec(
                "figure.export",
                tr("&Export figure…"),
                self.export,
                ("Ctrl+E",),
                "export",
                tr("Write the current view as PNG, SVG or PDF"),
                enabled=self._can_export,
            ),
            ActionSpec(
                "figure.export_print",
                tr("Export figure for &print…"),
                self.export_print,
                ("Ctrl+Shift+E",),
                "export",
                tr("Write the current view in colours for paper"),
                enabled=self._can_export,
            ),
            ActionSpec(
                "figure.copy",
                tr("&Copy figure"),
                self.copy,
                ("Ctrl+Shift+C",),
                "copy",
                enabled=self._can_export,
            ),
        )

    def export(self) -> None:
        """Ask for a file and write the figure in the theme on screen."""
        self._theme = self._themes.theme
        self._ask()

    def export_print(self) -> None:
        """Ask for a file and write the figure for paper."""
        self._theme = PRINT
        self._ask()

    def copy(self) -> None:
        """Put the figure on the clipboard, as a picture and as SVG."""
        from app.figures.write import RenderError

        try:
            copied = self._copy()
        except RenderError as error:
            open_message(self._window, tr("Figure not copied"), str(error))
            return
        if copied:
            self._shell.announce(tr("The figure is on the clipboard"))

    def _can_export(self) -> bool:
        return self._document.picture is not None

    def _ask(self) -> None:
        folder = Path.home() if self._settings is None else self._settings.folder
        filters = ";;".join(f"{suffix.upper()} (*.{suffix})" for suffix in SUFFIXES)
        dialog = QFileDialog(self._window, tr("Export figure"), str(folder), filters)
        dialog.setObjectName("export_dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(SUFFIXES[0])
        dialog.selectFile(f"{self._document.design.name}-{self._shell.current_view_id()}")
        dialog.filterSelected.connect(self._on_filter_selected)
        dialog.fileSelected.connect(self._on_selected)
        dialog.open()

    def _on_filter_selected(self, text: str) -> None:
        dialog = self.sender()
        if isinstance(dialog, QFileDialog):
            dialog.setDefaultSuffix(text.partition(" ")[0].lower())

    def _on_selected(self, name: str) -> None:
        from app.figures.write import RenderError

        path = Path(name)
        try:
            remark = self._write(path, PIXEL_SCALE if path.suffix.lower() == ".png" else 1.0)
        except RenderError as error:
            open_message(self._window, tr("Figure not written"), str(error))
            return
        if remark is None:
            return
        if self._settings is not None:
            self._settings.folder = path.absolute().parent
        self._shell.announce(tr("Wrote {path}", path=str(path)))
        if remark:
            open_message(self._window, tr("Export figure"), remark)

    def _write(self, path: Path, scale: float) -> str | None:
        """Write the figure; return a remark about it, or nothing where there is no figure."""
        if self._shell.current_view_id() == SCHEDULE.id:
            from app.figures.schedule import image_note, write_schedule

            figure = self._schedule_figure()
            write_schedule(figure, path, self._theme, scale)
            return image_note(figure, path)
        from app.figures.write import write_figure

        page = self._page()
        if page is None:
            return None
        write_figure(page, path, self._theme, scale)
        return ""

    def _copy(self) -> bool:
        if self._shell.current_view_id() == SCHEDULE.id:
            from app.figures.schedule import copy_schedule

            copy_schedule(self._schedule_figure(), self._themes.theme)
            return True
        from app.figures.write import copy_figure

        page = self._page()
        if page is not None:
            copy_figure(page, self._themes.theme)
        return page is not None

    def _schedule_figure(self) -> ScheduleFigure:
        """Draw what the schedule view shows, as far as it is zoomed."""
        from app.figures.schedule import figure_of
        from app.figures.write import RenderError

        view, evaluation = self._shell.schedule.view, self._document.picture
        if view.picture is None or evaluation is None:
            raise RenderError(tr("There is no schedule to draw."))
        return figure_of(view.picture, evaluation, PAGE_SIZE, view.camera)

    def _page(self) -> Page | None:
        from app.figures.page import make_page

        picture = self._document.picture
        if picture is None:
            return None
        tab = self._shell.current_page()
        if tab is not None:
            from app.figures.search import page_of, room_on

            scene = tab.scene_for(room_on(PAGE_SIZE))
            return None if scene is None else page_of(scene, None if tab.is_paper else picture, PAGE_SIZE)
        view = view_named(self._shell.current_view_id())
        return make_page(view, picture, PAGE_SIZE, self._document.baseline, self._shell.current_part())
