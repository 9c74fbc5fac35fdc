"""The command ``schedule``: a pipeline schedule as text, JSON, CSV or trace. Needs no Qt."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from app.cli_report import table_lines
from model_core.diagnostics import Diagnostic
from model_core.schedule import (
    KINDS,
    BubbleFormula,
    Durations,
    Schedule,
    Simulation,
    activation_memory,
    bubble_causes,
    bubble_formulas,
    ops_text,
    parameter_share,
    perfetto_trace,
    pytorch_csv,
    schedule,
    simulate,
    summary,
)
from model_core.schedule.compare import ComparedSchedule, Share, compare_at_equal_devices
from model_core.units import SECONDS, QuantityError, format_number, format_quantity, parse_quantity

FORMATS: Final = ("ops", "json", "csv", "perfetto")
MAX_ROWS: Final = 32
"""Ranks that the table for people shows; of more it shows the first and the last ones."""

Output = tuple[str | None, tuple[Diagnostic, ...]]


def add_schedule_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--kind", choices=(*KINDS, "list"), help="the schedule; list prints them")
    what.add_argument("--compare", metavar="KIND,KIND", type=_kinds, help="several, at equal devices")
    parser.add_argument("--pp", metavar="N", type=int, default=8, help="ranks (default: 8)")
    parser.add_argument("--microbatches", metavar="M", type=int, default=20, help="default: 20")
    parser.add_argument(
        "--virtual-stages", metavar="V", type=int, default=2, help="chunks of interleaved on each rank"
    )
    for name, text in (
        ("f", "forward of a stage (default: 1 s)"),
        ("i", "backward for input (default: 1 s)"),
        ("w", "backward for weights (default: 1 s)"),
    ):
        parser.add_argument(f"--{name}", metavar="TIME", type=_seconds, default=1.0, help=text)
    parser.add_argument("--fb", metavar="TIME", type=_seconds, help="overlapped pair (default: F + B)")
    parser.add_argument("--p2p", metavar="TIME", type=_seconds, default=0.0, help="message between ranks")
    parser.add_argument("--format", choices=FORMATS, help="default: a table for people")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="as --format json")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write there")


def schedule_output(options: argparse.Namespace) -> Output:
    """Return the text that the command prints or writes; or why there is none."""
    if options.kind == "list":
        return _listing(), ()
    if options.compare:
        return _comparison(options)
    made, found = schedule(options.kind, options.pp, options.microbatches, options.virtual_stages)
    if made is None:
        return None, found
    if options.format in _UNTIMED:
        return _UNTIMED[options.format](made)
    simulation, found = simulate(made, Durations(options.f, options.i, options.w, options.fb, options.p2p))
    return (None if simulation is None else _TIMED[options.format](simulation)), found


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(KINDS)}")
    return kinds


def _seconds(text: str) -> float:
    try:
        seconds = parse_quantity(text, SECONDS)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is negative")
    return seconds


def _listing() -> str:
    rows = [(kind.name, kind.title, kind.source, kind.rule) for kind in KINDS.values()]
    return _text(table_lines([("kind", "schedule", "source", "sizes"), *rows], "<<<<"))


def _json(simulation: Simulation) -> str:
    return _document(summary(simulation) | {"formulas": [_formula_json(f) for f in _formulas(simulation)]})


def _document(document: Any) -> str:
    return f"{json.dumps(document, indent=2, allow_nan=False)}\n"


def _formula_json(formula: BubbleFormula) -> dict[str, Any]:
    return {
        "formula": formula.expression,
        "value": formula.value_s,
        "holds": formula.holds,
        "domain": formula.domain,
        "between_iterations": formula.between_iterations,
    }


def _formulas(simulation: Simulation) -> tuple[BubbleFormula, ...]:
    return bubble_formulas(simulation.schedule, simulation.durations)


def _report(simulation: Simulation) -> str:
    return _text(_report_lines(simulation))


def _text(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _report_lines(simulation: Simulation) -> Iterator[str]:
    made = simulation.schedule
    copies = parameter_share(made) * made.pp
    yield (
        f"{KINDS[made.kind].title}: {made.pp:,} ranks, {made.layout.n_stages:,} stages, "
        f"{made.microbatches:,} microbatches"
    )
    yield from table_lines(
        [
            ("Makespan", _time(simulation.makespan_s)),
            ("Bubble", f"{_time(float(simulation.bubble_s.max()))}, {simulation.bubble_fraction:.1%} of all"),
            ("Bubble between iterations", _time(float(simulation.iteration_bubble_s.max()))),
            ("Peak activations", f"{format_number(float(activation_memory(made).peak.max()))} chunks"),
            ("Parameters", f"{format_number(copies)}× an equal share of the model"),
            ("Operations", f"{len(made):,}"),
        ],
        "<<",
    )
    for formula in _formulas(simulation):
        yield from _formula_lines(formula, simulation)
    yield ""
    yield from _rank_lines(simulation)


def _formula_lines(formula: BubbleFormula, simulation: Simulation) -> Iterator[str]:
    simulated = simulation.iteration_bubble_s if formula.between_iterations else simulation.bubble_s
    measure = "bubble between iterations" if formula.between_iterations else "bubble"
    yield ""
    yield f"Formula: {formula.expression} = {_time(formula.value_s)}; simulated {measure} {_time(float(simulated.max()))}"
    yield f"  {'holds' if formula.holds else 'does not hold here'}: {formula.domain}"


def _rank_lines(simulation: Simulation) -> Iterator[str]:
    made, causes = simulation.schedule, bubble_causes(simulation)
    peak = activation_memory(made).peak
    times = (
        simulation.busy_s,
        simulation.bubble_s,
        causes.warm_up_s,
        causes.steady_s,
        causes.drain_s,
        causes.communication_s,
    )
    head = (
        "rank",
        "busy",
        "bubble",
        "warm-up",
        "steady",
        "drain",
        "waiting for messages",
        "peak activations",
    )
    rows: list[tuple[str, ...]] = [head]
    for rank in _shown(made):
        if rank < 0:
            rows.append(("…",) * len(head))
            continue
        cells = [_time(float(values[rank])) for values in times]
        rows.append((str(rank), *cells, format_number(float(peak[rank]))))
    yield from table_lines(rows, ">" * len(head))


def _shown(made: Schedule) -> list[int]:
    """Return the ranks to show; -1 stands for those left out."""
    if made.pp <= MAX_ROWS:
        return list(range(made.pp))
    half = MAX_ROWS // 2
    return [*range(half), -1, *range(made.pp - half, made.pp)]


def _comparison(options: argparse.Namespace) -> Output:
    share = Share(options.f, options.i, options.w, options.fb, options.p2p)
    rows, found = compare_at_equal_devices(
        options.compare, options.pp, options.microbatches, share, options.virtual_stages
    )
    if not rows:
        return None, found
    if options.format == "json":
        return _document({"schedules": [_compared_json(row) for row in rows]}), found
    return _text(_comparison_lines(rows, options)), found


def _compared_json(row: ComparedSchedule) -> dict[str, Any]:
    own = {"peak_activation_shares": row.peak_activations, "parameter_shares": row.parameters}
    return summary(row.simulation) | own


def _comparison_lines(rows: tuple[ComparedSchedule, ...], options: argparse.Namespace) -> Iterator[str]:
    yield f"{options.pp:,} ranks, {options.microbatches:,} microbatches; times are of 1/{options.pp} of the model"
    head = (
        "schedule",
        "makespan",
        "bubble",
        "bubble part",
        "between iterations",
        "peak activations",
        "parameters",
    )
    cells = [
        (
            KINDS[row.kind].title,
            _time(row.simulation.makespan_s),
            _time(float(row.simulation.bubble_s.max())),
            f"{row.simulation.bubble_fraction:.1%}",
            _time(float(row.simulation.iteration_bubble_s.max())),
            format_number(row.peak_activations),
            f"{format_number(row.parameters)}×",
        )
        for row in rows
    ]
    yield from table_lines([head, *cells], "<>>>>>>")


def _time(seconds: float) -> str:
    # A difference of equal sums may leave a rounding error where there is no idle time.
    return format_quantity(seconds if abs(seconds) > 1e-12 else 0.0, SECONDS, 4)


def _ops(made: Schedule) -> Output:
    return ops_text(made), ()


_UNTIMED: Final[dict[str, Callable[[Schedule], Output]]] = {"ops": _ops, "csv": pytorch_csv}
_TIMED: Final[dict[str | None, Callable[[Simulation], str]]] = {
    None: _report,
    "json": _json,
    "perfetto": perfetto_trace,
}
