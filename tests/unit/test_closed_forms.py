"""The counts of the layer programs against Pope's closed forms (3.2.1 to 3.2.3, A.1, A.2)."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.hardware.network import Level, Network
from model_core.partition import closed_forms
from model_core.partition.cost import Rates, program_costs
from model_core.partition.layers import BlockWriter
from model_core.partition.program import LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.partition.structure import structure_of
from model_core.spec import FfnLayout, ModelSpec, PlanSpec

ONE_BYTE = dict.fromkeys(Role, 1)


def feedforward_program(layout: FfnLayout, mesh: dict[str, int], gated: bool) -> LayerProgram:
    model = ModelSpec(
        name="m",
        n_layers=1,
        d_model=64,
        d_ff=256,
        n_heads=1,
        n_kv_heads=1,
        d_head=8,
        vocab_size=64,
        gated_ffn=gated,
    )
    writer = BlockWriter(structure_of(model, PlanSpec(ffn_layout=layout), 64, mesh), "test")
    x = writer.residual()
    gathered = writer.builder.all_gather(x, (("E", writer.axes.embed_gather),))
    return writer.builder.finish(writer.joined(x, writer.feedforward(gathered, "in", "out"), "out"))


def elements(
    layout: FfnLayout, mesh: dict[str, int], sizes: dict[str, int], gated: bool, large_k: bool
) -> float:
    program = feedforward_program(layout, mesh, gated)
    network = Network({a: (Level(a, "ring", n, 1.0, 0.0),) for a, n in mesh.items()})
    rates = Rates(1.0, 1.0, 1.0, ONE_BYTE, large_k=large_k)
    costs = program_costs(program, Sizes({**sizes, **mesh}), rates, network)
    return float(sum(cost.collective_bytes for cost in costs))


MESH = st.fixed_dictionaries({axis: st.sampled_from([2, 4, 8]) for axis in "xyz"})
SHAPE = st.fixed_dictionaries(
    {
        "B": st.sampled_from([512, 1024]),
        "L": st.integers(1, 5),
        "E": st.just(4096),
        "F": st.sampled_from([8192, 12288]),
    }
)


@given(mesh=MESH, sizes=SHAPE, gated=st.booleans())
def test_that_1d_weight_stationary_moves_2ble(
    mesh: dict[str, int], sizes: dict[str, int], gated: bool
) -> None:
    moved = elements(FfnLayout.WEIGHT_STATIONARY_1D, mesh, sizes, gated, large_k=True)
    assert moved == closed_forms.stationary_1d_elements(sizes["B"] * sizes["L"], sizes["E"])


@given(mesh=MESH, sizes=SHAPE, gated=st.booleans())
def test_that_2d_weight_stationary_moves_as_a21_says(
    mesh: dict[str, int], sizes: dict[str, int], gated: bool
) -> None:
    moved = elements(FfnLayout.WEIGHT_STATIONARY_2D, mesh, sizes, gated, large_k=True)
    x, yz = mesh["x"], mesh["y"] * mesh["z"]
    form = closed_forms.stationary_2d_elements(sizes["B"] * sizes["L"], sizes["E"], sizes["F"], x, yz, gated)
    assert moved == pytest.approx(form, rel=1e-12)


@given(mesh=MESH, sizes=SHAPE, gated=st.booleans(), gathered=st.sampled_from(["x", "xy"]))
def test_that_weight_gathered_moves_as_a22_says(
    mesh: dict[str, int], sizes: dict[str, int], gated: bool, gathered: str
) -> None:
    moved = elements(FfnLayout(f"weight_gathered_{gathered}"), mesh, sizes, gated, large_k=True)
    chips, n = mesh["x"] * mesh["y"] * mesh["z"], 1
    for axis in gathered:
        n *= mesh[axis]
    tokens = sizes["B"] * sizes["L"]
    form = closed_forms.weight_gathered_elements(tokens, sizes["E"], sizes["F"], n, chips, gated)
    assert moved == pytest.approx(form, rel=1e-12)


@given(mesh=MESH, sizes=SHAPE)
def test_that_xyz_weight_gathered_moves_weights_only(mesh: dict[str, int], sizes: dict[str, int]) -> None:
    moved = elements(FfnLayout.WEIGHT_GATHERED_XYZ, mesh, sizes, gated=False, large_k=True)
    assert moved == pytest.approx(2 * sizes["E"] * sizes["F"], rel=1e-12)


@given(mesh=MESH, sizes=SHAPE, layout=st.sampled_from(list(FfnLayout)))
def test_that_the_exact_count_is_below_the_large_k_form(
    mesh: dict[str, int], sizes: dict[str, int], layout: FfnLayout
) -> None:
    exact = elements(layout, mesh, sizes, gated=True, large_k=False)
    assert 0.5 <= exact / elements(layout, mesh, sizes, gated=True, large_k=True) < 1


@given(
    chips=st.sampled_from([16, 64, 256, 1024]),
    e=st.integers(64, 20000),
    ratio=st.floats(1, 8),
    gated=st.booleans(),
)
def test_that_the_optimal_x_has_no_better_neighbour(chips: int, e: int, ratio: float, gated: bool) -> None:
    f = e * ratio

    def moved(x: float) -> float:
        return float(closed_forms.stationary_2d_elements(1, e, f, x, chips / x, gated))

    best = closed_forms.optimal_x(chips, e, f, gated)
    assert moved(best) <= min(moved(best * 1.01), moved(best / 1.01))


def test_that_the_optimum_of_the_paper_falls_out_for_f_of_four_e() -> None:
    n, e = 64, 18432
    x = closed_forms.optimal_x(n, e, 4 * e)
    assert x == pytest.approx(0.5 * sqrt(n))
    tokens = 512
    best = closed_forms.stationary_2d_elements(tokens, e, 4 * e, x, n / x)
    assert best == pytest.approx(8 * tokens * e / sqrt(n))


@given(tokens=st.floats(1e2, 1e7), gated=st.booleans(), chips=st.sampled_from([16, 64, 256]))
def test_that_the_optimal_gather_has_no_better_neighbour(tokens: float, gated: bool, chips: int) -> None:
    e, f = 18432, 73728

    def moved(n: float) -> float:
        return float(closed_forms.weight_gathered_elements(tokens, e, f, n, chips, gated))

    best = closed_forms.optimal_gathered(tokens, f, chips, gated)
    assert moved(best) <= min(moved(best * 1.01), moved(best / 1.01))
    if not gated:
        assert best == pytest.approx(sqrt(tokens * chips / f))
        assert moved(best) == pytest.approx(4 * e * sqrt(tokens * f) / sqrt(chips))


def test_that_2d_beats_1d_above_16_chips_for_f_of_four_e() -> None:
    def best_2d(n: int) -> float:
        x = closed_forms.optimal_x(n, 1, 4)
        return float(closed_forms.stationary_2d_elements(1, 1, 4, x, n / x))

    assert best_2d(16) == pytest.approx(closed_forms.stationary_1d_elements(1, 1))
    assert best_2d(17) < closed_forms.stationary_1d_elements(1, 1) < best_2d(15)
