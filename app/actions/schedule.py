"""The pipeline schedule: the published figure at one click, and the schedule as data for other tools."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QWidget

from app.actions.dialogs import open_message
from app.actions.registry import ActionSpec
from app.actions.shell import Shell
from app.document import DesignDocument
from app.i18n import tr, tr_diagnostic
from app.plots.views import SCHEDULE, TABS
from app.storage.settings import Settings
from model_core.spec import ScheduleSpec

if TYPE_CHECKING:
    from model_core.schedule_plan import PlannedRun

FIGURE_5: Final = ScheduleSpec()
"""The defaults are those of the figure: DualPipe, 8 ranks, 20 microbatches."""


class ScheduleActions(QObject):
    """Sets the plan's schedule and writes it for other tools."""

    def __init__(
        self, document: DesignDocument, settings: Settings | None, shell: Shell, window: QWidget
    ) -> None:
        super().__init__(window)
        self._document = document
        self._settings = settings
        self._shell = shell
        self._window = window
        self._write: Callable[[PlannedRun, Path], None] = _write_trace

    def specs(self) -> tuple[ActionSpec, ...]:
        """Describe the actions."""
        return (
            ActionSpec(
                "schedule.figure_5",
                tr("Schedule: Figure &5 of the DeepSeek-V3 report"),
                self.show_figure_5,
                (),
                "schedule",
                tr("DualPipe on 8 ranks with 20 microbatches"),
            ),
            ActionSpec(
                "schedule.export_perfetto",
                tr("Export schedule as Perfetto &trace…"),
                partial(self._ask, "json", _write_trace),
                (),
                "export",
                tr("Write the schedule for Perfetto or chrome://tracing"),
                enabled=self._has_schedule,
            ),
            ActionSpec(
                "schedule.export_csv",
                tr("Export schedule as PyTorch &CSV…"),
                partial(self._ask, "csv", _write_csv),
                (),
                "export",
                tr("Write the schedule for PyTorch's pipeline_parallel_schedule_csv"),
                enabled=self._has_schedule,
            ),
        )

    def show_figure_5(self) -> None:
        """Give the plan the schedule of the figure and show it."""
        design = self._document.design
        plan = design.plan.replace(schedule=FIGURE_5)
        self._document.push(design.replace(plan=plan), tr("Figure 5 of the DeepSeek-V3 report"))
        self._shell.show_view(TABS.index(SCHEDULE))
        self._shell.schedule.fit()

    def _has_schedule(self) -> bool:
        return self._document.design.plan.schedule is not None

    def _ask(self, suffix: str, write: Callable[[PlannedRun, Path], None]) -> None:
        self._write = write
        folder = Path.home() if self._settings is None else self._settings.folder
        dialog = QFileDialog(
            self._window, tr("Export schedule"), str(folder), f"{suffix.upper()} (*.{suffix})"
        )
        dialog.setObjectName("schedule_dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(suffix)
        dialog.selectFile(f"{self._document.design.name}-schedule")
        dialog.fileSelected.connect(self._on_selected)
        dialog.open()

    def _on_selected(self, name: str) -> None:
        path = Path(name)
        picture = self._shell.schedule.view.picture
        if picture is None:
            open_message(self._window, tr("Schedule not written"), tr("There is no schedule to draw."))
            return
        try:
            self._write(picture.planned.runs[0], path)
        except (OSError, ValueError) as error:
            open_message(self._window, tr("Schedule not written"), str(error))
            return
        if self._settings is not None:
            self._settings.folder = path.absolute().parent
        self._shell.announce(tr("Wrote {path}", path=str(path)))


def _write_trace(run: PlannedRun, path: Path) -> None:
    from model_core.schedule import perfetto_trace

    path.write_text(perfetto_trace(run.simulation), encoding="utf-8")


def _write_csv(run: PlannedRun, path: Path) -> None:
    from model_core.schedule import pytorch_csv

    text, found = pytorch_csv(run.schedule)
    if text is None:
        raise ValueError(" ".join(part for d in found for part in tr_diagnostic(d)))
    path.write_text(text, encoding="utf-8")
