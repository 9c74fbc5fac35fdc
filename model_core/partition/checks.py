"""Finds what does not divide, what is padded and what is replicated in a layout."""

from __future__ import annotations

from model_core.arithmetic import Number
from model_core.diagnostics import Diagnostic
from model_core.partition.notation import DIMENSION_NAMES
from model_core.partition.sizes import Sizes
from model_core.partition.structure import Structure
from model_core.spec.plan import AttentionSharding, PlanSpec


def layout_diagnostics(structure: Structure, plan: PlanSpec, sizes: Sizes) -> tuple[Diagnostic, ...]:
    """Name every dimension that the layout cannot split evenly, with the nearest sizes that it can."""
    found = [
        *(_even(dim, axes, path, sizes) for dim, axes, path in even_splits(structure)),
        _padded("V", "".join(structure.mesh_axes), "model.vocab_size", sizes),
        _replicated_heads(structure, sizes),
    ]
    if plan.attention_sharding is AttentionSharding.BATCH:
        found.append(_partly_sharded_batch(structure, sizes))
    return tuple(d for d in found if d is not None)


def even_splits(structure: Structure) -> tuple[tuple[str, str, str], ...]:
    """List the dimensions that must divide: letter, the axes that split it, and the field it comes from."""
    axes, heads = structure.axes, structure.heads
    between = axes.residual_axes("E").removeprefix(axes.embed)
    hidden = "" if axes.scatter_into else axes.embed
    splits = (
        ("E", axes.stored_embed + between, "model.d_model"),
        ("F", axes.stored_hidden + hidden, "model.d_ff"),
        ("D", heads.head_dim, "model.d_head"),
        ("B", axes.residual_axes("B"), "workload.batch"),
    )
    if not axes.scatter_into:
        return splits
    inside = (axes.tokens if axes.scatter_into == "B" else "") + axes.embed
    path = "workload.batch" if axes.scatter_into == "B" else "workload.input_length"
    return (*splits, ("L", axes.residual_axes("L"), path), (axes.scatter_into, inside, path))


def splits_evenly(structure: Structure, sizes: Sizes) -> Number:
    """Tell, elementwise, whether `layout_diagnostics` finds no dimension that does not divide."""
    fits: Number = True
    for dim, axes, _ in even_splits(structure):
        fits = fits & (sizes.local(dim, axes) * sizes.ways(axes) == sizes.values[dim])
    return fits


def split_values(dim: str, axes: str, sizes: Sizes) -> tuple[dict[str, object], int, int]:
    """Return what a message says of a dimension and its axes, its size and the number of parts."""
    size, ways = int(sizes.values[dim]), int(sizes.ways(axes))
    above = -(-size // ways) * ways
    values: dict[str, object] = {
        "dimension": f"{DIMENSION_NAMES[dim]} ({dim})",
        "size": size,
        "axes": "".join(sorted(axes)),
        "ways": ways,
        "below": max(above - ways, ways),
        "above": above if above > ways else 2 * ways,
        "padded": above,
        "waste": f"{1 - size / above:.0%}",
    }
    return values, size, ways


def _even(dim: str, axes: str, path: str, sizes: Sizes) -> Diagnostic | None:
    values, size, ways = split_values(dim, axes, sizes)
    return None if size % ways == 0 else Diagnostic("does_not_divide", path, values)


def _padded(dim: str, axes: str, path: str, sizes: Sizes) -> Diagnostic | None:
    values, size, ways = split_values(dim, axes, sizes)
    return None if size % ways == 0 else Diagnostic("padded", path, values)


def _replicated_heads(structure: Structure, sizes: Sizes) -> Diagnostic | None:
    heads, axes = structure.heads, structure.axes
    replicated = heads.head_dim + ("" if heads.embed_to else axes.embed)
    if not replicated:
        return None
    values = {
        "size": sizes.values["H"],
        "ways": sizes.ways(axes.stored_hidden + axes.embed),
        "axes": "".join(sorted(replicated)),
    }
    return Diagnostic("heads_replicated", "model.n_heads", values)


def _partly_sharded_batch(structure: Structure, sizes: Sizes) -> Diagnostic | None:
    heads = structure.heads
    used = structure.axes.tokens + heads.batch_kv + heads.batch_query + heads.batch_slice
    left = "".join(a for a in structure.mesh_axes if a not in used)
    if not left:
        return None
    if not used:
        values = {"size": sizes.values["B"], "ways": sizes.ways(structure.mesh_axes)}
        return Diagnostic("batch_not_sharded", "workload.batch", values)
    values = {
        "size": sizes.values["B"],
        "used": "".join(sorted(used)),
        "replicas": sizes.ways(left),
        "ways": sizes.ways(structure.mesh_axes),
    }
    return Diagnostic("batch_partly_sharded", "workload.batch", values)
