"""Results of searches as rich text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from app.i18n import tr, tr_diagnostic, tr_text
from app.panels.numbers import value_text
from app.plots.frontier.words import column, field_name, short_layout, shown_value
from app.theme import Role, Theme
from model_core.diagnostics import Diagnostic
from model_core.results import Evaluation
from model_core.search.pairing import Pair
from model_core.search.recommend import Answer, Constraint, Recommendation
from model_core.search.targets import FITS, Measure
from model_core.spec import Phase
from model_core.units import BYTES, CHIP_SECONDS, SECONDS, format_number, format_quantity

ROWS = ("cost_chip_s_per_token", "mfu", "tokens_per_s", "memory_per_chip_bytes", "n_chips", "batch")


def measure_names() -> dict[str, str]:
    """Return the names of what can be bounded or optimised."""
    return {
        "tpot": tr("latency per token (TPOT)"),
        "ttft": tr("time to first token (TTFT)"),
        "latency": tr("latency of the phase"),
        "memory": tr("memory per chip"),
        "mfu": tr("MFU"),
        "cost": tr("chip-seconds per token"),
        "usd": tr("price per million tokens"),
        "energy": tr("energy per token"),
        "throughput": tr("throughput"),
        "batch": tr("batch"),
        "context": tr("context"),
        "chips": tr("chips"),
    }


def recommendation_html(found: Recommendation, now: Evaluation | None, theme: Theme) -> str:
    """Write a recommendation: the answer beside the next best and the present design, and what binds."""
    parts = [_notice(tr_diagnostic(problem), theme) for problem in found.problems]
    shown = found.best or found.closest
    if shown is None:
        return "".join(parts)
    name = measure_names()[found.goal.name]
    head = tr("Best: {what} {value}", what=name, value=_measured(found.goal.measure, shown.value))
    if found.best is None:
        head = tr("Closest: {what} {value}", what=name, value=_measured(found.goal.measure, shown.value))
    parts.append(f'<p style="font-size:14pt;font-weight:600;margin:4px 0 2px 0">{escape(head)}</p>')
    parts.append(_muted(tr("among {count} designs", count=f"{found.designs:,}"), theme))
    parts.append(_compared(shown, found.next_best, now))
    if found.margin is not None:
        parts.append(
            f"<p>{escape(tr('The next best is worse by {margin}.', margin=f'{found.margin:.1%}'))}</p>"
        )
    parts.append(_constraints(found, theme))
    parts.append(_changes(tr("To get there from the present design"), shown, theme))
    if found.next_best is not None:
        parts.append(_changes(tr("The next best instead"), found.next_best, theme))
    return "".join(parts)


def _compared(best: Answer, other: Answer | None, now: Evaluation | None) -> str:
    latency = "step_s" if best.design.workload.phase is Phase.DECODE else "latency_s"
    heads = ["", tr("best"), tr("next best") if other else "", tr("present")]
    rows = []
    for key in (latency, *ROWS):
        shown = column(key)
        values = [best.row.get(key), other.row.get(key) if other else None, _present(now, key)]
        cells = ["" if value is None else shown.write(float(value)) for value in values]
        rows.append([shown.title, *cells])
    return _table([heads, *rows])


def _present(now: Evaluation | None, key: str) -> float | None:
    if now is None:
        return None
    if key == "n_chips":
        return float(now.design.cluster.n_chips)
    return float(now.design.workload.batch) if key == "batch" else now.value(key)


def _changes(title: str, answer: Answer, theme: Theme) -> str:
    lines = [
        f"{escape(field_name(c.path))}: {escape(shown_value(c.path, c.before))} → "
        f"<b>{escape(shown_value(c.path, c.after))}</b>"
        for c in answer.changes
    ]
    body = "<br>".join(lines) or escape(tr("nothing changes"))
    return f'{_muted(title, theme)}<p style="margin:0 0 8px 12px">{body}</p>'


def _constraints(found: Recommendation, theme: Theme) -> str:
    binding = [c for c in found.constraints if c.binds]
    if not found.constraints:
        return ""
    if not binding:
        return f"<p>{escape(tr('No constraint binds: without any of them the answer is the same.'))}</p>"
    lines = [_binding(c, found) for c in binding]
    return f'{_muted(tr("What binds"), theme)}<p style="margin:0 0 8px 12px">{"<br>".join(lines)}</p>'


def _binding(constraint: Constraint, found: Recommendation) -> str:
    measure = found.goal.measure
    name = tr_text(FITS) if constraint.name == FITS else constraint.name
    parts = [f"<b>{escape(name)}</b>"]
    if constraint.relaxed is not None:
        parts.append(escape(tr("relaxed by 10 %: {value}", value=_measured(measure, constraint.relaxed))))
    if constraint.without is not None:
        parts.append(escape(tr("without it: {value}", value=_measured(measure, constraint.without))))
    return " · ".join(parts)


def _measured(measure: Measure, value: float) -> str:
    return value_text(value, measure.dimension)


def pair_html(found: Pair, theme: Theme) -> str:
    """Write a pairing: what a request sees, and what has to be bought."""
    head = tr(
        "{chips} chips for {rate} requests/s",
        chips=f"{found.chips:,}",
        rate=format_number(found.requests_per_s),
    )
    seen = [
        (tr("time to first token (TTFT)"), format_quantity(found.ttft_s, SECONDS)),
        (tr("latency per token (TPOT)"), format_quantity(found.tpot_s, SECONDS)),
        (tr("whole request"), format_quantity(found.request_s, SECONDS)),
        (tr("chip-seconds per request"), format_quantity(found.cost_chip_s_per_request, CHIP_SECONDS)),
        (tr("KV cache handed over per request"), format_quantity(found.handover_bytes, BYTES)),
        (tr("prefill servers per decode server"), format_number(found.prefill_per_decode)),
    ]
    both = (found.prefill, found.decode)
    sides = [
        ["", tr("prefill"), tr("decode")],
        [tr("servers"), *(f"{side.servers:,}" for side in both)],
        [tr("chips"), *(f"{side.chips:,}" for side in both)],
        [tr("busy"), *(f"{side.utilisation:.0%}" for side in both)],
        [tr("batch"), *(f"{side.design.workload.batch:,}" for side in both)],
        [tr("layout"), *(short_layout(side.design.plan.ffn_layout) for side in both)],
        [tr("attention over"), *(tr_text(str(side.design.plan.attention_sharding)) for side in both)],
        [tr("latency of the phase"), *(format_quantity(side.latency_s, SECONDS) for side in both)],
    ]
    return (
        f'<p style="font-size:14pt;font-weight:600;margin:4px 0 6px 0">{escape(head)}</p>'
        + _table([list(pair) for pair in seen])
        + _table(sides)
        + _muted(tr("Waiting and handing over are not counted; batches are full."), theme)
    )


def diagnostics_html(problems: Sequence[Diagnostic], theme: Theme) -> str:
    """Write why there is no result."""
    return "".join(_notice(tr_diagnostic(problem), theme) for problem in problems)


def _notice(said: tuple[str, str], theme: Theme) -> str:
    message, hint = said
    color = theme.css(Role.WARNING)
    return f'<p style="margin:2px 0"><b style="color:{color}">{escape(message)}</b><br>{escape(hint)}</p>'


def _muted(text: str, theme: Theme) -> str:
    return f'<p style="color:{theme.css(Role.TEXT_MUTED)};margin:6px 0 2px 0">{escape(text)}</p>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = []
    for row in rows:
        cells = "".join(
            f'<td align="{"left" if i == 0 else "right"}" style="padding:3px 22px 3px 0">{escape(cell)}</td>'
            for i, cell in enumerate(row)
        )
        lines.append(f"<tr>{cells}</tr>")
    return f'<table cellspacing="0" style="margin:6px 0">{"".join(lines)}</table>'
