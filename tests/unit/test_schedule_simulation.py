"""Event simulation: equal to a scalar simulation, conserving time, and honest about deadlocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_core.schedule import Durations, OpKind, Schedule, bubble_causes, ops_text, simulate, step_times
from model_core.schedule.dependencies import dependencies
from model_core.schedule.engine import Problem, _Narrow, _Rows, _together
from tests.unit.schedule_cases import made, ran, scalar_simulation, swapped, timed_schedules, works


@given(timed_schedules())
def test_that_times_are_those_of_a_scalar_simulation(case: tuple[Schedule, Durations]) -> None:
    result, durations = case
    simulation = ran(result, durations)
    expected = scalar_simulation(result, works(result, ops_text(result)), durations)
    times = np.array([pair for rank in expected for pair in rank])
    np.testing.assert_allclose(simulation.start_s, times[:, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(simulation.end_s, times[:, 1], rtol=1e-12, atol=1e-12)


@given(timed_schedules())
def test_that_no_two_operations_of_a_rank_overlap_and_dependencies_are_kept(
    case: tuple[Schedule, Durations],
) -> None:
    result, durations = case
    simulation, waits = ran(result, durations), dependencies(result)
    same = result.rank[1:] == result.rank[:-1]
    assert np.all((simulation.start_s[1:] >= simulation.end_s[:-1])[same])
    reached, p2p = np.append(simulation.end_s, 0.0), np.append(simulation.durations.p2p_s, 0.0)
    assert np.all(simulation.start_s >= reached[waits.first] + p2p[waits.first_edge])
    assert np.all(simulation.start_s >= reached[waits.second] + p2p[waits.second_edge])


@given(timed_schedules())
def test_that_busy_and_idle_time_make_up_the_makespan(case: tuple[Schedule, Durations]) -> None:
    result, durations = case
    simulation = ran(result, durations)
    np.testing.assert_allclose(simulation.busy_s + simulation.bubble_s, simulation.makespan_s)
    work = np.zeros(result.pp)
    np.add.at(work, result.rank, simulation.durations.of(result))
    np.testing.assert_allclose(simulation.busy_s, work, atol=1e-12)
    assert simulation.bubble_s.min() >= -1e-9
    assert simulation.period_s <= simulation.makespan_s + 1e-12
    assert simulation.iteration_bubble_s.min() >= -1e-9


@given(timed_schedules())
def test_that_the_causes_make_up_the_bubble(case: tuple[Schedule, Durations]) -> None:
    result, durations = case
    simulation = ran(result, durations)
    causes = bubble_causes(simulation)
    np.testing.assert_allclose(causes.total_s, simulation.bubble_s, atol=1e-9)
    for part in (causes.warm_up_s, causes.steady_s, causes.drain_s, causes.communication_s):
        assert part.min() >= -1e-12
    if not np.any(simulation.durations.p2p_s):
        assert causes.communication_s.max() == 0


def problem(result: Schedule, durations: Durations) -> Problem:
    waits, d = dependencies(result), durations.on(result.layout)
    p2p = np.append(d.p2p_s, 0.0)
    return Problem(
        result.offsets,
        waits.first,
        waits.second,
        p2p[waits.first_edge],
        p2p[waits.second_edge],
        d.of(result),
        waits.signature,
    )


@given(timed_schedules())
def test_that_both_ways_of_simulating_agree(case: tuple[Schedule, Durations]) -> None:
    one, other = (f(problem(*case)) for f in (lambda p: _Narrow(p).run(), _together))
    np.testing.assert_allclose(one, other, rtol=1e-13)


LONG = [
    ("gpipe", 3, 700),
    ("1f1b", 4, 900),
    ("interleaved", 4, 400),
    ("zb-h1", 5, 500),
    ("zb-2p", 4, 600),
    ("zb-v", 4, 300),
    ("chimera", 4, 400),
    ("dualpipe", 6, 800),
    ("dualpipev", 3, 800),
]


@pytest.mark.parametrize(("kind", "pp", "microbatches"), LONG)
@pytest.mark.parametrize(
    "durations",
    [
        Durations(),
        Durations(1.0, 1.1, 0.9, 2.5, 0.1),
        Durations(1.0, 0.3, 2.0, 3.0, 1.7),
    ],
)
def test_that_skipping_repetitions_changes_nothing(
    kind: str, pp: int, microbatches: int, durations: Durations
) -> None:
    result = made(kind, pp, microbatches)
    case = problem(result, durations)
    skipped = _Narrow(case).run()
    plain = _Narrow(replace(case, signature=np.empty(0, np.int64))).run()
    np.testing.assert_allclose(skipped, plain, rtol=1e-13)


@settings(max_examples=30)
@given(st.sampled_from(LONG), st.integers(0, 2**32 - 1))
def test_that_skipping_is_right_with_uneven_stages(case: tuple[str, int, int], seed: int) -> None:
    result = made(*case)
    random, stages = np.random.default_rng(seed), result.layout.n_stages
    forward, inputs, weights = random.uniform(0.5, 2.0, (3, stages))
    p2p = random.uniform(0.0, 0.5, stages - 1) * random.integers(0, 2)
    uneven = problem(result, Durations(forward, inputs, weights, random.uniform(1, 4, result.pp), p2p))
    np.testing.assert_allclose(_Narrow(uneven).run(), _together(uneven), rtol=1e-12)


class CountingNarrow(_Narrow):
    visited = 0

    def _run_rank(self, rank: int, rows: _Rows, base: int, stop: int) -> bool:
        before = self.at[rank]
        ran_any = super()._run_rank(rank, rows, base, stop)
        self.visited += self.at[rank] - before
        return ran_any


def test_that_long_repetitions_are_skipped() -> None:
    """The point of the skipping: most rows of a long narrow schedule are not visited one by one."""
    narrow = CountingNarrow(problem(made("dualpipe", 8, 4000), Durations(1.0, 1.0, 1.0, 2.5, 0.05)))
    narrow.run()
    assert 0 < narrow.visited < 0.2 * len(narrow.problem.duration_s)


def test_that_a_deadlock_is_reported_with_what_waits_for_what() -> None:
    result = made("1f1b", 2, 2)
    stuck = swapped(result, result.row(1, "F0.0"), result.row(1, "B0.1"))
    simulation, found = simulate(stuck, Durations())
    assert simulation is None
    assert found[0].code == "schedule_deadlock"
    assert "B0.1 on rank 1 waits forever for F0.1 on rank 1" in found[0].message


def test_that_a_cycle_between_ranks_is_reported_by_both_ways() -> None:
    result = made("1f1b", 40, 60)
    stuck = swapped(result, result.row(0, "F0.20"), result.row(0, "B0.30"))
    case = problem(stuck, Durations())
    for end in (_Narrow(case).run(), _together(case)):
        assert np.isinf(end).any()
        assert np.isfinite(end).any()
    assert simulate(stuck, Durations())[1][0].code == "schedule_deadlock"


def test_that_missing_and_double_operations_are_reported() -> None:
    result = made("zb-h1", 3, 5)
    microbatch = result.microbatch.copy()
    microbatch[result.row(1, "F0.3")] = 2
    _, found = simulate(replace(result, microbatch=microbatch), Durations())
    assert found[0].code == "schedule_incomplete"
    assert "F of microbatch 2 (direction 0)" in found[0].message
    microbatch = result.microbatch.copy()
    microbatch[result.row(2, "W0.3")] = 9
    _, found = simulate(replace(result, microbatch=microbatch), Durations())
    assert "W of microbatch 3" in found[0].message


@pytest.mark.parametrize(
    ("durations", "words"),
    [
        (Durations(forward_s=[1.0, 2.0]), "forward_s"),
        (Durations(weight_s=-1.0), "weight_s"),
        (Durations(p2p_s=float("inf")), "p2p_s"),
        (Durations(pair_s=[1.0] * 3), "pair_s"),
    ],
)
def test_that_durations_that_do_not_fit_are_refused(durations: Durations, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        simulate(made("1f1b", 4, 8), durations)


def test_that_messages_within_a_rank_cost_nothing() -> None:
    one = ran(made("zb-v", 1, 4), Durations(p2p_s=5.0))
    assert one.makespan_s == 4 * 6


def test_that_gradients_are_reduced_when_all_copies_are_ready() -> None:
    simulation = ran(made("dualpipe", 4, 8))
    step = step_times(simulation, all_reduce_s=2.0, optimizer_s=0.5)
    result = simulation.schedule
    for stage in range(4):
        gives = (result.op != OpKind.FORWARD) & (result.op != OpKind.BACKWARD_INPUT)
        last = simulation.end_s[gives & (result.backward_stage == stage)].max()
        assert step.reduce_start_s[stage] >= last
    # Ranks 1 and 2 hold stages 1 and 2: one all-reduce follows the other.
    assert step.reduce_start_s[1] == step.reduce_end_s[2]
    assert step.step_s == step.reduce_end_s.max() + 0.5


def test_that_ranks_go_on_by_themselves_after_post_validation() -> None:
    simulation = ran(made("zb-2p", 4, 8))
    together = step_times(simulation, 1.0, 1.0)
    alone = step_times(simulation, 1.0, 1.0, wait_for_all=False)
    assert together.optimizer_start_s.max() == together.optimizer_start_s.min()
    assert alone.optimizer_start_s[0] < alone.optimizer_start_s[-1] == together.optimizer_start_s[-1]
