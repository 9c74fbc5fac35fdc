"""What is asked of the model: phase, batch, lengths and a latency target."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

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
