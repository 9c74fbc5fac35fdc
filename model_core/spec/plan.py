"""How a model is laid out on a cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from model_core.spec.base import Spec
from model_core.spec.calibration import AUTO
from model_core.spec.schedule import ScheduleSpec
from model_core.spec.training import TrainingSpec
from model_core.units import Ratio


class FfnLayout(StrEnum):
    """Layouts of the feedforward layer (Pope 3.2)."""

    WEIGHT_STATIONARY_1D = "weight_stationary_1d"
    WEIGHT_STATIONARY_2D = "weight_stationary_2d"
    WEIGHT_GATHERED_X = "weight_gathered_x"
    WEIGHT_GATHERED_XY = "weight_gathered_xy"
    WEIGHT_GATHERED_XYZ = "weight_gathered_xyz"


class AttentionSharding(StrEnum):
    """What the attention is split over (Pope 3.3)."""

    HEADS = "heads"
    BATCH = "batch"


class ScatterInto(StrEnum):
    """The dimension that sums over chips are scattered into (Pope 3.5).

    Hidden (E or F) is what Pope et al. chose; batch or sequence is what Korthikanti et al. 2022 chose: each
    chip then normalises whole tokens of its own.
    """

    HIDDEN = "hidden"
    BATCH = "batch"
    SEQUENCE = "sequence"


class BlockForm(StrEnum):
    """Serial or parallel block (Pope 3.4); by default what the model was trained with."""

    AS_MODEL = "as_model"
    SERIAL = "serial"
    PARALLEL = "parallel"


class DispatchMode(StrEnum):
    """How tokens travel to their experts (DeepSeek-V3 report, 3.2.2 and 3.4.2)."""

    TWO_HOP = "two_hop"
    LOW_LATENCY = "low_latency"


Dtype = Literal["float32", "bfloat16", "float16", "int8", "fp8"]
DTYPE_BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1, "fp8": 1}


class MeshPlan(Spec):
    """Which physical axes of the cluster serve as the logical axes x, y and z of the layouts.

    Axes are listed major first. A torus has ``x``, ``y``, ``z``; nodes have ``nvlink`` and ``ib``. Axes
    under ``pipeline`` hold pipeline stages, each with its part of the layers; the layouts do not see them.
    A factor of an axis of nodes is written with its size, minor part first: ``nvlink:4`` and ``nvlink:2``
    are the two halves of an 8-GPU node and the places in a half.
    """

    x: tuple[str, ...] = ()
    y: tuple[str, ...] = ()
    z: tuple[str, ...] = ()
    pipeline: tuple[str, ...] = ()

    def axes(self) -> dict[str, tuple[str, ...]]:
        """Return the logical axes of the layouts in order."""
        return {"x": self.x, "y": self.y, "z": self.z}

    def names(self) -> tuple[str, ...]:
        """Return the physical axes, or factors of them, that are used."""
        return (*self.x, *self.y, *self.z, *self.pipeline)


class PlanSpec(Spec):
    """Layout, mesh, dtypes and block form of one deployment."""

    ffn_layout: FfnLayout = Field(
        default=FfnLayout.WEIGHT_STATIONARY_2D, description="Layout of the feedforward layer (Pope 3.2)"
    )
    attention_sharding: AttentionSharding = Field(
        default=AttentionSharding.HEADS, description="Attention split over heads or over batch (Pope 3.3)"
    )
    mesh: MeshPlan | None = Field(
        default=None, description="Physical axes of the logical axes x, y, z; empty: automatic"
    )
    block: BlockForm = Field(
        default=BlockForm.AS_MODEL, description="Serial or parallel attention and feedforward (Pope 3.4)"
    )
    scatter_into: ScatterInto = Field(
        default=ScatterInto.HIDDEN,
        description="Dimension that sums over chips are scattered into between layers (Pope 3.5)",
    )
    weight_dtype: Dtype = Field(default="bfloat16", description="Format of the weights in memory (Pope 3.6)")
    kv_dtype: Dtype = Field(default="bfloat16", description="Format of the KV cache")
    activation_dtype: Literal["bfloat16", "float16", "float32", "int8", "fp8"] = Field(
        default="bfloat16", description="Format of activations in products and on the wire"
    )
    matmul_dtype: Dtype | None = Field(
        default=None,
        description="Format of both operands of the products with weights; empty: as they are stored",
    )
    microbatches: int = Field(
        default=1, ge=1, le=10_000, description="Parts of the batch that follow each other through a pipeline"
    )
    skip_masked_scores: bool = Field(
        default=False,
        description="Attention kernels skip the scores that causality masks, half of them in prefill",
    )
    dispatch_mode: DispatchMode = Field(
        default=DispatchMode.TWO_HOP,
        description="Tokens reach experts over the network once per node and then over NVLink (two_hop), or every "
        "copy directly (low_latency)",
    )
    dispatch_dtype: Dtype = Field(
        default="bfloat16",
        description="Format in which tokens are sent to experts; 8 bits bring their scales",
    )
    combine_dtype: Dtype = Field(
        default="bfloat16", description="Format in which the results of experts are sent back"
    )
    communication_sms: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="Streaming multiprocessors that move tokens in two_hop dispatch, taken from arithmetic that "
        "runs meanwhile",
    )
    overlap_microbatches: bool = Field(
        default=False,
        description="Two microbatches: one computes while the tokens of the other travel to and from experts",
    )
    redundant_experts: int = Field(
        default=0,
        ge=0,
        le=10**6,
        description="Expert slots beyond the routed experts, for copies of the busiest",
    )
    shared_expert_as_routed: bool = Field(
        default=False,
        description="The shared expert takes slots like a routed one that every token visits; otherwise every chip "
        "holds it",
    )
    expert_imbalance: float = Field(
        default=1.0,
        ge=1,
        le=1000,
        description="Load of the busiest chip's experts over the mean; 1: perfectly balanced",
    )
    dense_tensor_parallel: bool = Field(
        default=False,
        description="Dense layers of models with experts are tensor parallel; otherwise every chip holds them whole",
    )
    calibration: str = Field(
        default=AUTO,
        max_length=200,
        description="Calibration to apply, by its name or its software; auto: that of the chip; none: the bound",
    )
    large_k: bool = Field(
        default=False,
        description="Approximate (K − 1)/K as 1 in collectives, as most formulas of Pope et al. do",
    )
    collective_overlap: Ratio = Field(
        default=1.0,
        description="Share of a collective that Looped CollectiveEinsum hides behind its product (Pope 3.5)",
    )
    memory_reserve: Ratio = Field(
        default=0.05, description="Share of the memory kept free for the runtime and fragmentation"
    )
    kv_memory_share: Ratio = Field(
        default=0.3,
        description="Share of the memory given to the KV cache for the longest context (Pope Table 1)",
    )
    schedule: ScheduleSpec | None = Field(
        default=None, description="Pipeline schedule of a training step; empty: none"
    )
    training: TrainingSpec | None = Field(
        default=None, description="How a training step is parallelised and what it keeps; empty: the defaults"
    )
