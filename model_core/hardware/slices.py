"""The slice shapes that exist for a kind of TPU."""

from __future__ import annotations

from math import prod

from model_core.spec.cluster import TorusTopology

SMALL_CUBES = ((1, 1, 1), (1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
FLAT = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
LONGEST_AXIS = 28


def slice_exists(topology: TorusTopology) -> bool:
    """Tell whether a torus is a slice that can be had, axes in any order.

    Source: cloud.google.com/tpu/docs/v4 and v5e: 3D slices below 64 chips are listed, larger ones are
        made of 4x4x4 cubes; 2D slices are listed up to 16x16
    """
    shape = tuple(sorted(topology.shape))
    if topology.wrap == "cubes_of_4":
        cubes = len(shape) == 3 and all(n % 4 == 0 and n <= LONGEST_AXIS for n in shape)
        return cubes or shape in SMALL_CUBES
    return topology.wrap != "axis_of_16" or shape in FLAT


def slices_near(topology: TorusTopology, most: int = 3) -> tuple[tuple[int, ...], ...]:
    """Return the shapes that exist with the number of chips nearest to that of a torus."""
    chips = prod(topology.shape)
    spread = sorted(_shapes(topology), key=lambda s: (abs(prod(s) - chips), max(s)))
    return tuple(spread[:most])


def slice_shapes(topology: TorusTopology, most_chips: int = 512) -> tuple[tuple[int, ...], ...]:
    """Return the shapes that exist with as many axes as a torus and at most so many chips, small ones first."""
    axes = len(topology.shape)
    shapes = [s for s in _shapes(topology) if len(s) == axes and prod(s) <= most_chips]
    return tuple(sorted(shapes, key=lambda s: (prod(s), max(s)))) or (topology.shape,)


def _shapes(topology: TorusTopology) -> tuple[tuple[int, ...], ...]:
    if topology.wrap == "axis_of_16":
        return FLAT
    steps = range(4, LONGEST_AXIS + 1, 4)
    return (*SMALL_CUBES, *((a, b, c) for a in steps for b in steps for c in steps if a <= b <= c))
