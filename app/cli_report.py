"""The text that ``meshwright evaluate`` and ``meshwright check`` print for people. Needs no Qt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from model_core.diagnostics import Diagnostic
from model_core.quantities import Quantity
from model_core.report import bound_sign, collective_axes, collective_bytes, collective_name, collectives
from model_core.results import Evaluation, MemoryBudget, OpTime, TimeBudget
from model_core.spec import ClusterSpec, Design, Phase, TrainingSpec
from model_core.units import BYTES, SECONDS, format_quantity

_HEADLINE = (
    "latency_s",
    "step_s",
    "mfu",
    "hfu",
    "bubble_fraction",
    "tokens_per_s",
    "cost_chip_s_per_token",
    "usd_per_million_tokens",
    "joules_per_token",
    "gpu_hours_per_trillion_tokens",
    "memory_per_chip_bytes",
    "kv_bytes_per_token",
    "max_context",
    "parameters_total",
    "parameters_active",
)
_PARTS = ("compute_s", "memory_s", "communication_s", "exposed_communication_s")
"""Numbers that the time of a step is printed with."""


def diagnostic_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """Yield two lines for each diagnostic: what is wrong where, and what would be right."""
    for diagnostic in diagnostics:
        place = f"{diagnostic.path}: " if diagnostic.path else ""
        yield f"{diagnostic.severity}: {place}{diagnostic.message}"
        yield f"    {diagnostic.hint}"


def evaluation_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield the whole report of an evaluation."""
    yield from _title(evaluation.design)
    yield from _headline(evaluation)
    if evaluation.memory is not None:
        yield from _memory(evaluation.memory)
    if evaluation.time is not None:
        yield from _time(evaluation, evaluation.time)
        yield from _collectives(evaluation.time)
    if evaluation.diagnostics:
        yield ""
        yield from diagnostic_lines(evaluation.diagnostics)


def _title(design: Design) -> Iterator[str]:
    workload, plan = design.workload, design.plan
    yield design.name
    yield (
        f"{design.model.name}, {workload.phase} of batch {workload.batch:,}, "
        f"{workload.input_length:,} + {workload.output_length:,} tokens"
        + (f" after {workload.cached_length:,} cached" if workload.cached_length else "")
    )
    chips = f"{_cluster_name(design.cluster)}, {design.cluster.n_chips:,} chips"
    if workload.phase is Phase.TRAINING:
        yield f"{chips}; {_degrees(design, plan.training or TrainingSpec())}"
        return
    yield (
        f"{chips}; {plan.ffn_layout}, attention over {plan.attention_sharding}, "
        f"{plan.weight_dtype} weights, {plan.kv_dtype} KV cache"
    )


def _cluster_name(cluster: ClusterSpec) -> str:
    """Return the cluster's name; a name with the shape it had before an edit is not printed."""
    named = re.search(r"\d+(?:\s*[x×]\s*\d+)+", cluster.name)
    if named is None or re.findall(r"\d+", named[0]) == re.findall(r"\d+", cluster.shape_text):
        return cluster.name
    return f"{cluster.chip.name} {cluster.shape_text}"


def _degrees(design: Design, training: TrainingSpec) -> str:
    pp = 1 if design.plan.schedule is None else design.plan.schedule.pp
    ways = training.tp * training.cp * pp
    degrees = {"TP": training.tp, "CP": training.cp, "PP": pp, "DP": max(1, design.cluster.n_chips // ways)}
    if training.cp == 1:
        del degrees["CP"]
    if design.model.moe is not None:
        degrees["EP"] = training.ep
    return ", ".join(f"{name} {degree:,}" for name, degree in degrees.items())


def _headline(evaluation: Evaluation) -> Iterator[str]:
    found = _printed(evaluation)
    notes = list(dict.fromkeys(quantity.note for quantity in found if quantity.note))
    marks = {note: f"[{number}]" for number, note in enumerate(notes, 1)}
    rows = [
        (
            q.label,
            _signed(bound_sign(evaluation, q.key), q.text),
            f"{q.evidence} {marks.get(q.note, '')}".rstrip(),
        )
        for q in found
    ]
    if evaluation.time is not None:
        rows.insert(0, ("Bound by", evaluation.time.bound_by, ""))
    yield ""
    yield from table_lines(rows, "<><")
    yield from (f"{marks[note]} {note}" for note in notes)


def _printed(evaluation: Evaluation) -> list[Quantity]:
    """Return the quantities of the table: the headline, then what else there is, nothing twice."""
    known = evaluation.quantities
    keys = dict.fromkeys((*_HEADLINE, *known))
    found = [known[key] for key in keys if key in known and key not in _PARTS]
    return list({(quantity.label, quantity.value): quantity for quantity in found}.values())


def _signed(sign: str, text: str) -> str:
    return f"{sign} {text}".lstrip()


def _memory(memory: MemoryBudget) -> Iterator[str]:
    verdict = "fits" if memory.fits else "does not fit"
    total, capacity = memory.per_chip_bytes, memory.capacity_bytes
    yield ""
    yield (
        f"Memory per chip: {format_quantity(total, BYTES)} of {format_quantity(capacity, BYTES)} "
        f"({total / capacity:.1%}), {verdict}"
    )
    yield from table_lines(
        [
            (item.name, format_quantity(item.bytes, BYTES), f"{item.bytes / capacity:.1%}")
            for item in memory.items
        ],
        "<>>",
    )


def _time(evaluation: Evaluation, time: TimeBudget) -> Iterator[str]:
    parts = (
        ("compute", time.compute_s),
        ("weight and KV loading", time.memory_s),
        ("communication", time.communication_s),
        ("exposed communication", time.exposed_communication_s),
    )
    yield ""
    step = _signed(bound_sign(evaluation, "step_s"), format_quantity(time.step_s, SECONDS))
    yield f"Time of one step: {step}"
    yield from table_lines([(name, format_quantity(seconds, SECONDS)) for name, seconds in parts], "<>")


def _collectives(time: TimeBudget) -> Iterator[str]:
    found = collectives(time)
    if not found:
        return
    yield ""
    yield "Collectives of one step"
    head = ("operation", "axes", "tensor", "program", "times", "bytes per chip", "time", "exposed")
    yield from table_lines([head, *map(_collective_row, found)], "<<<<>>>>")


def _collective_row(op: OpTime) -> tuple[str, ...]:
    received = collective_bytes(op)
    return (
        collective_name(op),
        collective_axes(op),
        op.tensor,
        op.program,
        f"{op.count:,}",
        "" if received is None else format_quantity(received, BYTES),
        format_quantity(op.communication_s, SECONDS),
        format_quantity(op.exposed_s, SECONDS),
    )


def table_lines(rows: Sequence[Sequence[str]], alignment: str) -> Iterator[str]:
    """Yield rows as aligned columns, indented by two; ``alignment`` has ``<`` or ``>`` for each column."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(alignment))]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, alignment, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
