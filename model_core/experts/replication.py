"""How many replicas each expert gets. All functions work on a batch of independent problems at once.

A problem is one layer, or one node of a layer: its experts' loads are a row. An expert with ``c`` replicas
puts ``load / c`` on each, so the heaviest replica bounds the heaviest GPU from below.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from model_core.experts.arrays import Bools, Floats, Ints

_TIE: Final = 1e-9


def greedy_counts(loads: Floats, n_slots: int, cap: int) -> Ints:
    """Give each further slot to the expert whose replicas are heaviest; minimises the heaviest replica.

    Of equally heavy ones the expert with most replicas gets it: then fewer heavy replicas are left.

    Formula: repeat n_slots - E times: c[argmax(load / c)] += 1, no c above the number of GPUs.
    Source: the replication step of deepseek-ai/EPLB; optimal because load / c falls with c.

    Args:
        loads: problems x experts.
        n_slots: slots of one problem, at least the number of experts.
        cap: most replicas of one expert, the number of GPUs.

    Returns:
        problems x experts replica counts; each row sums to ``n_slots``.

    Raises:
        ValueError: the slots are fewer than the experts or more than all replicas allowed.
    """
    n_problems, n_experts = loads.shape
    if not n_experts <= n_slots <= n_experts * cap:
        raise ValueError(f"{n_slots} slots for {n_experts} experts with at most {cap} replicas each")
    counts = np.ones(loads.shape, np.intp)
    tie = _TIE * loads
    # Full experts rank below every other, those without load included.
    heaviest = loads + tie if cap > 1 else np.full(loads.shape, -1.0)
    rows = np.arange(n_problems)
    for _ in range(n_slots - n_experts):
        expert = heaviest.argmax(axis=1)
        count = counts[rows, expert] + 1
        counts[rows, expert] = count
        rank = loads[rows, expert] / count + tie[rows, expert]
        heaviest[rows, expert] = np.where(count < cap, rank, -1.0)
    return counts


def threshold_counts(loads: Floats, n_slots: int, cap: int, threshold: Floats) -> tuple[Ints, Bools]:
    """Split only the experts above a threshold, and spread what is left over the heaviest whole ones.

    The greedy rule cuts the hottest experts into so many pieces that every GPU holds several of them; it
    then cannot balance. Fewer, larger pieces leave room for the other experts beside them.

    Formula: c = ceil(load / threshold); left slots go to the largest load / c^3.

    Args:
        loads: problems x experts.
        n_slots: slots of one problem.
        cap: most replicas of one expert.
        threshold: one largest replica load for each problem.

    Returns:
        The counts, and which problems they are valid for: those whose experts fit into the slots.
    """
    counts = np.clip(np.ceil(loads / threshold[:, None] - 1e-12), 1, cap).astype(np.intp)
    left = n_slots - counts.sum(axis=1)
    rank = np.where(counts < cap, loads / counts**3.0, -1.0)
    rows = np.arange(len(loads))
    for step in range(int(left.max(initial=0))):
        row = rows[left > step]
        expert = rank[row].argmax(axis=1)
        count = counts[row, expert] + 1
        counts[row, expert] = count
        rank[row, expert] = np.where(count < cap, loads[row, expert] / count**3.0, -1.0)
    return counts, left >= 0


def heaviest_replica(loads: Floats, counts: Ints) -> Floats:
    """Return the load of the heaviest replica of each problem."""
    heaviest: Floats = (loads / counts).max(axis=1)
    return heaviest
