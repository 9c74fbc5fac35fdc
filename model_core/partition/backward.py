"""Derives the backward pass of a layer program: input gradients (I) and weight gradients (W).

Each einsum yields the two einsums of its inputs' gradients, each collective its dual: all-gather and
reduce-scatter swap, an all-to-all goes back. The gradient of a partial sum is the same on every chip;
the gradient of what every chip holds a copy of is a partial sum wherever the copies were used
differently. So the forward notation fixes the backward one. Dispatch and combine swap too: gradients
travel the ways of the tokens back, those of the results with the weights that these were summed with. The
halves of a block with experts are read for their cost and memory, not executed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from model_core.partition.builder import ProgramBuilder
from model_core.partition.notation import Sharding
from model_core.partition.program import (
    Collective,
    CollectiveKind,
    Einsum,
    LayerProgram,
    Local,
    LocalKind,
    Op,
    Role,
    Routing,
    Tensor,
)

Recompute = Callable[[Op], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Backward:
    """The two halves of a backward pass.

    ``saved`` are the forward tensors that must be kept until the pass; ``weight_gradient`` needs the
    gradients in ``passed``, which the input half made. Outputs of the weight half may be partial sums
    over axes that hold copies of a weight: they are summed once a step, after all microbatches.
    """

    input_gradient: LayerProgram
    weight_gradient: LayerProgram
    saved: tuple[Tensor, ...]
    passed: tuple[Tensor, ...]


def recompute_nothing(op: Op) -> bool:
    """Keep every tensor but the attention scores, which a fused kernel never writes."""
    return op.output.role is Role.ON_CHIP


def recompute_gathers(op: Op) -> bool:
    """Keep the shards of what was gathered and gather them again (Korthikanti et al. 2022, 4.2.2)."""
    gathers = isinstance(op, Collective) and op.kind is CollectiveKind.ALL_GATHER
    return gathers or recompute_nothing(op)


class _Half:
    """One of the two programs being written, and the forward tensors it already has."""

    def __init__(self, program: LayerProgram, title: str, recompute: Recompute) -> None:
        self.builder = ProgramBuilder(f"{program.name}, {title}", program.mesh_axes)
        self.saved: dict[str, Tensor] = {}
        self.passed: dict[str, Tensor] = {}
        self._have: dict[str, Tensor] = {}
        self._makers = {op.output.name: op for op in program.ops}
        self._recompute = recompute

    def forward(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the forward pass: a stored weight, a kept one, or one computed again."""
        if tensor.name not in self._have:
            self._have[tensor.name] = self._obtain(tensor)
        return self._have[tensor.name]

    def _obtain(self, tensor: Tensor) -> Tensor:
        maker = self._makers.get(tensor.name)
        if maker is None and tensor.role is Role.WEIGHT:
            return self.builder.weight(tensor.name, tensor.sharding, tensor.group)
        if maker is None or not (self._recompute(maker) or tensor.role is Role.WEIGHT):
            self.saved[tensor.name] = tensor
            return self.builder.input(tensor.name, tensor.sharding, tensor.role)
        return self.builder.replay(maker, tuple(self.forward(t) for t in maker.inputs))

    def given(self, gradient: Tensor) -> Tensor:
        """Return a gradient that the other half made."""
        key = f"gradient {gradient.name}"
        if key not in self._have:
            self._have[key] = self.builder.input(gradient.name, gradient.sharding, gradient.role)
            self.passed[gradient.name] = gradient
        return self._have[key]


class _Reverse:
    """Walks a program backwards; ``gradients`` holds what is known so far, by forward tensor."""

    def __init__(self, program: LayerProgram, recompute: Recompute) -> None:
        self.program = program
        self.inward = _Half(program, "input gradient", recompute)
        self.weights = _Half(program, "weight gradient", recompute)
        self.gradients: dict[str, Tensor] = {}
        self.combined: dict[str, Tensor] = {}
        self.weight_gradients: dict[str, Tensor] = {}

    def run(self) -> Backward:
        for tensor in self.program.outputs:
            self.gradients[tensor.name] = self.inward.builder.input(_name(tensor), tensor.sharding)
        for op in reversed(self.program.ops):
            self._reverse(op)
        inputs = [self._summed(t) for t in self.program.inputs if t.role is Role.ACTIVATION]
        # The bias of a gate has none: it follows the load (DeepSeek-V3 report, 2.1.2).
        stored = [
            self.weight_gradients[t.name] for t in self.program.weights if t.name in self.weight_gradients
        ]
        saved = {**self.inward.saved, **self.weights.saved}
        return Backward(
            self.inward.builder.finish(*inputs),
            self.weights.builder.finish(*stored),
            tuple(saved.values()),
            tuple(self.weights.passed.values()),
        )

    def _summed(self, tensor: Tensor) -> Tensor:
        gradient = self.gradients[tensor.name]
        return self.inward.builder.all_reduce(gradient, gradient.sharding.partial)

    def _reverse(self, op: Op) -> None:
        if op.output.role is Role.STATISTIC:
            return  # the norm's gradient accounts for its statistics
        if isinstance(op, Collective) and op.output.role is Role.WEIGHT:
            gradient = self.weight_gradients.pop(op.output.name)
            self.weight_gradients[op.input.name] = _dual(self.weights.builder, op, gradient)
            return
        if op.output.role is Role.ROUTING:
            self._route(op)
            return
        gradient = self.gradients.pop(op.output.name)
        if isinstance(op, Einsum):
            self._einsum(op, gradient)
        elif isinstance(op, Collective) and op.routing is not None:
            self._routed(op, op.routing, gradient)
        elif isinstance(op, Collective):
            self._add(op.input, _dual(self.inward.builder, op, gradient))
        else:
            self._local(op, gradient)

    def _add(self, tensor: Tensor, gradient: Tensor) -> None:
        """Add a contribution to a tensor's gradient; partial sums that the other lacks are summed first."""
        b = self.inward.builder
        known = self.gradients.get(tensor.name)
        if known is not None:
            extra = [
                _without(a.sharding.partial, c.sharding.partial)
                for a, c in ((gradient, known), (known, gradient))
            ]
            gradient, known = b.all_reduce(gradient, extra[0]), b.all_reduce(known, extra[1])
            gradient = b.add(known, gradient, _name(tensor))
        self.gradients[tensor.name] = gradient

    def _einsum(self, op: Einsum, gradient: Tensor) -> None:
        for tensor, other in ((op.left, op.right), (op.right, op.left)):
            half = self.weights if tensor.role is Role.WEIGHT else self.inward
            known = half.given(gradient) if half is self.weights else gradient
            fused = op.fused and f"d {op.fused}"
            role = Role.ON_CHIP if tensor.role is Role.ON_CHIP else Role.ACTIVATION
            left, right = (known, half.forward(other)) if tensor is op.left else (half.forward(other), known)
            result = half.builder.einsum(
                left, right, tensor.sharding.dims, _name(tensor), fused, role, of_partial=True
            )
            if half is self.weights:
                self.weight_gradients[tensor.name] = result
            else:
                self._add(tensor, result)

    def _local(self, op: Local, gradient: Tensor) -> None:
        if op.kind is LocalKind.ADD:
            for tensor in op.inputs:
                self._add(tensor, gradient)
        elif op.kind is LocalKind.NORM:
            self._norm(op, gradient)
        elif op.kind is LocalKind.LATENT_NORM:
            self._latent_norm(op, gradient)
        elif op.kind is LocalKind.LOOKUP:
            self._lookup(op, gradient)
        else:
            for tensor, result in self._elementwise(op, gradient):
                self._add(tensor, result)

    def _routed(self, op: Collective, routing: Routing, gradient: Tensor) -> None:
        """Reverse a dispatch or combine; the gradient of the weights is made where the choice is reversed."""
        ways = replace(routing, weights=self.inward.forward(routing.weights))
        b = self.inward.builder
        if op.kind is CollectiveKind.DISPATCH:
            self._add(op.input, b.combine(gradient, ways, _name(op.input)))
            return
        self.combined[routing.weights.name] = gradient
        self._add(op.input, b.dispatch(gradient, ways, _name(op.input)))

    def _route(self, op: Op) -> None:
        """Reverse the choice of experts.

        The gradient of a weight is the product of a result and its gradient. Experts find it from what they
        keep anyway and send one number back with each token, so that results need not be kept.
        """
        scores, b = op.inputs[0], self.inward.builder
        inputs = (self.inward.forward(scores), self.combined.pop(op.output.name))
        self._add(scores, b.local(LocalKind.ROUTE_GRADIENT, inputs, scores.sharding, _name(scores)))

    def _latent_norm(self, op: Local, gradient: Tensor) -> None:
        """Reverse the normalisation of a latent, which every chip holds whole."""
        latent, scale = op.inputs
        half, w = self.inward, self.weights
        kept = (half.forward(latent), half.forward(scale), gradient)
        kind = LocalKind.LATENT_NORM_GRADIENT
        self._add(latent, half.builder.local(kind, kept, gradient.sharding, _name(latent)))
        tokens = "".join(
            a for d, a in zip(latent.sharding.dims, latent.sharding.axes, strict=True) if d in "BL"
        )
        sharding = Sharding(scale.sharding.dims, scale.sharding.axes, gradient.sharding.partial + tokens)
        self.weight_gradients[scale.name] = w.builder.local(
            LocalKind.LATENT_SCALE_GRADIENT, (w.forward(latent), w.given(gradient)), sharding, _name(scale)
        )

    def _lookup(self, op: Local, gradient: Tensor) -> None:
        """Reverse a look-up: rows of the table get the sum over the tokens that read them."""
        tokens, table = op.inputs
        w = self.weights
        split = "".join(
            a for d, a in zip(gradient.sharding.dims, gradient.sharding.axes, strict=True) if d in "BL"
        )
        sharding = table.sharding.with_partial(gradient.sharding.partial + split)
        self.weight_gradients[table.name] = w.builder.local(
            LocalKind.TABLE_GRADIENT, (w.forward(tokens), w.given(gradient)), sharding, _name(table)
        )

    def _elementwise(self, op: Local, gradient: Tensor) -> list[tuple[Tensor, Tensor]]:
        b, half = self.inward.builder, self.inward
        first = op.inputs[0]
        if op.kind is LocalKind.SLICE:
            dim = next(d for d, a, c in _changes(first.sharding, op.output.sharding) if a != c)
            return [(first, b.pad(gradient, dim, op.axes))]
        if op.kind is LocalKind.ROTARY:
            return [(first, b.local(LocalKind.ROTARY_GRADIENT, (gradient,), gradient.sharding, _name(first)))]
        if op.kind is LocalKind.AS_KEYS:
            back = Sharding(first.sharding.dims, gradient.sharding.axes, gradient.sharding.partial)
            return [(first, b.local(LocalKind.AS_KEYS, (gradient,), back, _name(first)))]
        if op.kind is LocalKind.SOFTMAX:
            weights = (half.forward(op.output),)
            return [(first, self._gradient_of(LocalKind.SOFTMAX_GRADIENT, weights, gradient, first))]
        kept = tuple(half.forward(t) for t in op.inputs)
        kinds = {
            LocalKind.ACTIVATION: (LocalKind.ACTIVATION_GRADIENT,),
            LocalKind.GATED_ACTIVATION: (LocalKind.GATE_GRADIENT, LocalKind.GATED_GRADIENT),
        }[op.kind]
        return [(t, self._gradient_of(k, kept, gradient, t)) for t, k in zip(op.inputs, kinds, strict=True)]

    def _gradient_of(self, kind: LocalKind, kept: tuple[Tensor, ...], gradient: Tensor, of: Tensor) -> Tensor:
        role = Role.ON_CHIP if of.role is Role.ON_CHIP else Role.ACTIVATION
        return self.inward.builder.local(kind, (*kept, gradient), gradient.sharding, _name(of), role)

    def _norm(self, op: Local, gradient: Tensor) -> None:
        """Reverse a normalisation."""
        x, statistic, scale = op.inputs
        b, half = self.inward.builder, self.inward
        kept_x, kept_statistic, kept_scale = (half.forward(t) for t in op.inputs)
        split = x.sharding.axes_of("E")
        sums = Sharding(statistic.sharding.dims, statistic.sharding.axes, gradient.sharding.partial + split)
        total = b.local(
            LocalKind.NORM_GRADIENT_STATISTIC, (kept_x, kept_scale, gradient), sums, "sums", Role.STATISTIC
        )
        total = b.all_reduce(total, split)
        inputs = (kept_x, kept_statistic, kept_scale, total, gradient)
        self._add(x, b.local(LocalKind.NORM_GRADIENT, inputs, gradient.sharding, _name(x)))
        w = self.weights
        tokens = "".join(a for d, a in zip(x.sharding.dims, x.sharding.axes, strict=True) if d != "E")
        sharding = Sharding("E", (split,), gradient.sharding.partial + tokens)
        factors = (w.forward(x), w.forward(statistic), w.given(gradient))
        self.weight_gradients[scale.name] = w.builder.local(
            LocalKind.SCALE_GRADIENT, factors, sharding, _name(scale)
        )


def _name(tensor: Tensor) -> str:
    return f"d {tensor.name}"


def _without(axes: str, removed: str) -> str:
    return "".join(a for a in axes if a not in removed)


def _changes(before: Sharding, after: Sharding) -> list[tuple[str, str, str]]:
    return list(zip(before.dims, before.axes, after.axes, strict=True))


def _dual(b: ProgramBuilder, op: Collective, gradient: Tensor) -> Tensor:
    hides = op.hides_behind and f"d {op.hides_behind}"
    fused = op.fused and f"d {op.fused}"
    if op.kind is CollectiveKind.ALL_TO_ALL:
        (source, axes), (target, _) = op.moves
        return b.all_to_all(gradient, target, source, axes, fused)
    if op.kind is CollectiveKind.REDUCE_SCATTER:
        return b.all_gather(gradient, op.moves, hides, fused)
    if op.kind is CollectiveKind.ALL_REDUCE:
        return b.all_reduce(gradient, "".join(a for a in op.axes if a in gradient.sharding.partial), fused)
    for dim, axes in op.moves:
        if set(axes) <= set(gradient.sharding.partial):
            gradient = b.reduce_scatter(gradient, ((dim, axes),), hides, fused)
        else:
            gradient = b.slice(gradient, dim, axes)
    return gradient


@lru_cache(maxsize=256)
def backward(program: LayerProgram, recompute: Recompute = recompute_nothing) -> Backward:
    """Derive the backward pass of a layer program without caches (phase training).

    Args:
        program: the forward program.
        recompute: tells of a forward operation whether its output is computed again instead of kept.
    """
    return _Reverse(program, recompute).run()
