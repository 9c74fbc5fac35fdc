"""Finds what does not divide in a layout of experts and latent attention."""

from __future__ import annotations

from model_core.arithmetic import ceil_div
from model_core.diagnostics import Diagnostic
from model_core.partition.checks import split_values
from model_core.partition.sizes import Sizes
from model_core.partition.structure_experts import ExpertStructure
from model_core.spec.model import ModelSpec


def expert_diagnostics(structure: ExpertStructure, sizes: Sizes, model: ModelSpec) -> tuple[Diagnostic, ...]:
    """Name what the layout cannot split evenly, with the nearest sizes that it can."""
    tokens = structure.tokens("BL")
    found = [
        _heads(structure, sizes),
        _padded("tokens_padded", "B", tokens.axes_of("B"), "workload.batch", sizes),
        _padded("tokens_padded", "L", tokens.axes_of("L"), "workload.input_length", sizes),
        _padded("padded", "V", structure.tensor, "model.vocab_size", sizes),
        _slots(structure, sizes) if model.moe is not None else None,
    ]
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def _heads(structure: ExpertStructure, sizes: Sizes) -> Diagnostic | None:
    heads, ways = int(sizes.values["H"]), int(sizes.ways(structure.tensor))
    if heads % ways == 0:
        return None
    return Diagnostic("expert_heads_uneven", "plan.mesh.z", {"heads": heads, "ways": ways})


def _padded(code: str, dim: str, axes: str, path: str, sizes: Sizes) -> Diagnostic | None:
    values, size, ways = split_values(dim, axes, sizes)
    return None if size % ways == 0 else Diagnostic(code, path, values)


def _slots(structure: ExpertStructure, sizes: Sizes) -> Diagnostic | None:
    slots, chips = int(sizes.values["X"]), int(sizes.ways(structure.mesh_axes))
    if slots % chips == 0:
        return None
    most = ceil_div(slots, chips)
    values: dict[str, object] = {
        "slots": slots,
        "chips": chips,
        "most": most,
        "needed": most * chips - int(sizes.values["Y"]),
    }
    return Diagnostic("slots_uneven", "plan.redundant_experts", values)
