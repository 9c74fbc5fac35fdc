"""The model panel: a preset, or any Transformer by its dimensions."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QWidget

import presets
from app.document import DesignDocument
from app.i18n import tr
from app.panels.group import Group
from app.panels.panel import FieldPanel
from app.panels.preset_picker import PresetPicker
from app.panels.value_link import ValueLink
from model_core.results import Evaluation
from model_core.spec import Design, MlaSpec, ModelSpec, MoeSpec

# Names and symbols as the papers print them; they are the same in every language.
_DIMENSIONS: Final = (
    ("n_layers", "n_layers"),
    ("d_model", "d_model (E)"),
    ("max_context", "max_context"),
    ("norm", "norm"),
)
_ATTENTION: Final = (
    ("n_heads", "n_heads (H)"),
    ("n_heads_unpadded", "n_heads_unpadded"),
    ("n_kv_heads", "n_kv_heads (K)"),
    ("d_head", "d_head (D)"),
    ("parallel_block", "parallel_block"),
)
_FEEDFORWARD: Final = (("d_ff", "d_ff (F)"), ("gated_ffn", "gated_ffn"), ("biases", "biases"))
_EMBEDDING: Final = (
    ("vocab_size", "vocab_size (V)"),
    ("tied_embedding", "tied_embedding"),
    ("n_positions", "n_positions"),
    ("n_mtp_layers", "n_mtp_layers"),
)
_NORMS: Final = (("rmsnorm", "RMSNorm"), ("layernorm", "LayerNorm"))


class ModelPanel(FieldPanel):
    """Edits `Design.model`; the groups of MLA and MoE appear where the model has them."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(document, "model", parent)
        self._picker = PresetPicker("models", self)
        self._picker.preset_chosen.connect(self._on_preset_chosen)
        self._total = ValueLink(document, "parameters_total", self)
        self._active = ValueLink(document, "parameters_active", self)
        self._add_summary()
        self._dimensions = self._add_fields(tr("Dimensions"), _DIMENSIONS)
        self._attention = self._add_fields(tr("Attention"), _ATTENTION)
        self._mla = self._add_part(tr("Latent attention (MLA)"), MlaSpec, "model.mla")
        self._feedforward = self._add_fields(tr("Feedforward"), _FEEDFORWARD)
        self._moe = self._add_part(tr("Experts (MoE)"), MoeSpec, "model.moe")
        self._embedding = self._add_fields(tr("Embedding"), _EMBEDDING)
        self.start()

    def show_design(self, design: Design) -> None:
        """Show the preset and the groups that the model has."""
        model = design.model
        self._picker.show_part(model)
        self._mla.setVisible(model.mla is not None)
        self._moe.setVisible(model.moe is not None)
        self._dimensions.set_digest(f"{model.n_layers:,} × {model.d_model:,}")
        self._attention.set_digest(tr("{heads} heads, {kind}", heads=model.n_heads, kind=_kind(model)))
        gated = tr("gated") if model.gated_ffn else tr("plain")
        self._feedforward.set_digest(tr("{width}, {kind}", width=f"{model.d_ff:,}", kind=gated))
        self._embedding.set_digest(f"{model.vocab_size:,}")
        if model.mla is not None:
            self._mla.set_digest(tr("rank {rank}", rank=model.mla.kv_lora_rank))
        if model.moe is not None:
            chosen, routed = model.moe.n_experts_per_token, model.moe.n_routed_experts
            self._moe.set_digest(tr("{chosen} of {routed}", chosen=chosen, routed=routed))

    def show_evaluation(self, evaluation: Evaluation) -> None:
        """Show the numbers of parameters."""
        self._total.show_evaluation(evaluation)
        self._active.show_evaluation(evaluation)

    def _add_summary(self) -> None:
        form = self.add_form()
        text = tr("A published model; choosing one sets every field below, as one undo step")
        self.add_row(form, "model", tr("Preset"), self._picker, text)
        text = tr("All parameters; click for the formula")
        self.add_row(form, "parameters_total", tr("Parameters"), self._total, text)
        text = tr("Parameters that one token is multiplied with; click for the formula")
        self.add_row(form, "parameters_active", tr("Active"), self._active, text)

    def _add_fields(self, title: str, fields: tuple[tuple[str, str], ...]) -> Group:
        group = self.add_group(title, unfolded=False)
        for name, label in fields:
            choices = _NORMS if name == "norm" else ()
            self.add_field(group.form, ModelSpec, f"model.{name}", label, choices)
        return group

    def _add_part(self, title: str, spec: type[MlaSpec | MoeSpec], path: str) -> Group:
        group = self.add_group(title, unfolded=False)
        for name in spec.model_fields:
            self.add_field(group.form, spec, f"{path}.{name}", name)
        return group

    def _on_preset_chosen(self, name: str) -> None:
        model = presets.load_model(name)
        self.document.push(self.document.design.replace(model=model), tr("Choose {name}", name=model.name))


def _kind(model: ModelSpec) -> str:
    names = {
        "latent": tr("latent"),
        "multihead": tr("multihead"),
        "grouped-query": tr("grouped-query"),
        "multiquery": tr("multiquery"),
    }
    return names[model.attention_kind]
