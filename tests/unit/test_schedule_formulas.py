"""Bubble formulas beside the simulation, in and out of their domains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model_core.quantities import FORMULAS
from model_core.schedule import KINDS, BubbleFormula, Durations, Simulation, bubble_formulas
from model_core.schedule.formulas import bubble_dualpipe, bubble_dualpipe_published
from tests.unit.schedule_cases import made, ran

TIME = st.integers(1, 16).map(lambda n: n / 4)
F_I_W = st.tuples(TIME, TIME, TIME)


def formulas(simulation: Simulation) -> tuple[BubbleFormula, ...]:
    return bubble_formulas(simulation.schedule, simulation.durations)


def measured(simulation: Simulation, formula: BubbleFormula) -> float:
    idle = simulation.iteration_bubble_s if formula.between_iterations else simulation.bubble_s
    return float(idle.max())


@given(st.sampled_from(["gpipe", "1f1b"]), st.integers(1, 8), st.integers(1, 20), F_I_W)
def test_that_1f1b_is_exact_on_every_rank(
    kind: str, pp: int, microbatches: int, times: tuple[float, float, float]
) -> None:
    simulation = ran(made(kind, pp, microbatches), Durations(*times))
    (formula,) = formulas(simulation)
    assert formula.holds
    np.testing.assert_allclose(simulation.bubble_s, formula.value_s, atol=1e-9)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4), F_I_W)
def test_that_interleaving_divides_the_bubble_by_the_chunks(
    pp: int, rounds: int, chunks: int, times: tuple[float, float, float]
) -> None:
    simulation = ran(made("interleaved", pp, rounds * pp, chunks), Durations(*times))
    (formula,) = formulas(simulation)
    assert formula.holds
    np.testing.assert_allclose(simulation.bubble_s, formula.value_s, atol=1e-9)


@given(st.integers(1, 8), st.integers(0, 16), F_I_W)
def test_that_zb1p_is_exact_where_w_is_the_shortest(
    pp: int, more: int, times: tuple[float, float, float]
) -> None:
    forward_s, input_s, weight_s = times
    simulation = ran(made("zb-h1", pp, pp + more), Durations(*times))
    (formula,) = formulas(simulation)
    assert formula.holds == (weight_s <= forward_s and weight_s <= input_s)
    if formula.holds:
        np.testing.assert_allclose(simulation.bubble_s, formula.value_s, atol=1e-9)
    else:
        assert measured(simulation, formula) > formula.value_s - 1e-9


@given(st.integers(1, 7), st.integers(0, 16), F_I_W)
def test_that_zb2p_is_exact_where_w_is_not_longer_than_f(
    pp: int, more: int, times: tuple[float, float, float]
) -> None:
    forward_s, input_s, weight_s = times
    simulation = ran(made("zb-2p", pp, 2 * pp - 1 + more), Durations(*times))
    (formula,) = formulas(simulation)
    assert formula.holds == (weight_s <= forward_s)
    general = (pp - 1) * max(forward_s + input_s - 2 * weight_s, input_s - forward_s, 0.0)
    assert measured(simulation, formula) == pytest.approx(general, abs=1e-9)
    if formula.holds:
        assert formula.value_s == pytest.approx(general, abs=1e-9)


@given(st.integers(1, 7), st.integers(0, 16), TIME)
def test_that_zbv_has_no_bubble_where_all_are_equal(pp: int, more: int, time: float) -> None:
    simulation = ran(made("zb-v", pp, 2 * pp - 1 + more), Durations(time, time, time))
    (formula,) = formulas(simulation)
    assert formula.holds
    assert measured(simulation, formula) == pytest.approx(0.0, abs=1e-9)


@given(st.integers(1, 4), st.integers(1, 4), F_I_W)
def test_that_chimera_is_exact_where_backward_is_not_shorter(
    half: int, units: int, times: tuple[float, float, float]
) -> None:
    simulation = ran(made("chimera", 2 * half, 2 * half * units), Durations(*times))
    (formula,) = formulas(simulation)
    assert formula.holds == (times[0] <= times[1] + times[2])
    if formula.holds:
        np.testing.assert_allclose(simulation.bubble_s, formula.value_s, atol=1e-9)


@given(
    st.sampled_from(["dualpipe", "dualpipev"]), st.integers(1, 5), st.integers(0, 9), F_I_W, st.floats(0, 1)
)
def test_that_the_closed_form_of_dualpipe_is_exact(
    kind: str, half: int, more: int, times: tuple[float, float, float], mix: float
) -> None:
    forward_s, backward_s = times[0], times[1] + times[2]
    low, high = max(forward_s, backward_s), forward_s + backward_s
    pair_s = min(high, low + round(16 * mix) / 16 * (high - low))
    pp, in_each = (2 * half, 2 * half + more) if kind == "dualpipe" else (half, 2 * half + more)
    microbatches = 2 * in_each if kind == "dualpipe" else in_each
    simulation = ran(made(kind, pp, microbatches), Durations(*times, pair_s))
    published, exact = formulas(simulation)
    assert exact.holds
    assert measured(simulation, exact) == pytest.approx(exact.value_s, abs=1e-9)
    # The ranks in the middle (the last one of the V) idle most.
    assert simulation.bubble_s[pp // 2 if kind == "dualpipe" else -1] == simulation.bubble_s.max()
    if published.holds:
        assert published.value_s == pytest.approx(exact.value_s, abs=1e-9)


@given(st.integers(2, 8), F_I_W, TIME)
def test_that_the_published_formula_of_dualpipe_needs_i_equal_to_f_and_w_not_above_i(
    k: int, times: tuple[float, float, float], pair_s: float
) -> None:
    forward_s, input_s, weight_s = times
    published = bubble_dualpipe_published(2 * k + 2, input_s, weight_s, pair_s)
    exact = bubble_dualpipe(2 * k + 2, forward_s, input_s, weight_s, pair_s)
    if input_s == forward_s and weight_s <= input_s:
        assert published == pytest.approx(float(exact))
    elif input_s != forward_s:
        assume(weight_s <= input_s)
        assert published != pytest.approx(float(exact))


def test_that_formulas_are_outside_their_domain_with_messages_or_uneven_stages() -> None:
    for kind in KINDS:
        result = made(kind, 4, 8)
        for durations in (
            Durations(p2p_s=0.1),
            Durations(forward_s=np.linspace(1, 2, result.layout.n_stages)),
        ):
            assert not any(f.holds for f in formulas(ran(result, durations)))


def test_that_every_formula_has_a_card() -> None:
    for kind in KINDS:
        for formula in formulas(ran(made(kind, 4, 8))):
            card = FORMULAS[formula.id]
            printed = f"{card.expression}; PP = 2 · ranks" if kind == "dualpipev" else card.expression
            assert formula.expression == printed
            assert card.source
            assert formula.domain == card.assumes
