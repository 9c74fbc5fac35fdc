"""The pipeline schedule of a plan: which one, its sizes and the times of its operations."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from model_core.spec.base import Spec
from model_core.units import Seconds

ScheduleName = Literal[
    "gpipe", "1f1b", "interleaved", "zb-h1", "zb-2p", "zb-v", "chimera", "dualpipe", "dualpipev"
]
SCHEDULE_TITLES: Final[dict[ScheduleName, str]] = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved 1F1B",
    "zb-h1": "ZB-H1 (ZB1P)",
    "zb-2p": "ZB-2P",
    "zb-v": "ZB-V",
    "chimera": "Chimera",
    "dualpipe": "DualPipe",
    "dualpipev": "DualPipeV",
}
"""Their names for people, as the registry of schedules has them: choosing one must not load numerics."""
ComparedBy = Literal["devices", "memory"]
MAX_RANKS: Final = 16_384
MAX_MICROBATCHES: Final = 1_000_000


class ScheduleSpec(Spec):
    """One pipeline and what it is compared with.

    Times are those of one rank's equal share of the model (1/pp of its layers) for one microbatch. The
    defaults with DualPipe are Figure 5 of the DeepSeek-V3 report: 8 ranks, 20 microbatches, F = I = W.
    """

    kind: ScheduleName = Field(
        default="dualpipe", description="Order in which the ranks run their operations"
    )
    pp: int = Field(default=8, ge=1, le=MAX_RANKS, description="Ranks of the pipeline")
    microbatches: int = Field(
        default=20,
        ge=1,
        le=MAX_MICROBATCHES,
        description="Microbatches of one step in a pipeline, over both directions",
    )
    virtual_stages: int = Field(
        default=2, ge=1, le=1_023, description="Chunks of layers on each rank; for interleaved 1F1B only"
    )
    forward: Seconds = Field(default=1e-3, description="F: forward of a rank's layers for one microbatch")
    backward_input: Seconds = Field(default=1e-3, description="I: backward for input of a rank's layers")
    backward_weight: Seconds = Field(
        default=1e-3, description="W: backward for weights of a rank's layers; B is I and W together"
    )
    overlapped: Seconds | None = Field(
        default=None, description="F&B: a forward and a backward overlapped; empty: F + B"
    )
    point_to_point: Seconds = Field(default=0.0, description="Message between neighbouring ranks")
    compare: ScheduleName | None = Field(
        default=None, description="Another schedule of the same model to draw below; empty: none"
    )
    compare_by: ComparedBy = Field(
        default="devices",
        description="Compare on as many ranks, or on as many parameters in each rank's memory",
    )
