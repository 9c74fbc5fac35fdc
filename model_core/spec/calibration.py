"""A calibration: efficiency factors of one chip under one software stack, and the evidence behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from model_core.spec.base import Spec
from model_core.units import Ratio

AUTO = "auto"
NONE = "none"

CalibrationUse = Literal["inference", "training"]
Kind = Literal["share", "ratio", "size", "seconds"]
_DOMAINS: dict[Kind, str] = {
    "share": "above 0 and at most 1",
    "ratio": "from 0 to 1",
    "size": "at least 1",
    "seconds": "at least 0",
}


@dataclass(frozen=True, slots=True)
class Factor:
    """One efficiency factor of the model: its kind, the value of an ideal machine, and its meaning."""

    kind: Kind
    ideal: float
    meaning: str


FACTORS: dict[str, Factor] = {
    "matmul_share": Factor("share", 1, "share of the arithmetic peak that large products sustain"),
    "row_tile": Factor("size", 1, "rows of a product are padded to a multiple of this"),
    "column_tile": Factor("size", 1, "columns of a product are padded to a multiple of this"),
    "depth_tile": Factor("size", 1, "the contracted size is padded to a multiple of this"),
    "fill_rows": Factor("size", 1, "rows that fill the pipeline: with fewer, a product is no faster"),
    "hbm_share": Factor("share", 1, "share of the memory bandwidth when weights and activations move"),
    "kv_share": Factor("share", 1, "share of the memory bandwidth when the KV cache is read"),
    "kv_rereads": Factor("ratio", 0, "share of the query heads of a key head that read the cache again"),
    "activation_traffic": Factor("ratio", 0, "share of the activations that pass through memory"),
    "torus_share": Factor("share", 1, "share of the bandwidth of torus links in collectives"),
    "switch_share": Factor("share", 1, "share of the NVLink bandwidth in collectives"),
    "network_share": Factor("share", 1, "share of the bandwidth of network cards in collectives"),
    "torus_hop_s": Factor("seconds", 0, "cost of a hop on a torus beside the latency of the link"),
    "collective_start_s": Factor("seconds", 0, "cost of starting a collective"),
    "network_start_s": Factor("seconds", 0, "what starting a collective costs more across nodes"),
    "dispatch_start_s": Factor("seconds", 0, "cost of starting a dispatch to experts or a combine"),
    "hidden_share": Factor("ratio", 1, "share of a collective that can be hidden behind its product"),
    "layer_s": Factor("seconds", 0, "fixed cost of a layer: kernel starts, norms and the like"),
    "step_s": Factor("seconds", 0, "fixed cost of a step: logits, sampling and the host"),
}
"""The whole efficiency model; the ideal values give the bound."""


class CalibratedFactor(Spec):
    """The value of one factor: fitted between bounds, or fixed for a stated reason."""

    name: str
    value: float
    fitted: bool = False
    low: float | None = Field(default=None, description="Lower bound of the fit")
    high: float | None = Field(default=None, description="Upper bound of the fit")
    source: str = Field(description="Why it has this value, or what bounds it")

    @model_validator(mode="after")
    def _is_physical(self) -> Self:
        factor = FACTORS.get(self.name)
        if factor is None:
            raise ValueError(f"there is no efficiency factor {self.name}; known: {', '.join(FACTORS)}")
        least = 1.0 if factor.kind == "size" else 0.0
        most = 1.0 if factor.kind in ("share", "ratio") else float("inf")
        if not least <= self.value <= most or (factor.kind == "share" and self.value == 0):
            raise ValueError(f"{self.name} = {self.value} is not {_DOMAINS[factor.kind]}")
        return self


class CalibrationGroup(Spec):
    """The rows of one table that were used, and how far the fit stays from them."""

    name: str
    rows: int = Field(ge=1)
    mean_error: float = Field(ge=0, description="Mean of the absolute relative errors")


class CalibrationSpec(Spec):
    """Efficiency factors of a chip under a software stack; factors that are not named are ideal."""

    name: str = Field(max_length=200)
    chip: str = Field(description="Name of the chip")
    stack: str = Field(description="Software that was measured")
    use: CalibrationUse = Field(default="inference", description="What was measured: inference or training")
    source: str = Field(description="Where the measurements were published")
    date: str = Field(description="Date of the measurements")
    factors: tuple[CalibratedFactor, ...]
    groups: tuple[CalibrationGroup, ...] = ()
    error_band: Ratio = Field(description="Relative error to expect of a prediction")

    @model_validator(mode="after")
    def _factors_differ(self) -> Self:
        names = [factor.name for factor in self.factors]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the efficiency factor {twice} is given twice")
        return self

    def factor(self, name: str) -> float:
        """Return the value of a factor, ideal where the calibration does not name it."""
        found = next((entry.value for entry in self.factors if entry.name == name), None)
        return FACTORS[name].ideal if found is None else found
