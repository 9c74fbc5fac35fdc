"""Overlap inside a pair of chunks: two streams in order, dependencies kept, the split of the SMs."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.schedule.overlap import (
    COMMUNICATION,
    COMPUTE,
    DSV3_TRACE,
    PairComponents,
    PairTimeline,
    overlap_pair,
    scan_splits,
)

COMPONENTS = st.builds(
    PairComponents,
    **{field.name: st.floats(0.1, 9.0) for field in fields(PairComponents) if field.name.endswith("_s")},
)
# What DSV3 Figure 4 draws: each component after the one that gives it its input, and the layer before.
CHAINS = (
    ("ATTN(F)", "DISPATCH(F)", "MLP(F)", "COMBINE(F)"),
    ("COMBINE(B)", "MLP(B)", "DISPATCH(B)", "ATTN(B)"),
    ("MLP(B)", "MLP(W)"),
    ("ATTN(B)", "ATTN(W)"),
)


def times(pair: PairTimeline, label: str, layer: int) -> tuple[float, float]:
    row = next(r for r, name in enumerate(pair.labels) if name == label and pair.layer[r] == layer)
    return float(pair.start_s[row]), float(pair.end_s[row])


@given(COMPONENTS, st.integers(1, 4))
def test_that_components_follow_their_inputs(components: PairComponents, n_layers: int) -> None:
    pair = overlap_pair(components, n_layers)
    for layer in range(n_layers):
        for chain in CHAINS:
            for before, after in pairwise(chain):
                assert times(pair, before, layer)[1] <= times(pair, after, layer)[0] + 1e-9
        if layer:
            assert times(pair, "COMBINE(F)", layer - 1)[1] <= times(pair, "ATTN(F)", layer)[0] + 1e-9
            assert times(pair, "ATTN(B)", layer - 1)[1] <= times(pair, "COMBINE(B)", layer)[0] + 1e-9
    assert pair.labels.count("PP") == 2


@given(COMPONENTS, st.integers(1, 4))
def test_that_a_stream_runs_one_component_at_a_time(components: PairComponents, n_layers: int) -> None:
    pair = overlap_pair(components, n_layers)
    for stream in (COMPUTE, COMMUNICATION):
        mine = pair.stream == stream
        assert np.all(pair.start_s[mine][1:] >= pair.end_s[mine][:-1] - 1e-9)
    assert pair.computation_s == pytest.approx(n_layers * components.computation_s)
    assert pair.communication_s == pytest.approx(n_layers * components.communication_s + 2 * components.pp_s)


@given(COMPONENTS, st.integers(1, 4))
def test_that_exposed_communication_is_what_computation_leaves(
    components: PairComponents, n_layers: int
) -> None:
    pair = overlap_pair(components, n_layers)
    assert max(pair.computation_s, pair.communication_s) <= pair.span_s + 1e-9
    assert -1e-9 <= pair.exposed_s <= pair.communication_s + 1e-9
    assert -1e-9 <= pair.hidden_fraction <= 1 + 1e-9
    # Some stream is busy at any time, as a component waits only for one that runs.
    assert pair.span_s == pytest.approx(pair.computation_s + pair.exposed_s)


def test_that_computation_scales_with_its_sms_and_communication_up_to_saturation() -> None:
    fewer, more = DSV3_TRACE.with_split(10), DSV3_TRACE.with_split(40)
    assert fewer.mlp_forward_s == pytest.approx(DSV3_TRACE.mlp_forward_s * 112 / 122)
    assert fewer.combine_forward_s == pytest.approx(DSV3_TRACE.combine_forward_s * 2)
    assert more.mlp_forward_s == pytest.approx(DSV3_TRACE.mlp_forward_s * 112 / 92)
    assert more.combine_forward_s == DSV3_TRACE.combine_forward_s
    assert fewer.with_split(20).dispatch_forward_s == pytest.approx(DSV3_TRACE.dispatch_forward_s)


@pytest.mark.parametrize("sms", [0, 132, -3])
def test_that_both_sides_need_an_sm(sms: int) -> None:
    with pytest.raises(ValueError, match="leave none"):
        DSV3_TRACE.with_split(sms)


def test_that_the_best_split_is_the_shortest_pair() -> None:
    scan = scan_splits(DSV3_TRACE, n_layers=4)
    assert len(scan.span_s) == 131
    assert scan.span_s.min() == scan.span_s[scan.best_sms - 1]
    # DSV3 gives 20 SMs to communication; more only slow the computation.
    assert 18 <= scan.best_sms <= 20
    assert scan.span_s[19] < scan.span_s[29] < scan.span_s[59]


def test_that_no_communication_is_fully_hidden() -> None:
    none = replace(
        DSV3_TRACE,
        dispatch_forward_s=0.0,
        combine_forward_s=0.0,
        combine_backward_s=0.0,
        dispatch_backward_s=0.0,
    )
    pair = overlap_pair(none)
    assert pair.hidden_fraction == 1.0
    assert pair.span_s == pytest.approx(none.computation_s)
