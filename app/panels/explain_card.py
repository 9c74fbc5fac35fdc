"""The card of one number as rich text."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from app.i18n import tr, tr_text
from app.panels.core_text import tr_core
from app.panels.numbers import filled_in, quantity_text, value_text
from app.panels.wording import EVIDENCE_MARKS, EVIDENCE_ROLES, evidence_meaning, evidence_name
from app.theme import Role, Theme
from model_core.quantities import Quantity, Term
from model_core.results import Evaluation

HEADLINE_KEYS = (
    "step_s",
    "latency_s",
    "mfu",
    "tokens_per_s",
    "cost_chip_s_per_token",
    "usd_per_million_tokens",
    "joules_per_token",
    "memory_per_chip_bytes",
    "kv_bytes_per_token",
    "max_context",
    "parameters_total",
    "compute_s",
    "memory_s",
    "communication_s",
    "exposed_communication_s",
)


@dataclass(frozen=True)
class CardStyle:
    """What the card takes from the application: colours, the fixed-pitch family and the base size."""

    theme: Theme
    fixed_family: str
    point_size: float

    def css(self, role: Role) -> str:
        """Return a colour."""
        return self.theme.css(role)

    def size(self, scale: float) -> str:
        """Return a font size relative to the base."""
        return f"font-size:{self.point_size * scale:.1f}pt"


def card_html(quantity: Quantity, style: CardStyle, remark: str = "") -> str:
    """Return the card: title, value, evidence, note, formula, terms, result, source and assumptions."""
    parts = (
        _head(quantity, style),
        _notice(remark, style, Role.TEXT_MUTED),
        _notice(tr_text(quantity.note), style, Role.WARNING),
        _formula(quantity, style),
        _terms(quantity, style),
        _footnotes(quantity, style),
    )
    return "".join(parts)


def hint_html(evaluation: Evaluation | None, style: CardStyle) -> str:
    """Return what is shown while nothing is selected: how to ask, and the headline numbers as links."""
    hint = tr("Click any number, operation or tensor to see where it comes from.")
    rows = []
    for key in HEADLINE_KEYS:
        quantity = None if evaluation is None else evaluation.quantities.get(key)
        if quantity is not None:
            link = f'style="color:{style.css(Role.ACCENT)};text-decoration:none"'
            # A tab instead of a table: a table is measured as a whole for every number that changes.
            rows.append(
                f'<p style="white-space:pre-wrap;margin:6px 0 0 0"><a href="{key}" {link}>'
                f"{escape(tr_text(quantity.label))}</a>\t{_unbroken(quantity_text(quantity))}</p>"
            )
    muted = f"color:{style.css(Role.TEXT_MUTED)};margin:0 0 10px 0"
    return f'<p style="{muted}">{escape(hint)}</p>{"".join(rows)}'


def missing_html(style: CardStyle) -> str:
    """Return what is shown where the selected number cannot be computed."""
    text = tr("This number cannot be computed for the present design; see Problems.")
    return f'<p style="color:{style.css(Role.TEXT_MUTED)};margin:0">{escape(text)}</p>'


def _head(quantity: Quantity, style: CardStyle) -> str:
    evidence = quantity.evidence
    color = style.css(EVIDENCE_ROLES[evidence])
    return (
        f'<p style="{style.size(1.15)};font-weight:600;margin:0">{escape(tr_text(quantity.label))}</p>'
        f'<p style="{style.size(2.0)};font-weight:600;margin:2px 0 2px 0">{_unbroken(quantity_text(quantity))}'
        f"{_band(quantity, style)}</p>"
        f'<p style="margin:0"><span style="color:{color};font-weight:600">{EVIDENCE_MARKS[evidence]} '
        f"{escape(evidence_name(evidence))}</span>"
        f'<span style="color:{style.css(Role.TEXT_MUTED)}"> · {escape(evidence_meaning(evidence))}</span></p>'
    )


def _band(quantity: Quantity, style: CardStyle) -> str:
    """Write how far off a calibrated number may be."""
    if not quantity.error_band:
        return ""
    look = f"{style.size(1.0)};font-weight:400;color:{style.css(Role.TEXT_MUTED)}"
    return f'<span style="{look}"> ± {quantity.error_band:.0%}</span>'


def _notice(text: str, style: CardStyle, role: Role) -> str:
    if not text:
        return ""
    background = style.theme.tint(role, 0.10).name()
    return _box(f'<span style="color:{style.css(role)}">{escape(text)}</span>', background)


def _formula(quantity: Quantity, style: CardStyle) -> str:
    formula = quantity.formula
    filled = filled_in(quantity)
    lines = [escape(line) for line in formula.expression.splitlines()]
    if filled:
        lines.append(f'<span style="color:{style.css(Role.TEXT_MUTED)}">= {escape(filled)}</span>')
    lines.append(f"<b>= {_unbroken(quantity_text(quantity))}</b>")
    body = "<br>".join(lines)
    title = f'<p style="font-weight:600;margin:10px 0 0 0">{escape(tr_text(formula.title))}</p>'
    return title + _box(
        f"<span style=\"font-family:'{style.fixed_family}'\">{body}</span>", style.css(Role.CARD)
    )


def _terms(quantity: Quantity, style: CardStyle) -> str:
    rows = "".join(
        f'<tr><td style="padding:3px 8px 3px 0;font-weight:600">{escape(_symbol(t, quantity))}</td>'
        f'<td style="padding:3px 8px 3px 0;color:{style.css(Role.TEXT_MUTED)}">{escape(tr_core(t.meaning))}</td>'
        f'<td align="right" style="padding:3px 0">{_unbroken(value_text(t.value, t.dimension, 4))}</td></tr>'
        for t in quantity.terms
    )
    return f'<table width="100%" cellspacing="0" style="margin-bottom:8px">{rows}</table>' if rows else ""


def _symbol(term: Term, quantity: Quantity) -> str:
    """Return a term's symbol as the formula prints it; what a sum lists are names, not symbols."""
    expression = quantity.formula.expression
    is_symbol = term.symbol in expression and not expression.startswith("Σ")
    return term.symbol if is_symbol else tr_text(term.symbol)


def _footnotes(quantity: Quantity, style: CardStyle) -> str:
    entries = (
        (tr("Source"), quantity.formula.source),
        (tr("Assumes"), quantity.formula.assumes),
    )
    return "".join(
        f'<p style="margin:0 0 6px 0"><span style="color:{style.css(Role.TEXT_MUTED)}">{escape(name)}: </span>'
        f"{escape(tr_text(' '.join(text.split())))}</p>"
        for name, text in entries
        if text
    )


def _box(content: str, background: str) -> str:
    return (
        f'<table width="100%" cellspacing="0" cellpadding="8" bgcolor="{background}" style="margin-top:8px;margin-bottom:8px">'
        f"<tr><td>{content}</td></tr></table>"
    )


def _unbroken(text: str) -> str:
    return escape(text).replace(" ", "&nbsp;")
