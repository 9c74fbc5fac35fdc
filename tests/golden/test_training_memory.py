"""Training memory against published figures: Korthikanti et al. 2022 and the DeepSeek-V3 report."""

from __future__ import annotations

import pytest

from model_core.memory.training import saved_bytes
from model_core.memory.training_budget import activations_in_flight, kept_by_program
from model_core.partition.program import Role
from model_core.spec import TrainingSpec
from model_core.training.korthikanti import (
    GptShape,
    first_stage_layers,
    full_recompute_bytes,
    layer_activation_bytes,
)
from tests.unit.training_cases import KORTHIKANTI, gpt, parts_of

GIB = 2.0**30
ACTIVATIONS = [  # calculon's validation table, GiB: none is TP without sequence parallelism, nothing recomputed
    ("22B", 59.25, 9.5625, 59.44, 10.4),
    ("175B", 66.84375, 12.3515625, 66.94, 12.69),
    ("530B", 114.0234375, 23.076171875, 114.18, 23.56),
    ("1T", 131.25, 26.5625, 131.45, 27.17),
]


def shape_of(case: dict[str, int], t: int = 8) -> GptShape:
    return GptShape(2048, case["b"], case["h"], case["a"], case["layers"], 51_200, t)


def spec(case: dict[str, int], tp: int, sequence: bool, recompute: str) -> TrainingSpec:
    return TrainingSpec.model_validate(
        {
            "tp": tp,
            "sequence_parallel": sequence,
            "recompute": recompute,
            "fused_attention": False,
            "dropout": True,
            "micro_batch": case["b"],
        }
    )


@pytest.mark.parametrize("name", KORTHIKANTI)
@pytest.mark.parametrize("tp", [1, 4, 8])
@pytest.mark.parametrize("sequence", [False, True])
@pytest.mark.parametrize("recompute", ["none", "selective"])
def test_that_a_layer_counted_from_its_program_is_the_closed_form(
    name: str, tp: int, sequence: bool, recompute: str
) -> None:
    """Korthikanti et al. 2022, equations 1, 2 and 4; only the norm statistics, which they neglect, differ."""
    case = KORTHIKANTI[name]
    parts = parts_of(gpt(case["h"], case["a"], case["layers"]), spec(case, tp, sequence, recompute))
    widths = {**parts.widths, Role.STATISTIC: 0}
    counted = saved_bytes(parts.programs["block"], parts.training, parts.sizes, widths)
    expected = layer_activation_bytes(shape_of(case, tp), sequence, recompute == "selective")
    assert counted == pytest.approx(expected, rel=1e-12)


def test_that_full_recomputation_keeps_the_input_of_the_layer() -> None:
    case = KORTHIKANTI["175B"]
    parts = parts_of(gpt(case["h"], case["a"], case["layers"]), spec(case, 8, False, "full"))
    counted = saved_bytes(parts.programs["block"], parts.training, parts.sizes, parts.widths)
    assert counted == full_recompute_bytes(shape_of(case))


@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row[0])
def test_that_published_activation_sizes_are_met_closer_than_calculon_does(
    row: tuple[str, float, float, float, float],
) -> None:
    """Korthikanti et al. 2022, Figure 1, as in calculon's validation; blocks of the fullest rank."""
    name, none, selective, calculon_none, calculon_selective = row
    case = KORTHIKANTI[name]
    model = gpt(case["h"], case["a"], case["layers"])
    kind = "interleaved" if case["m"] > 1 else "1f1b"
    cases = ((False, "none", none, calculon_none), (True, "selective", selective, calculon_selective))
    for sequence, recompute, published, calculon in cases:
        parts = parts_of(
            model,
            spec(case, 8, sequence, recompute),
            kind=kind,
            pp=case["pp"],
            microbatches=case["microbatches"],
            chunks=case["m"],
        )
        kept = kept_by_program(parts)
        blocks = max(
            activations_in_flight(parts, rank, kept)["activations of dense blocks"]
            for rank in range(case["pp"])
        )
        error = abs(blocks / GIB / published - 1)
        assert error < 1e-3
        assert error < abs(calculon / published - 1)


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_that_the_first_stage_holds_what_the_source_says(name: str) -> None:
    case = KORTHIKANTI[name]
    model = gpt(case["h"], case["a"], case["layers"])
    kind = "interleaved" if case["m"] > 1 else "1f1b"
    parts = parts_of(
        model, TrainingSpec(), kind=kind, pp=case["pp"], microbatches=case["microbatches"], chunks=case["m"]
    )
    kept = kept_by_program(parts)
    held = activations_in_flight(parts, 0, kept)["activations of dense blocks"] / kept["block"]
    assert held == pytest.approx(first_stage_layers(case["layers"], case["pp"], case["m"]))
