"""Activations over time: never negative, all released, and the peaks of the papers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.schedule import Schedule, activation_memory, ops_text, parameter_copies, parameter_share
from tests.unit.schedule_cases import made, ran, schedules, works


@given(schedules(), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_that_memory_is_never_negative_and_all_released(result: Schedule, part: float, seed: int) -> None:
    sizes = np.random.default_rng(seed).uniform(0, 1e9, result.layout.n_stages)
    memory = activation_memory(result, sizes, part)
    most = max(1.0, float(memory.peak.max()))
    assert memory.after.min() >= -1e-9 * most
    assert np.abs(memory.left).max() <= 1e-9 * most
    assert np.all(memory.during >= memory.after - 1e-9 * most)


@given(schedules())
def test_that_memory_is_what_a_walk_through_the_notation_holds(result: Schedule) -> None:
    memory = activation_memory(result)
    for rank, queue in enumerate(works(result, ops_text(result))):
        held, row = 0, int(result.offsets[rank])
        for work in queue:
            kinds = [kind for kind, *_ in work.parts]
            held += kinds.count("F")
            assert memory.during[row] == held
            held -= kinds.count("B") + kinds.count("W")
            assert memory.after[row] == held
            row += 1


@pytest.mark.parametrize(
    ("kind", "pp", "microbatches", "peak"),
    [
        ("gpipe", 4, 9, [9] * 4),
        ("1f1b", 4, 9, [4, 3, 2, 1]),
        ("1f1b", 4, 2, [2, 2, 2, 1]),
        ("zb-h1", 4, 9, [4] * 4),
        ("zb-2p", 4, 9, [7] * 4),
        ("zb-v", 4, 9, [8] * 4),
        ("chimera", 4, 8, [3, 4, 4, 3]),
        ("dualpipe", 4, 12, [5] * 4),
        ("dualpipev", 4, 12, [9] * 4),
    ],
)
def test_that_peaks_are_those_of_the_papers(kind: str, pp: int, microbatches: int, peak: list[int]) -> None:
    assert activation_memory(made(kind, pp, microbatches)).peak.tolist() == peak


def test_that_interleaving_holds_what_korthikanti_says() -> None:
    """Korthikanti et al. 2022: the first stage of v chunks holds 1 + (p - 1)/(p v) times as much."""
    for chunks in (2, 3, 4):
        peak = activation_memory(made("interleaved", 8, 32, chunks)).peak[0] / chunks
        assert peak == pytest.approx(8 * (1 + 7 / (8 * chunks)))


def test_that_the_curve_has_a_level_for_every_start_and_end() -> None:
    simulation = ran(made("zb-h1", 3, 5))
    memory = activation_memory(simulation.schedule, released_by_input=0.5)
    times, levels = memory.steps(1, simulation.start_s, simulation.end_s)
    assert np.all(np.diff(times) >= 0)
    assert levels.max() == memory.peak[1]
    assert levels[-1] == 0


def test_that_parameters_count_stages_and_shares() -> None:
    counts = {
        kind: parameter_copies(made(kind, 4, 8)) for kind in ("1f1b", "chimera", "dualpipe", "dualpipev")
    }
    assert counts == {"1f1b": 1, "chimera": 2, "dualpipe": 2, "dualpipev": 2}
    assert parameter_share(made("dualpipe", 4, 8)) == 2 / 4
    assert parameter_share(made("dualpipev", 4, 8)) == 1 / 4


@pytest.mark.parametrize("part", [-0.1, 1.1])
def test_that_a_part_outside_0_to_1_is_refused(part: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        activation_memory(made("1f1b", 2, 2), released_by_input=part)
