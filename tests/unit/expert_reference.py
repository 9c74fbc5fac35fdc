"""Latent attention and experts written plainly, without sharding or programs: what an execution must equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_core.spec import ModelSpec

Array = NDArray[Any]


def rms_norm(x: Array, scale: Array) -> Array:
    result: Array = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * scale
    return result


def rotated(x: Array, start: int) -> Array:
    """Rotate pairs (i, i + half) of [B, L, …, R] as complex numbers."""
    half = x.shape[-1] // 2
    pairs = x[..., :half] + 1j * x[..., half:]
    frequency = 10_000.0 ** (-np.arange(half) / half)
    for index in range(x.shape[1]):
        pairs[:, index] = pairs[:, index] * np.exp(1j * (start + index) * frequency)
    return np.concatenate([pairs.real, pairs.imag], axis=-1)


def latent_attention(model: ModelSpec, x: Array, w: dict[str, Array], latents: Array, keys: Array) -> Array:
    """Attention with keys and values expanded; ``latents`` [B, P, C] and ``keys`` [B, P, R] are the cache."""
    mla = model.mla
    assert mla is not None
    past, length = latents.shape[1], x.shape[1]
    if mla.q_lora_rank is None:
        query_source, scale = x, w["latent scale"]
    else:
        query_source, scale = rms_norm(x @ w["W_dq"], w["latent scale"]), w["latent scale.2"]
    query = np.einsum("blq,qhn->blhn", query_source, w["W_uq"])
    rotary = rotated(np.einsum("blq,qhr->blhr", query_source, w["W_qr"]), past)
    latents = np.concatenate([latents, rms_norm(x @ w["W_dkv"], scale)], axis=1)
    keys = np.concatenate([keys, rotated(x @ w["W_kr"], past)], axis=1)
    content_keys = np.einsum("bmc,chn->bmhn", latents, w["W_uk"])
    values = np.einsum("bmc,chu->bmhu", latents, w["W_uv"])
    whole_keys = np.concatenate([content_keys, np.repeat(keys[:, :, None], model.n_heads, axis=2)], axis=-1)
    scores = np.einsum("blhd,bmhd->bhlm", np.concatenate([query, rotary], axis=-1), whole_keys)
    scores = scores / np.sqrt(mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    for position in range(length):
        scores[:, :, position, past + position + 1 :] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    result: Array = np.einsum("blhu,hue->ble", np.einsum("bhlm,bmhu->blhu", weights, values), w["W_o"])
    return result


def feedforward(model: ModelSpec, x: Array, w_in: Array, w_gate: Array | None, w_out: Array) -> Array:
    hidden = x @ w_in
    if w_gate is not None:
        gate = x @ w_gate
        hidden = gate / (1 + np.exp(-gate)) * hidden
    else:
        hidden = 0.5 * hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))
    result: Array = hidden @ w_out
    return result


def routed_experts(
    model: ModelSpec,
    x: Array,
    gate: Array,
    bias: Array | None,
    experts: list[tuple[Array, Array | None, Array]],
) -> Array:
    """Send each token through the best experts by sigmoid score, one after the other."""
    moe = model.moe
    assert moe is not None
    out = np.zeros_like(x)
    for place in np.ndindex(x.shape[:-1]):
        scores = 1 / (1 + np.exp(-(x[place] @ gate)))
        ranked = np.argsort(-(scores if bias is None else scores + bias), kind="stable")
        best = ranked[: moe.n_experts_per_token]
        for expert in best:
            out[place] += scores[expert] / scores[best].sum() * feedforward(model, x[place], *experts[expert])
    return out
