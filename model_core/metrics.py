"""The headline numbers: how a step time becomes latency, MFU, throughput and cost."""

from __future__ import annotations

from model_core.arithmetic import Number, maximum, minimum, where
from model_core.quantities import formula


@formula("step_s")
def step_s(operations: Number) -> Number:
    """Time of one forward pass.

    Formula: Σ over operations of count · (max(FLOPs / rate, bytes / HBM bandwidth) + exposed communication
        + fixed cost)
    Source: Pope 2 and 3.5
    Args:
        operations: sum of the operations' times, seconds.
    Assumes: no overlap between operations except a collective with its product; without a calibration,
        sampling and kernel start are not counted
    """
    return operations


@formula("latency_s")
def latency_s(step: Number, steps: Number) -> Number:
    """Time of the whole phase.

    Formula: step · steps; prefill is one step, decode one per generated token
    Source: Pope 2
    """
    return step * steps


@formula("mfu")
def mfu(
    parameters: Number, tokens: Number, chips: Number, peak_flops_per_s: Number, seconds: Number
) -> Number:
    """Model FLOPS utilization.

    Formula: 2 · N · tokens / (n_chips · peak · time)
    Source: Pope 2
    Args:
        parameters: N, active parameters without head padding.
        tokens: tokens of all sequences in ``seconds``.
        chips: n_chips.
        peak_flops_per_s: peak, bfloat16.
        seconds: time.
    Assumes: attention FLOPs are not credited; the peak is that of bfloat16 whatever the dtype
    """
    return 2 * parameters * tokens / (chips * peak_flops_per_s * seconds)


@formula("tokens_per_s")
def tokens_per_s(tokens: Number, seconds: Number) -> Number:
    """Throughput of the whole cluster.

    Formula: tokens / time
    Source: Pope 2
    """
    return tokens / seconds


@formula("cost_chip_s_per_token")
def cost_chip_s_per_token(chips: Number, seconds: Number, tokens: Number) -> Number:
    """Cost of a token.

    Formula: n_chips · time / (B · L)
    Source: Pope 4.4
    """
    return chips * seconds / tokens


@formula("usd_per_million_tokens")
def usd_per_million_tokens(chip_s_per_token: Number, usd_per_hour: Number) -> Number:
    """Cost of a million tokens.

    Formula: chip-seconds per token · price per chip-hour / 3600 · 10⁶
    Source: Pope 4.4 (chip-seconds per token); the price is a field of the chip
    Args:
        chip_s_per_token: chip-seconds per token.
        usd_per_hour: price of one chip for an hour.
    Assumes: every chip is paid for while it serves, and no other time
    """
    return chip_s_per_token * usd_per_hour / 3600 * 1e6


@formula("joules_per_token")
def joules_per_token(chip_s_per_token: Number, watts: Number) -> Number:
    """Energy of a token.

    Formula: chip-seconds per token · power of a chip
    Source: Pope 4.4 (chip-seconds per token); the power is a field of the chip
    Args:
        chip_s_per_token: chip-seconds per token.
        watts: power of one chip.
    Assumes: a chip draws the power of its field throughout; hosts, network and cooling are not counted
    """
    return chip_s_per_token * watts


@formula("compute_s")
def compute_s(flops: Number, flops_per_s: Number) -> Number:
    """Time of the arithmetic at the peak rate.

    Formula: FLOPs / rate
    Source: Pope 2
    """
    return flops / flops_per_s


@formula("memory_s")
def memory_s(loaded_bytes: Number, bytes_per_s: Number) -> Number:
    """Time to load weights and KV cache from memory.

    Formula: bytes / bandwidth
    Source: Pope 2
    Assumes: each weight and cache entry is read once per step; activations stay on the chip
    """
    return loaded_bytes / bytes_per_s


@formula("communication_s")
def communication_s(collectives: Number) -> Number:
    """Time of all collectives, hidden or not.

    Formula: Σ over collectives of transfer + hops
    Source: Pope A.1
    """
    return collectives


@formula("exposed_communication_s")
def exposed_communication_s(collectives: Number) -> Number:
    """Time of collectives that no product hides.

    Formula: Σ over products of T_comm − min(h · T_comm, T_product), and all of the collectives without one
    Source: Pope 3.5
    """
    return collectives


@formula("kv_bytes_per_token")
def kv_bytes_per_token(layers: Number, elements_per_layer: Number, element_bytes: Number) -> Number:
    """Key/value cache of one token over all layers, once.

    Formula: n_layers · 2 · K · d_head · bytes; latent attention: n_layers · (kv_lora_rank + rope) · bytes
    Source: Pope 3.3; DeepSeek-V3 report 2.1.1
    """
    return layers * elements_per_layer * element_bytes


@formula("max_context")
def longest_context(free_bytes: Number, bytes_per_context_token: Number, limit: Number) -> Number:
    """Longest context that fits beside everything else, the model's own limit included.

    Formula: min(limit, ⌊(HBM − weights − activations − buffers − reserve) / KV bytes⌋), at least 0
    Source: Pope 3.3
    Args:
        free_bytes: memory of a chip that the other items leave for the KV cache.
        bytes_per_context_token: KV bytes on a chip for one more context token of every sequence.
        limit: positions of the model; 0: not stated.
    Assumes: activations and buffers as at the present lengths
    """
    fitting = maximum(free_bytes, 0) // bytes_per_context_token
    return where(limit > 0, minimum(fitting, limit), fitting)


@formula("max_context_of_share")
def max_context(memory_bytes: Number, bytes_per_context_token: Number) -> Number:
    """Longest context whose KV cache fits into its share of the memory.

    Formula: share · HBM / KV bytes of one context token of all sequences on a chip
    Source: Pope Table 1
    """
    return memory_bytes // bytes_per_context_token


@formula("memory_per_chip_bytes")
def memory_per_chip_bytes(items: Number) -> Number:
    """Memory of one chip.

    Formula: Σ of the items: weights, KV cache, activations at their peak, buffers, reserve
    Source: Pope 2 and 3.3
    """
    return items
