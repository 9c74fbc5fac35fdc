"""Which mesh axes split what: the choices that shape a layer program, made from sizes once.

A program is symbolic; only these choices depend on numbers (does an axis exist, does it divide the
heads, does it divide the batch). Equal choices share one program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from model_core.spec.model import ModelSpec
from model_core.spec.plan import AttentionSharding, BlockForm, FfnLayout, PlanSpec, ScatterInto

GATHERED: dict[FfnLayout, str] = {
    FfnLayout.WEIGHT_STATIONARY_1D: "",
    FfnLayout.WEIGHT_STATIONARY_2D: "",
    FfnLayout.WEIGHT_GATHERED_X: "x",
    FfnLayout.WEIGHT_GATHERED_XY: "xy",
    FfnLayout.WEIGHT_GATHERED_XYZ: "xyz",
}


SCATTERED = {ScatterInto.HIDDEN: "", ScatterInto.BATCH: "B", ScatterInto.SEQUENCE: "L"}


@dataclass(frozen=True, slots=True)
class LayoutAxes:
    """Axes of a feedforward layout; strings of axes, major first, of size above one only.

    stored_embed, stored_hidden: how W_in [E, F] is stored. gathered: weight axes gathered before the
    products. tokens: axes that split the batch. residual: axes of E between blocks. scatter_into: the
    dimension that sums are scattered into instead, B or L (batch or sequence); empty: E and F.
    """

    stored_embed: str
    stored_hidden: str
    gathered: str
    tokens: str
    residual: str
    scatter_into: str = ""

    @property
    def embed(self) -> str:
        """Axes of E during the products."""
        return minus(self.stored_embed, self.gathered)

    @property
    def hidden(self) -> str:
        """Axes of F during the products."""
        return minus(self.stored_hidden, self.gathered)

    @property
    def embed_gather(self) -> str:
        """Axes gathered before the products, scattered back after them; from E, or from the tokens."""
        gathered = self.residual.removeprefix(self.embed)
        # The embedding splits E over x and sums over the rest: x comes last where tokens are split.
        return minus(gathered, "x") + ("x" if "x" in gathered else "") if self.scatter_into else gathered

    def residual_axes(self, dim: str) -> str:
        """Axes of a dimension of the activations between blocks."""
        if not self.scatter_into:
            return {"B": self.tokens, "E": self.residual}.get(dim, "")
        split = {"B": self.tokens, "E": self.embed}.get(dim, "")
        return split + (self.embed_gather if dim == self.scatter_into else "")


@dataclass(frozen=True, slots=True)
class HeadAxes:
    """Axes of the attention heads.

    kv, query: stored axes of the key/value head dimension and of the query heads that share one;
    head_dim: stored axes that divide neither and split d_head in the projections instead;
    embed_to: which head dimension takes the partial sums over the axes of E (``"kv"``, ``"query"``, or
    empty: they are all-reduced); batch_kv, batch_query, batch_slice: axes that split the batch during
    the attention itself, coming from those dimensions or from replicas.
    """

    kv: str
    query: str
    head_dim: str
    embed_to: str
    batch_kv: str = ""
    batch_query: str = ""
    batch_slice: str = ""


@dataclass(frozen=True, slots=True)
class Structure:
    """Everything a layer program depends on; hashable, the key of the program cache."""

    mesh_axes: str
    axes: LayoutAxes
    heads: HeadAxes
    attention: str
    gated: bool
    parallel: bool


def layout_axes(layout: FfnLayout, sizes: dict[str, int]) -> LayoutAxes:
    """Axes of a layout on a mesh with the given sizes (Pope 3.2 and Figures 2, A.2).

    F is stored z major, so that gathering x, then y, then z leaves whole blocks on every chip.
    """
    live = "".join(a for a in "xyz" if sizes.get(a, 1) > 1)

    def only(axes: str) -> str:
        return "".join(a for a in axes if a in live)

    if layout is FfnLayout.WEIGHT_STATIONARY_1D:
        return LayoutAxes("", only("zyx"), "", "", only("xzy"))
    gathered = only(GATHERED[layout])
    tokens = gathered[::-1]
    return LayoutAxes(only("x"), only("zy"), gathered, tokens, only(minus("xzy", gathered)))


def head_axes(model: ModelSpec, axes: LayoutAxes, sizes: dict[str, int]) -> HeadAxes:
    """Split the heads over the axes that divide them (Pope 3.3); key/value heads first."""
    left = {"kv": model.n_kv_heads, "query": model.n_heads // model.n_kv_heads}

    def owner(axis: str) -> str:
        for dim, heads in left.items():
            if heads % sizes[axis] == 0:
                left[dim] = heads // sizes[axis]
                return dim
        return ""

    split = {"kv": "", "query": "", "": ""}
    for axis in axes.stored_hidden:
        split[owner(axis)] += axis
    embed_to = owner(axes.embed) if axes.embed else ""
    return HeadAxes(split["kv"], split["query"], split[""], embed_to)


def with_batch_axes(heads: HeadAxes, axes: LayoutAxes, batch: int, sizes: dict[str, int]) -> HeadAxes:
    """Choose the axes that split the batch during attention: minor ones first, as long as they divide it."""
    tokens = _product(axes.tokens, sizes)
    left = batch // tokens if batch % tokens == 0 else 1
    embed = axes.embed
    open_axes = {
        "kv": minus(heads.kv, axes.gathered) + (embed if heads.embed_to == "kv" else ""),
        "query": minus(heads.query, axes.gathered) + (embed if heads.embed_to == "query" else ""),
    }
    replicas = minus(heads.head_dim, axes.gathered) + ("" if heads.embed_to else embed)
    taken = {"kv": "", "query": "", "slice": ""}
    for axis in reversed(axes.hidden + embed):
        owner = (
            "slice" if axis in replicas else next((d for d, a in open_axes.items() if a.endswith(axis)), "")
        )
        if not owner or left % sizes[axis]:
            continue
        left //= sizes[axis]
        taken[owner] = axis + taken[owner]
        if owner != "slice":
            open_axes[owner] = open_axes[owner].removesuffix(axis)
    return replace(heads, batch_kv=taken["kv"], batch_query=taken["query"], batch_slice=taken["slice"])


def structure_of(model: ModelSpec, plan: PlanSpec, batch: int, sizes: dict[str, int]) -> Structure:
    """Collect the choices for a model, plan and batch on a mesh."""
    axes = replace(layout_axes(plan.ffn_layout, sizes), scatter_into=SCATTERED[plan.scatter_into])
    heads = head_axes(model, axes, sizes)
    if plan.attention_sharding is AttentionSharding.BATCH:
        heads = with_batch_axes(heads, axes, batch, sizes)
    parallel = model.parallel_block if plan.block is BlockForm.AS_MODEL else plan.block is BlockForm.PARALLEL
    return Structure(
        mesh_axes="".join(a for a in "xyz" if sizes.get(a, 1) > 1),
        axes=axes,
        heads=heads,
        attention=model.attention_kind,
        gated=model.gated_ffn,
        parallel=parallel,
    )


def minus(axes: str, removed: str) -> str:
    """Return the axes without some of them, in order."""
    return "".join(a for a in axes if a not in removed)


def _product(axes: str, sizes: dict[str, int]) -> int:
    product = 1
    for axis in axes:
        product *= sizes[axis]
    return product
