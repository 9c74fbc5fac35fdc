"""Search in one layer by single moves: swap two slots, or give a spare replica's slot to another expert.

The exact policy uses it to improve what packing found, the incremental one to improve what is loaded now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from model_core.experts.arrays import Bools, Floats, Ints

# The search lowers a power mean of the GPUs' loads: near enough to the maximum, and it tells moves apart
# where several GPUs are equally hot.
_SQUARINGS: Final = 4
_LEAST_GAIN: Final = 1e-7
# Of the experts that a slot of the hottest GPU could take, the lightest are enough to look at.
_LIGHTEST: Final = 32
MOST_FORCED: Final = 6


@dataclass(frozen=True, slots=True)
class Move:
    """One change: slot ``(gpu, slot)`` takes ``expert``; a swap has a second such change.

    ``gain`` is by how much the power mean of the loads falls, ``cost`` how many experts have to be sent.
    """

    gain: float
    changes: tuple[tuple[int, int, int], ...]

    @property
    def cost(self) -> int:
        """Experts that a GPU has to receive."""
        return len(self.changes)


class LayerSearch:
    """The slots of one layer and the loads they lead to; `steps` changes them move by move.

    Args:
        loads: experts.
        slots: GPUs x slots per GPU, free of twins; copied.
        allowed: experts x GPUs, where an expert may be.
    """

    def __init__(self, loads: Floats, slots: Ints, allowed: Bools) -> None:
        self.slots = slots.copy()
        self._loads = loads
        self._allowed = allowed
        self._kept = np.zeros(loads.size, bool)
        self._refresh()

    def _refresh(self) -> None:
        n_gpus = self.slots.shape[0]
        n_experts = self._loads.size
        self._counts = np.bincount(self.slots.ravel(), minlength=n_experts)
        self._hosts = np.zeros((n_experts, n_gpus), bool)
        self._hosts[self.slots, np.arange(n_gpus)[:, None]] = True
        self._replica = self._loads / self._counts
        self.totals: Floats = self._replica[self.slots].sum(axis=1)

    @property
    def hottest(self) -> float:
        """Load of the hottest GPU."""
        return float(self.totals.max())

    def steps(self, enough: float, most: int, most_forced: int = MOST_FORCED) -> Iterator[Move]:
        """Make the best move per expert sent, one after the other, until the hottest GPU is low enough.

        Where no move helps, the hottest GPU's heaviest expert gets one more replica all the same, which it
        keeps: moves that follow may make room for it. So the hottest GPU can become hotter for a while.

        Args:
            enough: load of the hottest GPU at which to stop.
            most: most moves.
            most_forced: most replicas given although they do not help at once.

        Yields:
            Each move after it was made.
        """
        forced = 0
        for _ in range(most):
            if self.hottest <= enough:
                return
            found = [move for move in (self._best_swap(), self._best_replacement()) if move is not None]
            if not found and forced < most_forced:
                forced += 1
                found = self._forced_split()
            if not found:
                return
            move = max(found, key=lambda m: m.gain / m.cost)
            for gpu, slot, expert in move.changes:
                self.slots[gpu, slot] = expert
            self._refresh()
            yield move

    def _forced_split(self) -> list[Move]:
        """Find the least harmful slot for one more replica of the hottest GPU's heaviest expert."""
        on_hot = self.slots[int(self.totals.argmax())]
        heaviest = on_hot[self._replica[on_hot].argmax()]
        self._kept[heaviest] = True
        gpus, slots = self._spare()
        move = self._replacement(gpus, slots, np.array([heaviest]), -np.inf)
        return [] if move is None else [move]

    def _spare(self) -> tuple[Ints, Ints]:
        """Return the GPU and slot of every replica that its expert can do without."""
        gpus, slots = np.nonzero((self._counts > 1)[self.slots] & ~self._kept[self.slots])
        return gpus, slots

    def _mean(self, totals: Floats) -> Floats:
        """Return the power mean over the last axis."""
        scale = self.hottest
        mean: Floats = scale * _power(totals / scale).mean(axis=-1) ** (1 / 2**_SQUARINGS)
        return mean

    def _best_swap(self) -> Move | None:
        """Find the best swap of a slot of the hottest GPU."""
        hot = int(self.totals.argmax())
        given = self.slots[hot]
        moved = self._replica[given][:, None, None] - self._replica[self.slots]
        may_give = self._allowed[given] & ~self._hosts[given]
        may_take = self._allowed[self.slots, hot] & ~self._hosts[self.slots, hot]
        possible = may_give[:, :, None] & may_take & (moved > 0)
        if not possible.any():
            return None
        after_hot = np.maximum(self.totals[hot] - moved, 0)
        after = self.totals[None, :, None] + moved
        scale = self.hottest
        power = _power(after_hot / scale) + _power(after / scale) - _power(self.totals / scale)[:, None]
        power[~possible] = np.inf
        here, gpu, there = (int(i) for i in np.unravel_index(power.argmin(), power.shape))
        totals = self.totals.copy()
        totals[hot] -= moved[here, gpu, there]
        totals[gpu] += moved[here, gpu, there]
        gain = float(self._mean(self.totals) - self._mean(totals))
        if gain <= _LEAST_GAIN * self.hottest:
            return None
        changes = ((hot, here, int(self.slots[gpu, there])), (gpu, there, int(given[here])))
        return Move(gain, changes)

    def _best_replacement(self) -> Move | None:
        """Find the best spare replica to give up for a replica of another expert."""
        hot = int(self.totals.argmax())
        gpus, slots = self._spare()
        least = _LEAST_GAIN * self.hottest
        anywhere = self._replacement(gpus, slots, self.slots[hot], least)
        on_hot = gpus == hot
        others = np.flatnonzero(self._allowed[:, hot] & ~self._hosts[:, hot])
        lightest = others[np.argsort((self._loads / (self._counts + 1))[others])[:_LIGHTEST]]
        here = self._replacement(gpus[on_hot], slots[on_hot], lightest, least)
        found = [move for move in (anywhere, here) if move is not None]
        return max(found, key=lambda m: m.gain) if found else None

    def _replacement(self, gpus: Ints, slots: Ints, experts: Ints, least: float) -> Move | None:
        """Find the best of giving one of the slots to one of the experts, if it gains at least so much."""
        if not gpus.size or not experts.size:
            return None
        leaving = self.slots[gpus, slots]
        possible = self._allowed[experts][:, gpus] & ~self._hosts[experts][:, gpus]
        if not possible.any():
            return None
        fewer = self._loads[leaving] / (self._counts[leaving] - 1)
        more = self._loads[experts] / (self._counts[experts] + 1)
        heavier = self._hosts[leaving] * (fewer - self._replica[leaving])[:, None]
        lighter = self._hosts[experts] * (more - self._replica[experts])[:, None]
        totals = self.totals + heavier[None, :, :] + lighter[:, None, :]
        at = np.arange(gpus.size)
        totals[:, at, gpus] += more[:, None] - fewer[None, :]
        mean = np.where(possible, self._mean(np.maximum(totals, 0)), np.inf)
        which, place = (int(i) for i in np.unravel_index(mean.argmin(), mean.shape))
        gain = float(self._mean(self.totals) - mean[which, place])
        if gain <= least:
            return None
        return Move(gain, ((int(gpus[place]), int(slots[place]), int(experts[which])),))


def _power(values: Floats) -> Floats:
    """Return the power that the mean is taken of, by squaring: many times faster than the general one."""
    for _ in range(_SQUARINGS):
        values = values * values
    return values
