"""The plan panel: layouts, mesh and dtypes."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.mesh_edit import MeshBinding, MeshEdit
from app.panels.panel import FieldPanel
from app.panels.ratio_edit import RatioBinding, RatioEdit
from app.panels.wording import attention_shardings, block_forms, ffn_layouts
from app.widgets.form import Form
from model_core.results import Evaluation
from model_core.spec import DTYPE_BYTES, Design, PlanSpec

_DTYPES: Final = tuple((name, name) for name in DTYPE_BYTES)


class PlanPanel(FieldPanel):
    """Edits `Design.plan`."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(document, "plan", parent)
        self._mesh = MeshEdit(self)
        self._add_layout()
        self._add_precision()
        self._add_shares()
        self.start()

    def shown_part(self, design: Design) -> object:
        """Return the plan, and the model and cluster that the mesh editor starts from."""
        return design.plan, design.model, design.cluster

    def show_evaluation(self, evaluation: Evaluation) -> None:
        """Show the sizes of the logical axes."""
        self._mesh.sizes.set_sizes(evaluation.sizes)

    def _add_layout(self) -> None:
        form = self.add_group(tr("Layout")).form
        self.add_field(form, PlanSpec, "plan.ffn_layout", tr("FFN layout"), ffn_layouts())
        self.add_field(form, PlanSpec, "plan.attention_sharding", tr("Attention"), attention_shardings())
        self.add_field(form, PlanSpec, "plan.block", tr("Block"), block_forms())
        self.add_binding(form, MeshBinding(self.document, "plan.mesh", tr("Mesh axes"), self._mesh), PlanSpec)

    def _add_precision(self) -> None:
        form = self.add_group(tr("Precision")).form
        self.add_field(form, PlanSpec, "plan.weight_dtype", tr("Weights"), _DTYPES)
        self.add_field(form, PlanSpec, "plan.kv_dtype", tr("KV cache"), _DTYPES)
        self.add_field(form, PlanSpec, "plan.activation_dtype", tr("Activations"), _DTYPES)

    def _add_shares(self) -> None:
        form = self.add_group(tr("Overlap and memory")).form
        self._add_share(form, "plan.collective_overlap", tr("Collective overlap"))
        self._add_share(form, "plan.memory_reserve", tr("Memory reserve"))
        self._add_share(form, "plan.kv_memory_share", tr("KV memory share"))

    def _add_share(self, form: Form, path: str, label: str) -> None:
        self.add_binding(form, RatioBinding(self.document, path, label, RatioEdit(label, self)), PlanSpec)
