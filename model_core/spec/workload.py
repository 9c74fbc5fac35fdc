"""What is asked of the model: phase, batch, lengths and a latency target."""

from __future__ import annotations

from enum import StrEnum
from typing import cast

from pydantic import Field

from model_core.arithmetic import Number, ceil_div, minimum
from model_core.spec.base import Spec
from model_core.units import Seconds


class Phase(StrEnum):
    """The phases with their own layer programs (Pope 2)."""

    PREFILL = "prefill"
    DECODE = "decode"
    TRAINING = "training"


class WorkloadSpec(Spec):
    """One batch of sequences of equal length."""

    name: str = ""
    phase: Phase = Field(
        default=Phase.DECODE, description="Process the input (prefill), or generate (decode)"
    )
    batch: int = Field(ge=1, le=10**7, description="Sequences in the batch (B)")
    input_length: int = Field(ge=1, le=10**8, description="Input tokens of each sequence")
    output_length: int = Field(default=0, ge=0, le=10**8, description="Tokens to generate for each sequence")
    cached_length: int = Field(
        default=0,
        ge=0,
        le=10**8,
        description="Prefill: tokens before the input that are in the KV cache already",
    )
    prefill_chunk: int | None = Field(
        default=None,
        ge=1,
        le=10**8,
        description="Prefill in chunks of so many tokens, each after the other; empty: the input at once",
    )
    latency_target: Seconds | None = Field(
        default=None, description="Prefill: for the whole input; decode: per token"
    )

    @property
    def max_context(self) -> int:
        """Tokens of each sequence that the KV cache must hold in the end."""
        return self.cached_length + self.input_length + self.output_length

    @property
    def tokens_per_sequence(self) -> int:
        """Tokens that one sequence brings through the model in this phase."""
        return self.output_length if self.phase is Phase.DECODE else self.input_length

    @property
    def step_length(self) -> int:
        """Tokens of each sequence in one forward pass: decode: one; prefill: the input or a chunk of it."""
        if self.phase is Phase.DECODE:
            return 1
        if self.prefill_chunk is None:
            return self.input_length
        return _whole(minimum(self.prefill_chunk, self.input_length))

    @property
    def n_steps(self) -> int:
        """Forward passes of the phase; the last chunk of a prefill counts as a whole one."""
        if self.phase is Phase.DECODE:
            return self.output_length
        return _whole(ceil_div(self.input_length, self.step_length))

    @property
    def step_context(self) -> int:
        """Context length of a step, cached and new: the mean over the steps of the phase, rounded up.

        Each step sees those before it; times are linear in the context, so that the mean step times the
        number of steps is the phase.
        """
        past = self.cached_length + (self.input_length if self.phase is Phase.DECODE else 0)
        return _whole(past + ceil_div(self.step_length * (self.n_steps + 1), 2))


def _whole(count: Number) -> int:
    """Name the type of a count, which is an array where the fields are arrays (see `model_core.search`)."""
    return cast(int, count)
