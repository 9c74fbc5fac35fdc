"""Published figures of Pope et al. 2022 that need no calibration; see `test_reproduced` for the others."""

from __future__ import annotations

import pytest

import presets
from model_core import evaluate
from model_core.parameters import count_parameters
from model_core.spec import AttentionSharding, Design, replace_at


@pytest.mark.parametrize(
    ("name", "billions", "source"),
    [
        ("palm-540b", "540.36", "Pope D.1: 540B; the product of its hyperparameters"),
        ("mt-nlg-530b", "529.60", "Pope D.1: 530B"),
        ("gpt-3-175b", "174.62", "Brown et al. 2020: 175B"),
        ("llama-3.1-8b", "8.03", "Llama 3 model card"),
        ("llama-3.1-70b", "70.55", "Llama 3 model card"),
        ("llama-3.1-405b", "405.85", "Llama 3 model card"),
        ("deepseek-v3", "671.03", "DeepSeek-V3 report 2: 671B"),
    ],
)
def test_that_parameters_agree_to_the_printed_digits(name: str, billions: str, source: str) -> None:
    assert f"{count_parameters(presets.load_model(name)).total / 1e9:.2f}" == billions, source


def test_that_padding_the_heads_adds_18_billion() -> None:
    """Pope 4: padding 48 heads to 64 adds 18B parameters, which MFU does not count."""
    padded = count_parameters(presets.load_model("palm-540b-padded"))
    plain = count_parameters(presets.load_model("palm-540b"))
    assert round((padded.total - plain.total) / 1e9) == 18
    assert padded.mfu == plain.total


def test_that_deepseek_v3_activates_37_billion() -> None:
    """DeepSeek-V3 report, abstract: 671B parameters of which 37B are activated for each token."""
    count = count_parameters(presets.load_model("deepseek-v3"))
    assert int(count.active / 1e9) == 37


TABLE_1 = [
    ("palm-540b-multihead", AttentionSharding.HEADS, 128, 1320),
    ("palm-540b-multihead", AttentionSharding.HEADS, 512, 330),
    ("palm-540b-padded", AttentionSharding.HEADS, 128, 660),
    ("palm-540b-padded", AttentionSharding.HEADS, 512, 165),
    ("palm-540b-padded", AttentionSharding.BATCH, 128, 43_000),
    ("palm-540b-padded", AttentionSharding.BATCH, 512, 10_700),
]


@pytest.mark.parametrize(("model", "sharding", "batch", "published"), TABLE_1)
def test_that_the_longest_context_is_that_of_table_1(
    model: str, sharding: AttentionSharding, batch: int, published: int
) -> None:
    """Pope Table 1: 64 chips, 30% of the memory for the KV cache; within 2%."""
    design = presets.load_design("palm-540b-decode-high-throughput").replace(model=presets.load_model(model))
    design = replace_at(replace_at(design, "plan.attention_sharding", sharding), "workload.batch", batch)
    assert evaluate(design).value("max_context_of_share") == pytest.approx(published, rel=0.02)


def test_that_a_multihead_500b_model_has_a_kv_cache_of_3_tb() -> None:
    """Pope 2.1: batch 512, context 2048, multihead attention: 3 TB, three times the parameters."""
    model = presets.load_model("palm-540b").replace(n_kv_heads=48, d_head=128)
    evaluation = evaluate(presets.load_design("palm-540b-decode-high-throughput").replace(model=model))
    per_token = evaluation.value("kv_bytes_per_token")
    assert per_token is not None
    cache = per_token * 512 * 2048
    assert cache == pytest.approx(3e12, rel=0.02)
    assert cache / (2 * count_parameters(model).total) == pytest.approx(3, rel=0.1)


TABLES_2_AND_3 = [
    ("palm-540b-prefill-low-latency", 0.29),
    ("palm-540b-decode-low-latency", 1.82),
    ("palm-540b-prefill-high-throughput", 85.2),
    ("palm-540b-decode-high-throughput", 6.0),
    ("palm-62b-prefill-low-latency", 0.16),
    ("palm-62b-decode-low-latency", 0.73),
    ("palm-62b-prefill-high-throughput", 20.2),
    ("palm-62b-decode-high-throughput", 5.1),
]


@pytest.mark.parametrize(("name", "published_s"), TABLES_2_AND_3)
def test_that_the_uncalibrated_latency_is_a_bound_and_says_so(name: str, published_s: float) -> None:
    """Pope Tables 2 and 3: nothing measured is faster than the bound, and every design fits its slice."""
    evaluation = evaluate(replace_at(presets.load_design(name), "plan.calibration", "none"))
    latency = evaluation.quantities["latency_s"]
    assert published_s / 4 < latency.value < published_s
    assert "bound" in latency.note
    assert evaluation.time is not None
    assert not evaluation.time.calibrated
    assert evaluation.memory is not None
    assert evaluation.memory.fits


@pytest.mark.parametrize(
    ("name", "published_s", "published_mfu"),
    [
        ("palm-540b-prefill-low-latency", 0.29, 0.43),
        ("palm-540b-decode-low-latency", 1.82, 0.14),
        ("palm-540b-prefill-high-throughput", 85.2, 0.76),
        ("palm-540b-decode-high-throughput", 6.0, 0.33),
        ("palm-62b-prefill-low-latency", 0.16, 0.36),
        ("palm-62b-decode-low-latency", 0.73, 0.08),
        ("palm-62b-prefill-high-throughput", 20.2, 0.73),
        ("palm-62b-decode-high-throughput", 5.1, 0.37),
    ],
)
def test_that_our_mfu_of_the_published_latency_is_the_published_mfu(
    name: str, published_s: float, published_mfu: float
) -> None:
    """Pope Tables 2 and 3: MFU and latency are two readings of one measurement."""
    evaluation = evaluate(presets.load_design(name))
    ours, latency = evaluation.value("mfu"), evaluation.value("latency_s")
    assert ours is not None
    assert latency is not None
    assert ours * latency / published_s == pytest.approx(published_mfu, abs=0.011)


def batch_design(layout: str) -> Design:
    return replace_at(presets.load_design("palm-540b-decode-high-throughput"), "plan.block", layout)


def test_that_the_serial_block_communicates_more_than_the_parallel_one() -> None:
    """Pope 3.4 and 4.3: the parallel block drops one of two all-reduces per layer."""
    serial, parallel = evaluate(batch_design("serial")), evaluate(batch_design("parallel"))
    assert serial.time is not None
    assert parallel.time is not None
    assert serial.time.communication_s > 1.1 * parallel.time.communication_s
    assert serial.time.step_s > parallel.time.step_s


def test_that_mla_caches_70272_bytes_per_token() -> None:
    """DeepSeek-V3: 61 layers x (512 + 64) x 2 bytes."""
    evaluation = evaluate(presets.load_design("deepseek-v3-decode"))
    per_token = evaluation.value("kv_bytes_per_token")
    width = 2 if evaluation.design.plan.kv_dtype == "bfloat16" else 1
    assert per_token == 61 * 576 * width
