"""The schedule panel: which pipeline schedule, its sizes and times, and what it is compared with."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.binding import ChoiceBinding
from app.panels.panel import FieldPanel
from app.widgets.choices import ChoiceBox
from app.widgets.form import Form
from model_core.diagnostics import Severity
from model_core.spec import Design, ScheduleSpec
from model_core.spec.schedule import SCHEDULE_TITLES

_PATH: Final = "plan.schedule"
_PAIRS: Final = ("dualpipe", "dualpipev")
_NO_CHOICE: Final = ""


class KindBinding(ChoiceBinding):
    """The kind of the schedule; choosing none takes the whole schedule out of the plan."""

    def commit(self, value: object, merge_key: str = "") -> None:
        """Make a kind the plan's; a plan without a schedule gets one with the sizes of the defaults."""
        design = self.document.design
        schedule = design.plan.schedule
        if value is None:
            schedule = None
        elif schedule is None:
            schedule = ScheduleSpec.model_validate({"kind": value})
        else:
            schedule = schedule.replace(kind=value)
        text = tr("Change {field}", field=self.label)
        self.document.push(design.replace(plan=design.plan.replace(schedule=schedule)), text, merge_key)


class SchedulePanel(FieldPanel):
    """Edits `Design.plan.schedule`; shows only what the chosen kind has."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(document, "schedule", parent)
        form = self.add_form()
        kinds = ChoiceBox([(_NO_CHOICE, tr("none")), *SCHEDULE_TITLES.items()])
        self.add_binding(form, KindBinding(document, f"{_PATH}.kind", tr("Schedule"), kinds), ScheduleSpec)
        self._add(form, "pp", tr("Ranks"))
        self._add(form, "microbatches", tr("Microbatches"))
        self._add(form, "virtual_stages", tr("Chunks per rank"))
        self._add(form, "forward", tr("F forward"))
        self._add(form, "backward_input", tr("I for input"))
        self._add(form, "backward_weight", tr("W for weights"))
        self._add(form, "overlapped", tr("Overlapped pair"))
        self._add(form, "point_to_point", tr("Message"))
        others = ((_NO_CHOICE, tr("none")), *SCHEDULE_TITLES.items())
        self.add_field(form, ScheduleSpec, f"{_PATH}.compare", tr("Compare with"), others)
        by = (("devices", tr("equal devices")), ("memory", tr("equal memory")))
        self.add_field(form, ScheduleSpec, f"{_PATH}.compare_by", tr("at"), by)
        self.start()

    def shown_part(self, design: Design) -> object:
        """Return the schedule; an empty one too is something to show."""
        return (design.plan.schedule,)

    def show_design(self, design: Design) -> None:
        """Show the rows that the schedule has a use for."""
        schedule = design.plan.schedule
        used = () if schedule is None else (schedule.kind, schedule.compare)
        for name in ("pp", "microbatches", "forward", "backward_input", "backward_weight", "point_to_point"):
            self.set_row_visible(f"{_PATH}.{name}", schedule is not None)
        self.set_row_visible(f"{_PATH}.compare", schedule is not None)
        self.set_row_visible(f"{_PATH}.virtual_stages", "interleaved" in used)
        self.set_row_visible(f"{_PATH}.overlapped", any(kind in used for kind in _PAIRS))
        self.set_row_visible(f"{_PATH}.compare_by", schedule is not None and schedule.compare is not None)

    def _messages(self) -> dict[str, tuple[str, Severity, str]]:
        """Say with each problem what would be right: the nearest sizes belong where sizes are written."""
        return {
            path: (f"{text}. {hint}" if hint else text, severity, hint)
            for path, (text, severity, hint) in super()._messages().items()
        }

    def _add(self, form: Form, name: str, label: str) -> None:
        self.add_field(form, ScheduleSpec, f"{_PATH}.{name}", label)
