"""Replicas onto GPUs: longest first, then swaps between hot and cold GPUs; many problems at once.

A problem is one layer, or one node of a layer. Every GPU has the same number of slots, and no GPU holds an
expert twice. `pack` starts from the public algorithm's order of work, and swaps never raise the load of the
hottest GPU; so the result is at least as balanced as that algorithm's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from model_core.experts.arrays import Bools, Floats, Ints

# A swap has to bring two GPUs closer to their mean by more than single precision can mistake.
_LEAST_GAIN: Final = 1 - 1e-4
# Partners of the hottest GPU: for one slot, and for two at once at first and then.
_COLDEST_FOR_ONE: Final = 12
_COLDEST: Final = 3
_COLD: Final = 7
# Two slots at once are for the last hundredth: a wider gap comes from the replicas, not from their places.
# With many slots single swaps are fine enough.
_FAR: Final = 1.0001
_NEAR: Final = 1.01
_MOST_SLOTS_FOR_TWO: Final = 12


def pack(loads: Floats, counts: Ints, n_gpus: int) -> Ints:
    """Put the heaviest replica left on the least loaded GPU that has a free slot and not the same expert.

    Source: the packing step of deepseek-ai/EPLB (longest processing time first with equal cardinality),
        with the replicas of one expert kept on different GPUs.

    Args:
        loads: problems x experts.
        counts: replicas of each expert, none above ``n_gpus``; each row sums to the slots.
        n_gpus: GPUs of one problem.

    Returns:
        problems x GPUs x slots per GPU: the expert in each slot.
    """
    n_problems, n_experts = loads.shape
    n_slots = int(counts[0].sum()) if n_problems else 0
    listed = np.repeat(np.tile(np.arange(n_experts), n_problems), counts.ravel())
    experts: Ints = listed.reshape(n_problems, n_slots)
    replica = np.take_along_axis(loads / counts, experts, axis=1)
    order = np.argsort(-replica, axis=1, kind="stable")
    experts = np.take_along_axis(experts, order, axis=1)
    replica = np.take_along_axis(replica, order, axis=1)
    gpus = _assign(experts.T.copy(), replica.T.copy(), n_gpus)
    by_gpu = np.argsort(gpus.T, axis=1, kind="stable")
    slots = np.take_along_axis(experts, by_gpu, axis=1).reshape(n_problems, n_gpus, -1)
    separate_twins(slots)
    return slots


def _assign(experts: Ints, replica: Floats, n_gpus: int) -> Ints:
    """Return the GPU of each replica; arguments and result are steps x problems, heaviest first."""
    n_slots, n_problems = experts.shape
    chosen = np.empty(experts.shape, np.intp)
    chosen[:n_gpus] = np.arange(n_gpus)[:, None]
    work = replica[:n_gpus].T.copy()
    flat = work.reshape(-1)
    room = np.full(flat.shape, n_slots // n_gpus - 1)
    first_cell = np.arange(n_problems) * n_gpus
    if room.size and room[0] == 0:
        return chosen
    twins = _Twins(experts, n_gpus)
    for step in range(n_gpus, n_slots):
        gpu = twins.choose(step, work, chosen)
        cell = gpu + first_cell
        left = room[cell] - 1
        room[cell] = left
        flat[cell] = np.where(left > 0, flat[cell] + replica[step], np.inf)
    return chosen


class _Twins:
    """Keeps the replicas of an expert, which follow each other in the order of work, on different GPUs."""

    def __init__(self, experts: Ints, n_gpus: int) -> None:
        self._repeated = np.zeros(experts.shape, bool)
        self._repeated[1:] = experts[1:] == experts[:-1]
        self._any: Bools = np.logical_or.reduce(self._repeated, axis=1)
        self._barred = np.zeros((experts.shape[1], n_gpus), bool)
        # Step i < n_gpus went to GPU i: those of a run that is still going on are barred from the start.
        started = np.where(self._repeated[:n_gpus], 0, np.arange(n_gpus)[:, None]).max(axis=0)
        self._barred[:] = np.arange(n_gpus) >= started[:, None]

    def choose(self, step: int, work: Floats, chosen: Ints) -> Ints:
        """Write the GPU of each problem's replica into ``chosen[step]`` and return it."""
        if not self._any[step]:
            self._barred[:] = False
            free: Ints = work.argmin(axis=1, out=chosen[step])
            return free
        repeated = self._repeated[step]
        rows = np.flatnonzero(repeated)
        self._barred[~repeated] = False
        self._barred[rows, chosen[step - 1, rows]] = True
        allowed = np.where(self._barred, np.inf, work)
        gpu: Ints = allowed.argmin(axis=1, out=chosen[step])
        stuck = np.flatnonzero(np.isinf(allowed[np.arange(len(gpu)), gpu]))
        if stuck.size:  # only GPUs with the same expert have room; `separate_twins` sets it right
            gpu[stuck] = work[stuck].argmin(axis=1)
        return gpu


def count_twins(slots: Ints) -> Ints:
    """Count in each problem the slots whose expert is on the same GPU already."""
    ordered = np.sort(slots, axis=2)
    twins: Ints = (ordered[:, :, 1:] == ordered[:, :, :-1]).sum(axis=(1, 2))
    return twins


def separate_twins(slots: Ints) -> None:
    """Swap slots between GPUs, in place, until no GPU holds an expert twice."""
    for row in np.flatnonzero(count_twins(slots)):
        problem = slots[row]
        while _separate_one(problem):
            pass
        if count_twins(problem[None])[0]:
            # Dealing the replicas round, expert by expert, is always free of twins.
            problem[:] = np.sort(problem, axis=None).reshape(problem.shape[::-1]).T


def _separate_one(problem: Ints) -> bool:
    """Swap one twin with a slot that leaves fewer twins; tell whether there was one."""
    for gpu, experts in enumerate(problem):
        values, counts = np.unique(experts, return_counts=True)
        for expert in values[counts > 1]:
            slot = int(np.flatnonzero(experts == expert)[0])
            for other in np.flatnonzero((problem != expert).all(axis=1)):
                free = np.flatnonzero(~np.isin(problem[other], experts))
                if free.size:
                    problem[gpu, slot], problem[other, free[0]] = problem[other, free[0]], expert
                    return True
    return False


def gpu_loads(loads: Floats, counts: Ints, slots: Ints) -> Floats:
    """Return problems x GPUs loads, each expert's load split evenly over its replicas."""
    total: Floats = _slot_loads(loads, counts, slots).sum(axis=2)
    return total


def _slot_loads(loads: Floats, counts: Ints, slots: Ints) -> Floats:
    flat = slots.reshape(len(slots), -1)
    return np.take_along_axis(loads / counts, flat, axis=1).reshape(slots.shape)


@dataclass(slots=True, eq=False)
class _State:
    """Slots of a batch of problems with what swaps need to know; changed in place."""

    slots: Ints
    loads: Floats
    totals: Floats
    hosts: Bools

    @classmethod
    def of(cls, loads: Floats, counts: Ints, slots: Ints) -> _State:
        n_problems, n_gpus, per_gpu = slots.shape
        slot_loads = _slot_loads(loads, counts, slots)
        hosts = np.zeros((n_problems, loads.shape[1], n_gpus), bool)
        gpus = np.repeat(np.arange(n_gpus), per_gpu)
        hosts[np.arange(n_problems)[:, None], slots.reshape(n_problems, -1), gpus] = True
        return cls(slots, slot_loads, slot_loads.sum(axis=2), hosts)

    def exchange(self, row: Ints, hot: Ints, cold: Ints, here: Ints, there: Ints) -> None:
        """Swap one slot of a hot with one of a cold GPU in each of the given problems."""
        given, taken = self.slots[row, hot, here], self.slots[row, cold, there]
        moved = self.loads[row, hot, here] - self.loads[row, cold, there]
        self.slots[row, hot, here], self.slots[row, cold, there] = taken, given
        self.loads[row, hot, here] -= moved
        self.loads[row, cold, there] += moved
        self.totals[row, hot] -= moved
        self.totals[row, cold] += moved
        self.hosts[row, given, hot] = self.hosts[row, taken, cold] = False
        self.hosts[row, given, cold] = self.hosts[row, taken, hot] = True


def refine(loads: Floats, counts: Ints, slots: Ints, target: Floats, rounds: int) -> None:
    """Swap slots between the hottest and the coldest GPUs of each problem, in place.

    In each round the GPUs are paired, hottest with coldest and so on inwards; each pair makes the swap
    that brings both closest to their mean; then the hottest GPU looks at the coldest ones, for one slot and
    for two at once. The hottest GPU never becomes hotter.

    Args:
        loads: problems x experts.
        counts: replicas of each expert.
        slots: problems x GPUs x slots per GPU; changed in place.
        target: a problem is left alone once its hottest GPU has no more than this.
        rounds: most rounds.
    """
    n_gpus, per_gpu = slots.shape[1:]
    if per_gpu <= 2 or n_gpus == 1:
        return  # `pack` has paired heavy with light replicas; no swap makes that better
    state = _State.of(loads, counts, slots)
    paired_out = np.zeros(len(slots), bool)
    for _ in range(rounds):
        any_swap = False
        for swap in _ROUND:
            hottest = state.totals.max(axis=1)
            is_open = hottest > target
            if swap is _swap_pairs:
                is_open &= ~paired_out
            elif swap in _FINE:
                is_open = (hottest > _FAR * target) & (hottest < _NEAR * target)
            rows = np.flatnonzero(is_open)
            if rows.size:
                swapped = swap(state, rows)
                paired_out[rows] = ~swapped
                any_swap |= bool(swapped.any())
        if not any_swap:
            return


def _swap_pairs(state: _State, rows: Ints) -> Bools:
    """Make the best swap of every pair of GPUs; tell which problems had one."""
    half = state.totals.shape[1] // 2
    order = np.argsort(state.totals[rows], axis=1)
    cold, hot = order[:, :half], order[:, : -half - 1 : -1]
    best, miss, gap = _best_swaps(state, rows, hot, cold)
    found = miss < gap * _LEAST_GAIN
    local, pair = np.nonzero(found)
    places = np.divmod(best[local, pair], state.slots.shape[2])
    state.exchange(rows[local], hot[local, pair], cold[local, pair], *places)
    return np.bincount(local, minlength=len(rows)) > 0


def _swap_hottest(state: _State, rows: Ints) -> Bools:
    """Make the swap that lowers the hottest GPU most; tell which problems had one."""
    return _swap_with(state, rows, min(_COLDEST_FOR_ONE, state.totals.shape[1] - 1), 1)


def _swap_two(state: _State, rows: Ints) -> Bools:
    """Swap two slots of the hottest with two of one of the coldest GPUs; tell which problems had such a swap."""
    return _swap_two_with(state, rows, _COLDEST)


def _swap_two_farther(state: _State, rows: Ints) -> Bools:
    """As `_swap_two`, with more of the coldest GPUs."""
    return _swap_two_with(state, rows, _COLD)


def _swap_two_with(state: _State, rows: Ints, n_partners: int) -> Bools:
    if not 2 <= state.slots.shape[2] <= _MOST_SLOTS_FOR_TWO:
        return np.zeros(len(rows), bool)
    return _swap_with(state, rows, min(n_partners, state.totals.shape[1] - 1), 2)


_ROUND: Final = (
    *(_swap_pairs, _swap_pairs, _swap_pairs, _swap_hottest, _swap_pairs),
    *(_swap_two, _swap_hottest, _swap_two, _swap_two_farther),
)
_FINE: Final = (_swap_two, _swap_two_farther)


def _swap_with(state: _State, rows: Ints, n_partners: int, together: int) -> Bools:
    """Make the hottest GPU's best swap with one of the coldest, of one or two slots together."""
    order = np.argsort(state.totals[rows], axis=1)
    cold = order[:, :n_partners]
    hot = np.broadcast_to(order[:, -1:], cold.shape)
    best, miss, gap = _best_swaps(state, rows, hot, cold, together)
    # A swap leaves the hotter of the two at their mean plus the miss.
    lowered = np.where(miss < gap * _LEAST_GAIN, gap - miss, 0.0)
    pair = lowered.argmax(axis=1)
    swapped: Bools = lowered[np.arange(len(rows)), pair] > 0
    local = np.flatnonzero(swapped)
    pair = pair[local]
    choices = _choices(state.slots.shape[2], together)
    here, there = np.divmod(best[local, pair], len(choices))
    for one, other in zip(choices[here].T, choices[there].T, strict=True):
        state.exchange(rows[local], hot[local, pair], cold[local, pair], one, other)
    return swapped


def _choices(per_gpu: int, together: int) -> Ints:
    """Return the ways to take one or two slots of a GPU: ways x together."""
    return np.array(list(combinations(range(per_gpu), together)), np.intp)


def _best_swaps(
    state: _State, rows: Ints, hot: Ints, cold: Ints, together: int = 1
) -> tuple[Ints, Floats, Floats]:
    """Find for each pair of GPUs (problems x pairs) the swap that brings them closest to their mean.

    Returns:
        The swap as choice of the hot GPU x choices + choice of the cold one, how far from their mean it
        leaves both, and how far they are from it now.
    """
    row = rows[:, None]
    gap = (state.totals[row, hot] - state.totals[row, cold]) / 2
    # Single precision is enough to choose by and twice as fast; `_LEAST_GAIN` is far above its rounding.
    given = state.loads[row, hot].astype(np.float32)
    taken = state.loads[row, cold].astype(np.float32)
    deep = row[:, :, None]
    given[state.hosts[deep, state.slots[row, hot], cold[:, :, None]]] = np.inf
    taken[state.hosts[deep, state.slots[row, cold], hot[:, :, None]]] = -np.inf
    if together > 1:
        choices = _choices(given.shape[2], together)
        given, taken = given[:, :, choices].sum(axis=3), taken[:, :, choices].sum(axis=3)
    miss = given[:, :, :, None] - taken[:, :, None, :]
    miss -= gap[:, :, None, None].astype(np.float32)
    np.abs(miss, out=miss)
    miss = miss.reshape(*gap.shape, given.shape[2] * taken.shape[2])
    best: Ints = miss.argmin(axis=2)
    least = np.take_along_axis(miss, best[:, :, None], axis=2)[:, :, 0].astype(np.float64)
    return best, least, gap
