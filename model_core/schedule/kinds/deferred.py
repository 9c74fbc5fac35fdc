"""What ZB-H1 and ZB-2P share: one forward, one backward for input, and a later one for weights."""

from __future__ import annotations

from model_core.schedule.operations import Ints
from model_core.schedule.patterns import phases


def deferred_weights(microbatches: int, ahead: int, deferred: int) -> Ints:
    """Return the operations of one rank.

    Args:
        microbatches: forwards to run.
        ahead: forwards before the first backward.
        deferred: backwards for input before the first one for weights.
    """
    ahead, deferred = min(ahead, microbatches), min(deferred, microbatches)
    steady = microbatches - ahead + 1  # backwards that follow a forward
    early = min(steady, deferred)
    return phases(
        ("F0", ahead - 1),
        ("F0 I0", early),
        ("F0 I0 W", steady - early),
        ("I0", deferred - early),
        ("I0 W", microbatches - max(steady, deferred)),
        ("W", deferred),
    )
