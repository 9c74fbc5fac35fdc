"""Which mesh axes split what in models with experts or latent attention; see `structure` for dense ones.

Attention is tensor parallel over z and data parallel over x and y. Between its parts a layer keeps every
token on one chip (sequence parallelism over z where there is a sequence, otherwise the batch over all axes);
experts lie on all axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from model_core.hardware.network import Network
from model_core.partition.notation import Sharding
from model_core.partition.structure import LayoutAxes, Structure, head_axes
from model_core.spec.model import ModelSpec
from model_core.spec.plan import DispatchMode, PlanSpec
from model_core.spec.workload import Phase


@dataclass(frozen=True, slots=True)
class ExpertStructure:
    """Everything the programs of a model with experts or latent attention depend on; hashable.

    tensor, data: axes of the tensor and the data parallelism; inner: axes inside a node. ``absorbed``: latent
    attention multiplies queries instead of keys (decode). ``attention``: how other attention is split.
    ``split_dense``: dense feedforward layers are tensor parallel too. ``shared``: shared experts run on their
    own; ``bias``: the gate has one.
    """

    mesh_axes: str
    tensor: str
    data: str
    inner: str
    over_sequence: bool
    latent: bool
    query_latent: bool
    absorbed: bool
    attention: Structure
    gated: bool
    split_dense: bool
    shared: bool
    bias: bool
    two_hop: bool

    @property
    def gathered_dim(self) -> str:
        """The token dimension that the tensor-parallel axis splits between the parts of a layer."""
        return "L" if self.over_sequence else "B"

    def tokens(self, dims: str) -> Sharding:
        """Sharding of whole tokens between the parts of a layer: B_xyL_zE, or B_xyzLE in decode."""
        batch = self.data + ("" if self.over_sequence else self.tensor)
        split = {"B": batch, "L": self.tensor if self.over_sequence else ""}
        return Sharding(dims, tuple(split.get(dim, "") for dim in dims))


def expert_structure(
    model: ModelSpec, plan: PlanSpec, phase: Phase, sizes: Mapping[str, int], network: Network
) -> ExpertStructure:
    """Collect the choices for a model and plan on a mesh."""
    live = "".join(axis for axis in "xyz" if sizes.get(axis, 1) > 1)
    tensor = "z" if "z" in live else ""
    data = live.replace("z", "")
    moe, is_decode = model.moe, phase is Phase.DECODE
    return ExpertStructure(
        mesh_axes=live,
        tensor=tensor,
        data=data,
        inner="".join(axis for axis in live if all(level.kind == "switch" for level in network.of(axis))),
        over_sequence=not is_decode,
        latent=model.mla is not None,
        query_latent=model.mla is not None and model.mla.q_lora_rank is not None,
        absorbed=is_decode,
        attention=_attention(model, live, tensor, data, sizes),
        gated=model.gated_ffn,
        split_dense=plan.dense_tensor_parallel or moe is None,
        shared=moe is not None and moe.n_shared_experts > 0 and not plan.shared_expert_as_routed,
        bias=moe is not None and moe.gate_bias,
        two_hop=plan.dispatch_mode is DispatchMode.TWO_HOP,
    )


def _attention(model: ModelSpec, live: str, tensor: str, data: str, sizes: Mapping[str, int]) -> Structure:
    """Describe attention that is not latent: heads over the tensor-parallel axis, weights never gathered."""
    axes = LayoutAxes(stored_embed="", stored_hidden=tensor, gathered="", tokens=data, residual="")
    heads = head_axes(model, axes, dict(sizes))
    return Structure(live, axes, heads, model.attention_kind, model.gated_ffn, parallel=False)
