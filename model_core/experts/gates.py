"""Tokens drawn through a real gate: scores, groups by their best scores, top-k. Checks the closed forms."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from model_core.experts.arrays import Floats, Ints
from model_core.experts.routing import RoutingSpec

Score = Literal["sigmoid", "softmax"]

_CHUNK: Final = 4_096


def draw_tokens(
    logits: Floats,
    spec: RoutingSpec,
    n_tokens: int,
    generator: np.random.Generator,
    *,
    score: Score = "sigmoid",
    group_top: int = 2,
    spread: float = 1.0,
) -> Ints:
    """Draw tokens and return the experts they choose.

    Each token's affinity to an expert is its logit plus Gumbel noise. Groups are ranked by the sum of their
    ``group_top`` best scores, the best ``group_limit`` stay open, and the top k experts in them are chosen.

    Source: DeepSeek-V3 report 2.1.2: sigmoid affinities, node-limited routing by the sum of the highest
        scores on each node; softmax: DeepSeek-V2 and most others.

    Args:
        logits: experts; the log of their popularity with ``spread`` 1 and no limit on groups.
        spec: how many experts from how many groups.
        n_tokens: tokens.
        generator: of the noise.
        score: sigmoid or softmax of the affinities.
        group_top: scores of a group that are summed: 2 in DeepSeek-V3, 1 in DeepSeek-V2.
        spread: factor of the noise.

    Returns:
        tokens x k experts.
    """
    chosen = [
        _draw(logits, spec, min(_CHUNK, n_tokens - start), generator, score, group_top, spread)
        for start in range(0, n_tokens, _CHUNK)
    ]
    return np.concatenate(chosen)


def _draw(
    logits: Floats,
    spec: RoutingSpec,
    n_tokens: int,
    generator: np.random.Generator,
    score: Score,
    group_top: int,
    spread: float,
) -> Ints:
    affinity = logits + spread * generator.gumbel(size=(n_tokens, spec.n_experts))
    scores = _scores(affinity, score)
    by_group = scores.reshape(n_tokens, spec.n_groups, -1)
    top = np.sort(by_group, axis=2)[:, :, -group_top:].sum(axis=2)
    closed = np.argsort(-top, axis=1)[:, spec.group_limit :]
    np.put_along_axis(by_group, closed[:, :, None], -1.0, axis=1)
    return np.argpartition(-scores, spec.n_per_token - 1, axis=1)[:, : spec.n_per_token]


def _scores(affinity: Floats, score: Score) -> Floats:
    if score == "sigmoid":
        result: Floats = 1 / (1 + np.exp(-affinity))
        return result
    exponential = np.exp(affinity - affinity.max(axis=1, keepdims=True))
    softmax: Floats = exponential / exponential.sum(axis=1, keepdims=True)
    return softmax


def balance_logits(
    rates: Floats,
    spec: RoutingSpec,
    generator: np.random.Generator,
    *,
    score: Score = "sigmoid",
    n_tokens: int = 8_192,
    iterations: int = 40,
) -> Floats:
    """Find logits whose tokens visit the experts at given rates, as a trained gate's biases do.

    Args:
        rates: experts; they sum to k.
        spec: how the gate chooses.
        generator: of the noise.
        score: sigmoid or softmax.
        n_tokens: tokens drawn in each iteration.
        iterations: steps, the later ones smaller.
    """
    wanted = np.maximum(rates, 1e-6)
    logits: Floats = np.log(wanted / np.maximum(1 - wanted, 1e-3))
    for step in range(iterations):
        chosen = draw_tokens(logits, spec, n_tokens, generator, score=score)
        seen = np.bincount(chosen.ravel(), minlength=spec.n_experts) / n_tokens
        rate = 1.0 if step < iterations // 2 else 0.3
        logits = logits + rate * np.log(wanted / np.maximum(seen, 0.5 / n_tokens))
    return logits


def distinct_units(chosen: Ints, unit_of_expert: Ints) -> float:
    """Return the mean number of distinct units (nodes, GPUs) among the experts of a token.

    Args:
        chosen: tokens x k experts.
        unit_of_expert: the unit of each expert.
    """
    units = np.sort(unit_of_expert[chosen], axis=1)
    return float((1 + (units[:, 1:] != units[:, :-1]).sum(axis=1)).mean())


def send_to_replicas(chosen: Ints, hosted: Ints, generator: np.random.Generator) -> Ints:
    """Draw a unit for each chosen expert, evenly over its replicas.

    Args:
        chosen: tokens x k experts.
        hosted: units x experts: replicas.
        generator: of the draws.

    Returns:
        tokens x k units.
    """
    cumulative = np.cumsum(hosted, axis=0) / hosted.sum(axis=0)
    draws = generator.random(chosen.shape)
    units: Ints = (draws[None] >= cumulative[:, chosen]).sum(axis=0)
    return units
