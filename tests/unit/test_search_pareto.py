"""Frontiers against brute force, and frontiers of sweeps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from model_core.search.pareto import frontiers, latency_column, pareto_indices, streamed_frontiers
from model_core.search.sweep import stream
from model_core.spec import Phase
from tests.unit.search_spaces import decode_design, space_of, swept

COORDINATE = st.one_of(st.integers(0, 6).map(float), st.floats(0, 1), st.just(float("nan")))


def brute_force(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> set[tuple[float, float]]:
    points = {(float(a), float(b)) for a, b in zip(x, y, strict=True) if a == a and b == b}
    return {(a, b) for a, b in points if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in points)}


@given(
    st.integers(0, 40).flatmap(
        lambda n: st.tuples(arrays(float, n, elements=COORDINATE), arrays(float, n, elements=COORDINATE))
    )
)
@settings(max_examples=300, deadline=None)
def test_that_a_frontier_is_that_of_brute_force(
    points: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
) -> None:
    x, y = points
    found = pareto_indices(x, y)
    assert {(float(x[i]), float(y[i])) for i in found} == brute_force(x, y)
    assert len({(x[i], y[i]) for i in found}) == len(found)
    assert all(x[a] < x[b] and y[a] > y[b] for a, b in pairwise(found))


@pytest.mark.parametrize("seed", range(5))
def test_that_dropping_points_early_loses_none(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 20_000
    x = random.integers(0, 300, n).astype(float) if seed % 2 else random.random(n)
    y = 1 / (x + 0.1) + random.random(n) ** 4
    found = pareto_indices(x, y)
    order = np.lexsort((y, x))
    best = np.minimum.accumulate(y[order])
    expected = {(x[order[0]], y[order[0]])}
    expected |= {(x[i], y[i]) for i, low in zip(order[1:], best[:-1], strict=True) if y[i] < low}
    assert {(x[i], y[i]) for i in found} == expected


AXES = (
    "model=palm-8b,palm-62b",
    "cluster=tpu-v4-2x2x4,tpu-v4-4x4x4",
    "plan.weight_dtype=int8,bfloat16",
    "plan.ffn_layout=all",
    "workload.batch=1:512:*2",
    "workload.phase=prefill,decode",
)


@pytest.mark.parametrize("y", ["cost_chip_s_per_token", "mfu"])
def test_that_there_is_a_frontier_per_model_dtype_and_phase(y: str) -> None:
    result = swept(decode_design(), *AXES)
    found = frontiers(result, y)
    assert len(found) == 8
    for frontier in found:
        assert set(frontier.common) == {"model", "plan.weight_dtype", "workload.phase"}
        assert frontier.x == latency_column(Phase(frontier.common["workload.phase"]))
        x, values = result.columns[frontier.x][frontier.numbers], result.columns[y][frontier.numbers]
        assert (np.diff(x) > 0).all()
        assert (np.diff(values) * (1 if y == "mfu" else -1) > 0).all()
        assert result.usable[frontier.numbers].all()
        for number in frontier.numbers:
            assert result.space.labels_of(int(number)).items() >= frontier.common.items()


@pytest.mark.parametrize("y", ["cost_chip_s_per_token", "mfu"])
def test_that_frontiers_of_a_stream_are_those_of_the_whole(y: str) -> None:
    space = space_of(decode_design(), *AXES)
    whole = frontiers(swept(decode_design(), *AXES), y)
    streamed = streamed_frontiers(stream(space, chunk=16), space, (y,))
    assert [frontier.common for frontier in streamed] == [frontier.common for frontier in whole]
    for one, other in zip(streamed, whole, strict=True):
        assert (one.x, one.y) == (other.x, other.y)
        np.testing.assert_allclose(one.columns[one.x], other.columns[one.x], rtol=1e-12)
        np.testing.assert_allclose(one.columns[y], other.columns[y], rtol=1e-12)
