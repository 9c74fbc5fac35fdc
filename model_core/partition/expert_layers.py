"""The layer programs of models with experts or latent attention: blocks, embedding and logits.

Source: DeepSeek-V3 report, 2.1 and 3.4; sequence parallelism: Korthikanti et al. 2022.
"""

from __future__ import annotations

from functools import lru_cache

from model_core.partition.builder import ProgramBuilder
from model_core.partition.latent import INTO, OUT, LatentAttention
from model_core.partition.layers import BlockWriter, norm
from model_core.partition.notation import Sharding
from model_core.partition.program import LayerProgram, LocalKind, Role, Routing, Tensor
from model_core.partition.structure_experts import ExpertStructure
from model_core.spec.workload import Phase


class ExpertBlockWriter:
    """Writes one block: attention, then a dense or an expert feedforward layer."""

    def __init__(self, structure: ExpertStructure, title: str, phase: str) -> None:
        self.structure = structure
        self.phase = phase
        self.builder = ProgramBuilder(f"{title}, {phase}", structure.mesh_axes)

    def attention(self, x: Tensor) -> Tensor:
        """Write norm, attention and residual sum."""
        b, s = self.builder, self.structure
        b.section("Norm")
        normed = norm(b, x)
        if s.latent:
            out = LatentAttention(b, s, self.phase != Phase.TRAINING).write(normed)
        else:
            heads = BlockWriter(s.attention, self.phase, b)
            out = heads.attention(self.gathered(normed), INTO, OUT)
        return self.scattered(x, out)

    def gathered(self, x: Tensor) -> Tensor:
        """Gather tokens over the tensor-parallel axis."""
        return self.builder.all_gather(x, ((self.structure.gathered_dim, self.structure.tensor),))

    def scattered(self, x: Tensor, out: Tensor) -> Tensor:
        """Sum partial outputs, each token on its own chip, and add them to the residual stream."""
        moves = ((self.structure.gathered_dim, out.sharding.partial),)
        return self.builder.add(x, self.builder.reduce_scatter(out, moves), "x")

    def dense(self, x: Tensor) -> Tensor:
        """Write a dense feedforward layer, tensor parallel or whole on every chip."""
        b, s = self.builder, self.structure
        b.section("Norm")
        normed = norm(b, x)
        b.section("Feedforward")
        axes = s.tensor if s.split_dense else ""
        source = self.gathered(normed) if s.split_dense else normed
        return self.scattered(x, self._feedforward(source, "", "F", axes, "feedforward"))

    def experts(self, x: Tensor) -> Tensor:
        """Write a feedforward layer of experts: gate, dispatch, grouped products, combine, shared experts."""
        b, s = self.builder, self.structure
        b.section("Norm")
        normed = norm(b, x)
        b.section("Gate")
        routing = self._routing(normed)
        b.section("Experts")
        arrived = b.dispatch(normed, routing)
        results = self._feedforward(arrived, "X", "I", "", "routed experts")
        combined = b.combine(results, routing)
        if s.shared:
            b.section("Shared experts")
            shared = self._feedforward(normed, "", "J", "", "shared experts")
            combined = b.add(combined, shared, "out")
        return b.add(x, combined, "x")

    def _routing(self, x: Tensor) -> Routing:
        b, s = self.builder, self.structure
        gate = b.weight("W_gate", Sharding("EY", ("", "")), "gate")
        inputs = [b.einsum(x, gate, "BLY", "gate scores", "gate")]
        if s.bias:
            inputs.append(b.weight("gate bias", Sharding("Y", ("",)), "gate"))
        weights = b.local(LocalKind.ROUTE, tuple(inputs), s.tokens("BLX"), "routing", Role.ROUTING)
        return Routing(weights, s.inner, s.two_hop)

    def _feedforward(self, x: Tensor, slots: str, hidden: str, axes: str, group: str) -> Tensor:
        """Write in-projection, activation and out-projection of one layer, or of all slots of a chip."""
        b = self.builder
        tokens = "XT" if slots else "BL"
        split = {"X": x.sharding.axes_of("X") if slots else "", hidden: axes}

        def weight(name: str, dims: str) -> Tensor:
            return b.weight(name, Sharding(dims, tuple(split.get(d, "") for d in dims)), group)

        into, out = f"{group} in", f"{group} out"
        made = b.einsum(x, weight("W_in", f"{slots}E{hidden}"), f"{tokens}{hidden}", "hidden", into)
        if self.structure.gated:
            gate = b.einsum(x, weight("W_gate", f"{slots}E{hidden}"), f"{tokens}{hidden}", "gate", into)
            made = b.local(LocalKind.GATED_ACTIVATION, (gate, made), made.sharding, "hidden")
        else:
            made = b.local(LocalKind.ACTIVATION, (made,), made.sharding, "hidden")
        return b.einsum(made, weight("W_out", f"{slots}{hidden}E"), f"{tokens}E", f"{group} out", out)


@lru_cache(maxsize=256)
def expert_block_program(structure: ExpertStructure, phase: str) -> LayerProgram:
    """Write a block with experts."""
    writer = ExpertBlockWriter(structure, "block with experts", phase)
    x = writer.attention(writer.builder.input("x", structure.tokens("BLE")))
    return writer.builder.finish(writer.experts(x))


@lru_cache(maxsize=256)
def dense_block_program(structure: ExpertStructure, phase: str) -> LayerProgram:
    """Write a block with a dense feedforward layer."""
    writer = ExpertBlockWriter(structure, "block", phase)
    x = writer.attention(writer.builder.input("x", structure.tokens("BLE")))
    return writer.builder.finish(writer.dense(x))


@lru_cache(maxsize=256)
def expert_embedding_program(structure: ExpertStructure) -> LayerProgram:
    """Look tokens up in a table that is split over the tensor-parallel axis."""
    b = ProgramBuilder("embedding", structure.mesh_axes)
    tokens = b.input("tokens", Sharding("BL", (structure.data, "")), Role.TOKEN)
    table = b.weight("table", Sharding("VE", (structure.tensor, "")), "embedding")
    rows = Sharding("BLE", (structure.data, "", ""), structure.tensor)
    x = b.local(LocalKind.LOOKUP, (tokens, table), rows, "x")
    return b.finish(b.reduce_scatter(x, ((structure.gathered_dim, structure.tensor),)))


@lru_cache(maxsize=256)
def expert_logits_program(structure: ExpertStructure) -> LayerProgram:
    """Normalise the last token of each sequence and multiply it with the output table, split over V."""
    s, tensor = structure, structure.tensor
    b = ProgramBuilder("logits", s.mesh_axes)
    x = b.input("x", s.tokens("BLE"))
    if s.over_sequence:
        last = Sharding("BE", (s.data, ""), tensor)
        x = b.all_reduce(b.local(LocalKind.LAST_TOKEN, (x,), last, "last"), tensor)
    else:
        x = b.local(LocalKind.LAST_TOKEN, (x,), Sharding("BE", (s.data + tensor, "")), "last")
    x = norm(b, x)
    x = b.all_gather(x, (("B", "" if s.over_sequence else tensor),))
    table = b.weight("table", Sharding("EV", ("", tensor)), "embedding")
    return b.finish(b.einsum(x, table, "BV", "logits", "logits"))


def expert_programs(
    structure: ExpertStructure, phase: Phase, dense: bool, experts: bool
) -> dict[str, LayerProgram]:
    """Write (or find) the programs of a structure: blocks of either kind only where the model has them."""
    programs = {"embedding": expert_embedding_program(structure)}
    if dense:
        programs["block"] = dense_block_program(structure, str(phase))
    if experts:
        programs["moe_block"] = expert_block_program(structure, str(phase))
    return {**programs, "logits": expert_logits_program(structure)}
