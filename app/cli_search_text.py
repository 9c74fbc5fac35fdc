"""What ``sweep``, ``recommend`` and ``pair`` print, as lines for people and as JSON data. Needs no Qt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from app.cli_report import table_lines
from model_core.headline import BOUND_NOTE
from model_core.search.pairing import Pair, Side
from model_core.search.pareto import Frontier
from model_core.search.readers import DIMENSIONS
from model_core.search.recommend import RELAXED, Answer, Constraint, Goal, Recommendation
from model_core.search.space import Space
from model_core.search.sweep import plain_columns
from model_core.search.targets import FITS
from model_core.spec.design import Design
from model_core.units import (
    BYTES,
    CHIP_SECONDS,
    SECONDS,
    format_number,
    format_quantity,
)

POINTS: Final = 12
"""Points of a frontier that are printed for people; all of them are in the JSON document."""

_SHOWN: Final[tuple[tuple[str, str], ...]] = (
    ("step", "step_s"),
    ("latency", "latency_s"),
    ("cost per token", "cost_chip_s_per_token"),
    ("per million tokens", "usd_per_million_tokens"),
    ("energy per token", "joules_per_token"),
    ("MFU", "mfu"),
    ("throughput", "tokens_per_s"),
    ("chips", "n_chips"),
    ("memory per chip", "memory_per_chip_bytes"),
)


def sweep_lines(head: dict[str, Any], space: Space, found: Sequence[Frontier]) -> Iterator[str]:
    """Yield a summary of a sweep and its frontiers."""
    size, seconds = head["designs"], head["seconds"]
    counts = (
        f": {head['valid']:,} valid, {head['usable']:,} of them fit and have a time"
        if "valid" in head
        else ""
    )
    rate = format_number(size / seconds)
    yield f"{size:,} designs in {format_quantity(seconds, SECONDS)} ({rate} a second){counts}"
    for problem in head["refused"][:1]:
        yield f"Some combinations are no design; the first: {problem['message']}"
    names = {name: label for label, name in _SHOWN}
    for frontier in found:
        yield ""
        common = ", ".join(str(value) for value in frontier.common.values())
        yield f"Frontier of {names[frontier.x]} and {names[frontier.y]}{f': {common}' if common else ''}"
        yield from _frontier_table(space, frontier)


def _frontier_table(space: Space, frontier: Frontier) -> Iterator[str]:
    axes = [axis for axis in space.axes if axis.path not in frontier.common]
    shown = [item for item in _SHOWN if item[1] in (frontier.x, frontier.y, "n_chips")]
    rows = [[*(axis.path.rpartition(".")[2] for axis in axes), *(label for label, _ in shown)]]
    points = _spread(list(range(len(frontier.numbers))), POINTS)
    for point in points:
        where = space.position(int(frontier.numbers[point]))
        labels = [axis.labels[where[axis.path]] for axis in axes]
        values = [format_quantity(float(frontier.columns[n][point]), DIMENSIONS[n]) for _, n in shown]
        rows.append([*labels, *values])
    yield from table_lines(rows, "<" * len(axes) + ">" * len(shown))
    left = len(frontier.numbers) - len(points)
    if left:
        yield f"  and {left:,} more between these"


def _spread(numbers: list[int], most: int) -> list[int]:
    """Choose at most so many, first and last among them."""
    if len(numbers) <= most:
        return numbers
    return [numbers[round(i * (len(numbers) - 1) / (most - 1))] for i in range(most)]


def frontier_document(space: Space, frontier: Frontier) -> dict[str, Any]:
    """Return a frontier as JSON data: what its designs share, its columns and its points."""
    columns = plain_columns(frontier.columns)
    points = [
        {**space.labels_of(number), **{name: column[point] for name, column in columns.items()}}
        for point, number in enumerate(frontier.numbers.tolist())
    ]
    return {"of": frontier.common, "x": frontier.x, "y": frontier.y, "points": points}


def recommendation_lines(design: Design, found: Recommendation, seconds: float) -> Iterator[str]:
    """Yield a recommendation for people."""
    goal = found.goal
    yield f"{found.designs:,} designs in {format_quantity(seconds, SECONDS)}"
    if found.best is None:
        if found.closest is not None:
            yield ""
            yield from _answer_lines("Closest", found.closest, design, goal)
        return
    yield ""
    yield from _answer_lines("Best", found.best, design, goal)
    if found.next_best is not None and found.margin is not None:
        yield ""
        yield from _answer_lines(f"Next best, {found.margin:.1%} worse", found.next_best, design, goal)
    yield ""
    yield "Constraints"
    yield from table_lines([_constraint_row(c, found) for c in found.constraints], "<<<")


def _answer_lines(title: str, answer: Answer, design: Design, goal: Goal) -> Iterator[str]:
    yield f"{title}: {goal.name} {_show(goal, answer.value)}"
    if not answer.changes:
        yield f"  {design.name} as it is"
    else:
        yield from table_lines([(c.path, c.before, "→", c.after) for c in answer.changes], "<><<")
    known = [(label, name) for label, name in _SHOWN if answer.row[name] is not None]
    texts = (f"{label} {format_quantity(answer.row[name], DIMENSIONS[name])}" for label, name in known)
    yield "  " + ", ".join(texts)
    if not answer.row["calibrated"]:
        yield f"  {BOUND_NOTE}"


def _show(goal: Goal, value: float) -> str:
    return format_quantity(value, goal.measure.dimension)


def _constraint_row(constraint: Constraint, found: Recommendation) -> tuple[str, str, str]:
    unit = next((t.measure.dimension for t in found.targets if t.text == constraint.name), BYTES)
    if constraint.name == FITS:
        reached = f"{format_quantity(constraint.value, BYTES)} of {format_quantity(constraint.bound, BYTES)}"
    else:
        reached = format_quantity(constraint.value, unit)
    if constraint.without is None:
        return constraint.name, reached, "does not bind"
    gains = f"binds: without it {_show(found.goal, constraint.without)}"
    if constraint.relaxed is not None:
        gains += f", relaxed by {RELAXED:.0%} {_show(found.goal, constraint.relaxed)}"
    return constraint.name, reached, gains


def recommendation_document(design: Design, found: Recommendation, seconds: float) -> dict[str, Any]:
    """Return a recommendation as JSON data."""
    return {
        "design": design.name,
        "goal": {"name": found.goal.name, "direction": "minimize" if found.goal.minimise else "maximize"},
        "targets": [target.text for target in found.targets],
        "designs": found.designs,
        "seconds": seconds,
        "best": _answer(found.best),
        "next_best": _answer(found.next_best),
        "margin": found.margin,
        "constraints": [
            {
                "name": c.name,
                "bound": c.bound,
                "value": c.value,
                "binds": c.binds,
                "relaxed": c.relaxed,
                "without": c.without,
            }
            for c in found.constraints
        ],
        "closest": _answer(found.closest),
        "diagnostics": [problem.to_json() for problem in found.problems],
    }


def _answer(answer: Answer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    changes = [{"path": c.path, "before": c.before, "after": c.after} for c in answer.changes]
    return {"value": answer.value, "changes": changes, "columns": answer.row}


def pair_lines(found: Pair) -> Iterator[str]:
    """Yield the servers of a pair for people."""
    yield f"{format_number(found.requests_per_s)} requests a second on {found.chips:,} chips"
    head = ("", "servers", "needed", "chips", "requests/s each", "busy", "latency", "design")
    yield from table_lines(
        [head, _side_row("prefill", found.prefill), _side_row("decode", found.decode)], "<>>>>>><"
    )
    yield ""
    rows = (
        ("time to first token", format_quantity(found.ttft_s, SECONDS)),
        ("time per token after it", format_quantity(found.tpot_s, SECONDS)),
        ("whole request", format_quantity(found.request_s, SECONDS)),
        ("cost of a request", format_quantity(found.cost_chip_s_per_request, CHIP_SECONDS)),
        ("KV cache handed over", format_quantity(found.handover_bytes, BYTES)),
        ("prefill servers per decode server", format_number(found.prefill_per_decode)),
    )
    yield from table_lines(rows, "<>")


def _side_row(name: str, side: Side) -> tuple[str, ...]:
    return (
        name,
        f"{side.servers:,}",
        format_number(side.needed),
        f"{side.chips:,}",
        format_number(side.per_server),
        f"{side.utilisation:.0%}",
        format_quantity(side.latency_s, SECONDS),
        side.design.name,
    )


def pair_document(found: Pair) -> dict[str, Any]:
    """Return a pair as JSON data."""
    return {
        "requests_per_s": found.requests_per_s,
        "chips": found.chips,
        "ttft_s": found.ttft_s,
        "tpot_s": found.tpot_s,
        "request_s": found.request_s,
        "cost_chip_s_per_request": found.cost_chip_s_per_request,
        "handover_bytes": found.handover_bytes,
        "prefill_per_decode": found.prefill_per_decode,
        "prefill": _side(found.prefill),
        "decode": _side(found.decode),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "design": side.design.name,
        "latency_s": side.latency_s,
        "step_s": side.step_s,
        "requests_per_s": side.per_server,
        "needed": side.needed,
        "servers": side.servers,
        "chips": side.chips,
        "utilisation": side.utilisation,
    }
