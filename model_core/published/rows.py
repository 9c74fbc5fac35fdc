"""The format of a file of published figures: rows with their source, and the conditions they hold under."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from model_core.spec.base import Spec
from model_core.spec.calibration import CalibratedFactor
from model_core.spec.model import ModelSpec


class Reading(Spec):
    """One number of the evaluation of a preset design with some fields changed, times ``scale``."""

    design: str
    set: dict[str, Any] = Field(default_factory=dict)
    key: str = "latency_s"
    scale: float = 1.0


class Request(Spec):
    """A batch of requests answered from the first input token to the last output token.

    The first output token comes from the prefill; each further one takes a decode step. ``nodes`` and
    ``chips_per_node`` replace those of the preset cluster; with ``pipeline`` each node is a stage.
    """

    model: str
    cluster: str
    batch: int
    input_length: int
    output_length: int
    nodes: int | None = None
    chips_per_node: int | None = None
    pipeline: bool = False
    prefill_microbatches: int = 1
    plan: dict[str, Any] = Field(default_factory=dict)


class Computation(Spec):
    """A number or curve that takes more than one evaluation: a named computation with its arguments."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


Quantity = Literal["output_tok_s", "output_tok_s_per_chip", "latency_s"]


class PublishedRow(Spec):
    """One published figure. Exactly one kind of condition says how the product computes it.

    value: as published, in ``unit``; empty for a curve whose points are not printed. uncertainty: relative,
    of the published figure. fit: a calibration may be fitted to it. fitted: one that comes with the product was. rests_on: rows of the same measurements;
    this one counts as fitted where all of them are.
    """

    id: str
    group: str = ""
    quantity: str
    unit: str = ""
    value: float | None = None
    uncertainty: float = 0.0
    source: str = ""
    fit: bool = False
    fitted: bool = False
    rests_on: tuple[str, ...] = ()
    reading: Reading | None = None
    ratio: tuple[Reading, Reading] | None = None
    total: tuple[Reading, ...] = ()
    request: Request | None = None
    computation: Computation | None = None

    @model_validator(mode="after")
    def _has_one_condition(self) -> Self:
        kinds = (self.reading, self.ratio, self.total, self.request, self.computation)
        if sum(bool(kind) for kind in kinds) != 1:
            raise ValueError(f"{self.id}: give one of reading, ratio, total, request and computation")
        return self


class CalibrationSetup(Spec):
    """What a calibration is of, and its factors: fixed ones, and fitted ones with bounds and a start."""

    name: str
    chip: str
    stack: str
    date: str
    factors: tuple[CalibratedFactor, ...]


class PublishedFile(Spec):
    """Figures of one source; ``plan`` and ``models`` are shared by its requests, ``notes`` say what they rest on."""

    title: str
    source: str
    notes: str = ""
    plan: dict[str, Any] = Field(default_factory=dict)
    models: dict[str, ModelSpec] = Field(default_factory=dict)
    calibration: CalibrationSetup | None = None
    rows: tuple[PublishedRow, ...]

    @model_validator(mode="after")
    def _ids_differ(self) -> Self:
        seen: set[str] = set()
        for row in self.rows:
            if row.id in seen:
                raise ValueError(f"the row {row.id} is given twice")
            seen.add(row.id)
        return self
