"""Which calibration the plan applies: that of the chip, none, one by name, or one borrowed from another chip."""

from __future__ import annotations

from typing import Final

import presets
from app.document import DesignDocument
from app.i18n import tr
from app.panels.binding import Binding, ChoiceBinding
from app.panels.fields import FieldGroup, FieldRow
from app.widgets.choices import ChoiceBox
from model_core.results import Evaluation
from model_core.spec import CalibrationSpec, Design, Phase, PlanSpec, replace_at
from model_core.spec.calibration import AUTO, NONE
from model_core.units import RATIO, format_quantity

PATH: Final = "plan.calibration"
_Choice = tuple[str, str, str]


class CalibrationBinding(ChoiceBinding):
    """The choices follow the chip and the phase. One of another chip comes with that chip's calibration."""

    def __init__(self, document: DesignDocument, path: str, label: str, editor: ChoiceBox) -> None:
        super().__init__(document, path, label, editor)
        self._choices: list[_Choice] = []

    def show_design(self, design: Design) -> None:
        """Offer what there is for the design, and show its choice; a name that means nothing is one too."""
        choices, choice = _choices(design), self._choice_of(design)
        if all(value != choice for value, _, _ in choices):
            choices.append((choice, choice, tr("The chip has no such calibration")))
        if choices != self._choices:
            self._choices = choices
            self._box.set_choices(choices)
        super().show_design(design)

    def commit(self, value: object, merge_key: str = "") -> None:
        """Make a choice the plan's; what the chip had borrowed before goes back."""
        design = _without_borrowed(replace_at(self.document.design, PATH, value))
        text = tr("Change {field}", field=self.label)
        self.document.push(presets.with_calibration(design), text, merge_key)

    def _choice_of(self, design: Design) -> str:
        wanted = design.plan.calibration.lower()
        if wanted in (AUTO, NONE):
            return wanted
        named = [c for c in _ordered(design) if wanted in (c.name.lower(), c.stack.lower())]
        return named[0].name if named else design.plan.calibration


def calibration_group() -> FieldGroup:
    """Return the group of the calibration; its digest comes with the evaluation."""
    rows = (FieldRow(PATH, tr("Calibration"), make=_make_binding),)
    return FieldGroup(tr("Calibration"), PlanSpec, rows)


def calibration_digest(evaluation: Evaluation) -> str:
    """Return what the times rest on, in a few words."""
    calibration = evaluation.calibration
    if calibration is None:
        return tr("bound at peak rates")
    return tr("{stack} ± {band}", stack=calibration.stack, band=_band(calibration))


def calibration_note(evaluation: Evaluation) -> str:
    """Return what the times rest on: chip, software and error band, or that they are bounds."""
    calibration, design = evaluation.calibration, evaluation.design
    if calibration is not None:
        return _account(calibration)
    if design.plan.calibration == AUTO and not design.cluster.chip.calibrations:
        return tr("{chip} has no calibration: times are bounds at peak rates", chip=design.cluster.chip.name)
    return tr("Times are bounds at peak rates")


def _make_binding(document: DesignDocument, path: str, label: str) -> Binding:
    return CalibrationBinding(document, path, label, ChoiceBox())


def _choices(design: Design) -> list[_Choice]:
    chip = design.cluster.chip
    own = [c for c in chip.calibrations if c.chip == chip.name]
    carried = [c for c in chip.calibrations if c.chip != chip.name]
    use = "training" if design.workload.phase is Phase.TRAINING else "inference"
    names = {c.name for c in chip.calibrations}
    offered = [c for c in _presets() if c.chip != chip.name and c.use == use and c.name not in names]
    return [
        (AUTO, tr("automatic"), tr("The calibration of the chip for the phase, if there is just one")),
        (NONE, tr("none: bound"), tr("Times are bounds at peak rates")),
        *((c.name, c.stack, _account(c)) for c in own),
        *((c.name, _borrowed_label(c), _account(c)) for c in (*carried, *offered)),
    ]


def _borrowed_label(calibration: CalibrationSpec) -> str:
    return tr("of {chip}: {stack}", chip=calibration.chip, stack=calibration.stack)


def _account(calibration: CalibrationSpec) -> str:
    words = {"chip": calibration.chip, "stack": calibration.stack, "band": _band(calibration)}
    if calibration.use == "training":
        return tr("Measured in training on {chip} with {stack}; error band ± {band}", **words)
    return tr("Measured in inference on {chip} with {stack}; error band ± {band}", **words)


def _band(calibration: CalibrationSpec) -> str:
    return format_quantity(calibration.error_band, RATIO)


def _ordered(design: Design) -> list[CalibrationSpec]:
    """Return the calibrations of the chip, those measured on it first, as the core looks for them."""
    chip = design.cluster.chip
    return sorted(chip.calibrations, key=lambda calibration: calibration.chip != chip.name)


def _without_borrowed(design: Design) -> Design:
    chip = design.cluster.chip
    lent = _presets()
    kept = tuple(c for c in chip.calibrations if c.chip == chip.name or c not in lent)
    if kept == chip.calibrations:
        return design
    return replace_at(design, "cluster.chip.calibrations", kept)


def _presets() -> tuple[CalibrationSpec, ...]:
    return tuple(presets.load_calibration(name) for name in presets.calibration_names())
