"""Layer programs: the einsums and collectives of one layer over sharded tensors, as data.

A program is symbolic: dimensions are letters (`notation.DIMENSION_NAMES`) and mesh axes small letters,
so one program serves every size. Readers bind sizes, which may be numbers or arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from model_core.partition.notation import Sharding


class Role(StrEnum):
    """What a tensor is; decides its dtype and which memory it occupies.

    ``ON_CHIP`` is never written to memory: attention scores, in a fused attention kernel. ``DISPATCHED``
    are tokens on their way to experts, ``ROUTING`` says which experts a token visits and with what weight.
    """

    WEIGHT = "weight"
    ACTIVATION = "activation"
    KV = "kv"
    STATISTIC = "statistic"
    TOKEN = "token"
    ON_CHIP = "on chip"
    DISPATCHED = "dispatched"
    ROUTING = "routing"


class CollectiveKind(StrEnum):
    """Communication between chips (Pope 3.1, A.1)."""

    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_REDUCE = "all-reduce"
    ALL_TO_ALL = "all-to-all"
    DISPATCH = "dispatch"
    COMBINE = "combine"


class LocalKind(StrEnum):
    """Work without communication. Gradients take the gradient of their output as last input."""

    NORM_STATISTIC = "norm statistic"
    NORM = "norm"
    ACTIVATION = "activation"
    GATED_ACTIVATION = "gated activation"
    SOFTMAX = "causal softmax"
    ADD = "add"
    SLICE = "slice"
    CACHE_APPEND = "append to KV cache"
    LOOKUP = "look up"
    LAST_TOKEN = "last token"
    AS_KEYS = "new tokens as context"
    PAD = "place among zeros"
    ROTARY = "rotary position"
    LATENT_NORM = "norm of the latent"
    ROUTE = "choose experts"
    NORM_GRADIENT_STATISTIC = "norm gradient statistic"
    NORM_GRADIENT = "norm gradient"
    SCALE_GRADIENT = "scale gradient"
    ACTIVATION_GRADIENT = "activation gradient"
    GATE_GRADIENT = "gate gradient"
    GATED_GRADIENT = "gated gradient"
    SOFTMAX_GRADIENT = "softmax gradient"
    TABLE_GRADIENT = "table gradient"
    ROTARY_GRADIENT = "rotary gradient"
    LATENT_NORM_GRADIENT = "latent norm gradient"
    LATENT_SCALE_GRADIENT = "latent scale gradient"
    ROUTE_GRADIENT = "gradient of the choice"


LINEAR_KINDS = frozenset(
    {
        LocalKind.ADD,
        LocalKind.SLICE,
        LocalKind.LAST_TOKEN,
        LocalKind.AS_KEYS,
        LocalKind.PAD,
        LocalKind.NORM_GRADIENT_STATISTIC,
        LocalKind.NORM_GRADIENT,
        LocalKind.SCALE_GRADIENT,
        LocalKind.ACTIVATION_GRADIENT,
        LocalKind.GATE_GRADIENT,
        LocalKind.GATED_GRADIENT,
        LocalKind.SOFTMAX_GRADIENT,
        LocalKind.TABLE_GRADIENT,
        LocalKind.ROTARY_GRADIENT,
        LocalKind.LATENT_NORM_GRADIENT,
        LocalKind.LATENT_SCALE_GRADIENT,
        LocalKind.ROUTE_GRADIENT,
    }
)
"""Work that may be done on partial sums; gradients are linear in their last input."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named, sharded tensor. ``group`` names the parameter group of a weight (``"ffn"``, …)."""

    name: str
    sharding: Sharding
    role: Role = Role.ACTIVATION
    group: str = ""


@dataclass(frozen=True, slots=True)
class Einsum:
    """A product of two tensors, contracted over the letters that the output lacks.

    ``fused`` names the matrix multiplication it is fused into (Pope 3.4); empty: stands alone.
    """

    left: Tensor
    right: Tensor
    output: Tensor
    fused: str = ""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors read."""
        return (self.left, self.right)

    @property
    def equation(self) -> str:
        """The product in NumPy's notation."""
        return f"{self.left.sharding.dims},{self.right.sharding.dims}->{self.output.sharding.dims}"


@dataclass(frozen=True, slots=True)
class Routing:
    """How tokens find their experts in a dispatch or combine.

    ``weights`` [.., X] is zero where a token does not visit a slot; ``inner`` are the mesh axes inside a
    node. ``two_hop``: one copy per node crosses the network and is passed on inside the node; otherwise every
    copy goes straight to its expert.
    """

    weights: Tensor
    inner: str
    two_hop: bool


@dataclass(frozen=True, slots=True)
class Collective:
    """Communication over the mesh axes ``axes``.

    ``moves`` lists (dimension, axes): all-gather removes the axes from the dimension, reduce-scatter
    appends them, all-to-all moves them from ``moves[0]`` to ``moves[1]``. ``hides_behind`` is the name of
    the einsum output that Looped CollectiveEinsum runs it with (Pope 3.5); empty: fully exposed.
    ``fused`` names the message it is sent with: only the first of a group pays the latency of the hops.
    A dispatch (tokens to expert slots) and a combine (back, summed) have a ``routing`` and no moves.
    """

    kind: CollectiveKind
    input: Tensor
    output: Tensor
    axes: str
    moves: tuple[tuple[str, str], ...]
    hides_behind: str = ""
    fused: str = ""
    routing: Routing | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors read."""
        return (self.input,) if self.routing is None else (self.input, self.routing.weights)


@dataclass(frozen=True, slots=True)
class Local:
    """Elementwise or other work on each chip's own shard."""

    kind: LocalKind
    inputs: tuple[Tensor, ...]
    output: Tensor
    axes: str = ""


Op = Einsum | Collective | Local


@dataclass(frozen=True, slots=True, eq=False)
class LayerProgram:
    """The operations of one layer in order; two programs are equal only if they are the same object.

    ``sections`` gives the op index at which each part of the drawing begins (``("Attention", 4)``).
    """

    name: str
    mesh_axes: str
    inputs: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    caches: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    outputs: tuple[Tensor, ...]
    sections: tuple[tuple[str, int], ...] = ()

    def collectives(self) -> Iterator[tuple[int, Collective]]:
        """Yield (index, collective) in order."""
        for index, op in enumerate(self.ops):
            if isinstance(op, Collective):
                yield index, op
