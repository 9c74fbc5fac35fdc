"""Communication of the feedforward layer alone, counted from its layer program: where layouts switch."""

from __future__ import annotations

from functools import lru_cache
from math import log2

from model_core.arithmetic import Number
from model_core.hardware.network import Level, Network
from model_core.partition.cost import Rates, program_costs
from model_core.partition.layers import BlockWriter
from model_core.partition.program import LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.partition.structure import structure_of
from model_core.spec.model import ModelSpec
from model_core.spec.plan import FfnLayout, PlanSpec

_ONE_ELEMENT = dict.fromkeys(Role, 1)
_LARGEST = 2.0**40


@lru_cache(maxsize=64)
def _program(layout: FfnLayout, axes: tuple[tuple[str, int], ...], model: ModelSpec) -> LayerProgram:
    structure = structure_of(model, PlanSpec(ffn_layout=layout), 2**20, dict(axes))
    writer = BlockWriter(structure, "feedforward alone")
    x = writer.residual()
    gathered = writer.builder.all_gather(x, (("E", writer.axes.embed_gather),))
    return writer.builder.finish(writer.joined(x, writer.feedforward(gathered, "in", "out"), "out"))


def feedforward_elements(layout: FfnLayout, mesh: dict[str, int], model: ModelSpec, tokens: Number) -> Number:
    """Elements that one chip receives for the feedforward layer of one block.

    Source: Pope 3.2, with (K − 1)/K taken as 1 as there
    Args:
        layout: layout.
        mesh: sizes of x, y and z.
        model: model.
        tokens: B·L.
    """
    program = _program(layout, tuple(mesh.items()), model)
    sizes = Sizes({"B": tokens, "L": 1, "E": model.d_model, "F": model.d_ff, **mesh})
    network = Network({axis: (Level(axis, "ring", size, 1.0, 0.0),) for axis, size in mesh.items()})
    rates = Rates(1.0, 1.0, 1.0, _ONE_ELEMENT, large_k=True)
    return sum(cost.collective_bytes for cost in program_costs(program, sizes, rates, network))


def switch_tokens(before: FfnLayout, after: FfnLayout, mesh: dict[str, int], model: ModelSpec) -> float:
    """Tokens per batch at which the second layout begins to move less than the first (Pope Figure 3)."""

    def gain(tokens: float) -> float:
        first = feedforward_elements(before, mesh, model, tokens)
        return float(first - feedforward_elements(after, mesh, model, tokens))

    low, high = 1.0, _LARGEST
    if gain(low) >= 0 or gain(high) <= 0:
        raise ValueError(f"{after} never overtakes {before}")
    while high / low > 1 + 1e-9:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if gain(middle) > 0 else (middle, high)
    return low


def chips_where_2d_pays(model: ModelSpec, most: int = 4096) -> int:
    """Fewest chips at which 2D moves no more than 1D, with the best X that is a power of two (Pope 3.2.2)."""
    tokens = 512
    for exponent in range(1, int(log2(most)) + 1):
        chips = int(2**exponent)
        line = feedforward_elements(
            FfnLayout.WEIGHT_STATIONARY_1D, {"x": 1, "y": 1, "z": chips}, model, tokens
        )
        best = min(
            feedforward_elements(
                FfnLayout.WEIGHT_STATIONARY_2D, {"x": 2**k, "y": 1, "z": chips // 2**k}, model, tokens
            )
            for k in range(1, exponent + 1)
        )
        if best <= line:
            return chips
    raise ValueError(f"2D does not pay on up to {most} chips")
