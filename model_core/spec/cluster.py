"""What a cluster is: a chip and the network that joins many of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from model_core.spec.base import SourcedSpec, Spec
from model_core.spec.calibration import CalibrationSpec
from model_core.units import Bytes, BytesPerS, FlopsPerS, Seconds, UsdPerHour, Watts

AxisSize = Annotated[int, Field(ge=1, le=4096)]


class ChipSpec(SourcedSpec):
    """One accelerator: its arithmetic rate per dtype and its memory."""

    peak_bf16: FlopsPerS = Field(description="Dense bfloat16 matrix arithmetic")
    peak_int8: FlopsPerS | None = Field(
        default=None, description="Dense int8 matrix arithmetic; empty: none faster than bf16"
    )
    peak_fp8: FlopsPerS | None = Field(default=None, description="Dense FP8 matrix arithmetic; empty: none")
    hbm_capacity: Bytes = Field(description="High-bandwidth memory")
    hbm_bandwidth: BytesPerS = Field(description="High-bandwidth memory, peak")
    n_sms: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="Streaming multiprocessors, of which communication may take some; empty: it takes none",
    )
    price_per_hour: UsdPerHour | None = Field(
        default=None, description="Price of one chip for an hour; empty: no cost in money is given"
    )
    power: Watts | None = Field(
        default=None, description="Power that one chip may draw; empty: no energy is given"
    )
    calibrations: tuple[CalibrationSpec, ...] = Field(
        default=(), description="Efficiency factors measured on this chip, one set for each software stack"
    )


WrapRule = Literal["cubes_of_4", "axis_of_16", "all", "none"]


class TorusTopology(Spec):
    """A TPU slice: a 2D or 3D torus, with wraparound links only where the slice has them."""

    kind: Literal["torus"] = "torus"
    shape: tuple[AxisSize, ...] = Field(min_length=1, max_length=3, description="Chips along x, y and z")
    link_bandwidth: BytesPerS = Field(description="One link, one direction; an axis has two links per chip")
    hop_latency: Seconds = Field(description="One hop between neighbours")
    wrap: WrapRule = Field(default="cubes_of_4", description="Which axes have wraparound links")


class NodeTopology(Spec):
    """Nodes of GPUs: NVLink inside, InfiniBand (or RoCE) across."""

    kind: Literal["nodes"] = "nodes"
    n_nodes: AxisSize = Field(description="Nodes")
    chips_per_node: AxisSize = Field(default=8, description="GPUs in one NVLink domain")
    nvlink_bandwidth: BytesPerS = Field(description="NVLink of one GPU, one direction")
    nic_bandwidth: BytesPerS = Field(description="Network card of one GPU, one direction")
    nvlink_latency: Seconds = Field(description="One step inside the node")
    nic_latency: Seconds = Field(description="One step between nodes")


Topology = Annotated[TorusTopology | NodeTopology, Field(discriminator="kind")]


class ClusterSpec(SourcedSpec):
    """Chips of one kind on one network. Sources of the topology's fields are kept here."""

    chip: ChipSpec = Field(description="The accelerator")
    topology: Topology = Field(description="How the chips are joined")

    @property
    def axes(self) -> dict[str, int]:
        """Physical axes and their sizes, in the order used for automatic mesh assignment."""
        if isinstance(self.topology, TorusTopology):
            return dict(zip("xyz", self.topology.shape, strict=False))
        return {"ib": self.topology.n_nodes, "nvlink": self.topology.chips_per_node}

    @property
    def n_chips(self) -> int:
        """Chips in the cluster."""
        total = 1
        for size in self.axes.values():
            total *= size
        return total

    @property
    def shape_text(self) -> str:
        """The shape as people write it: ``4x4x4`` or ``4 x 8``."""
        if isinstance(self.topology, TorusTopology):
            return "x".join(str(size) for size in self.topology.shape)
        return f"{self.topology.n_nodes} x {self.topology.chips_per_node}"
