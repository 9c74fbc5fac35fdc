"""How each operation changes a sharding; the builder makes tensors with these and readers trust them."""

from __future__ import annotations

from model_core.partition.notation import Sharding, ShardingError

Moves = tuple[tuple[str, str], ...]


def einsum_sharding(left: Sharding, right: Sharding, dims: str, of_partial: bool = False) -> Sharding:
    """Sharding of a product's output.

    A letter keeps the axes it has in the inputs; a contracted letter leaves its axes as partial sums.

    Args:
        left: one input.
        right: the other input.
        dims: letters of the output.
        of_partial: allow one input to be a partial sum, as gradients may be: the output then is one too.

    Raises:
        ShardingError: an input still has partial sums, or a shared letter is split differently.
    """
    for side in (left, right):
        if side.partial and (not of_partial or (left.partial and right.partial)):
            raise ShardingError(f"{side} must be summed over {side.partial} before a product")
    axes: dict[str, str] = {}
    for side in (left, right):
        for dim, split in zip(side.dims, side.axes, strict=True):
            if axes.setdefault(dim, split) != split:
                raise ShardingError(f"dimension {dim} is split differently in {left} and {right}")
    shared = set(left.dims) & set(right.dims)
    for dim in axes:
        if dim not in dims and dim not in shared:
            raise ShardingError(f"dimension {dim} of {left} and {right} is neither kept nor contracted")
    contracted = "".join(split for dim, split in axes.items() if dim not in dims)
    partial = left.partial + right.partial + contracted
    try:
        return Sharding(dims, tuple(axes[d] for d in dims), partial)
    except KeyError as error:
        raise ShardingError(f"{left} and {right} have no dimension {error.args[0]}") from None


def all_gather_sharding(before: Sharding, moves: Moves) -> Sharding:
    """Sharding after an all-gather: the last axes of a dimension become replicated."""
    after = before
    for dim, axes in moves:
        split = after.axes_of(dim)
        if not split.endswith(axes):
            raise ShardingError(f"all-gather({axes}): {dim} of {before} is not split over {axes} last")
        after = after.with_axes(dim, split.removesuffix(axes))
    return after


def reduce_scatter_sharding(before: Sharding, moves: Moves) -> Sharding:
    """Sharding after a reduce-scatter: partial sums over axes become a split over them."""
    after = before
    for dim, axes in moves:
        missing = set(axes) - set(after.partial)
        if missing:
            raise ShardingError(f"reduce-scatter({axes}): {before} is no partial sum over {min(missing)}")
        left = "".join(a for a in after.partial if a not in axes)
        after = after.with_partial(left).with_axes(dim, after.axes_of(dim) + axes)
    return after


def all_reduce_sharding(before: Sharding, axes: str) -> Sharding:
    """Sharding after an all-reduce: partial sums over axes become replicas."""
    missing = set(axes) - set(before.partial)
    if missing:
        raise ShardingError(f"all-reduce({axes}): {before} is no partial sum over {min(missing)}")
    return before.with_partial("".join(a for a in before.partial if a not in axes))


def all_to_all_sharding(before: Sharding, source: str, target: str, axes: str) -> Sharding:
    """Sharding after an all-to-all: the last axes of one dimension move to another (BLH_xQ to B_xLHQ)."""
    split = before.axes_of(source)
    if not split.endswith(axes):
        raise ShardingError(f"all-to-all({axes}): {source} of {before} is not split over {axes} last")
    moved = before.with_axes(source, split.removesuffix(axes))
    return moved.with_axes(target, moved.axes_of(target) + axes)


def dispatched_sharding(before: Sharding) -> Sharding:
    """Sharding after tokens went to the slots of their experts, over the axes that split the tokens.

    Raises:
        ShardingError: a token is split, or not all its numbers are in one place.
    """
    if before.axes_of("E") or before.partial:
        raise ShardingError(f"dispatch: {before} must hold whole tokens")
    return Sharding("XTE", (before.axes_of("B") + before.axes_of("L"), "", ""))


def slice_sharding(before: Sharding, dim: str, axes: str) -> Sharding:
    """Sharding after each chip keeps only its own part of a replicated dimension; nothing is sent."""
    return before.with_axes(dim, before.axes_of(dim) + axes)


def pad_sharding(before: Sharding, dim: str, axes: str) -> Sharding:
    """Sharding after each chip puts its own part among zeros: the reverse of `slice_sharding`, summed up."""
    kept = all_gather_sharding(before, ((dim, axes),))
    return kept.with_partial(kept.partial + axes)
