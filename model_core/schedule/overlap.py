"""Overlap inside a pair of forward and backward chunks: two streams, and SMs shared between them.

A chunk's layers are cut into attention, dispatch, MLP and combine; of the backward, attention and MLP
are split into input and weights. Computation and communication each run in the order of DSV3 Figure 4.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from model_core.schedule.engine import Problem, completion_times
from model_core.schedule.operations import Floats, Ints

COMPUTE, COMMUNICATION = 0, 1


@dataclass(frozen=True, slots=True)
class PairComponents:
    """Seconds of the components of one layer, measured at ``communication_sms`` of ``sms``.

    ``pp_s`` is the message to the next stage, once for a chunk and direction. Below ``saturating_sms``
    communication slows in proportion; above it the links are full (DSV3 3.2.2: 20 SMs).
    """

    attention_forward_s: float
    dispatch_forward_s: float
    mlp_forward_s: float
    combine_forward_s: float
    combine_backward_s: float
    mlp_input_s: float
    mlp_weight_s: float
    dispatch_backward_s: float
    attention_input_s: float
    attention_weight_s: float
    pp_s: float = 0.0
    sms: int = 132
    communication_sms: int = 20
    saturating_sms: int = 20

    @property
    def computation_s(self) -> float:
        """Computation of one layer, forward and backward."""
        forward_s = self.attention_forward_s + self.mlp_forward_s
        attention_s = self.attention_input_s + self.attention_weight_s
        return forward_s + attention_s + self.mlp_input_s + self.mlp_weight_s

    @property
    def communication_s(self) -> float:
        """All-to-all of one layer, forward and backward."""
        forward_s = self.dispatch_forward_s + self.combine_forward_s
        return forward_s + self.dispatch_backward_s + self.combine_backward_s

    def with_split(self, communication_sms: int) -> PairComponents:
        """Return the components with another number of SMs for communication.

        Formula: computation × (N − n₀) / (N − n); communication × min(n₀, nₛ) / min(n, nₛ)
        Source: DSV3 3.2.1 (the ratio of SMs is adjusted), 3.2.2 (20 SMs fill the links)
        Assumes: computation is in proportion to its SMs, communication up to saturation

        Raises:
            ValueError: one of the two would have no SM.
        """
        if not 0 < communication_sms < self.sms:
            raise ValueError(f"{communication_sms} of {self.sms} SMs leave none for one side")
        slower = (self.sms - self.communication_sms) / (self.sms - communication_sms)
        filled = min(self.communication_sms, self.saturating_sms)
        waits = filled / min(communication_sms, self.saturating_sms)
        scaled = {
            field.name: getattr(self, field.name) * (waits if _communicates(field.name) else slower)
            for field in fields(self)
            if field.name.endswith("_s")
        }
        return PairComponents(
            **scaled, sms=self.sms, communication_sms=communication_sms, saturating_sms=self.saturating_sms
        )


def _communicates(name: str) -> bool:
    return name.startswith(("dispatch", "combine", "pp"))


# Each layer's components in the order in which a stream runs them, and what each waits for on the other
# stream: the component's field and how many layers before.
_COMPUTE: Final = (
    ("attention_forward_s", "combine_forward_s", 1),
    ("mlp_input_s", "combine_backward_s", 0),
    ("mlp_weight_s", "", 0),
    ("mlp_forward_s", "dispatch_forward_s", 0),
    ("attention_input_s", "dispatch_backward_s", 0),
    ("attention_weight_s", "", 0),
)
_COMMUNICATE: Final = (
    ("combine_backward_s", "attention_input_s", 1),
    ("dispatch_forward_s", "attention_forward_s", 0),
    ("dispatch_backward_s", "mlp_input_s", 0),
    ("combine_forward_s", "mlp_forward_s", 0),
)
_LABELS: Final = {
    "attention_forward_s": "ATTN(F)",
    "mlp_forward_s": "MLP(F)",
    "dispatch_forward_s": "DISPATCH(F)",
    "combine_forward_s": "COMBINE(F)",
    "combine_backward_s": "COMBINE(B)",
    "mlp_input_s": "MLP(B)",
    "mlp_weight_s": "MLP(W)",
    "dispatch_backward_s": "DISPATCH(B)",
    "attention_input_s": "ATTN(B)",
    "attention_weight_s": "ATTN(W)",
    "pp_s": "PP",
}


@dataclass(frozen=True, slots=True, eq=False)
class PairTimeline:
    """When the components of a pair run. ``stream`` is `COMPUTE` or `COMMUNICATION`, ``layer`` counts from 0."""

    labels: tuple[str, ...]
    stream: Ints
    layer: Ints
    start_s: Floats
    end_s: Floats

    @property
    def span_s(self) -> float:
        """Duration of the pair: what `Durations.pair_s` takes."""
        return float(self.end_s.max())

    @property
    def communication_s(self) -> float:
        """Time that the communication stream is busy."""
        return self._busy(COMMUNICATION)

    @property
    def computation_s(self) -> float:
        """Time that the computation stream is busy."""
        return self._busy(COMPUTE)

    @property
    def exposed_s(self) -> float:
        """Communication beside which nothing computes."""
        mine, other = self.stream == COMMUNICATION, self.stream == COMPUTE
        start, end = self.start_s[mine][:, None], self.end_s[mine][:, None]
        shared = np.minimum(end, self.end_s[other]) - np.maximum(start, self.start_s[other])
        return self.communication_s - float(np.maximum(shared, 0.0).sum())

    @property
    def hidden_fraction(self) -> float:
        """Part of the communication that is hidden behind computation."""
        return 1.0 - self.exposed_s / self.communication_s if self.communication_s else 1.0

    def _busy(self, stream: int) -> float:
        return float((self.end_s - self.start_s)[self.stream == stream].sum())


def overlap_pair(components: PairComponents, n_layers: int = 1) -> PairTimeline:
    """Run a forward and a backward chunk of some layers against each other.

    The forward's layer ``l`` runs beside the backward's layer ``n_layers - 1 - l``; the messages to the
    neighbouring stages follow the last layer.

    Source: DSV3 3.2.1, Figure 4
    Assumes: both streams run at their own rates whatever the other does

    Args:
        components: times of one layer at their split of the SMs.
        n_layers: layers of each chunk.
    """
    rows = [(field, wait, layer - back, layer) for layer in range(n_layers) for field, wait, back in _COMPUTE]
    sends = [("pp_s", "mlp_forward_s", n_layers - 1, n_layers - 1)] * (components.pp_s > 0)
    sends += [("pp_s", "attention_input_s", n_layers - 1, n_layers - 1)] * (components.pp_s > 0)
    n_compute = len(rows)
    rows += [(f, wait, layer - back, layer) for layer in range(n_layers) for f, wait, back in _COMMUNICATE]
    rows += sends
    index = {(field, layer): row for row, (field, _, _, layer) in enumerate(rows)}
    first = np.array([index.get((wait, layer), len(rows)) for _, wait, layer, _ in rows])
    duration = np.array([getattr(components, field) for field, *_ in rows], np.float64)
    none = np.full(len(rows), len(rows))
    problem = Problem(
        np.array([0, n_compute, len(rows)]),
        first,
        none,
        np.zeros(len(rows)),
        np.zeros(len(rows)),
        duration,
        np.empty(0, np.int64),
    )
    end = completion_times(problem)
    stream = np.where(np.arange(len(rows)) < n_compute, COMPUTE, COMMUNICATION)
    labels = tuple(_LABELS[field] for field, *_ in rows)
    return PairTimeline(labels, stream, np.array([layer for *_, layer in rows]), end - duration, end)


@dataclass(frozen=True, slots=True, eq=False)
class SplitScan:
    """Duration of a pair for each number of SMs given to communication."""

    communication_sms: Ints
    span_s: Floats

    @property
    def best_sms(self) -> int:
        """The number with the shortest pair; of equals the smallest."""
        return int(self.communication_sms[np.argmin(self.span_s)])


def scan_splits(components: PairComponents, n_layers: int = 1, step: int = 1) -> SplitScan:
    """Run a pair for every split of the SMs.

    Args:
        components: times of one layer at their own split.
        n_layers: layers of each chunk.
        step: communication takes a multiple of so many SMs.
    """
    counts = np.arange(step, components.sms, step)
    spans = [overlap_pair(components.with_split(int(count)), n_layers).span_s for count in counts]
    return SplitScan(counts, np.array(spans))


DSV3_TRACE: Final = PairComponents(
    attention_forward_s=4599e-6,
    dispatch_forward_s=6738e-6,
    mlp_forward_s=4641e-6,
    combine_forward_s=8696e-6,
    combine_backward_s=5784e-6,
    mlp_input_s=5363e-6,
    mlp_weight_s=5073e-6,
    dispatch_backward_s=7558e-6,
    # The trace does not mark it: what the others leave of 124,338 µs in which computation is busy.
    attention_input_s=9013e-6,
    attention_weight_s=2396e-6,
)
"""Mean components of DeepSeek-V3 on H800: the published training trace (EP64, sequences of 4096, four MoE
layers forward beside four backward, no PP messages). Communication includes waiting for other ranks."""
