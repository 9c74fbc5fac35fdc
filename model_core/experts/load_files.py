"""Load statistics out of files: JSON, CSV, and the recorder of SGLang (``.pt``)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from model_core.diagnostics import Diagnostic
from model_core.experts.arrays import Floats
from model_core.experts.loads import MAX_EXPERTS, MAX_LAYERS, ExpertLoads
from model_core.experts.tables import Problems, missing, parse_json, read_text, read_torch, syntax, to_array
from model_core.spec.base import Evidence

Outcome = tuple[ExpertLoads | None, Problems]

_NAME: Final = "logical_count"
_COUNT_NAMES: Final = ("count", "load", "tokens", _NAME)


def read_loads(path: str | Path) -> Outcome:
    """Read expert loads from a file; its ending tells the format (``.pt``, ``.csv``, ``.tsv``, else JSON).

    JSON: ``{"logical_count": [layers][experts]}`` or ``[steps][layers][experts]``, or the list alone. CSV:
    one line per layer, one column per expert, or columns ``layer``, ``expert`` and ``count``. ``.pt``: what
    SGLang's expert distribution recorder writes.

    Returns:
        The loads, or ``None`` and the diagnostics with the place of what is wrong. Never raises.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix in (".pt", ".pth"):
        array, name, problems = read_torch(file, (_NAME,))
        return _loads(array, name, file.stem, problems)
    text, problems = read_text(file)
    if text is None:
        return None, problems
    array, problems = _from_csv(text) if suffix in (".csv", ".tsv") else _from_json(text)
    return _loads(array, _NAME, file.stem, problems)


def _from_json(text: str) -> tuple[Floats | None, Problems]:
    document, problems = parse_json(text)
    if problems:
        return None, problems
    values = document
    if isinstance(document, dict):
        if _NAME not in document:
            return None, (missing((_NAME,), list(document)),)
        values = document[_NAME]
    return to_array(values, _NAME)


def _loads(array: Floats | None, name: str, title: str, problems: Problems) -> Outcome:
    """Check the numbers and sum them over steps."""
    if array is None:
        return None, problems
    found = _fault(array, name)
    if found is not None:
        return None, (found,)
    steps = array if array.ndim == 3 and len(array) > 1 else None
    counts = array.sum(axis=0) if array.ndim == 3 else array
    return ExpertLoads(counts, title, Evidence.MEASURED, steps), ()


def _fault(array: Floats, name: str) -> Diagnostic | None:
    if array.ndim not in (2, 3) or not array.size:
        return Diagnostic("loads_wrong_shape", "", {"place": name, "found": _shape_text(array)})
    if array.shape[-2] > MAX_LAYERS or array.shape[-1] > MAX_EXPERTS:
        values = {"place": name, "layers": array.shape[-2], "experts": array.shape[-1]}
        return Diagnostic("loads_too_many", "", values | {"most": f"{MAX_LAYERS:,} x {MAX_EXPERTS:,}"})
    wrong = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if wrong.size:
        place = "".join(f"[{index}]" for index in wrong[0])
        value = f"{array[tuple(wrong[0])]:g}"
        return Diagnostic("loads_not_number", "", {"place": f"{name}{place}", "found": value})
    return None


def _shape_text(array: Floats) -> str:
    return " x ".join(str(size) for size in array.shape) or "1"


def _from_csv(text: str) -> tuple[Floats | None, Problems]:
    try:
        reader = csv.reader(StringIO(text), delimiter=_delimiter(text))
        lines = [
            (reader.line_num, cells)
            for cells in reader
            if any(cell.strip() for cell in cells) and not cells[0].lstrip().startswith("#")
        ]
    except csv.Error as error:
        return None, (syntax("CSV", str(error)),)
    if not lines:
        return None, (syntax("line 1", "the file is empty"),)
    header = [cell.strip().lower() for cell in lines[0][1]]
    if _is_number(header[0]):
        return _wide(lines, 0)
    if {"layer", "expert"} <= set(header) and any(name in header for name in _COUNT_NAMES):
        return _long(lines[1:], header)
    return _wide(lines[1:], 1 if header[0] == "layer" else 0)


def _delimiter(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return max(",;\t", key=first.count)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _wide(lines: Sequence[tuple[int, list[str]]], skipped: int) -> tuple[Floats | None, Problems]:
    """Read one line per layer."""
    rows: list[list[float]] = []
    for number, cells in lines:
        values = cells[skipped:]
        while values and not values[-1].strip():
            values = values[:-1]
        if rows and len(values) != len(rows[0]):
            place = {"place": f"line {number}", "found": len(values), "wanted": len(rows[0])}
            return None, (Diagnostic("loads_ragged", "", place),)
        row, fault = _numbers(values, number, skipped)
        if fault is not None:
            return None, (fault,)
        rows.append(row)
    if not rows:
        return None, (syntax("line 1", "the file is empty"),)
    return np.array(rows), ()


def _numbers(cells: Sequence[str], line: int, skipped: int) -> tuple[list[float], Diagnostic | None]:
    for column, cell in enumerate(cells, skipped + 1):
        if not _is_number(cell):
            values = {"place": f"line {line}, column {column}", "found": repr(cell[:40])}
            return [], Diagnostic("loads_not_number", "", values)
    return [float(cell) for cell in cells], None


def _long(lines: Sequence[tuple[int, list[str]]], header: list[str]) -> tuple[Floats | None, Problems]:
    """Read one line per layer and expert; what is not listed has no load, what is repeated adds up."""
    columns = [header.index("layer"), header.index("expert")]
    columns.append(next(header.index(name) for name in _COUNT_NAMES if name in header))
    entries: list[tuple[int, int, float]] = []
    for number, cells in lines:
        entry = _entry(cells, columns)
        if entry is None:
            reason: dict[str, Any] = {"place": f"line {number}", "found": repr(",".join(cells)[:40])}
            return None, (Diagnostic("loads_not_number", "", reason),)
        entries.append(entry)
    if not entries:
        return None, (syntax("line 2", "the file is empty"),)
    counts = np.zeros((max(e[0] for e in entries) + 1, max(e[1] for e in entries) + 1))
    for layer, expert, count in entries:
        counts[layer, expert] += count
    return counts, ()


def _entry(cells: list[str], columns: list[int]) -> tuple[int, int, float] | None:
    try:
        layer, expert, count = (cells[column].strip() for column in columns)
        place = int(layer), int(expert)
        value = float(count)
    except (ValueError, IndexError):
        return None
    inside = 0 <= place[0] < MAX_LAYERS and 0 <= place[1] < MAX_EXPERTS
    return (*place, value) if inside else None
