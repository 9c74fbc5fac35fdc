"""Schedules of one model on the same ranks, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from model_core.diagnostics import Diagnostic
from model_core.schedule.memory import activation_memory, parameter_share
from model_core.schedule.registry import schedule
from model_core.schedule.simulate import Durations, Simulation, simulate


@dataclass(frozen=True, slots=True)
class Share:
    """Seconds of one rank's equal share of the model, 1/pp of its layers."""

    forward_s: float = 1.0
    input_s: float = 1.0
    weight_s: float = 1.0
    pair_s: float | None = None
    p2p_s: float = 0.0

    def durations(self, n_chunks: int) -> Durations:
        """Return the durations of one of ``n_chunks`` equal parts of the share."""
        return Durations(
            self.forward_s / n_chunks,
            self.input_s / n_chunks,
            self.weight_s / n_chunks,
            None if self.pair_s is None else self.pair_s / n_chunks,
            self.p2p_s,
        )


@dataclass(frozen=True, slots=True)
class ComparedSchedule:
    """One row of a comparison.

    ``peak_activations`` and ``parameters`` are of the fullest rank, in units of one rank's equal share of
    the model (of one microbatch), so that they compare between schedules.
    """

    kind: str
    simulation: Simulation
    peak_activations: float
    parameters: float


def compare_at_equal_devices(
    kinds: Iterable[str], pp: int, microbatches: int, share: Share, virtual_stages: int = 2
) -> tuple[tuple[ComparedSchedule, ...], tuple[Diagnostic, ...]]:
    """Run schedules of the same model on the same number of ranks.

    Args:
        kinds: names of `KINDS`.
        pp: ranks.
        microbatches: the same for all.
        share: durations of one rank's share; a rank with two chunks takes half for each.
        virtual_stages: chunks of interleaved 1F1B.

    Returns:
        A row for each kind that can have these sizes, and why the others cannot.
    """
    rows: list[ComparedSchedule] = []
    problems: list[Diagnostic] = []
    for kind in kinds:
        made, found = schedule(kind, pp, microbatches, virtual_stages)
        problems += found
        if made is None:
            continue
        chunks = made.layout.n_chunks
        simulation, found = simulate(made, share.durations(chunks))
        problems += found
        if simulation is not None:
            peak = float(activation_memory(made).peak.max()) / chunks
            rows.append(ComparedSchedule(kind, simulation, peak, parameter_share(made) * pp))
    return tuple(rows), tuple(problems)
