"""Rows that a calibration is fitted to, as sums and quotients of the latencies of designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from model_core.published.conditions import Library, design_of, request_designs
from model_core.published.rows import PublishedFile, PublishedRow
from model_core.spec.design import Design


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured latency in seconds, or a quotient of two: the sum ``over`` by the sum ``under``.

    ``uncertainty``: relative, of the published figure.
    """

    id: str
    group: str
    measured: float
    uncertainty: float
    over: tuple[Design, ...]
    under: tuple[Design, ...] = ()


def measurements(file: PublishedFile, library: Library) -> Iterator[Measurement]:
    """Yield the rows of a file that a calibration may be fitted to."""
    for row in file.rows:
        if row.fit and row.value is not None:
            yield _measurement(row, row.value, file, library)


def _measurement(row: PublishedRow, value: float, file: PublishedFile, library: Library) -> Measurement:
    group = row.group or row.id
    if row.ratio is not None:
        over, under = (design_of(reading, library) for reading in row.ratio)
        return Measurement(row.id, group, value, row.uncertainty, (over,), (under,))
    if row.request is not None:
        designs = tuple(request_designs(row, row.request, file, library))
        return Measurement(row.id, group, _seconds(row, value, designs[0]), row.uncertainty, designs)
    readings = row.total or ((row.reading,) if row.reading is not None else ())
    designs = tuple(design_of(reading, library) for reading in readings)
    return Measurement(row.id, group, value, row.uncertainty, designs)


def _seconds(row: PublishedRow, value: float, prefill: Design) -> float:
    """Turn a throughput of output tokens into the latency of the batch."""
    if row.request is None or not row.quantity.startswith("output_tok_s"):
        return value
    tokens = row.request.batch * row.request.output_length
    chips = prefill.cluster.n_chips if row.quantity.endswith("per_chip") else 1
    return tokens / (value * chips)
