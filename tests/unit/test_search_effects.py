"""Single changes and their effect on each term, chunked prefill, money and energy, and pairs of servers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import presets
from model_core import Design, evaluate
from model_core.search.effects import TERMS, Effect, effects
from model_core.search.pairing import pair
from model_core.spec import Evidence, replace_at

PREFILL = presets.load_design("palm-540b-prefill-low-latency")
DECODE = presets.load_design("palm-540b-decode-low-latency")


def value(design: Design, key: str) -> float:
    found = evaluate(design).value(key)
    assert found is not None
    return found


def effect_of(design: Design, path: str, after: str) -> Effect:
    return next(e for e in effects(design) if (e.path, e.after) == (path, after))


@pytest.mark.parametrize("design", [PREFILL, DECODE], ids=["prefill", "decode"])
def test_that_effects_are_differences_of_evaluations(design: Design) -> None:
    found = effects(design)
    assert len({(e.path, e.after) for e in found}) == len(found)
    for effect in found:
        assert effect.design != design
        assert effect.deltas["latency_s"] == value(effect.design, "latency_s") - value(design, "latency_s")
        assert set(effect.deltas) <= set(TERMS)
        assert effect.valid is all(
            d.severity != "error" or d.code == "out_of_memory" for d in evaluate(effect.design).diagnostics
        )


@pytest.mark.parametrize("name", ["deepseek-v3-training", "mt-nlg-530b-training", "deepseek-v3-decode"])
def test_that_changes_which_change_nothing_are_left_out(name: str) -> None:
    for effect in effects(presets.load_design(name)):
        assert not effect.valid or any(effect.deltas.values())
        assert effect.path not in ("plan.ffn_layout", "plan.attention_sharding")


def test_that_another_model_is_no_change_of_the_plan() -> None:
    assert "plan.block" not in {effect.path for effect in effects(DECODE)}


def test_that_int8_weights_save_what_pope_says() -> None:
    """Pope 4.4: 36.9 ms a token in bfloat16, 28.5 ms in int8, because loading weights takes less time."""
    back = effect_of(DECODE, "plan.weight_dtype", "bfloat16")
    assert back.deltas["step_s"] > 0.005
    assert back.deltas["memory_s"] >= back.deltas["step_s"]
    assert back.deltas["compute_s"] == 0
    memory = evaluate(DECODE).memory
    assert memory is not None
    weights = sum(item.bytes for item in memory.items if item.kind == "weights")
    assert back.deltas["memory_per_chip_bytes"] == pytest.approx(weights, rel=0.01)


def test_that_int8_activations_halve_what_is_communicated() -> None:
    """Pope 3.6: expected to reduce the communication of activations in weight-stationary layouts."""
    effect = effect_of(replace_at(DECODE, "plan.calibration", "none"), "plan.activation_dtype", "int8")
    before = value(replace_at(DECODE, "plan.calibration", "none"), "communication_s")
    assert -0.5 * before <= effect.deltas["communication_s"] < -0.2 * before


def test_that_chunks_save_memory_and_cost_time() -> None:
    """Pope 3.5: incremental processing of sequences during prefill."""
    effect = effect_of(PREFILL, "workload.prefill_chunk", "256")
    assert effect.before == "none"
    assert effect.deltas["memory_per_chip_bytes"] < 0
    assert effect.deltas["latency_s"] > 0
    back = effect_of(effect.design, "workload.prefill_chunk", "none")
    assert back.deltas["latency_s"] == pytest.approx(-effect.deltas["latency_s"], rel=1e-9)
    assert back.deltas["compute_s"] == pytest.approx(-effect.deltas["compute_s"], rel=1e-9)


@pytest.mark.parametrize("length", [2048, 1000])
def test_that_a_chunk_as_long_as_the_input_changes_nothing(length: int) -> None:
    design = replace_at(PREFILL, "workload.input_length", length)
    for chunk in (length, 5000):
        chunked = replace_at(design, "workload.prefill_chunk", chunk)
        for key in ("latency_s", "step_s", "memory_per_chip_bytes", "mfu"):
            assert value(chunked, key) == value(design, key)


@given(st.sampled_from([64, 128, 256, 512]), st.sampled_from([0, 512, 1920]))
@settings(max_examples=12, deadline=None)
def test_that_chunks_take_as_long_as_prefills_that_find_the_earlier_ones_in_the_cache(
    chunk: int, cached: int
) -> None:
    whole = replace_at(PREFILL, "workload.cached_length", cached)
    chunked = replace_at(whole, "workload.prefill_chunk", chunk)
    steps = whole.workload.input_length // chunk
    assert chunked.workload.n_steps == steps
    single = replace_at(whole, "workload.input_length", chunk)
    total = sum(
        value(replace_at(single, "workload.cached_length", cached + i * chunk), "latency_s")
        for i in range(steps)
    )
    assert value(chunked, "latency_s") == pytest.approx(total, rel=2e-3)


def test_that_money_and_energy_follow_from_chip_seconds() -> None:
    design = replace_at(
        replace_at(DECODE, "cluster.chip.price_per_hour", "3.6 USD/h"), "cluster.chip.power", "200 W"
    )
    cost = value(design, "cost_chip_s_per_token")
    assert value(design, "usd_per_million_tokens") == pytest.approx(cost * 1000)
    assert value(design, "joules_per_token") == pytest.approx(cost * 200)
    card = evaluate(design).explain("usd_per_million_tokens")
    assert card is not None
    assert card.evidence is Evidence.ASSUMED


def test_that_money_and_energy_are_missing_where_the_chip_has_no_price_or_power() -> None:
    design = replace_at(replace_at(DECODE, "cluster.chip.price_per_hour", None), "cluster.chip.power", None)
    found = evaluate(design)
    assert found.value("cost_chip_s_per_token") is not None
    assert found.value("usd_per_million_tokens") is None
    assert found.value("joules_per_token") is None


def test_that_a_pair_serves_its_rate() -> None:
    """Pope 4.4: a batch-1 prefill server feeds a batch-64 decode server."""
    prefill = replace_at(PREFILL, "workload.input_length", 1984)
    rate = 20.0
    found, problems = pair(prefill, DECODE, rate)
    assert problems == ()
    assert found is not None
    assert found.ttft_s == value(prefill, "latency_s")
    assert found.tpot_s == value(DECODE, "step_s")
    assert found.request_s == found.ttft_s + value(DECODE, "latency_s")
    for side in (found.prefill, found.decode):
        assert side.servers * side.per_server >= rate * (1 - 1e-9)
        assert (side.servers - 1) * side.per_server < rate
        assert side.chips == side.servers * 64
        assert 0 < side.utilisation <= 1 + 1e-9
    assert found.chips == found.prefill.chips + found.decode.chips
    assert found.prefill_per_decode == pytest.approx(64 / value(DECODE, "latency_s") * found.ttft_s)
    assert found.handover_bytes == 1984 * value(DECODE, "kv_bytes_per_token")


def test_that_a_whole_number_of_servers_needs_no_other_one() -> None:
    prefill = replace_at(PREFILL, "workload.input_length", 1984)
    found, _ = pair(prefill, DECODE, 3 / value(prefill, "latency_s"))
    assert found is not None
    assert found.prefill.servers == 3


@pytest.mark.parametrize(
    ("prefill", "decode", "code", "path"),
    [
        (DECODE, DECODE, "pair_wrong_phase", "workload.phase"),
        (PREFILL, PREFILL, "pair_wrong_phase", "workload.phase"),
        (PREFILL, DECODE, "pair_mismatch", "workload.input_length"),
        (
            replace_at(replace_at(PREFILL, "workload.input_length", 1984), "plan.kv_dtype", "int8"),
            DECODE,
            "pair_mismatch",
            "plan.kv_dtype",
        ),
        (
            replace_at(presets.load_design("palm-62b-prefill-low-latency"), "workload.input_length", 1984),
            DECODE,
            "pair_mismatch",
            "model",
        ),
    ],
)
def test_that_designs_that_cannot_work_together_are_refused(
    prefill: Design, decode: Design, code: str, path: str
) -> None:
    found, problems = pair(prefill, decode, 1.0)
    assert found is None
    assert (problems[0].code, problems[0].path) == (code, path)
