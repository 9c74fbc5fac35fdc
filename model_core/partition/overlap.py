"""Two microbatches at once: one computes while the tokens of the other travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from model_core.arithmetic import Number, maximum, where
from model_core.partition.cost import OpCost
from model_core.quantities import formula


@formula("microbatch_overlap")
def exposed_beside(communication: Number, busy: Number, hidden_share: Number) -> Number:
    """Communication that the work of the other microbatch does not hide.

    Formula: max(T_comm − T_work, (1 − h) · T_comm)
    Source: DeepSeek-V3 report, 3.4.1 and 3.4.2: attention and experts of one microbatch run while the other's
        tokens are dispatched and combined
    Args:
        communication: T_comm, all collectives of a layer and microbatch, seconds.
        busy: T_work, all other work of that layer and microbatch, seconds.
        hidden_share: h, share of a collective that can be hidden at all.
    Assumes: the microbatches are of equal work; products share the memory, so that those of both add up
    """
    return maximum(communication - busy, (1 - hidden_share) * communication)


def overlapped(costs: Sequence[OpCost], hidden_share: Number) -> list[OpCost]:
    """Return the costs of a layer whose collectives run beside the other microbatch's work."""
    communication: Number = 0.0
    busy: Number = 0.0
    for cost in costs:
        communication = communication + cost.communication_s
        busy = busy + cost.busy_s
    exposed = exposed_beside(communication, busy, hidden_share)
    share = exposed / where(communication > 0, communication, 1.0)
    return [
        replace(c, exposed_s=c.communication_s * share) if c.kind not in ("einsum", "local") else c
        for c in costs
    ]
