"""NumPy work of the backward operations on one chip's shard; see `execute`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_core.partition.execute_experts import rotary
from model_core.partition.program import LocalKind

Array = NDArray[Any]
EPSILON = 1e-6
GELU_WIDTH, GELU_CUBE = np.sqrt(2 / np.pi), 0.044715


def _moments(statistic: Array, sizes: Mapping[str, int]) -> tuple[Array, Array]:
    """Mean (zero in RMS norm) and reciprocal deviation from the sums of the forward pass."""
    moments = statistic / sizes["E"]
    mean = moments[..., :1] if sizes["S"] == 2 else np.zeros_like(moments[..., :1])
    return mean, 1 / np.sqrt(moments[..., -1:] - mean * mean + EPSILON)


def norm_gradient_statistic(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    """Sums over E that the norm's gradient needs: of a·x, and in layer norm also of a = scale · dy."""
    x, scale, gradient = inputs
    a = scale * gradient
    products: Array = np.sum(a * x, axis=-1, keepdims=True)
    if sizes["S"] == 1:
        return products
    return np.concatenate([np.sum(a, axis=-1, keepdims=True), products], axis=-1)


def norm_gradient(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    """Gradient of the norm's input: r · (a − mean(a) − x̂ · mean(a · x̂)), mean(a) only in layer norm."""
    x, statistic, scale, sums, gradient = inputs
    mean, r = _moments(statistic, sizes)
    total = sums[..., :1] if sizes["S"] == 2 else np.zeros_like(sums[..., :1])
    projected = (sums[..., -1:] - mean * total) * r / sizes["E"]
    result: Array = r * (scale * gradient - total / sizes["E"] - (x - mean) * r * projected)
    return result


def scale_gradient(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    """Gradient of the norm's scale: Σ over tokens of dy · x̂."""
    x, statistic, gradient = inputs
    mean, r = _moments(statistic, sizes)
    result: Array = np.sum(gradient * (x - mean) * r, axis=tuple(range(x.ndim - 1)))
    return result


def activation_gradient(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    """Gradient of GELU (tanh form)."""
    x, gradient = inputs
    t = np.tanh(GELU_WIDTH * (x + GELU_CUBE * x**3))
    slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * GELU_WIDTH * (1 + 3 * GELU_CUBE * x * x)
    result: Array = gradient * slope
    return result


def gate_gradient(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    """Gradient of a gate: dy · x · silu'(gate)."""
    gate, x, gradient = inputs
    s = 1 / (1 + np.exp(-gate))
    result: Array = gradient * x * s * (1 + gate * (1 - s))
    return result


def gated_gradient(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    """Gradient of what is gated: dy · silu(gate)."""
    gate, _x, gradient = inputs
    result: Array = gradient * gate / (1 + np.exp(-gate))
    return result


def softmax_gradient(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    """Gradient of the scaled scores: A · (dA − Σ A · dA) / √D."""
    weights, gradient = inputs
    inner = np.sum(weights * gradient, axis=-1, keepdims=True)
    result: Array = weights * (gradient - inner) / np.sqrt(sizes["D"])
    return result


def rotary_gradient(inputs: list[Array], sizes: Mapping[str, int]) -> Array:
    """Gradient of a rotation by position: the gradient rotated back."""
    (gradient,) = inputs
    half = gradient.shape[-1] // 2
    flipped = np.concatenate([gradient[..., :half], -gradient[..., half:]], axis=-1)
    turned = rotary([flipped], sizes)
    return np.concatenate([turned[..., :half], -turned[..., half:]], axis=-1)


def latent_norm_gradient(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    """Gradient of the input of an RMS norm over a whole last dimension: r · (a − x̂ · mean(a · x̂))."""
    x, scale, gradient = inputs
    r = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)
    a, normed = scale * gradient, x * r
    result: Array = r * (a - normed * np.mean(a * normed, axis=-1, keepdims=True))
    return result


def latent_scale_gradient(inputs: list[Array], _sizes: Mapping[str, int]) -> Array:
    """Gradient of the scale of that norm: Σ over tokens of dy · x̂."""
    x, gradient = inputs
    r = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)
    result: Array = np.sum(gradient * x * r, axis=tuple(range(x.ndim - 1)))
    return result


GRADIENTS: dict[LocalKind, Callable[[list[Array], Mapping[str, int]], Array]] = {
    LocalKind.NORM_GRADIENT_STATISTIC: norm_gradient_statistic,
    LocalKind.NORM_GRADIENT: norm_gradient,
    LocalKind.SCALE_GRADIENT: scale_gradient,
    LocalKind.ACTIVATION_GRADIENT: activation_gradient,
    LocalKind.GATE_GRADIENT: gate_gradient,
    LocalKind.GATED_GRADIENT: gated_gradient,
    LocalKind.SOFTMAX_GRADIENT: softmax_gradient,
    LocalKind.ROTARY_GRADIENT: rotary_gradient,
    LocalKind.LATENT_NORM_GRADIENT: latent_norm_gradient,
    LocalKind.LATENT_SCALE_GRADIENT: latent_scale_gradient,
}
