"""Numbers out of files, as nested lists or arrays, with the place of whatever is wrong."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from model_core.diagnostics import Diagnostic
from model_core.experts.arrays import Floats
from model_core.experts.torch_file import TensorRecord, TorchFile, TorchFileError, UnsafePickleError
from model_core.units import BYTES, format_quantity

MAX_TEXT_BYTES: Final = 128 * 2**20
MAX_TORCH_BYTES: Final = 2 * 2**30

Problems = tuple[Diagnostic, ...]


def read_text(path: Path) -> tuple[str | None, Problems]:
    """Read a text file of bounded size."""
    problem = file_problem(path, MAX_TEXT_BYTES)
    if problem is not None:
        return None, (problem,)
    try:
        return path.read_text(encoding="utf-8-sig"), ()
    except UnicodeDecodeError as error:
        return None, (syntax(f"byte {error.start + 1}", "it is not UTF-8 text"),)
    except OSError as error:
        return None, (_unreadable(path, error),)


def file_problem(path: Path, limit: int) -> Diagnostic | None:
    """Tell what keeps a file from being read: it is missing, no regular file, or too large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            values = {"file": str(path), "reason": "it is not a regular file"}
            return Diagnostic("file_unreadable", "", values)
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        return _unreadable(path, error)
    if status.st_size > limit:
        values = {"size": format_quantity(status.st_size, BYTES), "limit": format_quantity(limit, BYTES)}
        return Diagnostic("loads_too_large", "", values)
    return None


def _unreadable(path: Path, error: Exception) -> Diagnostic:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return Diagnostic("file_unreadable", "", {"file": str(path), "reason": reason})


def syntax(place: str, reason: str) -> Diagnostic:
    """Say that a file cannot be understood at a place."""
    return Diagnostic("loads_syntax", "", {"place": place, "reason": reason})


def parse_json(text: str) -> tuple[Any, Problems]:
    """Parse JSON."""
    try:
        return json.loads(text), ()
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}" if text.strip() else "the file is empty"
        return None, (syntax(f"line {error.lineno}, column {error.colno}", reason),)
    except (RecursionError, ValueError):
        return None, (syntax("line 1", "it is nested too deeply, or a number is too long"),)


def read_torch(path: Path, names: Sequence[str]) -> tuple[Floats | None, str, Problems]:
    """Read the first of some tensors that a ``torch.save`` file holds.

    Returns:
        The values, the name found, and what is wrong.
    """
    problem = file_problem(path, MAX_TORCH_BYTES)
    if problem is not None:
        return None, "", (problem,)
    try:
        file = TorchFile(path)
    except UnsafePickleError as error:
        return None, "", (Diagnostic("loads_unsafe", "", {"place": error.place, "name": error.name}),)
    except TorchFileError as error:
        return None, "", (syntax(error.place, error.reason),)
    except OSError as error:
        return None, "", (_unreadable(path, error),)
    try:
        return _tensor(file, names)
    except TorchFileError as error:
        return None, "", (syntax(error.place, error.reason),)
    finally:
        file.close()


def _tensor(file: TorchFile, names: Sequence[str]) -> tuple[Floats | None, str, Problems]:
    content = file.content if isinstance(file.content, dict) else {names[0]: file.content}
    name = next((n for n in names if n in content), names[0])
    found = content.get(name)
    if isinstance(found, TensorRecord):
        return file.array(found), name, ()
    if isinstance(found, list):
        array, problems = to_array(found, name)
        return array, name, problems
    return None, name, (missing(names, [str(key) for key in content]),)


def missing(names: Sequence[str], found: Sequence[str]) -> Diagnostic:
    """Say that none of some entries is in a file."""
    listed = ", ".join(found[:8]) or "—"
    return Diagnostic("loads_missing", "", {"names": ", ".join(names), "found": listed[:200]})


def to_array(values: Any, name: str) -> tuple[Floats | None, Problems]:
    """Turn nested lists into an array of numbers; names the place of the first value that is none."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError):
        array = np.array(None)
    if array.dtype.kind in "iuf" and array.size:
        return array.astype(np.float64), ()
    return None, (_first_fault(values, name),)


def _first_fault(values: Any, name: str) -> Diagnostic:
    """Find what keeps nested lists from being a table of numbers."""
    if not isinstance(values, list) or not values:
        return Diagnostic("loads_not_number", "", {"place": name, "found": _shown(values)})
    shape: list[int] = []
    level: Any = values
    while isinstance(level, list) and level:
        shape.append(len(level))
        level = level[0]
    fault = _fault_at(values, name, shape)
    return fault or Diagnostic("loads_not_number", "", {"place": name, "found": _shown(values)})


def _fault_at(values: Any, place: str, shape: list[int]) -> Diagnostic | None:
    if not shape:
        is_number = isinstance(values, int | float) and not isinstance(values, bool) and math.isfinite(values)
        return (
            None
            if is_number
            else Diagnostic("loads_not_number", "", {"place": place, "found": _shown(values)})
        )
    if not isinstance(values, list):
        return Diagnostic("loads_not_number", "", {"place": place, "found": _shown(values)})
    if len(values) != shape[0]:
        return Diagnostic("loads_ragged", "", {"place": place, "found": len(values), "wanted": shape[0]})
    faults = (_fault_at(value, f"{place}[{i}]", shape[1:]) for i, value in enumerate(values))
    return next((fault for fault in faults if fault is not None), None)


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "[]" if value == [] else "[…]" if isinstance(value, list) else "{…}"
    return json.dumps(value, ensure_ascii=False)[:40]
