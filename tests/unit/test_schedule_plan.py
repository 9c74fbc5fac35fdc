"""The schedule of a plan: its file, its sizes, and what it is compared with."""

from __future__ import annotations

from typing import get_args

import pytest

from model_core import evaluate
from model_core.schedule import KINDS
from model_core.schedule_plan import planned_problems, run_planned
from model_core.spec import PlanSpec, ScheduleSpec
from model_core.spec.io import dump_design, parse_design
from model_core.spec.schedule import SCHEDULE_TITLES, ScheduleName
from presets import load_design


def test_that_a_plan_can_name_every_schedule() -> None:
    assert set(get_args(ScheduleName)) == set(KINDS) == set(SCHEDULE_TITLES)
    assert {name: kind.title for name, kind in KINDS.items()} == SCHEDULE_TITLES


def test_that_plans_without_a_schedule_load_as_before() -> None:
    assert PlanSpec.model_validate({}).schedule is None
    design = load_design("deepseek-v3-training")
    read, found = parse_design(dump_design(design))
    assert read is not None
    assert not found
    assert read.plan.schedule == design.plan.schedule


def test_that_the_published_training_takes_about_the_published_time() -> None:
    """DeepSeek-V3: 15360 × 4096 tokens a step at 180,000 GPU hours a trillion on 2048 GPUs: 19.9 s."""
    schedule = load_design("deepseek-v3-training").plan.schedule
    assert schedule is not None
    assert (schedule.kind, schedule.pp, schedule.microbatches) == ("dualpipe", 16, 120)
    (run,) = run_planned(schedule).runs
    assert run.simulation.makespan_s == pytest.approx(19.9, rel=0.08)


def test_that_the_defaults_are_figure_5_of_the_report() -> None:
    (run,) = run_planned(ScheduleSpec()).runs
    assert (run.schedule.kind, run.schedule.pp, run.schedule.microbatches) == ("dualpipe", 8, 20)
    assert run.peak_activations == 9
    assert run.parameters == 2
    formula = run.formulas[0]
    assert formula.holds
    assert formula.value_s == pytest.approx(float(run.simulation.bubble_s.max()))


@pytest.mark.parametrize(
    ("fields", "path", "nearest"),
    [
        ({"microbatches": 19}, "plan.schedule.microbatches", "pp=8 microbatches=18; pp=8 microbatches=20"),
        ({"pp": 7}, "plan.schedule.microbatches", "pp=6 microbatches=20; pp=8 microbatches=20"),
        ({"compare": "chimera"}, "plan.schedule.compare", "pp=8 microbatches=16; pp=8 microbatches=24"),
    ],
)
def test_that_a_size_that_does_not_fit_is_named_with_those_that_do(
    fields: dict[str, object], path: str, nearest: str
) -> None:
    spec = ScheduleSpec.model_validate(fields)
    design = load_design("palm-540b-decode-low-latency")
    evaluation = evaluate(design.replace(plan=design.plan.replace(schedule=spec)))
    (found,) = (d for d in evaluation.diagnostics if d.code == "schedule_size")
    assert found.path == path
    assert nearest in found.hint
    assert run_planned(spec).diagnostics == planned_problems(spec)


def test_that_too_many_operations_are_refused_before_they_are_made() -> None:
    (found,) = planned_problems(ScheduleSpec(kind="1f1b", pp=16_384, microbatches=1_000_000))
    assert found.code == "schedule_too_large"


def test_that_equal_devices_means_equal_ranks() -> None:
    own, other = run_planned(ScheduleSpec(compare="1f1b")).runs
    assert own.schedule.pp == other.schedule.pp
    assert own.schedule.microbatches == other.schedule.microbatches
    assert (own.parameters, other.parameters) == (2, 1)


@pytest.mark.parametrize(("kind", "compare"), [("dualpipe", "1f1b"), ("1f1b", "dualpipe"), ("zb-v", "1f1b")])
def test_that_equal_memory_means_equal_parameters_and_equal_work(kind: str, compare: str) -> None:
    spec = ScheduleSpec.model_validate(
        {"kind": kind, "compare": compare, "compare_by": "memory", "backward_input": 1.3e-3}
    )
    own, other = run_planned(spec).runs
    assert own.parameters == other.parameters
    # The same work over the same devices: ranks times pipelines, each of which takes its microbatches.
    busy = [run.simulation.busy_s.sum() / run.schedule.microbatches for run in (own, other)]
    assert busy[0] == pytest.approx(busy[1])
    assert own.schedule.microbatches / own.schedule.pp == other.schedule.microbatches / other.schedule.pp
