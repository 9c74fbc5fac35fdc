"""Every published row, recomputed by the same evaluation that the window shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from model_core.evaluate import evaluate
from model_core.published.conditions import Library, request_designs
from model_core.published.rows import PublishedFile, PublishedRow
from model_core.reproduce.computations import COMPUTATIONS
from model_core.reproduce.readings import read, value_of
from model_core.reproduce.values import Value, combined


@dataclass(frozen=True, slots=True)
class ReproducedRow:
    """A published figure beside ours; a curve has points and no single value.

    ``fitted``: the calibration was fitted to this figure, so that it is no test of the model.
    """

    row: PublishedRow
    source: str
    predicted: Value
    fitted: bool

    @property
    def error(self) -> float | None:
        """Relative error of the prediction."""
        published, ours = self.row.value, self.predicted.number
        return None if published is None or ours is None else ours / published - 1.0

    def to_json(self) -> dict[str, Any]:
        """Return what ``meshwright reproduce --json`` prints for the row."""
        found: dict[str, Any] = {
            "id": self.row.id,
            "source": self.source,
            "quantity": self.row.quantity,
            "unit": self.row.unit,
            "published": self.row.value,
            "predicted": self.predicted.number,
            "error": self.error,
            "evidence": str(self.predicted.evidence),
            "fitted": self.fitted,
            "error_band": self.predicted.error_band,
        }
        if self.predicted.curve is not None:
            found["curve"] = self.predicted.curve.to_json()
        return found


def reproduce(
    files: Iterable[PublishedFile], library: Library, only: str | None = None
) -> Iterator[ReproducedRow]:
    """Yield published rows with their predictions.

    Args:
        files: published rows.
        library: where the presets that they name come from.
        only: an id, or the beginning of ids; all rows where it is empty.
    """
    for file in files:
        fitted = {row.id for row in file.rows if row.fit}
        for row in file.rows:
            if only and not row.id.startswith(only):
                continue
            is_fitted = (
                row.fitted or row.id in fitted or (bool(row.rests_on) and fitted.issuperset(row.rests_on))
            )
            source = ", ".join(filter(None, (file.source, row.source)))
            yield ReproducedRow(row, source, _predicted(row, file, library), is_fitted)


def _predicted(row: PublishedRow, file: PublishedFile, library: Library) -> Value:
    if row.reading is not None:
        return read(row.reading, library)
    if row.ratio is not None:
        over, under = (read(reading, library) for reading in row.ratio)
        return combined(over.known / under.known, (over, under))
    if row.total:
        parts = [read(reading, library) for reading in row.total]
        return combined(sum(part.known for part in parts), parts)
    if row.request is not None:
        return _answered(row, file, library)
    if row.computation is None:
        raise ValueError(f"{row.id} has no condition")
    return COMPUTATIONS[row.computation.name](library, **row.computation.arguments)


def _answered(row: PublishedRow, file: PublishedFile, library: Library) -> Value:
    """Predict the latency or the throughput of a request."""
    if row.request is None:
        raise ValueError(f"{row.id} is no request")
    designs = tuple(request_designs(row, row.request, file, library))
    parts = [value_of(evaluate(design), "latency_s") for design in designs]
    seconds = sum(part.known for part in parts)
    if row.quantity == "latency_s":
        return combined(seconds, parts)
    tokens = row.request.batch * row.request.output_length
    chips = designs[0].cluster.n_chips if row.quantity == "output_tok_s_per_chip" else 1
    return combined(tokens / seconds / chips, parts)
