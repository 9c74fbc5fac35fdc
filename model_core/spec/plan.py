"""How a model is laid out on a cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from model_core.spec.base import Spec
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


class BlockForm(StrEnum):
    """Serial or parallel block (Pope 3.4); by default what the model was trained with."""

    AS_MODEL = "as_model"
    SERIAL = "serial"
    PARALLEL = "parallel"


Dtype = Literal["float32", "bfloat16", "float16", "int8", "fp8"]
DTYPE_BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1, "fp8": 1}


class MeshPlan(Spec):
    """Which physical axes of the cluster serve as the logical axes x, y and z of the layouts.

    Axes are listed major first. A torus has ``x``, ``y``, ``z``; nodes have ``nvlink`` and ``ib``.
    """

    x: tuple[str, ...] = ()
    y: tuple[str, ...] = ()
    z: tuple[str, ...] = ()

    def axes(self) -> dict[str, tuple[str, ...]]:
        """Return the logical axes in order."""
        return {"x": self.x, "y": self.y, "z": self.z}


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
    weight_dtype: Dtype = Field(default="bfloat16", description="Format of the weights in memory (Pope 3.6)")
    kv_dtype: Dtype = Field(default="bfloat16", description="Format of the KV cache")
    activation_dtype: Literal["bfloat16", "float16", "float32", "int8", "fp8"] = Field(
        default="bfloat16", description="Format of activations in products and on the wire"
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
