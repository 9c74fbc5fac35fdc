"""Runs the parts of a layer that only experts and latent attention have; see `execute`.

A dispatch really moves every copy of a token to the slot of its expert, and counts the elements that chips
receive hop by hop. The order of the tokens in a slot follows from the routing, so that the combine finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from model_core.partition.notation import ShardingError
from model_core.partition.program import Collective, CollectiveKind, LocalKind, Routing

if TYPE_CHECKING:
    from model_core.partition.execute import Coordinates, Execution, Shards, VirtualMesh

Array = NDArray[Any]
EPSILON = 1e-6
ROTARY_BASE = 10_000.0


# ---- dispatch and combine --------------------------------------------------------------------------


def _copies(
    op: Collective, run: Execution
) -> Iterator[tuple[Coordinates, int, Coordinates, int, int, float]]:
    """Yield every copy: source chip, its token, chip of the slot, slot there, place in it, weight."""
    routing = _routing(op)
    slots_of = op.output if op.kind is CollectiveKind.DISPATCH else op.input
    axes = slots_of.sharding.axes_of("X")
    n_slots = run.sizes["X"] // run.mesh.size(axes)
    owners = {run.mesh.position(chip, axes): chip for chip in run.mesh.chips()}
    filled: dict[int, int] = {}
    tokens = op.input if op.kind is CollectiveKind.DISPATCH else op.output
    token_axes = tokens.sharding.axes_of("B") + tokens.sharding.axes_of("L")
    for source in sorted(run.mesh.chips(), key=lambda chip: run.mesh.position(chip, token_axes)):
        weights = run.tensors[routing.weights.name][source].reshape(-1, run.sizes["X"])
        for token, slot in np.argwhere(weights != 0):
            place = filled.get(int(slot), 0)
            filled[int(slot)] = place + 1
            if place >= run.sizes["T"]:
                raise ShardingError(f"slot {slot} has room for {run.sizes['T']} tokens")
            owner, local = divmod(int(slot), n_slots)
            yield source, int(token), owners[owner], local, place, float(weights[token, slot])


def _routing(op: Collective) -> Routing:
    if op.routing is None:
        raise ShardingError(f"{op.kind} of {op.input.name} has no routing")
    return op.routing


def _outer(chip: Coordinates, mesh: VirtualMesh, inner: str) -> Coordinates:
    """Return the coordinates along the axes between nodes: the node."""
    return tuple(c for axis, c in zip(mesh.axes, chip, strict=True) if axis not in inner)


def _relay(source: Coordinates, target: Coordinates, mesh: VirtualMesh, inner: str) -> Coordinates:
    """Return the chip of the target's node with the same index inside the node as the source."""
    pairs = zip(mesh.axes, source, target, strict=True)
    return tuple(s if axis in inner else t for axis, s, t in pairs)


class _Traffic:
    """Counts the copies that cross the network and those that stay inside a node, each sent once."""

    def __init__(self, run: Execution, routing: Routing) -> None:
        self._mesh, self._routing = run.mesh, routing
        self._seen: set[tuple[object, ...]] = set()
        self.network = 0
        self.inside = 0

    def add(self, source: Coordinates, token: int, target: Coordinates) -> None:
        inner, mesh = self._routing.inner, self._mesh
        if not self._routing.two_hop:
            self._hop(source, target)
            return
        relay = _relay(source, target, mesh, inner)
        for first, second in ((source, relay), (relay, target)):
            if (source, token, first, second) not in self._seen:
                self._seen.add((source, token, first, second))
                self._hop(first, second)

    def _hop(self, first: Coordinates, second: Coordinates) -> None:
        if first == second:
            return
        inner = self._routing.inner
        if _outer(first, self._mesh, inner) == _outer(second, self._mesh, inner):
            self.inside += 1
        else:
            self.network += 1


def _dispatch(op: Collective, run: Execution) -> tuple[Shards, float]:
    tokens = run.tensors[op.input.name]
    first = next(iter(tokens.values()))
    n_slots = run.sizes["X"] // run.mesh.size(op.output.sharding.axes_of("X"))
    shape = (n_slots, run.sizes["T"], first.shape[-1])
    arrived: Shards = {chip: np.zeros(shape, first.dtype) for chip in run.mesh.chips()}
    traffic = _Traffic(run, _routing(op))
    for source, token, target, slot, place, _ in _copies(op, run):
        arrived[target][slot, place] = tokens[source].reshape(-1, first.shape[-1])[token]
        traffic.add(source, token, target)
    run.crossed = traffic.network
    return arrived, float((traffic.network + traffic.inside) * first.shape[-1])


def _combine(op: Collective, run: Execution) -> tuple[Shards, float]:
    results = run.tensors[op.input.name]
    width = next(iter(results.values())).shape[-1]
    routing = _routing(op)
    weights = run.tensors[routing.weights.name]
    back: Shards = {c: np.zeros((*w.shape[:-1], width), w.dtype) for c, w in weights.items()}
    traffic = _Traffic(run, routing)
    for source, token, target, slot, place, weight in _copies(op, run):
        back[source].reshape(-1, width)[token] += weight * results[target][slot, place]
        traffic.add(source, token, target)
    run.crossed = traffic.network
    return back, float((traffic.network + traffic.inside) * width)


EXPERT_COLLECTIVES: dict[CollectiveKind, Callable[[Collective, Execution], tuple[Shards, float]]] = {
    CollectiveKind.DISPATCH: _dispatch,
    CollectiveKind.COMBINE: _combine,
}


# ---- local work ---------------------------------------------------------------------------------


def route(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    """Weights of the slots for every token: the ``topk`` best experts, each in one of its slots.

    Experts fill the first Y slots, copies of the first experts the next; the last ``shared_slots`` hold a
    shared expert that every token visits with weight one. Tokens take the copies in turn. A bias, where
    there is one, chooses but does not weigh (DeepSeek-V3 report, 2.1.2).
    """
    scores = 1 / (1 + np.exp(-inputs[0]))
    chosen_by = scores + inputs[1] if len(inputs) > 1 else scores
    n_experts, n_slots = sizes["Y"], sizes["X"]
    routed_slots = n_slots - sizes.get("shared_slots", 0)
    flat, by = scores.reshape(-1, n_experts), chosen_by.reshape(-1, n_experts)
    weights = np.zeros((flat.shape[0], n_slots), scores.dtype)
    for token in range(flat.shape[0]):
        best = np.argsort(-by[token], kind="stable")[: sizes["topk"]]
        share = flat[token, best] / flat[token, best].sum()
        for expert, value in zip(best, share, strict=True):
            slots = range(int(expert), routed_slots, n_experts)
            weights[token, slots[token % len(slots)]] = value
        if routed_slots < n_slots:
            weights[token, routed_slots + token % (n_slots - routed_slots)] = 1
    return weights.reshape(*scores.shape[:-1], n_slots)


def rotary(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    """Rotate the two halves of the last dimension by the position of the token (second dimension)."""
    (x,) = inputs
    half = x.shape[-1] // 2
    position = sizes["P"] + np.arange(x.shape[1])
    angle = position[:, None] / ROTARY_BASE ** (np.arange(half) / half)
    angle = angle.reshape(1, x.shape[1], *(1,) * (x.ndim - 3), half)
    cos, sin = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def latent_norm(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    """RMS norm over a last dimension that every chip holds whole."""
    x, scale = inputs
    result: Array = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON) * scale
    return result


EXPERT_WORK: dict[LocalKind, Callable[[list[Array], Mapping[str, int]], Array]] = {
    LocalKind.ROUTE: route,
    LocalKind.ROTARY: rotary,
    LocalKind.LATENT_NORM: latent_norm,
}
