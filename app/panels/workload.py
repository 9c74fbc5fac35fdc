"""The workload panel: phase, batch, lengths and the latency asked for."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QLabel, QWidget

import presets
from app.document import DesignDocument
from app.i18n import tr
from app.panels.panel import FieldPanel
from app.panels.preset_picker import PresetPicker
from app.panels.wording import phases
from app.theme.fonts import tabular
from model_core.spec import Design, Phase, WorkloadSpec

_CACHED: Final = "workload.cached_length"
_CHUNK: Final = "workload.prefill_chunk"


class WorkloadPanel(FieldPanel):
    """Edits `Design.workload`; what concerns prefill alone appears in prefill, or where it is set."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(document, "workload", parent)
        self._picker = PresetPicker("workloads", self)
        self._picker.preset_chosen.connect(self._on_preset_chosen)
        self._context = QLabel("—", self)
        self._context.setFont(tabular(bold=True))
        self._add_rows()
        self.start()

    def show_design(self, design: Design) -> None:
        """Show the preset and the context that follows from the lengths."""
        workload = design.workload
        self._picker.show_part(workload)
        self._context.setText(tr("{count} tokens", count=f"{workload.max_context:,}"))
        is_prefill = workload.phase is Phase.PREFILL
        self.set_row_visible(_CACHED, is_prefill or workload.cached_length > 0)
        self.set_row_visible(_CHUNK, is_prefill or workload.prefill_chunk is not None)

    def _add_rows(self) -> None:
        form = self.add_form()
        text = tr("A typical use; choosing one sets every field below, as one undo step")
        self.add_row(form, "workload", tr("Preset"), self._picker, text)
        self.add_field(form, WorkloadSpec, "workload.phase", tr("Phase"), phases())
        self.add_field(form, WorkloadSpec, "workload.batch", tr("Batch (B)"))
        self.add_field(form, WorkloadSpec, _CACHED, tr("Cached length"))
        self.add_field(form, WorkloadSpec, "workload.input_length", tr("Input length"))
        self.add_field(form, WorkloadSpec, _CHUNK, tr("Prefill chunk"))
        self.add_field(form, WorkloadSpec, "workload.output_length", tr("Output length"))
        text = tr("Cached, input and output tokens: what the KV cache of a sequence holds in the end")
        self.add_row(form, "workload.context", tr("Context"), self._context, text)
        self.add_field(form, WorkloadSpec, "workload.latency_target", tr("Latency target"))

    def _on_preset_chosen(self, name: str) -> None:
        workload = presets.load_workload(name)
        changed = self.document.design.replace(workload=workload)
        self.document.push(changed, tr("Choose {name}", name=workload.name))
