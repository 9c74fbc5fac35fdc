"""Figure 3 of Pope for any model and mesh: what the feedforward layouts communicate as the batch grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from model_core.reproduce.layouts import feedforward_elements, switch_tokens
from model_core.search.arrays import Rows
from model_core.spec.design import Design
from model_core.spec.plan import FfnLayout
from model_core.stages import mesh_stage

TOKENS: Final = tuple(2.0 ** (k / 4) for k in range(32, 97))
"""From 256 to 16 million tokens, four points per doubling."""


@dataclass(frozen=True, slots=True)
class VolumeSwitch:
    """From ``tokens`` per batch on, ``after`` communicates less than ``before``, which was least until then."""

    tokens: float
    before: FfnLayout
    after: FfnLayout


@dataclass(frozen=True, slots=True)
class Volumes:
    """Elements that a chip receives in one feedforward layer: per layout an array over ``tokens``."""

    tokens: Rows
    elements: dict[FfnLayout, Rows]
    switches: tuple[VolumeSwitch, ...]


def feedforward_volumes(design: Design, tokens: tuple[float, ...] = TOKENS) -> Volumes:
    """Count the communication of the feedforward layer for all layouts, and where the least changes.

    Source: Pope 3.2 and Figure 3
    Args:
        design: gives the model and the mesh; its own layout and batch do not matter.
        tokens: tokens per batch, growing.
    """
    mesh = mesh_stage(design.cluster, design.model, design.plan.mesh).sizes
    at = np.array(tokens, np.float64)
    elements = {
        layout: np.broadcast_to(feedforward_elements(layout, mesh, design.model, at), at.shape)
        for layout in FfnLayout
    }
    layouts = tuple(elements)
    least = np.argmin(np.stack([elements[layout] for layout in layouts]), axis=0)
    pairs = [
        (layouts[least[i - 1]], layouts[least[i]]) for i in range(1, len(at)) if least[i] != least[i - 1]
    ]
    switches = tuple(
        VolumeSwitch(switch_tokens(before, after, mesh, design.model), before, after)
        for before, after in pairs
    )
    return Volumes(at, elements, switches)
