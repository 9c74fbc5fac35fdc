"""The same block written plainly, without sharding or programs: what an execution must equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_core.spec import ModelSpec

Array = NDArray[Any]


def norm(model: ModelSpec, x: Array, scale: Array) -> Array:
    if model.norm == "layernorm":
        x = x - x.mean(axis=-1, keepdims=True)
    result: Array = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * scale
    return result


def feedforward(model: ModelSpec, x: Array, w: dict[str, Array]) -> Array:
    hidden = x @ w["W_in"]
    if model.gated_ffn:
        gate = x @ w["W_gate"]
        hidden = gate / (1 + np.exp(-gate)) * hidden
    else:
        hidden = 0.5 * hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))
    result: Array = hidden @ w["W_out"]
    return result


def attention(model: ModelSpec, x: Array, w: dict[str, Array], keys: Array, values: Array) -> Array:
    """Attention with head arrays [.., H, D]; ``keys`` and ``values`` [B, P, K, D] are the cache."""
    batch, length, width = x.shape
    h, k, d = model.n_heads, model.n_kv_heads, model.d_head
    q = (x @ w["W_q"].reshape(width, h * d)).reshape(batch, length, h, d)
    new_k = (x @ w["W_k"].reshape(width, k * d)).reshape(batch, length, k, d)
    new_v = (x @ w["W_v"].reshape(width, k * d)).reshape(batch, length, k, d)
    keys = np.concatenate([keys, new_k], axis=1)
    values = np.concatenate([values, new_v], axis=1)
    out = np.zeros_like(q)
    past = keys.shape[1] - length
    for head in range(h):
        group = head // (h // k)
        scores = np.einsum("bld,bmd->blm", q[:, :, head], keys[:, :, group]) / np.sqrt(d)
        for position in range(length):
            scores[:, position, past + position + 1 :] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        out[:, :, head] = np.einsum("blm,bmd->bld", weights, values[:, :, group])
    result: Array = out.reshape(batch, length, h * d) @ w["W_o"].reshape(h * d, width)
    return result


def block(
    model: ModelSpec, parallel: bool, x: Array, w: dict[str, Array], keys: Array, values: Array
) -> Array:
    normed = norm(model, x, w["scale"])
    if parallel:
        return x + feedforward(model, normed, w) + attention(model, normed, w, keys, values)
    x = x + attention(model, normed, w, keys, values)
    return x + feedforward(model, norm(model, x, w["scale.2"]), w)
