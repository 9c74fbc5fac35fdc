"""Which experts a token visits: a model in closed form, fitted to measured or assumed loads.

A token's experts are a set A of k experts, with probability proportional to the product of one weight per
expert, and to a factor for the number of groups that A touches. The weights are fitted so that every expert
has the share of the load that was measured; the factor is that of a gate which opens groups in the order of
its scores until as many are open as the node limit allows. Sums over all sets A are coefficients of
polynomials, so probabilities are exact and no token is ever drawn. `model_core.experts.gates` draws tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from model_core.experts.arrays import Floats

_ITERATIONS: Final = 200
_CLOSE: Final = 1e-4
_LARGEST_RATE: Final = 0.999


@dataclass(frozen=True, slots=True)
class RoutingSpec:
    """How a gate chooses: ``n_per_token`` of ``n_experts``, from at most ``group_limit`` of ``n_groups``.

    DeepSeek-V3: 8 of 256 experts, from at most 4 of 8 groups, one group per node in training.
    """

    n_experts: int
    n_per_token: int
    n_groups: int = 1
    group_limit: int = 1

    @property
    def limit(self) -> int:
        """Groups that a token can touch at most."""
        return min(self.group_limit, self.n_groups, self.n_per_token)


@dataclass(frozen=True, slots=True, eq=False)
class RoutingModel:
    """Fitted weights: layers x experts, and layers x (touched groups + 1) factors.

    ``rates`` are the probabilities that a token visits an expert, as fitted; ``misfit`` is the largest
    relative difference to the rates asked for; ``clipped`` counts the experts whose share of the load no
    gate can reach, because a token visits an expert once.
    """

    spec: RoutingSpec
    weights: Floats
    factors: Floats
    rates: Floats
    misfit: float
    clipped: int


def fit_routing(shares: Floats, spec: RoutingSpec) -> RoutingModel:
    """Fit the model to the experts' shares of the load.

    Formula: P(A) ~ f(groups of A) x product over A of w_e; rate_e = k x share_e; w_e <- w_e x rate_e / P(e in A)
    Source: conditional Poisson sampling (Chen, Dempster and Liu 1994), extended by the limit on groups.

    Args:
        shares: layers x experts; rows sum to 1.
        spec: how the gate chooses.

    Raises:
        ValueError: the experts do not divide by the groups, the groups allowed hold too few experts, or
            every token visits every expert.
    """
    _check(spec, shares.shape[1])
    wanted, clipped = _reachable(shares * spec.n_per_token, spec.n_per_token)
    weights = wanted / (1 - wanted)
    factors = np.ones((len(shares), spec.limit + 1))
    misfit = np.inf
    rates = wanted
    for _ in range(_ITERATIONS):
        factors = _opening_factors(weights, spec)
        rates = _rates(weights, factors, spec)
        ratio = np.divide(wanted, rates, out=np.ones_like(rates), where=rates > 0)
        misfit = float(np.abs(ratio - 1).max(initial=0.0))
        if misfit < _CLOSE:
            break
        weights = weights * ratio
        weights *= spec.n_per_token / weights.sum(axis=1, keepdims=True)
    else:
        factors = _opening_factors(weights, spec)
        rates = _rates(weights, factors, spec)
    return RoutingModel(spec, weights, factors, rates, misfit, clipped)


def _check(spec: RoutingSpec, n_experts: int) -> None:
    if n_experts != spec.n_experts or n_experts % spec.n_groups:
        raise ValueError(f"{n_experts} experts do not divide into {spec.n_groups} groups")
    if spec.n_per_token > spec.limit * (n_experts // spec.n_groups):
        raise ValueError(f"{spec.limit} groups hold fewer than {spec.n_per_token} experts")
    if spec.n_per_token >= n_experts:
        raise ValueError(f"a token visits all {n_experts} experts: there is nothing to fit")


def _reachable(rates: Floats, n_per_token: int) -> tuple[Floats, int]:
    """Cut rates to what one visit per token allows and raise the others to the same sum."""
    fixed = rates > _LARGEST_RATE
    result = rates
    while True:
        room = n_per_token - _LARGEST_RATE * fixed.sum(axis=1, keepdims=True)
        free = np.where(fixed, 0.0, rates)
        result = np.where(fixed, _LARGEST_RATE, free * room / free.sum(axis=1, keepdims=True))
        grown = fixed | (result > _LARGEST_RATE * (1 + 1e-12))
        if (grown == fixed).all():
            return result, int(fixed.sum())
        fixed = grown


def untouched(model: RoutingModel, elsewhere: Floats) -> Floats:
    """Return the probability that a token has no expert on a unit (a node, a GPU).

    Formula: sum over A of P(A) x product over e in A of elsewhere_e

    Args:
        model: the fitted routing.
        elsewhere: layers x units x experts: the probability that an expert's token goes to another unit;
            1 where the unit has none of its replicas, 0 where it has all.

    Returns:
        layers x units.
    """
    weights = model.weights[:, None, :] * elsewhere
    nothing = _total(weights, model.factors[:, None, :], model.spec)
    whole = _total(model.weights, model.factors, model.spec)
    result: Floats = nothing / whole[:, None]
    return result


def touched_groups(model: RoutingModel) -> Floats:
    """Return the distribution of the number of groups that a token touches: layers x (limit + 1)."""
    state = _combine(_group_polynomials(model.weights, model.spec), model.spec.limit)
    mass = state[..., -1] * model.factors
    distribution: Floats = mass / mass.sum(axis=-1, keepdims=True)
    return distribution


def _total(weights: Floats, factors: Floats, spec: RoutingSpec) -> Floats:
    state = _combine(_group_polynomials(weights, spec), spec.limit)
    total: Floats = (state[..., -1] * factors).sum(axis=-1)
    return total


def _opening_factors(weights: Floats, spec: RoutingSpec) -> Floats:
    """Give all that an unlimited gate would spread over more groups to sets that touch just the limit.

    Such a gate opens groups in the order of its scores; the first ones up to the limit stay open.
    """
    most = min(spec.n_groups, spec.n_per_token)
    free = _combine(_group_polynomials(weights, spec), most)[..., -1]
    factors = np.ones((*weights.shape[:-1], spec.limit + 1))
    at_limit = free[..., spec.limit]
    beyond = free[..., spec.limit :].sum(axis=-1)
    factors[..., -1] = np.divide(beyond, at_limit, out=np.ones_like(beyond), where=at_limit > 0)
    return factors


def _group_polynomials(weights: Floats, spec: RoutingSpec) -> Floats:
    """Return the product over each group's experts of (1 + w z), up to z^k: ... x groups x (k + 1)."""
    by_group = weights.reshape(*weights.shape[:-1], spec.n_groups, -1)
    polynomial = np.zeros((*by_group.shape[:-1], spec.n_per_token + 1))
    polynomial[..., 0] = 1.0
    for expert in range(by_group.shape[-1]):
        polynomial[..., 1:] += by_group[..., expert, None] * polynomial[..., :-1].copy()
    return polynomial


def _combine(polynomials: Floats, limit: int) -> Floats:
    """Multiply the groups' polynomials, keeping count of the groups touched: ... x (limit + 1) x (k + 1)."""
    return _prefixes(polynomials, limit)[-1]


def _prefixes(polynomials: Floats, limit: int) -> list[Floats]:
    """Return the products of the first 0, 1, ... groups."""
    *batch, n_groups, size = polynomials.shape
    state = np.zeros((*batch, limit + 1, size))
    state[..., 0, 0] = 1.0
    states = [state]
    for group in range(n_groups):
        after = state.copy()
        for degree in range(1, size):
            factor = polynomials[..., group, degree][..., None, None]
            after[..., 1:, degree:] += state[..., :-1, : size - degree] * factor
        states.append(after)
        state = after
    return states


def _rates(weights: Floats, factors: Floats, spec: RoutingSpec) -> Floats:
    """Return the probability that each expert is in A: w x d log(total) / dw, by reverse accumulation."""
    polynomials = _group_polynomials(weights, spec)
    states = _prefixes(polynomials, spec.limit)
    total = (states[-1][..., -1] * factors).sum(axis=-1)
    adjoint = np.zeros_like(states[-1])
    adjoint[..., -1] = factors
    of_groups = np.zeros_like(polynomials)
    size = spec.n_per_token + 1
    for group in reversed(range(spec.n_groups)):
        before = adjoint.copy()
        for degree in range(1, size):
            later = adjoint[..., 1:, degree:]
            of_groups[..., group, degree] = (states[group][..., :-1, : size - degree] * later).sum(
                axis=(-2, -1)
            )
            before[..., :-1, : size - degree] += polynomials[..., group, degree][..., None, None] * later
        adjoint = before
    gradient = _expert_gradient(weights, of_groups, spec)
    rates: Floats = weights * gradient / total[..., None]
    return rates


def _expert_gradient(weights: Floats, of_groups: Floats, spec: RoutingSpec) -> Floats:
    """Turn derivatives by the groups' coefficients into derivatives by the experts' weights."""
    by_group = weights.reshape(*weights.shape[:-1], spec.n_groups, -1)
    n_members = by_group.shape[-1]
    partial = [np.zeros_like(of_groups)]
    partial[0][..., 0] = 1.0
    for expert in range(n_members - 1):
        after = partial[-1].copy()
        after[..., 1:] += by_group[..., expert, None] * partial[-1][..., :-1]
        partial.append(after)
    gradient = np.empty_like(by_group)
    adjoint = of_groups
    for expert in reversed(range(n_members)):
        gradient[..., expert] = (adjoint[..., 1:] * partial[expert][..., :-1]).sum(axis=-1)
        before = adjoint.copy()
        before[..., :-1] += by_group[..., expert, None] * adjoint[..., 1:]
        adjoint = before
    return gradient.reshape(weights.shape)
