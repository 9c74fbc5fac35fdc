"""The English terms of published rows and curves in the user's language."""

from __future__ import annotations

from app.i18n import tr


def term(english: str) -> str:
    """Translate a term of a row or curve; one that is not listed stays as it is."""
    return (_quantities() | _axes() | _conditions()).get(english, english)


def _axes() -> dict[str, str]:
    return {
        "latency per generated token": tr("latency per generated token"),
        "latency": tr("latency"),
        "cost": tr("cost"),
        "chip·s per token": tr("chip·s per token"),
        "tokens per batch": tr("tokens per batch"),
        "communication volume": tr("communication volume"),
        "elements per chip": tr("elements per chip"),
        "chips": tr("chips"),
        "context length": tr("context length"),
        "tokens": tr("tokens"),
        "multihead": tr("multihead"),
        "multiquery over heads": tr("multiquery over heads"),
        "multiquery over batch": tr("multiquery over batch"),
    }


def _conditions() -> dict[str, str]:
    return {
        "prefill low latency": tr("prefill, low latency"),
        "decode low latency": tr("decode, low latency"),
        "prefill high throughput": tr("prefill, high throughput"),
        "decode high throughput": tr("decode, high throughput"),
    }


def _quantities() -> dict[str, str]:
    """Return the quantities of rows; ratios say what is divided by what."""
    return {
        "longest context": tr("longest context"),
        "latency of the phase": tr("latency of the phase"),
        "parameters": tr("parameters"),
        "parameters added by padding 48 heads to 64": tr("parameters added by padding 48 heads to 64"),
        "latency per token, int8 weights, batch 64": tr("latency per token, int8 weights, batch 64"),
        "latency per token, bfloat16 weights, batch 64": tr("latency per token, bfloat16 weights, batch 64"),
        "time to take in 64 tokens after 1920 cached and generate 64": tr(
            "time to take in 64 tokens after 1920 cached and generate 64"
        ),
        "MFU of 1984 input and 64 output tokens, batch 512": tr(
            "MFU of 1984 input and 64 output tokens, batch 512"
        ),
        "step of the serial block by that of the parallel block, decode, batch 512": tr(
            "step of the serial block by that of the parallel block, decode, batch 512"
        ),
        "step without by step with Looped CollectiveEinsum, decode, batch 512": tr(
            "step without by step with Looped CollectiveEinsum, decode, batch 512"
        ),
        "KV cache of a multihead 500B model, batch 512, context 2048": tr(
            "KV cache of a multihead 500B model, batch 512, context 2048"
        ),
        "longest context, multiquery over batch by multihead": tr(
            "longest context, multiquery over batch by multihead"
        ),
        "longest context, multiquery over batch by multiquery over heads": tr(
            "longest context, multiquery over batch by multiquery over heads"
        ),
        "share of attention in a decode step, context 8192, batch 512": tr(
            "share of attention in a decode step, context 8192, batch 512"
        ),
        "share of attention in a decode step, context 32768, batch 128": tr(
            "share of attention in a decode step, context 32768, batch 128"
        ),
        "cost of a token, batch 512, prefill by decode": tr("cost of a token, batch 512, prefill by decode"),
        "latency per token, batch 512 by the lowest": tr("latency per token, batch 512 by the lowest"),
        "lowest cost with bfloat16 by that with int8 weights, as fast as bfloat16 at batch 64, decode": tr(
            "lowest cost with bfloat16 by that with int8 weights, as fast as bfloat16 at batch 64, decode"
        ),
        "exponent of the lowest decode latency in the model size": tr(
            "exponent of the lowest decode latency in the model size"
        ),
        "chips from which 2D moves no more than 1D, F = 4E": tr(
            "chips from which 2D moves no more than 1D, F = 4E"
        ),
        "tokens per batch where weight_gathered_x begins to move less than weight_stationary_2d": tr(
            "tokens per batch where weight_gathered_x begins to move less than weight_stationary_2d"
        ),
        "tokens per batch where weight_gathered_xy begins to move less than weight_gathered_x": tr(
            "tokens per batch where weight_gathered_xy begins to move less than weight_gathered_x"
        ),
        "tokens per batch where weight_gathered_xyz begins to move less than weight_gathered_xy": tr(
            "tokens per batch where weight_gathered_xyz begins to move less than weight_gathered_xy"
        ),
        "highest MFU of Megatron 530B on 64 chips over the three workloads": tr(
            "highest MFU of Megatron 530B on 64 chips over the three workloads"
        ),
        "highest MFU of FasterTransformer, Megatron 530B, TP16, over the three workloads": tr(
            "highest MFU of FasterTransformer, Megatron 530B, TP16, over the three workloads"
        ),
        "highest MFU of FasterTransformer, Megatron 530B, TP32, over the three workloads": tr(
            "highest MFU of FasterTransformer, Megatron 530B, TP32, over the three workloads"
        ),
    }
