"""The commands ``sweep``, ``recommend`` and ``pair``. They need no Qt."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np

import presets
from app.cli_design import PARTS, open_design, unwritable
from app.cli_search_text import (
    frontier_document,
    pair_document,
    pair_lines,
    recommendation_document,
    recommendation_lines,
    sweep_lines,
)
from model_core.diagnostics import Diagnostic
from model_core.search.axes import Axis
from model_core.search.axis_text import HOW_TO, PresetPart, parse_axis
from model_core.search.pairing import pair
from model_core.search.pareto import Frontier, frontiers, streamed_frontiers
from model_core.search.readers import COLUMNS
from model_core.search.recommend import Goal, mixed_calibration, recommend
from model_core.search.space import Space, make_space
from model_core.search.sweep import MOST_DESIGNS, Chunk, SweepResult, plain_columns, stream, sweep
from model_core.search.targets import MEASURES, Target, measure_named, parse_target
from model_core.spec.design import Design
from model_core.spec.edits import field_at, unknown_field
from model_core.spec.io import write_design

COMMANDS: Final = {
    "sweep": "evaluate all combinations of the values of some fields",
    "recommend": "find the best design that meets some targets",
    "pair": "size prefill and decode servers for a rate of requests",
}
FRONTIERS: Final = ("cost_chip_s_per_token", "mfu")
Findings = tuple[Diagnostic, ...]


def add_search_options(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the options of one of `COMMANDS`, beside DESIGN and ``--set``."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    if name == "pair":
        parser.add_argument(
            "decode", metavar="DECODE", help="the decode design; DESIGN is the prefill design"
        )
        parser.add_argument("--rate", metavar="N", type=_rate, default=1.0, help="requests a second")
        return
    parser.add_argument(
        "--axis",
        metavar="PATH=VALUES",
        action="append",
        default=[],
        required=name == "sweep",
        help=f"{HOW_TO} Parts take names of presets, with * for any. May be repeated.",
    )
    if name == "sweep":
        parser.add_argument("--pareto", action="store_true", help="print the frontiers only")
        parser.add_argument("--csv", metavar="FILE", help="write all designs there; - is standard output")
        return
    parser.add_argument(
        "--target",
        metavar="TARGET",
        action="append",
        default=[],
        help="for instance tpot<=30ms; may be repeated",
    )
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--minimize", "--minimise", metavar="NAME", help=f"one of {', '.join(MEASURES)}")
    goal.add_argument("--maximize", "--maximise", metavar="NAME", help="for instance batch or context")
    parser.add_argument("--fix", metavar="PATH", action="append", default=[], help="keep a field as it is")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the best design there")


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of requests a second above 0")
    return rate


def run_search(name: str, design: Design, options: argparse.Namespace) -> tuple[bool, Findings]:
    """Run one of `COMMANDS` and write its output.

    Returns:
        Whether anything was written to standard output, and what was found wrong.
    """
    runs: dict[str, Callable[[Design, argparse.Namespace], tuple[bool, Findings]]] = {
        "sweep": _sweep,
        "recommend": _recommend,
        "pair": _pair,
    }
    return runs[name](design, options)


def read_axes(design: Design, texts: Iterable[str]) -> tuple[list[Axis], Findings]:
    """Read axes as typed; parts may name presets."""
    parts = {path: PresetPart(presets.names(kind), load) for path, (kind, load) in PARTS.items()}
    axes: list[Axis] = []
    found: list[Diagnostic] = []
    for text in texts:
        axis, problems = parse_axis(design, text, parts)
        found += problems
        if axis is not None:
            axes.append(axis)
    return axes, tuple(found)


def _sweep(design: Design, options: argparse.Namespace) -> tuple[bool, Findings]:
    axes, found = read_axes(design, options.axis)
    space, problems = make_space(design, axes)
    if found or space is None:
        return False, found or problems
    if options.csv and not options.pareto:
        return _to_csv(options.csv, axes, lambda: _all_chunks(space), space)
    head: dict[str, Any] = {
        "design": design.name,
        "axes": [{"path": a.path, "values": [a.plain(i) for i in range(len(a.values))]} for a in axes],
        "designs": space.size,
    }
    start = time.perf_counter()
    if options.pareto and space.size > MOST_DESIGNS:
        lines = streamed_frontiers(stream(space, progress=_progress()), space, FRONTIERS)
        head |= {"seconds": time.perf_counter() - start, "refused": []}
        return _frontiers_out(head, space, lines, options, axes)
    result, found = sweep(space, progress=_progress())
    if result is None:
        return False, found
    head |= {
        "valid": int(result.columns["valid"].sum()),
        "usable": int(result.usable.sum()),
        "seconds": time.perf_counter() - start,
        "refused": [problem.to_json() for problem in result.refused],
    }
    if options.json and not options.pareto:
        _write_rows(head, _rows_of(result, axes), sys.stdout)
        return True, mixed_calibration(result)
    lines = tuple(frontier for y in FRONTIERS for frontier in frontiers(result, y))
    is_written, found = _frontiers_out(head, space, lines, options, axes)
    return is_written, (*found, *mixed_calibration(result))


def _frontiers_out(
    head: dict[str, Any],
    space: Space,
    lines: Sequence[Frontier],
    options: argparse.Namespace,
    axes: Sequence[Axis],
) -> tuple[bool, Findings]:
    if options.csv:
        return _to_csv(options.csv, axes, lambda: _points(lines), space)
    if options.json:
        document = {**head, "frontiers": [frontier_document(space, line) for line in lines]}
        sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in sweep_lines(head, space, lines))
    return True, ()


def _write_rows(head: dict[str, Any], rows: Iterator[dict[str, Any]], out: TextIO) -> None:
    """Write one JSON document row by row, so that it is never held as a whole."""
    out.write(json.dumps(head, indent=2, allow_nan=False).removesuffix("\n}"))
    out.write(',\n  "rows": [')
    separator = "\n    "
    for row in rows:
        out.write(separator + json.dumps(row, allow_nan=False))
        separator = ",\n    "
    out.write("\n  ]\n}\n")


def _rows_of(result: SweepResult, axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    names = [axis.path for axis in axes]
    for values in zip(*_plain_columns(result.space, axes, _whole(result)), strict=True):
        yield dict(zip([*names, *COLUMNS], values, strict=True))


def _whole(result: SweepResult) -> Chunk:
    return Chunk(np.arange(result.space.size), result.columns)


def _points(found: Sequence[Frontier]) -> Iterator[Chunk]:
    """Yield the designs that are on any of some frontiers, each once."""
    seen = np.zeros(0, np.int64)
    for frontier in found:
        new = np.flatnonzero(~np.isin(frontier.numbers, seen))
        seen = np.concatenate((seen, frontier.numbers))
        yield Chunk(frontier.numbers[new], {name: c[new] for name, c in frontier.columns.items()})


def _plain_columns(space: Space, axes: Sequence[Axis], chunk: Chunk) -> Iterator[list[Any]]:
    """Yield the values along each axis, then each column, as lists of plain data."""
    strides = space.strides
    for axis in axes:
        values = [axis.plain(index) for index in range(len(axis.values))]
        yield [values[i] for i in chunk.numbers // strides[axis.path] % len(values)]
    yield from plain_columns(chunk.columns).values()


def _all_chunks(space: Space) -> Iterable[Chunk]:
    """Return all designs in order, or as they come where they are too many to keep."""
    if space.size > MOST_DESIGNS:
        return stream(space, progress=_progress())
    result, _ = sweep(space, progress=_progress())
    return [] if result is None else [_whole(result)]


def _to_csv(
    file: str, axes: Sequence[Axis], chunks: Callable[[], Iterable[Chunk]], space: Space
) -> tuple[bool, Findings]:
    try:
        if file == "-":
            _write_csv(sys.stdout, axes, chunks(), space)
        else:
            with Path(file).open("w", encoding="utf-8", newline="") as out:
                _write_csv(out, axes, chunks(), space)
    except OSError as error:
        if file == "-":
            raise
        return False, (unwritable(file, error),)
    return True, ()


def _write_csv(out: TextIO, axes: Sequence[Axis], chunks: Iterable[Chunk], space: Space) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(axis.path for axis in axes), *COLUMNS])
    for chunk in chunks:
        writer.writerows(zip(*_plain_columns(space, axes, chunk), strict=True))


def _progress() -> Callable[[int, int], None] | None:
    """Report on a terminal how far a search is; nothing where messages go to a file."""
    if not sys.stderr.isatty():
        return None
    last = [time.perf_counter()]

    def report(done: int, total: int) -> None:
        now = time.perf_counter()
        if now - last[0] > 0.2 or (done == total and now - last[0] > 0):
            last[0] = now
            end = "\r\033[K" if done == total else ""
            sys.stderr.write(f"\r{done:,} of {total:,} designs{end}")
            sys.stderr.flush()

    return report


def _recommend(design: Design, options: argparse.Namespace) -> tuple[bool, Findings]:
    axes, found = read_axes(design, options.axis)
    goal, problems = _goal(design, options)
    targets: list[Target] = []
    for text in options.target:
        target, wrong = parse_target(text, design.workload.phase)
        problems += wrong
        targets += [target] if target is not None else []
    problems += tuple(unknown_field(design, path) for path in options.fix if field_at(design, path) is None)
    if found or problems or goal is None:
        return False, (*found, *problems)
    start = time.perf_counter()
    result = recommend(design, targets, goal, options.fix, axes, progress=_progress())
    seconds = time.perf_counter() - start
    if options.output is not None and result.best is not None:
        try:
            write_design(result.best.design, options.output)
        except OSError as error:
            return False, (unwritable(options.output, error),)
    if options.json:
        document = recommendation_document(design, result, seconds)
        sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in recommendation_lines(design, result, seconds))
    return True, result.problems


def _goal(design: Design, options: argparse.Namespace) -> tuple[Goal | None, Findings]:
    name = options.maximize or options.minimize or "cost"
    measure, problems = measure_named(name, design.workload.phase)
    return (None if measure is None else Goal(name, options.maximize is None)), problems


def _pair(design: Design, options: argparse.Namespace) -> tuple[bool, Findings]:
    decode, found = open_design(options.decode, options.assignments)
    if decode is None:
        return False, found
    result, found = pair(design, decode, options.rate)
    if result is None:
        return False, found
    if options.json:
        sys.stdout.write(json.dumps(pair_document(result), indent=2, allow_nan=False) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in pair_lines(result))
    return True, ()
