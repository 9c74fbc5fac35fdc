from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.partition import rules
from model_core.partition.notation import Sharding, ShardingError


@pytest.mark.parametrize("text", ["BLE_xyz", "E_xF_yz", "BLE_yz(partialsum-x)", "B_xLHQ", "BLE", "E_xF_zy"])
def test_that_the_notation_of_the_paper_is_read_and_written_back(text: str) -> None:
    assert str(Sharding.parse(text)) == text


@st.composite
def shardings(draw: st.DrawFn) -> Sharding:
    dims = draw(st.lists(st.sampled_from("BLEFHDKGMV"), min_size=1, max_size=5, unique=True))
    axes = draw(st.permutations("wxyz"))
    owners = [draw(st.integers(-1, len(dims))) for _ in axes]
    split = tuple("".join(a for a, o in zip(axes, owners, strict=True) if o == i) for i in range(len(dims)))
    partial = "".join(a for a, o in zip(axes, owners, strict=True) if o == len(dims))
    return Sharding("".join(dims), split, partial)


@given(shardings())
def test_that_any_sharding_survives_a_round_trip(sharding: Sharding) -> None:
    assert Sharding.parse(str(sharding)) == sharding
    printed = Sharding.parse(sharding.as_printed())
    assert [sorted(a) for a in printed.axes] == [sorted(a) for a in sharding.axes]


@given(shardings(), st.dictionaries(st.sampled_from("wxyz"), st.integers(1, 4)))
def test_that_elements_are_conserved_over_shards_and_replicas(
    sharding: Sharding, some: dict[str, int]
) -> None:
    mesh = {axis: some.get(axis, 2) for axis in "wxyz"}
    sizes: dict[str, int] = {**mesh}
    total, chips = 1, 1
    for axis in "wxyz":
        chips *= mesh[axis]
    for dim, axes in zip(sharding.dims, sharding.axes, strict=True):
        ways = 1
        for axis in axes:
            ways *= mesh[axis]
        sizes[dim] = 3 * ways
        total *= sizes[dim]
    held = 1
    for size in sharding.per_chip_shape(sizes):
        held *= size
    copies = 1
    for axis in sharding.replicated_axes("wxyz") + sharding.partial:
        copies *= mesh[axis]
    assert held * chips == total * copies


def test_that_an_uneven_split_names_the_dimension_and_the_axes() -> None:
    sizes = {"E": 18432, "F": 73728, "x": 4, "y": 5, "z": 4}
    with pytest.raises(
        ShardingError, match=r"dimension F \(d_ff\) = 73728 does not divide by yz = 5 x 4 = 20"
    ):
        Sharding.parse("E_xF_yz").per_chip_shape(sizes)


@pytest.mark.parametrize(
    "text", ["", "ble", "B_XLE", "E_xF_x", "EE", "BLE(partialsum)", "BLE_", "B LE", "E_x" * 40]
)
def test_that_a_wrong_notation_is_refused(text: str) -> None:
    with pytest.raises(ShardingError):
        Sharding.parse(text)


def test_that_a_product_leaves_partial_sums_over_the_axes_of_the_contracted_dimension() -> None:
    left, right = Sharding.parse("BLE_x"), Sharding.parse("E_xF_yz")
    assert str(rules.einsum_sharding(left, right, "BLF")) == "BLF_yz(partialsum-x)"


@pytest.mark.parametrize(
    ("left", "right", "dims"),
    [
        ("BLE_x", "EF_yz", "BLF"),
        ("BLE_x(partialsum-y)", "E_xF", "BLF"),
        ("BLE_xy", "E_xF_yz", "BLF"),
        ("BLE_x", "E_xF_yz", "BLG"),
        ("BLE_x", "E_xF_yz", "BF"),
    ],
)
def test_that_a_product_of_shardings_that_do_not_fit_is_refused(left: str, right: str, dims: str) -> None:
    with pytest.raises(ShardingError):
        rules.einsum_sharding(Sharding.parse(left), Sharding.parse(right), dims)


def test_that_collectives_change_shardings_as_in_the_paper() -> None:
    partial = Sharding.parse("BLE_yz(partialsum-x)")
    assert str(rules.all_reduce_sharding(partial, "x")) == "BLE_yz"
    assert str(rules.reduce_scatter_sharding(partial, (("B", "x"),))) == "B_xLE_yz"
    assert str(rules.reduce_scatter_sharding(partial, (("E", "x"),))) == "BLE_yzx"
    assert str(rules.all_gather_sharding(Sharding.parse("BLE_xyz"), (("E", "yz"),))) == "BLE_x"
    assert str(rules.all_to_all_sharding(Sharding.parse("BLH_xQ"), "H", "B", "x")) == "B_xLHQ"


def test_that_collectives_over_axes_that_are_not_there_are_refused() -> None:
    whole = Sharding.parse("BLE_xyz")
    with pytest.raises(ShardingError, match="not split over x last"):
        rules.all_gather_sharding(whole, (("E", "x"),))
    with pytest.raises(ShardingError, match="no partial sum over x"):
        rules.reduce_scatter_sharding(whole, (("E", "x"),))
    with pytest.raises(ShardingError, match="no partial sum over x"):
        rules.all_reduce_sharding(whole, "x")
    with pytest.raises(ShardingError, match="not split over x last"):
        rules.all_to_all_sharding(whole, "E", "B", "x")
