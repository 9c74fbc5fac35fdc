"""The commands ``reproduce`` and ``calibrate``: published figures beside ours, and refits. They need no Qt.

Fitting needs scipy, which takes long to import: it is imported where it is used.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

import presets
from app.cli_report import table_lines
from model_core.diagnostics import Diagnostic
from model_core.published.io import Outcome as Rows
from model_core.published.io import read_published
from model_core.spec.errors import diagnostics_of
from model_core.units import format_number

if TYPE_CHECKING:
    from model_core.calibrate import Fit
    from model_core.reproduce import ReproducedRow

Output = tuple[str | None, tuple[Diagnostic, ...]]
_TRUSTED: Final = {True: "fitted", False: ""}


def add_reproduce_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``reproduce``."""
    parser.add_argument("--only", metavar="ID", help="rows whose id is or begins with this")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_calibrate_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``calibrate``."""
    names = ", ".join(presets.published_names())
    parser.add_argument(
        "rows", metavar="ROWS", help=f"a file of measured rows, or one that comes along: {names}"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the calibration there")
    parser.add_argument("--json", action="store_true", help="print the calibration and its residuals as JSON")


def reproduce_output(options: argparse.Namespace) -> Output:
    """Return published figures beside ours as text."""
    from model_core.reproduce import reproduce

    files = (presets.load_published(name) for name in presets.published_names())
    rows = list(reproduce(files, presets, options.only))
    if not rows:
        known = ", ".join(presets.published_names())
        return None, (Diagnostic("row_unknown", "", {"id": options.only, "known": known}),)
    if options.json:
        return json.dumps([row.to_json() for row in rows], indent=2, allow_nan=False) + "\n", ()
    return "\n".join(_table(rows)) + "\n", ()


def _table(rows: Iterable[ReproducedRow]) -> Iterator[str]:
    head = ("id", "published", "ours", "error", "unit", "evidence", "", "quantity")
    yield from table_lines([head, *map(_cells, rows)], "<>>><<<<")


def _cells(row: ReproducedRow) -> tuple[str, ...]:
    published, ours, error = row.row.value, row.predicted.number, row.error
    return (
        row.row.id,
        "" if published is None else format_number(published, 4),
        _curve_size(row) if ours is None else format_number(ours, 4),
        "" if error is None else f"{error:+.1%}",
        row.row.unit,
        str(row.predicted.evidence),
        _TRUSTED[row.fitted],
        row.row.quantity,
    )


def _curve_size(row: ReproducedRow) -> str:
    curve = row.predicted.curve
    return "" if curve is None else f"{sum(len(line.points) for line in curve.series)} points"


def calibrate_output(options: argparse.Namespace) -> Output:
    """Fit a calibration, write it where the options say, and return what to print."""
    from model_core.calibrate import calibration_document, fit_lines

    fit, found = _fitted(options.rows)
    if fit is not None and options.output is not None:
        found = _written(fit, options.output)
    if fit is None or found:
        return None, found
    if options.json:
        return json.dumps(calibration_document(fit), indent=2, allow_nan=False) + "\n", ()
    return "\n".join(fit_lines(fit)) + "\n", ()


def _fitted(name: str) -> tuple[Fit | None, tuple[Diagnostic, ...]]:
    from model_core.calibrate import FitError, fit_file

    file, found = _rows(name)
    if file is None:
        return None, found
    try:
        return fit_file(file, presets), ()
    except presets.UnknownPresetError as error:
        values = {"name": error.name, "nearest": ", ".join(error.nearest)}
        return None, (Diagnostic("preset_unknown", "rows", values),)
    except ValidationError as error:
        return None, diagnostics_of(error, "rows")
    except AttributeError as error:
        reason = f"there is no field {error} in a design"
        return None, (Diagnostic("fit_impossible", "rows", {"reason": reason}),)
    except FitError as error:
        return None, (Diagnostic("fit_impossible", "", {"reason": str(error)}),)


def _written(fit: Fit, path: Path) -> tuple[Diagnostic, ...]:
    """Write a calibration file; return why not, or nothing."""
    from model_core.calibrate import calibration_text

    try:
        path.write_text(calibration_text(fit), encoding="utf-8")
    except OSError as error:
        values = {"file": str(path), "reason": (error.strerror or str(error)).lower()}
        return (Diagnostic("file_unwritable", "", values),)
    return ()


def _rows(name: str) -> Rows:
    if name in presets.published_names():
        return presets.load_published(name), ()
    return read_published(name)
