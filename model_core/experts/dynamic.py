"""Dynamic redundancy: a GPU hosts more experts than it runs in one step; the step's loads choose which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from model_core.experts.arrays import Bools, Floats, Ints
from model_core.experts.balance import split_layer
from model_core.experts.moves import LayerSearch
from model_core.experts.placement import Placement

_CLOSE: Final = 1e-4
_MOST_MOVES: Final = 200
_GAP: Final = 0.02
_MOST_SECONDS: Final = 2.0
_WHOLE: Final = 1 - 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class StepRouting:
    """Which slots run in a step (layers x slots), the load each gets, and the GPUs' loads.

    ``bound`` is what the hottest GPU has at least, whichever slots run: the load split over all of them.
    """

    active: Bools
    slot_loads: Floats
    gpu_loads: Floats
    bound: Floats


def route_step(
    placement: Placement, loads: Floats, active_per_gpu: int, *, thorough: bool = False
) -> StepRouting:
    """Choose the slots that run in one step and divide the loads over them.

    Source: DeepSeek-V3 report 3.4.1: each GPU hosts more experts (16), of which 9 are activated in a step;
        the globally optimal routing scheme is computed before the all-to-all of each layer.
    Assumes: each expert can be given a GPU; see `can_run`.

    Args:
        placement: the hosted replicas, free of twins.
        loads: layers x experts of this step.
        active_per_gpu: experts that a GPU runs in a step.
        thorough: besides the search by single moves solve a mixed integer program, many times slower.
    """
    shape = placement.physical_to_logical.shape
    active, amounts = np.zeros(shape, bool), np.zeros(shape)
    bound = np.empty(placement.n_layers)
    n_gpus = placement.n_gpus
    for layer, slots in enumerate(placement.physical_to_logical):
        row = loads[layer]
        bound[layer] = _hottest(split_layer(row, slots, n_gpus), n_gpus)
        choices = [_search(row, slots, n_gpus, active_per_gpu)]
        if thorough and (solved := _solve(row, slots, n_gpus, active_per_gpu)) is not None:
            choices.append(solved)
        splits = [(split_layer(row, slots, n_gpus, chosen), chosen) for chosen in choices]
        amounts[layer], active[layer] = min(splits, key=lambda split: _hottest(split[0], n_gpus))
    gpu_loads = amounts.reshape(placement.by_gpu.shape).sum(axis=2)
    return StepRouting(active, amounts, gpu_loads, bound)


def _hottest(amounts: Floats, n_gpus: int) -> float:
    return float(amounts.reshape(n_gpus, -1).sum(axis=1).max())


def can_run(placement: Placement, active_per_gpu: int) -> Bools:
    """Tell, per layer, whether every expert can be given one of its GPUs with none running too many."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    possible = np.zeros(placement.n_layers, bool)
    for layer, slots in enumerate(placement.physical_to_logical):
        gpus = np.arange(slots.size) // placement.slots_per_gpu
        places = (gpus[:, None] * active_per_gpu + np.arange(active_per_gpu)).ravel()
        entries = (np.ones(places.size), (np.repeat(slots, active_per_gpu), places))
        graph = csr_array(entries, shape=(placement.n_experts, placement.n_gpus * active_per_gpu))
        matched = maximum_bipartite_matching(graph, perm_type="column")
        possible[layer] = (matched >= 0).all()
    return possible


def _search(loads: Floats, slots: Ints, n_gpus: int, most: int) -> Bools:
    """Choose the slots of one layer by moves among the experts that each GPU hosts."""
    start = _start(loads, slots, n_gpus, most)
    hosts = np.zeros((loads.size, n_gpus), bool)
    hosts[slots, np.arange(slots.size) // (slots.size // n_gpus)] = True
    search = LayerSearch(loads, start, hosts)
    best, lowest = start, search.hottest
    for _ in search.steps(loads.sum() / n_gpus * (1 + _CLOSE), _MOST_MOVES):
        if search.hottest < lowest:
            best, lowest = search.slots.copy(), search.hottest
    by_gpu = slots.reshape(n_gpus, -1)
    active: Bools = (by_gpu[:, :, None] == best[:, None, :]).any(axis=2).ravel()
    return active


def _start(loads: Floats, slots: Ints, n_gpus: int, most: int) -> Ints:
    """Give each expert a GPU near the ideal split, and fill the GPUs with their other hosted experts."""
    share = _relaxed(loads, slots, n_gpus, most)
    chosen = _one_of_each(slots, share, n_gpus, most)
    order = np.lexsort((-share, ~chosen, np.arange(slots.size) // (slots.size // n_gpus)))
    first: Ints = slots[order].reshape(n_gpus, -1)[:, :most]
    return first


def _relaxed(loads: Floats, slots: Ints, n_gpus: int, most: int) -> Floats:
    """Split every expert over its slots as if a part of an expert took a part of a place to run.

    Returns:
        The share of its expert's load that each slot gets; few are other than 0 and 1.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, vstack

    n_slots = slots.size
    columns, gpus = np.arange(n_slots), np.arange(n_slots) // (n_slots // n_gpus)
    weight = loads[slots] / loads.sum() * n_gpus
    shape = (n_gpus, n_slots + 1)
    entries = np.concatenate([weight, np.full(n_gpus, -1.0)])
    rows = np.concatenate([gpus, np.arange(n_gpus)])
    load = coo_array((entries, (rows, np.concatenate([columns, np.full(n_gpus, n_slots)]))), shape=shape)
    places = coo_array((np.ones(n_slots), (gpus, columns)), shape=shape)
    whole = coo_array((np.ones(n_slots), (slots, columns)), shape=(loads.size, n_slots + 1))
    cost = np.zeros(n_slots + 1)
    cost[-1] = 1.0
    limits = np.concatenate([np.zeros(n_gpus), np.full(n_gpus, float(most))])
    rows_of_all = vstack([load, places]).tocsr()
    found = linprog(cost, rows_of_all, limits, whole.tocsr(), np.ones(loads.size), method="highs-ds")
    share: Floats = found.x[:n_slots]
    return share


def _one_of_each(slots: Ints, weight: Floats, n_gpus: int, most: int) -> Bools:
    """Choose one slot of each expert, no more than ``most`` on a GPU, of the largest total weight.

    A transportation problem: its linear program has whole solutions at its corners.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    columns, gpus = np.arange(slots.size), np.arange(slots.size) // (slots.size // n_gpus)
    ones = np.ones(slots.size)
    names, row = np.unique(slots, return_inverse=True)
    each = csr_array((ones, (row, columns)), shape=(names.size, slots.size))
    per_gpu = csr_array((ones, (gpus, columns)), shape=(n_gpus, slots.size))
    limits = np.full(n_gpus, float(most))
    found = linprog(-weight, per_gpu, limits, each, np.ones(names.size), bounds=(0, 1), method="highs-ds")
    chosen: Bools = found.x > 0.5
    return chosen


def _solve(loads: Floats, slots: Ints, n_gpus: int, most: int) -> Bools | None:
    """Choose the slots of one layer by a mixed integer program, or ``None`` where it finds none in time.

    Experts that the relaxed split leaves whole stay where it puts them; the others are chosen exactly.
    """
    share = _relaxed(loads, slots, n_gpus, most)
    fixed = share > _WHOLE
    free = np.flatnonzero(np.isin(slots, np.setdiff1d(slots, slots[fixed])))
    gpus = np.arange(slots.size) // (slots.size // n_gpus)
    weight = loads / loads.sum() * n_gpus
    taken = np.bincount(gpus[fixed], minlength=n_gpus)
    base: Floats = np.bincount(gpus[fixed], weight[slots[fixed]], n_gpus).astype(np.float64)
    chosen = _integer_program(weight[slots[free]], slots[free], gpus[free], base, most - taken)
    if chosen is None:
        return None
    active = fixed
    active[free[chosen]] = True
    return active


def _integer_program(weight: Floats, experts: Ints, gpus: Ints, base: Floats, places: Ints) -> Bools | None:
    """Choose slots to run so that the hottest GPU has least; columns are loads, choices and the maximum."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n, n_gpus = weight.size, base.size
    names, row = np.unique(experts, return_inverse=True)
    columns, ones = np.arange(n), np.ones(n)

    def matrix(values: Floats, rows: Ints, at: Ints, n_rows: int) -> object:
        return coo_array((values, (rows, at)), shape=(n_rows, 2 * n + 1)).tocsr()

    every, last = np.arange(n_gpus), np.full(n_gpus, 2 * n)
    load = matrix(
        np.append(weight, -np.ones(n_gpus)), np.append(gpus, every), np.append(columns, last), n_gpus
    )
    link = matrix(np.append(ones, -ones), np.append(columns, columns), np.arange(2 * n), n)
    constraints = [
        LinearConstraint(matrix(ones, row, columns, names.size), 1, 1),
        LinearConstraint(load, -np.inf, -base),
        LinearConstraint(matrix(ones, gpus, columns + n, n_gpus), -np.inf, places),
        LinearConstraint(link, -np.inf, 0),
    ]
    upper = np.append(np.ones(2 * n), np.inf)
    whole = np.concatenate([np.zeros(n), ones, np.zeros(1)])
    cost = np.append(np.zeros(2 * n), 1.0)
    options = {"time_limit": _MOST_SECONDS, "mip_rel_gap": _GAP}
    found = milp(cost, integrality=whole, bounds=Bounds(0, upper), constraints=constraints, options=options)
    return None if found.x is None else found.x[n : 2 * n] > 0.5
