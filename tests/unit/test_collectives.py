from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.hardware.collectives import hops_s, transfer_s, volume_bytes
from model_core.hardware.network import Level
from model_core.partition.program import CollectiveKind

RING = Level("x", "ring", 4, 90e9, 1e-6)
LINE = Level("x", "line", 4, 45e9, 1e-6)
GATHER, SCATTER, REDUCE, EXCHANGE = (
    CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_TO_ALL,
)  # fmt: skip


def test_that_an_all_gather_takes_the_time_of_pope_a1() -> None:
    assert transfer_s(GATHER, 90e9, [RING]) == pytest.approx(3 / 4)
    assert transfer_s(GATHER, 90e9, [RING], large_k=True) == pytest.approx(1)


def test_that_an_all_reduce_is_two_all_gathers() -> None:
    assert transfer_s(REDUCE, 1e9, [RING]) == 2 * transfer_s(GATHER, 1e9, [RING])
    assert volume_bytes(REDUCE, 8.0, 4) == 2 * volume_bytes(SCATTER, 8.0, 4)


def test_that_a_line_takes_twice_as_long_as_a_ring() -> None:
    assert transfer_s(GATHER, 1e9, [LINE]) == 2 * transfer_s(GATHER, 1e9, [RING])


def test_that_three_axes_together_have_the_bandwidth_of_the_whole_chip() -> None:
    axes = [Level(a, "ring", 4, 90e9, 1e-6) for a in "xyz"]
    assert transfer_s(GATHER, 270e9, axes) == pytest.approx(63 / 64)


def link_traffic(size: int, wraps: bool) -> float:
    """Send one unit from every chip to every other along shortest paths; return the fullest link's load."""
    loads: dict[tuple[int, int], float] = {}
    for source in range(size):
        for target in range(size):
            ahead = (target - source) % size
            paths = [1] if not wraps and target > source else [-1] if not wraps else []
            if wraps:
                paths = [1, -1] if 2 * ahead == size else [1] if 2 * ahead < size else [-1]
            for step in paths:
                place = source
                while place != target:
                    following = (place + step) % size
                    loads[place, following] = loads.get((place, following), 0.0) + 1 / len(paths)
                    place = following
    return max(loads.values())


@pytest.mark.parametrize(
    ("size", "wraps"), [(n, w) for n in (2, 3, 4, 5, 8, 16) for w in (True, False) if n > 2 or not w]
)
def test_that_an_all_to_all_takes_as_long_as_its_fullest_link(size: int, wraps: bool) -> None:
    link = 45e9
    level = Level("x", "ring" if wraps else "line", size, (2 if wraps else 1) * link, 0.0)
    block = 1e6
    expected = link_traffic(size, wraps) * block / link
    assert transfer_s(EXCHANGE, block * size, [level]) == pytest.approx(expected)


def test_that_a_gather_over_nodes_is_as_slow_as_its_slowest_level() -> None:
    nvlink, network = Level("nvlink", "switch", 8, 450e9, 1e-6), Level("ib", "network", 4, 50e9, 5e-6)
    inside, across = 1e9 * 7 / 8 / 450e9, 1e9 / 8 * 3 / 4 / 50e9
    assert transfer_s(GATHER, 1e9, [network, nvlink]) == pytest.approx(max(inside, across))
    assert hops_s(GATHER, [network, nvlink]) == pytest.approx(2 * 5e-6 + 3 * 1e-6)


def test_that_most_of_an_all_to_all_over_nodes_crosses_the_network() -> None:
    nvlink, network = Level("nvlink", "switch", 8, 450e9, 1e-6), Level("ib", "network", 4, 50e9, 5e-6)
    assert transfer_s(EXCHANGE, 32e6, [network, nvlink]) == pytest.approx(32e6 * 24 / 32 / 50e9)


KINDS = st.sampled_from(["ring", "line", "switch", "network"])


@given(
    kind=st.sampled_from(list(CollectiveKind)),
    level=KINDS,
    sizes=st.lists(st.integers(2, 64), min_size=1, max_size=5),
    data=st.floats(1, 1e12),
)
def test_that_arrays_give_the_same_as_numbers(
    kind: CollectiveKind, level: str, sizes: list[int], data: float
) -> None:
    def one(size: object) -> Level:
        return Level("x", level, size, 50e9, 1e-6)  # type: ignore[arg-type]

    many = transfer_s(kind, data, [one(np.array(sizes))]) + hops_s(kind, [one(np.array(sizes))])
    single = [transfer_s(kind, data, [one(n)]) + hops_s(kind, [one(n)]) for n in sizes]
    np.testing.assert_allclose(many, single, rtol=1e-12)
