"""Interleaved 1F1B: every rank holds several chunks (virtual stages) of the model."""

from __future__ import annotations

import numpy as np

from model_core.schedule.operations import Ints, OpKind, Schedule, assemble, code, looped


def group_size(pp: int, microbatches: int) -> int:
    """Return how many microbatches go through a chunk before the next chunk's turn; 0: none fits."""
    rounds = max(1, microbatches // pp)
    return 0 if microbatches % rounds else microbatches // rounds


def build(pp: int, microbatches: int, virtual_stages: int) -> Schedule:
    """Order the operations as Narayanan et al. 2021, 2.2: groups of microbatches, chunk after chunk."""
    group = group_size(pp, microbatches)
    turns = np.arange(microbatches * virtual_stages) // group % virtual_stages
    forward = code(OpKind.FORWARD, turns)
    backward = code(OpKind.BACKWARD, virtual_stages - 1 - turns)
    ranks = [
        _rank(forward, backward, (virtual_stages - 1) * group + 2 * (pp - 1 - rank)) for rank in range(pp)
    ]
    return assemble("interleaved", looped(pp, virtual_stages), microbatches, ranks)


def _rank(forward: Ints, backward: Ints, warm_up: int) -> Ints:
    warm_up = min(warm_up, len(forward))
    steady = len(forward) - warm_up
    pairs = np.stack([forward[warm_up:], backward[:steady]], axis=1).ravel()
    return np.concatenate([forward[:warm_up], pairs, backward[steady:]])
