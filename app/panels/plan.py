"""The plan panel: layouts and mesh, and folded groups of everything else that a plan fixes."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.calibration_choice import PATH as CALIBRATION
from app.panels.calibration_choice import calibration_digest, calibration_group, calibration_note
from app.panels.folded import FoldedPanel
from app.panels.mesh_edit import MeshBinding, MeshEdit
from app.panels.plan_groups import plan_groups
from app.panels.training_groups import training_groups
from app.panels.wording import attention_shardings, block_forms, ffn_layouts
from model_core.diagnostics import Severity
from model_core.results import Evaluation
from model_core.spec import Design, PlanSpec


class PlanPanel(FoldedPanel):
    """Edits `Design.plan`; the schedule has a panel of its own."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(document, "plan", parent)
        self._mesh = MeshEdit(self)
        self._add_layout()
        for group in (*plan_groups(), *training_groups()):
            self.add_folded(group)
        self._calibration = self.add_folded(calibration_group())
        self.start()

    def shown_part(self, design: Design) -> object:
        """Return the plan, and what its groups and the mesh editor start from."""
        return design.plan, design.model, design.cluster, design.workload.phase

    def show_evaluation(self, evaluation: Evaluation) -> None:
        """Show the sizes of the logical axes, and what the times rest on."""
        self._mesh.sizes.set_sizes(evaluation.sizes)
        self._calibration.set_digest(calibration_digest(evaluation))

    def _add_layout(self) -> None:
        form = self.add_group(tr("Layout")).form
        self.add_field(form, PlanSpec, "plan.ffn_layout", tr("FFN layout"), ffn_layouts())
        self.add_field(form, PlanSpec, "plan.attention_sharding", tr("Attention"), attention_shardings())
        self.add_field(form, PlanSpec, "plan.block", tr("Block"), block_forms())
        self.add_binding(form, MeshBinding(self.document, "plan.mesh", tr("Mesh axes"), self._mesh), PlanSpec)

    def _messages(self) -> dict[str, tuple[str, Severity, str]]:
        """Say under the calibration what was measured, beside what is wrong with it."""
        said = super()._messages()
        evaluation = self.document.evaluation
        if evaluation is not None and self.is_made(CALIBRATION):
            text, severity, hint = said.get(CALIBRATION, ("", Severity.INFO, ""))
            note = calibration_note(evaluation)
            said[CALIBRATION] = (f"{text}\n{note}" if text else note, severity, hint)
        return said
