"""The layout falls out of the costs: Pope 4.1's rule, the switch points, and Figure 3."""

from __future__ import annotations

import pytest

import presets
from model_core import Design, evaluate
from model_core.partition.closed_forms import (
    stationary_1d_elements,
    stationary_2d_elements,
    weight_gathered_elements,
)
from model_core.search.layouts import TIE, best_layout, switch_points
from model_core.search.volumes import feedforward_volumes
from model_core.spec import AttentionSharding, FfnLayout, replace_at

ORDER = list(FfnLayout)
CALIBRATIONS = ("auto", "none")


def preset(name: str, calibration: str = "auto", batch: int | None = None) -> Design:
    design = replace_at(presets.load_design(name), "plan.calibration", calibration)
    return design if batch is None else replace_at(design, "workload.batch", batch)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_that_large_batch_decode_is_2d_weight_stationary_over_batch(calibration: str) -> None:
    """Pope 4.1 and Table 2: batch 512 on 64 chips."""
    choice = best_layout(preset("palm-540b-decode-high-throughput", calibration))
    assert choice.best is not None
    assert choice.best.choice.layout is FfnLayout.WEIGHT_STATIONARY_2D
    assert choice.best.choice.sharding is AttentionSharding.BATCH
    assert choice.margin is not None
    assert choice.margin > 0


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_that_decode_never_gathers_weights(calibration: str) -> None:
    """Pope 4.1: during generation the tokens of a batch are always few."""
    design = preset("palm-540b-decode-high-throughput", calibration)
    for switch in switch_points(design, 1024):
        assert "stationary" in switch.after.layout


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("name", ["palm-540b-prefill-low-latency", "palm-540b-prefill-high-throughput"])
def test_that_prefill_gathers_weights_over_more_axes_as_the_batch_grows(name: str, calibration: str) -> None:
    """Pope 4.1 and Figure 7: from 2048 tokens (weight-stationary) to a million (XYZ-weight-gathered)."""
    small = best_layout(preset(name, calibration, batch=1), most_batch=1024)
    large = best_layout(preset(name, calibration, batch=512), most_batch=1024)
    assert small.best is not None
    assert small.best.choice.layout is FfnLayout.WEIGHT_STATIONARY_2D
    assert large.best is not None
    assert large.best.choice.layout is FfnLayout.WEIGHT_GATHERED_XYZ
    layouts = [small.switches[0].before.layout, *(switch.after.layout for switch in small.switches)]
    assert layouts == sorted(layouts, key=ORDER.index)
    assert small.switches[-1].after.layout is FfnLayout.WEIGHT_GATHERED_XYZ
    assert all(switch.tokens == switch.batch * 2048 for switch in small.switches)


def test_that_a_switch_is_where_single_evaluations_cross() -> None:
    design = preset("palm-540b-prefill-low-latency", "none")

    def latency(batch: int, layout: FfnLayout, sharding: AttentionSharding) -> float:
        changed = replace_at(replace_at(design, "workload.batch", batch), "plan.ffn_layout", layout)
        value = evaluate(replace_at(changed, "plan.attention_sharding", sharding)).value("latency_s")
        assert value is not None
        return value

    switches = switch_points(design, 512)
    assert switches
    for switch in switches:
        before, after = switch.before, switch.after
        new = latency(switch.batch, after.layout, after.sharding)
        assert new < latency(switch.batch, before.layout, before.sharding)


def test_that_the_ranking_holds_the_numbers_of_single_evaluations() -> None:
    design = preset("palm-540b-decode-low-latency")
    choice = best_layout(design)
    assert [r.latency_s for r in choice.ranking if r.fits] == sorted(
        r.latency_s for r in choice.ranking if r.fits
    )
    for ranked in choice.ranking:
        changed = replace_at(design, "plan.ffn_layout", ranked.choice.layout)
        found = evaluate(replace_at(changed, "plan.attention_sharding", ranked.choice.sharding))
        assert found.value("step_s") == pytest.approx(ranked.latency_s, rel=1e-12)
    assert choice.best is not None
    assert choice.runner_up is not None
    assert choice.margin == pytest.approx(choice.runner_up.latency_s / choice.best.latency_s - 1)


def test_that_equal_layouts_are_no_switch_and_the_design_keeps_its_own() -> None:
    """On one node only one axis is live: several layouts are the same there."""
    design = replace_at(presets.load_design("llama-3.1-70b-h100"), "plan.ffn_layout", "weight_stationary_2d")
    choice = best_layout(design)
    assert choice.best is not None
    assert choice.best.choice.layout is FfnLayout.WEIGHT_STATIONARY_2D
    tied = [r for r in choice.ranking if r.latency_s <= choice.best.latency_s * TIE]
    assert len(tied) > 1
    assert choice.runner_up is not None
    assert choice.runner_up.latency_s > choice.best.latency_s


def test_that_a_design_that_fits_nowhere_has_no_best_layout() -> None:
    choice = best_layout(preset("palm-540b-decode-low-latency", batch=1_000_000), most_batch=1)
    assert choice.best is None
    assert choice.margin is None
    assert choice.ranking


def test_that_figure_3_switches_where_the_closed_forms_do() -> None:
    """Pope Figure 3 and A.2: 64 chips, X = Y = Z = 4, (K − 1)/K taken as 1."""
    design = preset("palm-540b-decode-low-latency")
    e, f = design.model.d_model, design.model.d_ff
    volumes = feedforward_volumes(design)
    tokens = volumes.tokens
    forms = {
        FfnLayout.WEIGHT_STATIONARY_1D: stationary_1d_elements(tokens, e),
        FfnLayout.WEIGHT_STATIONARY_2D: stationary_2d_elements(tokens, e, f, 4, 16, gated=True),
        FfnLayout.WEIGHT_GATHERED_X: weight_gathered_elements(tokens, e, f, 4, 64, gated=True),
        FfnLayout.WEIGHT_GATHERED_XY: weight_gathered_elements(tokens, e, f, 16, 64, gated=True),
    }
    for layout, elements in forms.items():
        assert volumes.elements[layout] == pytest.approx(elements, rel=0.05), layout
    assert [switch.after for switch in volumes.switches] == [
        FfnLayout.WEIGHT_GATHERED_X,
        FfnLayout.WEIGHT_GATHERED_XY,
        FfnLayout.WEIGHT_GATHERED_XYZ,
    ]
    first = volumes.switches[0].tokens
    stationary = stationary_2d_elements(first, e, f, 4, 16, gated=True)
    assert stationary == pytest.approx(weight_gathered_elements(first, e, f, 4, 64, gated=True), rel=1e-3)
