"""The layer programs of a dense Transformer: feedforward, attention, block, embedding and logits.

Source: Pope 3.2 to 3.4 and Figures 2, 4, 5 and A.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby

from model_core.partition.builder import ProgramBuilder
from model_core.partition.notation import Sharding
from model_core.partition.program import LayerProgram, LocalKind, Role, Tensor
from model_core.partition.structure import HeadAxes, LayoutAxes, Structure, minus
from model_core.spec.workload import Phase

QUERY_DIMS = {"multihead": "HD", "multiquery": "HD", "grouped-query": "KGD"}
KV_DIMS = {"multihead": "HD", "multiquery": "D", "grouped-query": "KD"}
SCORE_DIMS = {"multihead": "BHLM", "multiquery": "BHLM", "grouped-query": "BKGLM"}


def _sharding(dims: str, **axes: str) -> Sharding:
    return Sharding(dims, tuple(axes.get(d, "") for d in dims))


class BlockWriter:
    """Writes the parts of one block into a builder; the structure says which axes split what."""

    def __init__(self, structure: Structure, phase: str, builder: ProgramBuilder | None = None) -> None:
        self.structure = structure
        self.has_cache = phase != Phase.TRAINING
        self.axes: LayoutAxes = structure.axes
        self.heads: HeadAxes = structure.heads
        self.builder = builder or ProgramBuilder(f"block, {phase}", structure.mesh_axes)
        self.query_dims = QUERY_DIMS[structure.attention]
        self.kv_dims = KV_DIMS[structure.attention]

    def residual(self) -> Tensor:
        """Declare the block's input."""
        return self.builder.input("x", residual_sharding(self.axes))

    def normed(self, x: Tensor, group: str) -> Tensor:
        """Gather the activations for the products and normalise them.

        The norm runs after the gather: its statistics then need an all-reduce only over the axes that
        still split E, and none in the 1D and weight-gathered layouts. Where tokens are split between
        blocks instead, every chip first normalises its own.
        """
        if self.axes.scatter_into:
            return self.builder.all_gather(norm(self.builder, x), self._between_blocks(), hides_behind=group)
        return norm(self.builder, self.builder.all_gather(x, self._between_blocks(), hides_behind=group))

    def _between_blocks(self) -> tuple[tuple[str, str], ...]:
        """Return what is gathered before the products of a block and scattered after them."""
        return ((self.axes.scatter_into or "E", self.axes.embed_gather),)

    def weight(self, name: str, sharding: Sharding, group: str, product: str) -> Tensor:
        """Declare a weight; gather it where the layout does (Pope 3.2.3)."""
        stored = self.builder.weight(name, sharding, group)
        moves = []
        for dim, split in zip(sharding.dims, sharding.axes, strict=True):
            kept = len(split)
            while kept and split[kept - 1] in self.axes.gathered:
                kept -= 1
            moves.append((dim, split[kept:]))
        return self.builder.all_gather(stored, tuple(moves), hides_behind=product, fused=f"weights {product}")

    # ---- feedforward -------------------------------------------------------------------------

    def feedforward(self, x: Tensor, into: str, out: str) -> Tensor:
        """Write the feedforward layer from normed input to partial sums of its output (Pope 3.2)."""
        axes, b = self.axes, self.builder
        b.section("Feedforward")
        inward = _sharding("EF", E=axes.stored_embed, F=axes.stored_hidden)
        hidden = self._hidden(x, self.weight("W_in", inward, "feedforward", into), "hidden", into)
        if self.structure.gated:
            gate = self._hidden(x, self.weight("W_gate", inward, "feedforward", into), "gate", into)
            hidden = b.local(LocalKind.GATED_ACTIVATION, (gate, hidden), hidden.sharding, "hidden")
        else:
            hidden = b.local(LocalKind.ACTIVATION, (hidden,), hidden.sharding, "hidden")
        moves = ((axes.scatter_into or "F", axes.embed),)
        hidden = b.all_gather(hidden, moves, hides_behind=out, fused=f"gather {out}")
        outward = _sharding("FE", F=axes.stored_hidden, E=axes.stored_embed)
        return b.einsum(hidden, self.weight("W_out", outward, "feedforward", out), "BLE", "ffn out", out)

    def _hidden(self, x: Tensor, weight: Tensor, name: str, product: str) -> Tensor:
        partial = self.builder.einsum(x, weight, "BLF", name, product)
        moves = ((self.axes.scatter_into or "F", self.axes.embed),)
        return self.builder.reduce_scatter(partial, moves, hides_behind=product, fused=f"scatter {product}")

    # ---- attention ---------------------------------------------------------------------------

    def attention(self, x: Tensor, into: str, out: str) -> Tensor:
        """Write the attention from normed input to partial sums of its output (Pope 3.3)."""
        b = self.builder
        b.section("Attention")
        query = self._project_query(x, into)
        key, value = (self._project_kv(x, name, into) for name in ("key", "value"))
        key, value = self._append(key, "key"), self._append(value, "value")
        dims = SCORE_DIMS[self.structure.attention]
        scores = b.einsum(query, key, dims, "scores", role=Role.ON_CHIP)
        weights = b.local(LocalKind.SOFTMAX, (scores,), scores.sharding, "attention", Role.ON_CHIP)
        mixed = b.einsum(weights, value, f"BL{self.query_dims}", "mixed")
        return self._project_out(mixed, out)

    def _project_query(self, x: Tensor, product: str) -> Tensor:
        b, heads = self.builder, self.heads
        stored = self._head_sharding("E" + self.query_dims)
        weight = self.weight("W_q", stored, "attention", product)
        query = b.einsum(x, weight, f"BL{self.query_dims}", "query", product)
        query = self._sum_over_embed(query, is_query=True, product=product)
        query = self._gather_head_dim(query)
        kv_dim, query_dim = self._head_dims()
        if kv_dim:
            query = b.all_to_all(query, kv_dim, "B", heads.batch_kv, fused="to batch")
        query = b.all_to_all(query, query_dim, "B", heads.batch_query, fused="to batch")
        return b.slice(query, "B", heads.batch_slice)

    def _project_kv(self, x: Tensor, name: str, product: str) -> Tensor:
        b, heads = self.builder, self.heads
        stored = self._head_sharding("E" + self.kv_dims)
        weight = self.weight(f"W_{name[0]}", stored, "attention", product)
        tensor = b.einsum(x, weight, f"BL{self.kv_dims}", name, product)
        if heads.embed_to == "kv" or self.axes.embed not in heads.batch_query + heads.batch_slice:
            tensor = self._sum_over_embed(tensor, is_query=False, product=product)
        tensor = self._gather_head_dim(tensor)
        kv_dim, _ = self._head_dims()
        if kv_dim:
            tensor = b.all_to_all(tensor, kv_dim, "B", heads.batch_kv, fused="to batch")
        batch_axes = heads.batch_query + heads.batch_slice
        partial = tensor.sharding.partial
        for summed, group in groupby(batch_axes, key=lambda axis: axis in partial):
            axes = "".join(group)
            if summed:
                tensor = b.reduce_scatter(tensor, (("B", axes),), product, fused=f"scatter {product}")
            else:
                tensor = b.slice(tensor, "B", axes)
        return tensor

    def _append(self, new: Tensor, name: str) -> Tensor:
        if not self.has_cache:
            context = Sharding(new.sharding.dims.replace("L", "M"), new.sharding.axes)
            return self.builder.local(LocalKind.AS_KEYS, (new,), context, f"{name}s")
        past = new.sharding.dims.replace("L", "P")
        cache = self.builder.cache(f"{name} cache", Sharding(past, new.sharding.axes))
        whole = Sharding(past.replace("P", "M"), new.sharding.axes)
        return self.builder.local(LocalKind.CACHE_APPEND, (cache, new), whole, f"{name}s", Role.KV)

    def _project_out(self, mixed: Tensor, product: str) -> Tensor:
        b, heads, axes = self.builder, self.heads, self.axes
        if heads.batch_slice:
            mixed = b.all_gather(mixed, (("B", heads.batch_slice),))
        kv_dim, query_dim = self._head_dims()
        mixed = b.all_to_all(mixed, "B", query_dim, heads.batch_query, fused="from batch")
        if kv_dim:
            mixed = b.all_to_all(mixed, "B", kv_dim, heads.batch_kv, fused="from batch")
        owner = {"kv": kv_dim, "query": query_dim}.get(heads.embed_to)
        if owner:
            mixed = b.all_gather(mixed, ((owner, axes.embed),), product, fused=f"gather {product}")
        mixed = b.slice(mixed, "D", minus(heads.head_dim, axes.gathered))
        stored = self._head_sharding(self.query_dims + "E")
        weight = self.weight("W_o", stored, "attention", product)
        return b.einsum(mixed, weight, "BLE", "attention out", product)

    def _head_dims(self) -> tuple[str, str]:
        """Letters of the key/value head dimension (empty in multiquery) and of the query heads."""
        return {"multihead": ("H", ""), "multiquery": ("", "H"), "grouped-query": ("K", "G")}[
            self.structure.attention
        ]

    def _head_sharding(self, dims: str) -> Sharding:
        kv_dim, query_dim = self._head_dims()
        split = {"E": self.axes.stored_embed, "D": self.heads.head_dim}
        split |= {kv_dim: self.heads.kv, query_dim: self.heads.query}
        return _sharding(dims, **{d: a for d, a in split.items() if d})

    def _sum_over_embed(self, tensor: Tensor, is_query: bool, product: str) -> Tensor:
        kv_dim, query_dim = self._head_dims()
        target = {"kv": kv_dim, "query": query_dim if is_query else ""}.get(self.heads.embed_to, "")
        if not tensor.sharding.partial:
            return tensor
        if target:
            moves = ((target, self.axes.embed),)
            return self.builder.reduce_scatter(tensor, moves, product, fused=f"scatter {product}")
        return self.builder.all_reduce(tensor, self.axes.embed, fused=f"sum {product}")

    def _gather_head_dim(self, tensor: Tensor) -> Tensor:
        return self.builder.all_gather(tensor, (("D", tensor.sharding.axes_of("D")),))

    # ---- joining -----------------------------------------------------------------------------

    def joined(self, x: Tensor, out: Tensor, product: str) -> Tensor:
        """Sum the output over chips and add it to the residual stream."""
        scattered = self.builder.reduce_scatter(out, self._between_blocks(), hides_behind=product)
        return self.builder.add(x, scattered, "x")


def residual_sharding(axes: LayoutAxes) -> Sharding:
    """Sharding of the residual stream between blocks: BLE_xyz, or B_xLE_yz … when weights are gathered."""
    return Sharding("BLE", tuple(axes.residual_axes(dim) for dim in "BLE"))


def norm(builder: ProgramBuilder, x: Tensor) -> Tensor:
    """Write a normalisation over E: statistics of each shard, their all-reduce, and the scaling."""
    sharding = x.sharding
    split = sharding.axes_of("E")
    dims = sharding.dims.replace("E", "S")
    token_axes = tuple("" if d == "E" else a for d, a in zip(sharding.dims, sharding.axes, strict=True))
    statistic = builder.local(
        LocalKind.NORM_STATISTIC, (x,), Sharding(dims, token_axes, split), "statistic", Role.STATISTIC
    )
    if split:
        statistic = builder.all_reduce(statistic, split)
    scale = builder.weight("scale", _sharding("E", E=split), "norm")
    return builder.local(LocalKind.NORM, (x, statistic, scale), sharding, "normed")


@lru_cache(maxsize=512)
def block_program(structure: Structure, phase: str) -> LayerProgram:
    """Write one Transformer block, serial or parallel (Pope 3.4)."""
    writer = BlockWriter(structure, phase)
    x = writer.residual()
    if structure.parallel:
        normed = writer.normed(x, "in")
        ffn = writer.feedforward(normed, "in", "out")
        attention = writer.attention(normed, "in", "out")
        writer.builder.section("Sum")
        return writer.builder.finish(writer.joined(x, writer.builder.add(ffn, attention, "out"), "out"))
    parts: tuple[tuple[str, Callable[[Tensor, str, str], Tensor]], ...] = (
        ("attention", writer.attention),
        ("ffn", writer.feedforward),
    )
    for name, part in parts:
        writer.builder.section("Norm")
        normed = writer.normed(x, f"{name} in")
        x = writer.joined(x, part(normed, f"{name} in", f"{name} out"), f"{name} out")
    return writer.builder.finish(x)


@lru_cache(maxsize=512)
def embedding_program(structure: Structure) -> LayerProgram:
    """Look tokens up in a table split over both dimensions and bring the rows to the residual layout."""
    axes = structure.axes
    b = ProgramBuilder("embedding", structure.mesh_axes)
    tokens = b.input("tokens", _sharding("BL"), Role.TOKEN)
    table, split = _table(b, structure, "VE")
    rows = _sharding("BLE", E=table.sharding.axes_of("E")).with_partial(split)
    x = b.local(LocalKind.LOOKUP, (tokens, table), rows, "x")
    x = b.reduce_scatter(x, (("B", minus(axes.tokens, table.sharding.axes_of("E"))),), hides_behind="x")
    x = b.all_to_all(x, "E", "B", minus(axes.tokens, x.sharding.axes_of("B")))
    if axes.scatter_into:
        return b.finish(_tokens_split(b, x, axes))
    missing = axes.residual.removeprefix(x.sharding.axes_of("E"))
    return b.finish(b.reduce_scatter(x, (("E", missing),), hides_behind="x"))


def _tokens_split(b: ProgramBuilder, x: Tensor, axes: LayoutAxes) -> Tensor:
    """Sum looked-up rows and split the tokens over what does not split E between blocks."""
    dim, split = axes.scatter_into, axes.embed_gather
    summed = "".join(axis for axis in split if axis in x.sharding.partial)
    x = b.reduce_scatter(x, ((dim, summed),), hides_behind="x")
    return b.all_to_all(x, "E", dim, minus(split, summed))


@lru_cache(maxsize=512)
def logits_program(structure: Structure) -> LayerProgram:
    """Normalise the last token of each sequence and multiply it with the output table, split over V."""
    axes = structure.axes
    b = ProgramBuilder("logits", structure.mesh_axes)
    x = b.input("x", residual_sharding(axes))
    over_sequence = axes.residual_axes("L")
    last = Sharding("BE", (axes.residual_axes("B"), axes.residual_axes("E")), over_sequence)
    x = b.local(LocalKind.LAST_TOKEN, (x,), last, "last")
    table_embed = _table_axes(structure)[0]
    if table_embed and table_embed in over_sequence:
        x = b.reduce_scatter(x, (("E", table_embed),))
    if x.sharding.partial:
        x = b.all_reduce(x, x.sharding.partial)
    if table_embed and table_embed in x.sharding.axes_of("B"):
        _, _, inner = x.sharding.axes_of("B").partition(table_embed)
        x = b.all_gather(x, (("B", inner),))
        x = b.all_gather(x, (("E", x.sharding.axes_of("E")),))
        x = b.all_to_all(x, "B", "E", table_embed)
    x = b.all_gather(x, (("B", x.sharding.axes_of("B")),))
    x = b.all_gather(x, (("E", x.sharding.axes_of("E").removeprefix(table_embed)),), hides_behind="logits")
    x = norm(b, x)
    table, _ = _table(b, structure, "EV")
    logits = b.einsum(x, table, "BV", "logits", "logits")
    return b.finish(b.reduce_scatter(logits, (("V", table_embed),), hides_behind="logits"))


def _table_axes(structure: Structure) -> tuple[str, str]:
    """Axes of E and of V in the embedding: x and the rest, whatever the layout of the blocks."""
    live = structure.mesh_axes
    return "".join(a for a in "x" if a in live), "".join(a for a in "zy" if a in live)


def _table(b: ProgramBuilder, structure: Structure, dims: str) -> tuple[Tensor, str]:
    embed, rows = _table_axes(structure)
    return b.weight("table", _sharding(dims, E=embed, V=rows), "embedding"), rows
