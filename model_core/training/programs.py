"""The layer programs of training: blocks, embedding, head and the projection of multi-token prediction.

Tensor parallelism lies on the mesh axis z, context parallelism on c, and the other ranks of an expert-parallel
group on x (nodes) and y (inside a node). Models without experts see one data-parallel rank.

Source: Korthikanti et al. 2022, 4.2 (tensor and sequence parallelism); Llama 3 report, 3.3.2 (context
parallelism: keys and values are gathered); DeepSeek-V3 report, 2 and 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from model_core.partition.builder import ProgramBuilder
from model_core.partition.expert_layers import ExpertBlockWriter
from model_core.partition.latent import INTO, OUT, LatentAttention
from model_core.partition.layers import BlockWriter, norm
from model_core.partition.notation import Sharding
from model_core.partition.program import Collective, Einsum, LayerProgram, LocalKind, Op, Role, Tensor
from model_core.partition.structure import LayoutAxes, Structure, head_axes
from model_core.partition.structure_experts import ExpertStructure
from model_core.spec.model import ModelSpec
from model_core.spec.workload import Phase

TENSOR, CONTEXT, NODES, INSIDE = "z", "c", "x", "y"
PHASE = str(Phase.TRAINING)


@dataclass(frozen=True, slots=True)
class TrainingStructure(ExpertStructure):
    """The choices of `ExpertStructure`, and those that training adds; hashable.

    ``context``: axis of the context parallelism; ``split_tokens``: sequence parallelism; ``fused``: attention
    scores are never written.
    """

    context: str = ""
    split_tokens: bool = True
    fused: bool = True

    def tokens(self, dims: str) -> Sharding:
        """Sharding of whole tokens between the parts of a layer: BL_zE with sequence parallelism, else BLE."""
        length = self.context + (self.tensor if self.split_tokens else "")
        split = {"B": self.data, "L": length}
        return Sharding(dims, tuple(split.get(dim, "") for dim in dims))


def training_structure(
    model: ModelSpec, sizes: dict[str, int], split_tokens: bool, fused: bool
) -> TrainingStructure:
    """Collect the choices for a model on ranks of the given axis sizes; axes of one rank are left out."""
    live = "".join(axis for axis in (NODES, INSIDE, CONTEXT, TENSOR) if sizes.get(axis, 1) > 1)
    tensor = TENSOR if TENSOR in live else ""
    data = "".join(axis for axis in live if axis in (NODES, INSIDE))
    axes = LayoutAxes(stored_embed="", stored_hidden=tensor, gathered="", tokens=data, residual="")
    attention = Structure(
        live, axes, head_axes(model, axes, sizes), model.attention_kind, model.gated_ffn, parallel=False
    )
    moe = model.moe
    return TrainingStructure(
        mesh_axes=live,
        tensor=tensor,
        data=data,
        inner="".join(axis for axis in live if axis != NODES),
        over_sequence=True,
        latent=model.mla is not None,
        query_latent=model.mla is not None and model.mla.q_lora_rank is not None,
        absorbed=False,
        attention=attention,
        gated=model.gated_ffn,
        split_dense=True,
        shared=moe is not None and moe.n_shared_experts > 0,
        bias=moe is not None and moe.gate_bias,
        two_hop=True,
        context=CONTEXT if CONTEXT in live else "",
        split_tokens=split_tokens or moe is not None,
        fused=fused,
    )


class _Heads(BlockWriter):
    """Attention by heads; keys and values of the whole sequence are gathered over the context axis."""

    context = ""

    def _append(self, new: Tensor, name: str) -> Tensor:
        return super()._append(
            self.builder.all_gather(new, (("L", self.context),), fused="gather keys"), name
        )


class _Latent(LatentAttention):
    """Latent attention of a training step; latents of the whole sequence are gathered over the context axis."""

    structure: TrainingStructure

    def _gathered(self, tensor: Tensor) -> Tensor:
        return super()._gathered(tensor) if self.structure.split_tokens else tensor

    def _append(self, new: Tensor, name: str) -> Tensor:
        whole = self.builder.all_gather(new, (("L", self.structure.context),), fused="gather keys")
        return super()._append(whole, name)


class TrainingWriter(ExpertBlockWriter):
    """Writes the blocks of a training step."""

    structure: TrainingStructure

    def attention(self, x: Tensor) -> Tensor:
        """Write norm, attention and residual sum."""
        b, s = self.builder, self.structure
        b.section("Norm")
        normed = norm(b, x)
        if s.latent:
            out = _Latent(b, s, has_cache=False).write(normed)
        else:
            heads = _Heads(s.attention, PHASE, b)
            heads.context = s.context
            out = heads.attention(self.gathered(normed), INTO, OUT)
        return self.scattered(x, out)

    def gathered(self, x: Tensor) -> Tensor:
        """Gather tokens over the tensor-parallel axis, where they are split over it."""
        return super().gathered(x) if self.structure.split_tokens else x

    def scattered(self, x: Tensor, out: Tensor) -> Tensor:
        """Sum partial outputs and add them to the residual stream, split or on every rank."""
        if self.structure.split_tokens:
            return super().scattered(x, out)
        return self.builder.add(x, self.builder.all_reduce(out, out.sharding.partial), "x")


def _as_fused(program: LayerProgram, structure: TrainingStructure) -> LayerProgram:
    """Write attention scores to memory where the kernel is not fused."""
    if structure.fused:
        return program

    def stored(tensor: Tensor) -> Tensor:
        return replace(tensor, role=Role.ACTIVATION) if tensor.role is Role.ON_CHIP else tensor

    def changed(op: Op) -> Op:
        if isinstance(op, Einsum):
            return replace(op, left=stored(op.left), right=stored(op.right), output=stored(op.output))
        if isinstance(op, Collective):
            return op
        return replace(op, inputs=tuple(map(stored, op.inputs)), output=stored(op.output))

    return replace(program, ops=tuple(map(changed, program.ops)))


def _block(structure: TrainingStructure, title: str, experts: bool) -> LayerProgram:
    writer = TrainingWriter(structure, title, PHASE)
    x = writer.attention(writer.builder.input("x", structure.tokens("BLE")))
    out = writer.experts(x) if experts else writer.dense(x)
    return _as_fused(writer.builder.finish(out), structure)


@lru_cache(maxsize=256)
def dense_program(structure: TrainingStructure) -> LayerProgram:
    """Write a block with a dense feedforward layer."""
    return _block(structure, "block", experts=False)


@lru_cache(maxsize=256)
def expert_program(structure: TrainingStructure) -> LayerProgram:
    """Write a block with experts."""
    return _block(structure, "block with experts", experts=True)


@lru_cache(maxsize=256)
def embedding_program(structure: TrainingStructure) -> LayerProgram:
    """Look tokens up in a table that is split over the tensor-parallel axis."""
    s = structure
    b = ProgramBuilder("embedding", s.mesh_axes)
    tokens = b.input("tokens", Sharding("BL", (s.data, s.context)), Role.TOKEN)
    table = b.weight("table", Sharding("VE", (s.tensor, "")), "embedding")
    x = b.local(LocalKind.LOOKUP, (tokens, table), Sharding("BLE", (s.data, s.context, ""), s.tensor), "x")
    if s.split_tokens:
        return b.finish(b.reduce_scatter(x, (("L", s.tensor),)))
    return b.finish(b.all_reduce(x, s.tensor))


@lru_cache(maxsize=256)
def head_program(structure: TrainingStructure) -> LayerProgram:
    """Normalise all tokens and multiply them with the output table, split over the vocabulary."""
    s = structure
    b = ProgramBuilder("logits", s.mesh_axes)
    x = norm(b, b.input("x", s.tokens("BLE")))
    if s.split_tokens:
        x = b.all_gather(x, (("L", s.tensor),))
    table = b.weight("table", Sharding("EV", ("", s.tensor)), "output")
    return b.finish(b.einsum(x, table, "BLV", "logits", "logits"))


@lru_cache(maxsize=256)
def mtp_program(structure: TrainingStructure) -> LayerProgram:
    """Project the hidden state and the next token's embedding, side by side, to the width of the model.

    Source: DeepSeek-V3 report, 2.2
    """
    s = structure
    b = ProgramBuilder("multi-token prediction", s.mesh_axes)
    both = b.input("both", s.tokens("BLZ"))
    weight = b.weight("W_mtp", Sharding("ZE", ("", "")), "multi-token prediction")
    return b.finish(b.einsum(both, weight, "BLE", "x", "projection"))


PROGRAMS: dict[str, Callable[[TrainingStructure], LayerProgram]] = {
    "embedding": embedding_program,
    "block": dense_program,
    "moe_block": expert_program,
    "mtp": mtp_program,
    "logits": head_program,
}
"""The programs of a training step by name."""


def training_programs(structure: TrainingStructure, model: ModelSpec) -> dict[str, LayerProgram]:
    """Write (or find) the programs that a model has."""
    n_dense = model.n_layers if model.moe is None else model.moe.n_dense_layers
    missing = set()
    if not n_dense:
        missing.add("block")
    if n_dense == model.n_layers:
        missing.add("moe_block")
    if not model.n_mtp_layers:
        missing.add("mtp")
    return {name: make(structure) for name, make in PROGRAMS.items() if name not in missing}
