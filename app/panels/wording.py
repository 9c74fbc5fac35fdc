"""Words that several panels use: evidence levels, reasons of refused values, names of layouts."""

from __future__ import annotations

from app.i18n import tr, tr_diagnostic
from app.panels.core_text import tr_core
from app.theme import Role
from model_core.diagnostics import Diagnostic
from model_core.spec import AttentionSharding, BlockForm, Evidence, FfnLayout, Phase

# A shape beside the colour and the word: evidence is never told by colour alone.
EVIDENCE_MARKS = {
    Evidence.PUBLISHED: "●",
    Evidence.MEASURED: "◆",
    Evidence.MODELLED: "■",
    Evidence.ASSUMED: "○",
}
EVIDENCE_ROLES = {
    Evidence.PUBLISHED: Role.GOOD,
    Evidence.MEASURED: Role.GOOD,
    Evidence.MODELLED: Role.ACCENT,
    Evidence.ASSUMED: Role.WARNING,
}


def evidence_name(evidence: Evidence) -> str:
    """Return the word for an evidence level."""
    names = {
        Evidence.PUBLISHED: tr("published"),
        Evidence.MEASURED: tr("measured"),
        Evidence.MODELLED: tr("modelled"),
        Evidence.ASSUMED: tr("assumed"),
    }
    return names[evidence]


def evidence_meaning(evidence: Evidence) -> str:
    """Return what an evidence level says about a number."""
    meanings = {
        Evidence.PUBLISHED: tr("A figure from a source"),
        Evidence.MEASURED: tr("Measured on this machine, or an imported run"),
        Evidence.MODELLED: tr("Computed from published or measured figures"),
        Evidence.ASSUMED: tr("Assumed, or entered by the user"),
    }
    return meanings[evidence]


def ffn_layouts() -> tuple[tuple[str, str], ...]:
    """Return the feedforward layouts with the names that the papers give them."""
    return (
        (FfnLayout.WEIGHT_STATIONARY_1D, tr("1D weight-stationary")),
        (FfnLayout.WEIGHT_STATIONARY_2D, tr("2D weight-stationary")),
        (FfnLayout.WEIGHT_GATHERED_X, tr("X weight-gathered")),
        (FfnLayout.WEIGHT_GATHERED_XY, tr("XY weight-gathered")),
        (FfnLayout.WEIGHT_GATHERED_XYZ, tr("XYZ weight-gathered")),
    )


def attention_shardings() -> tuple[tuple[str, str], ...]:
    """Return what attention may be split over."""
    return ((AttentionSharding.HEADS, tr("over heads")), (AttentionSharding.BATCH, tr("over batch")))


def block_forms() -> tuple[tuple[str, str], ...]:
    """Return the forms of a block."""
    return (
        (BlockForm.AS_MODEL, tr("as the model")),
        (BlockForm.SERIAL, tr("serial")),
        (BlockForm.PARALLEL, tr("parallel")),
    )


def phases() -> tuple[tuple[str, str], ...]:
    """Return the phases of a workload."""
    return (
        (Phase.PREFILL, tr("prefill")),
        (Phase.DECODE, tr("decode")),
        (Phase.TRAINING, tr("training")),
    )


def refusal(diagnostics: tuple[Diagnostic, ...]) -> str:
    """Return why a value was refused, in the user's language."""
    found = diagnostics[0]
    if found.code != "field_invalid":
        return tr_diagnostic(found)[0]
    return tr_core(str(found.values["reason"]))
