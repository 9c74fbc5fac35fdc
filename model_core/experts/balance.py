"""How evenly a placement spreads the load over GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model_core.experts.arrays import Bools, Floats, Ints
from model_core.experts.placement import Placement


def even_gpu_loads(placement: Placement, loads: Floats) -> Floats:
    """Return layers x GPUs loads when each expert's load is split evenly over its replicas.

    Args:
        placement: where the replicas are.
        loads: layers x experts.
    """
    replica = loads / np.maximum(placement.replicas, 1)
    of_slot = np.take_along_axis(replica, placement.physical_to_logical, axis=1)
    total: Floats = of_slot.reshape(placement.by_gpu.shape).sum(axis=2)
    return total


def max_over_mean(gpu_loads: Floats) -> Floats:
    """Return the hottest GPU's load over the mean, per layer; 1 where a layer has no load.

    Formula: max over GPUs of load / mean over GPUs of load
    Source: the measure of deepseek-ai/EPLB and of the reports that use it; a step waits for the hottest GPU.
    """
    mean = gpu_loads.mean(axis=-1)
    ratio: Floats = np.divide(gpu_loads.max(axis=-1), mean, out=np.ones_like(mean), where=mean > 0)
    return ratio


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """How each expert's load is divided over its replicas: layers x slots shares, and what GPUs get."""

    slot_shares: Floats
    gpu_loads: Floats


def best_split(placement: Placement, loads: Floats) -> Split:
    """Route on the fly: divide each expert's load over its replicas so that the hottest GPU has least.

    Formula: min T with sum over replicas of x = load of each expert, sum over a GPU's slots of x <= T, x >= 0
    Source: DeepSeek-V3 report 3.4.1, "globally optimal routing scheme, computed on the fly"; a linear
        program, solved exactly layer by layer.

    Args:
        placement: where the replicas are.
        loads: layers x experts.
    """
    shares = np.empty(placement.physical_to_logical.shape)
    totals = np.empty((placement.n_layers, placement.n_gpus))
    for layer, slots in enumerate(placement.physical_to_logical):
        amounts = split_layer(loads[layer], slots, placement.n_gpus)
        whole = loads[layer][slots]
        shares[layer] = np.divide(amounts, whole, out=np.zeros_like(whole), where=whole > 0)
        totals[layer] = amounts.reshape(placement.n_gpus, -1).sum(axis=1)
    return Split(shares, totals)


def split_layer(loads: Floats, slots: Ints, n_gpus: int, open_slots: Bools | None = None) -> Floats:
    """Solve the linear program of `best_split` for one layer.

    Args:
        loads: experts.
        slots: the expert in each slot.
        n_gpus: GPUs, each with the same number of slots.
        open_slots: which slots may get load; all by default. Every expert with load needs one.

    Returns:
        The load that each slot gets.
    """
    usable = np.ones(slots.size, bool) if open_slots is None else open_slots
    n_open = np.bincount(slots[usable], minlength=loads.size)
    single = usable & (n_open[slots] == 1)
    amounts = np.where(single, loads[slots], 0.0)
    shared = np.flatnonzero(usable & ~single)
    if shared.size and loads.sum() > 0:
        base = amounts.reshape(n_gpus, -1).sum(axis=1)
        amounts[shared] = _solve_split(loads, slots[shared], shared // (slots.size // n_gpus), base)
    return amounts


def _solve_split(loads: Floats, experts: Ints, gpus: Ints, base: Floats) -> Floats:
    """Divide the loads of the given slots' experts over these slots, beside loads that are fixed."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    n_slots, n_gpus = experts.size, base.size
    names, row = np.unique(experts, return_inverse=True)
    columns = np.arange(n_slots)
    scale = loads.sum() / n_gpus
    whole = csr_array((np.ones(n_slots), (row, columns)), shape=(names.size, n_slots + 1))
    entries = np.concatenate([np.ones(n_slots), np.full(n_gpus, -1.0)])
    rows = np.concatenate([gpus, np.arange(n_gpus)])
    places = np.concatenate([columns, np.full(n_gpus, n_slots)])
    per_gpu = csr_array((entries, (rows, places)), shape=(n_gpus, n_slots + 1))
    cost = np.zeros(n_slots + 1)
    cost[-1] = 1.0
    found = linprog(cost, per_gpu, -base / scale, whole, loads[names] / scale, method="highs")
    amounts = np.maximum(found.x[:n_slots], 0.0)
    # The solver's tolerance must not create or lose tokens.
    sums = np.bincount(row, amounts, minlength=names.size)
    exact: Floats = amounts * (loads[names] / np.where(sums > 0, sums, 1.0))[row]
    return exact
