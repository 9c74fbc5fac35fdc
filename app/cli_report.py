"""The text that ``meshwright evaluate`` and ``meshwright check`` print for people. Needs no Qt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from model_core.diagnostics import Diagnostic
from model_core.results import Evaluation, MemoryBudget, OpTime, TimeBudget
from model_core.spec import Design
from model_core.units import BYTES, SECONDS, format_quantity

_HEADLINE = (
    "latency_s",
    "step_s",
    "mfu",
    "tokens_per_s",
    "cost_chip_s_per_token",
    "memory_per_chip_bytes",
    "kv_bytes_per_token",
    "max_context",
    "parameters_total",
    "parameters_active",
)


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
        yield from _time(evaluation.time)
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
    yield (
        f"{design.cluster.name}, {design.cluster.n_chips:,} chips; {plan.ffn_layout}, "
        f"attention over {plan.attention_sharding}, {plan.weight_dtype} weights, {plan.kv_dtype} KV cache"
    )


def _headline(evaluation: Evaluation) -> Iterator[str]:
    found = [evaluation.quantities[key] for key in _HEADLINE if key in evaluation.quantities]
    notes = list(dict.fromkeys(quantity.note for quantity in found if quantity.note))
    marks = {note: f"[{number}]" for number, note in enumerate(notes, 1)}
    rows = [(q.label, q.text, f"{q.evidence} {marks.get(q.note, '')}".rstrip()) for q in found]
    if evaluation.time is not None:
        rows.insert(0, ("Bound by", evaluation.time.bound_by, ""))
    yield ""
    yield from table_lines(rows, "<><")
    yield from (f"{marks[note]} {note}" for note in notes)


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


def _time(time: TimeBudget) -> Iterator[str]:
    parts = (
        ("compute", time.compute_s),
        ("weight and KV loading", time.memory_s),
        ("communication", time.communication_s),
        ("exposed communication", time.exposed_communication_s),
    )
    yield ""
    yield f"Time of one step: {format_quantity(time.step_s, SECONDS)}"
    yield from table_lines([(name, format_quantity(seconds, SECONDS)) for name, seconds in parts], "<>")


def _collectives(time: TimeBudget) -> Iterator[str]:
    found = [op for op in time.ops if op.kind not in ("einsum", "local")]
    if not found:
        return
    yield ""
    yield "Collectives of one step"
    head = ("operation", "axes", "tensor", "program", "times", "bytes per chip", "time", "exposed")
    yield from table_lines([head, *map(_collective_row, found)], "<<<<>>>>")


def _collective_row(op: OpTime) -> tuple[str, ...]:
    return (
        op.kind,
        "".join(sorted(op.axes)),
        op.tensor,
        op.program,
        f"{op.count:,}",
        format_quantity(op.collective_bytes, BYTES),
        format_quantity(op.communication_s, SECONDS),
        format_quantity(op.exposed_s, SECONDS),
    )


def table_lines(rows: Sequence[Sequence[str]], alignment: str) -> Iterator[str]:
    """Yield rows as aligned columns, indented by two; ``alignment`` has ``<`` or ``>`` for each column."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(alignment))]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, alignment, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
