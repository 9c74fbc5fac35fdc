"""Recommendations against the whole space, one by one: the answer, the next best and what binds."""

from __future__ import annotations

import numpy as np
import pytest

import presets
from model_core import Design, evaluate
from model_core.search.axes import Axis
from model_core.search.axis_text import parse_axis
from model_core.search.choices import default_axes
from model_core.search.recommend import Goal, Recommendation, recommend
from model_core.search.space import make_space
from model_core.search.sweep import SweepResult, sweep
from model_core.search.targets import FITS, MEASURES, Target, parse_target
from model_core.spec import Phase
from tests.unit.search_spaces import PARTS, decode_design

FIXED = ("cluster", "plan.mesh", "plan.kv_dtype")


def targets_of(design: Design, *texts: str) -> list[Target]:
    found = []
    for text in texts:
        target, problems = parse_target(text, design.workload.phase)
        assert target is not None, problems
        found.append(target)
    return found


def axes_of(design: Design, *texts: str) -> list[Axis]:
    found = []
    for text in texts:
        axis, problems = parse_axis(design, text, PARTS)
        assert axis is not None, problems
        found.append(axis)
    return found


def asked(
    name: str,
    targets: tuple[str, ...],
    goal: str,
    minimise: bool = True,
    fixed: tuple[str, ...] = FIXED,
    axes: tuple[str, ...] = (),
) -> Recommendation:
    design = presets.load_design(name)
    return recommend(
        design, targets_of(design, *targets), Goal(goal, minimise), fixed, axes_of(design, *axes)
    )


def whole(design: Design, fixed: tuple[str, ...], *axes: str) -> SweepResult:
    space, _ = make_space(design, default_axes(design, (), fixed, axes_of(design, *axes)))
    assert space is not None
    result, _ = sweep(space)
    assert result is not None
    return result


def test_that_the_answer_is_the_best_that_meets_the_targets() -> None:
    design = decode_design()
    axis = "workload.batch=1:1024:*2"
    found = asked(design.name, ("tpot<=40ms", "mfu>=5%"), "cost", axes=(axis,))
    result = whole(design, FIXED, axis)
    meets = result.usable & (result.columns["step_s"] <= 0.04) & (result.columns["mfu"] >= 0.05)
    assert found.best is not None
    assert found.best.value == result.columns["cost_chip_s_per_token"][meets].min()
    evaluation = evaluate(found.best.design)
    assert evaluation.ok
    assert evaluation.value("cost_chip_s_per_token") == pytest.approx(found.best.value, rel=1e-12)
    assert {change.path for change in found.best.changes} <= {
        "workload.batch",
        "plan.ffn_layout",
        "plan.attention_sharding",
        "plan.weight_dtype",
    }


def test_that_batches_between_powers_of_two_are_found() -> None:
    found = asked("palm-540b-decode-low-latency", ("tpot<=40ms",), "batch", minimise=False)
    assert found.best is not None
    batch = found.best.design.workload.batch
    assert batch & (batch - 1)
    assert evaluate(found.best.design).value("step_s") <= 0.04  # type: ignore[operator]


def test_that_the_next_best_makes_another_choice_and_is_worse() -> None:
    found = asked("palm-540b-decode-low-latency", ("tpot<=40ms",), "cost")
    assert found.best is not None
    assert found.next_best is not None
    assert found.margin is not None
    assert found.margin >= 1e-3
    assert found.next_best.value == pytest.approx(found.best.value * (1 + found.margin))
    first, second = found.best.design.plan, found.next_best.design.plan
    assert first != second


def test_that_a_binding_target_says_what_relaxing_it_would_give() -> None:
    found = asked("palm-540b-decode-low-latency", ("tpot<=40ms", "chips<=64"), "cost")
    assert found.best is not None
    by_name = {constraint.name: constraint for constraint in found.constraints}
    assert set(by_name) == {FITS, "tpot<=40ms", "chips<=64"}
    latency, chips = by_name["tpot<=40ms"], by_name["chips<=64"]
    assert latency.binds
    assert latency.without is not None
    assert latency.relaxed is not None
    assert latency.without <= latency.relaxed < found.best.value
    assert not chips.binds
    relaxed = asked("palm-540b-decode-low-latency", ("tpot<=44ms", "chips<=64"), "cost")
    assert relaxed.best is not None
    assert relaxed.best.value <= latency.relaxed * (1 + 1e-9)


def test_that_the_memory_binds_where_a_larger_batch_would_pay() -> None:
    found = asked(
        "palm-540b-decode-high-throughput", (), "cost", fixed=("cluster", "plan", "workload.input_length")
    )
    memory = next(constraint for constraint in found.constraints if constraint.name == FITS)
    assert found.best is not None
    assert memory.value <= memory.bound
    assert found.best.design.plan == presets.load_design("palm-540b-decode-high-throughput").plan


def test_that_the_smallest_slice_that_fits_is_found() -> None:
    found = asked("palm-540b-decode-low-latency", (), "chips", fixed=("workload.batch", "plan.weight_dtype"))
    assert found.best is not None
    design = found.best.design
    assert design.cluster.n_chips == found.best.value < 64
    assert design.cluster.shape_text in design.cluster.name
    assert evaluate(design).ok
    memory = next(constraint for constraint in found.constraints if constraint.name == FITS)
    assert memory.binds


def test_that_the_longest_context_is_found() -> None:
    design = decode_design()
    found = asked(
        design.name, ("tpot<=40ms",), "context", minimise=False, fixed=(*FIXED, "workload.batch", "plan")
    )
    assert found.best is not None
    length = found.best.design.workload.input_length
    assert length > design.workload.input_length
    assert evaluate(found.best.design).value("step_s") <= 0.04  # type: ignore[operator]
    step = max(1, length // 16)
    longer = found.best.design.replace(
        workload=found.best.design.workload.replace(input_length=length + step)
    )
    assert evaluate(longer).value("step_s") > 0.04  # type: ignore[operator]


def test_that_targets_out_of_reach_say_what_can_be_had() -> None:
    found = asked("palm-540b-decode-low-latency", ("tpot<=1ms",), "cost")
    assert found.best is None
    assert found.problems[0].code == "no_design"
    assert found.closest is not None
    result = whole(decode_design(), FIXED)
    assert found.closest.row["step_s"] == result.columns["step_s"][result.usable].min()


def test_that_a_space_in_which_nothing_fits_says_so() -> None:
    found = asked("palm-540b-decode-low-latency", (), "cost", axes=("workload.batch=1000000",))
    assert found.best is None
    assert found.problems[0].code == "no_design_fits"


def test_that_of_equally_good_designs_the_least_changed_is_taken() -> None:
    """On one node most meshes and layouts are the same: nothing needs to change."""
    fixed = ("cluster", "workload", "plan.weight_dtype", "plan.kv_dtype")
    found = asked("llama-3.1-70b-h100", (), "latency", fixed=fixed)
    assert found.best is not None
    assert found.best.changes == ()


def test_that_bounds_and_predictions_are_not_mixed_silently() -> None:
    axes = ("cluster=h100-1x8,b200-1x8", "workload.batch=32,64")
    found = asked("llama-3.1-70b-h100", (), "usd", fixed=("plan",), axes=axes)
    assert [problem.code for problem in found.problems] == ["calibration_mixed"]
    alone = asked("llama-3.1-70b-h100", (), "usd", fixed=("plan", "cluster"), axes=axes[1:])
    assert alone.problems == ()


@pytest.mark.parametrize(
    ("text", "column", "at_most", "bound"),
    [
        ("tpot<=30ms", "step_s", True, 0.03),
        (" tpot ≤ 0.03 ", "step_s", True, 0.03),
        ("mfu>=40%", "mfu", False, 0.4),
        ("memory<30GiB", "memory_per_chip_bytes", True, 30 * 2**30),
        ("batch>=2k", "batch", False, 2000),
        ("usd<=0.5", "usd_per_million_tokens", True, 0.5),
    ],
)
def test_that_targets_are_read(text: str, column: str, at_most: bool, bound: float) -> None:
    target, _ = parse_target(text, Phase.DECODE)
    assert target is not None
    assert (target.measure.column, target.at_most) == (column, at_most)
    assert target.bound == pytest.approx(bound)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "NAME<=VALUE"),
        ("tpot", "NAME<=VALUE"),
        ("tpto<=3", "Nearest: tpot"),
        ("tpot<=3 GB", "unit of time"),
        ("tpot<=fast", "number"),
        ("ttft<=1s", "prefill"),
    ],
)
def test_that_a_wrong_target_says_what_would_be_right(text: str, part: str) -> None:
    target, problems = parse_target(text, Phase.DECODE)
    assert target is None
    assert part in f"{problems[0].message} {problems[0].hint}"


def test_that_a_bound_is_met_by_its_own_value() -> None:
    target, _ = parse_target("tpot<=30 ms", Phase.DECODE)
    assert target is not None
    assert target.met_by({"step_s": np.array([0.03, 0.03 * (1 + 1e-9)])}).tolist() == [True, False]


def test_that_every_measure_is_a_column() -> None:
    row = whole(decode_design(), (*FIXED, "plan", "workload.batch")).columns
    assert all(measure.column in row for measure in MEASURES.values())
