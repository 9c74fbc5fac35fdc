"""How much of a chip's peak rates a software stack reaches: a small physical model, elementwise.

The default of every factor is an ideal machine, so that `BOUND` gives the roofline bound and a calibrated
time is never below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model_core.arithmetic import Number, ceil_div, maximum
from model_core.diagnostics import Diagnostic
from model_core.hardware.network import Level, Network
from model_core.memo import memoised
from model_core.quantities import formula
from model_core.spec.calibration import AUTO, FACTORS, NONE, CalibrationSpec, CalibrationUse
from model_core.spec.cluster import ChipSpec


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Values of the factors of `spec.calibration.FACTORS`, where their meanings are; numbers or arrays."""

    matmul_share: Number = 1.0
    row_tile: Number = 1
    column_tile: Number = 1
    depth_tile: Number = 1
    fill_rows: Number = 1
    hbm_share: Number = 1.0
    kv_share: Number = 1.0
    kv_rereads: Number = 0.0
    activation_traffic: Number = 0.0
    torus_share: Number = 1.0
    switch_share: Number = 1.0
    network_share: Number = 1.0
    torus_hop_s: Number = 0.0
    collective_start_s: Number = 0.0
    network_start_s: Number = 0.0
    dispatch_start_s: Number = 0.0
    hidden_share: Number = 1.0
    layer_s: Number = 0.0
    step_s: Number = 0.0


BOUND = Efficiency()


@memoised(64)
def efficiency_of(calibration: CalibrationSpec | None) -> Efficiency:
    """Return the factors of a calibration; without one, those of an ideal machine."""
    if calibration is None:
        return BOUND
    return Efficiency(**{name: calibration.factor(name) for name in FACTORS})


@dataclass(frozen=True, slots=True)
class Choice:
    """The calibration that a design uses; ``foreign``: it was measured on another chip."""

    calibration: CalibrationSpec | None
    foreign: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()


@memoised(64)
def choose_calibration(chip: ChipSpec, wanted: str, use: CalibrationUse = "inference") -> Choice:
    """Find the calibration that a plan asks for among those that the chip carries.

    Args:
        chip: the chip, with its calibrations.
        wanted: the name or the software of one, ``"auto"``, or ``"none"``.
        use: ``"auto"`` takes only calibrations of this.
    """
    if wanted == NONE:
        return Choice(None)
    own = [entry for entry in chip.calibrations if entry.chip == chip.name]
    if wanted == AUTO:
        own = [entry for entry in own if entry.use == use]
        if len(own) < 2:
            return Choice(own[0] if own else None)
        values: dict[str, object] = {"chip": chip.name, "known": _listed(own)}
        return Choice(None, False, (Diagnostic("calibration_ambiguous", "plan.calibration", values),))
    named = [e for e in (*own, *chip.calibrations) if wanted.lower() in (e.name.lower(), e.stack.lower())]
    if not named:
        values = {"name": wanted, "known": _listed(chip.calibrations) or NONE}
        return Choice(None, False, (Diagnostic("calibration_unknown", "plan.calibration", values),))
    found = named[0]
    if found.chip == chip.name:
        return Choice(found)
    values = {"name": found.name, "measured": found.chip, "chip": chip.name}
    return Choice(found, True, (Diagnostic("calibration_foreign", "plan.calibration", values),))


def _listed(calibrations: Sequence[CalibrationSpec]) -> str:
    return ", ".join(entry.name for entry in calibrations)


@formula("matmul_efficiency")
def matmul_efficiency(rows: Number, columns: Number, depth: Number, efficiency: Efficiency) -> Number:
    """Share of the arithmetic peak that a product reaches on one chip.

    Formula: η = η_max · M / max(⌈M⌉, M_fill) · N / ⌈N⌉ · K / ⌈K⌉, with ⌈·⌉ rounded up to whole tiles
    Source: tile sizes and pipeline depth of the arithmetic unit; η_max is fitted
    Args:
        rows: M, tokens of the chip (times query heads that share a key head, in attention).
        columns: N, columns of the chip's shard of the weights.
        depth: K, contracted size on the chip.
        efficiency: factors.
    Returns: a share in (0, 1].
    """
    e = efficiency
    taken = maximum(_whole_tiles(rows, e.row_tile), e.fill_rows)
    share = e.matmul_share * rows / taken
    return share * columns / _whole_tiles(columns, e.column_tile) * depth / _whole_tiles(depth, e.depth_tile)


def _whole_tiles(size: Number, tile: Number) -> Number:
    return ceil_div(size, tile) * tile


def derated(levels: Sequence[Level], efficiency: Efficiency) -> tuple[Level, ...]:
    """Return levels with the bandwidth and the latency per hop that collectives reach on them."""
    return tuple(_derated(level, efficiency) for level in levels)


def derated_network(network: Network, efficiency: Efficiency) -> Network:
    """Return a network with every level derated; unchanged where the machine is ideal."""
    if efficiency is BOUND:
        return network
    return Network({axis: derated(levels, efficiency) for axis, levels in network.levels.items()})


def _derated(level: Level, efficiency: Efficiency) -> Level:
    share, hop = efficiency.torus_share, efficiency.torus_hop_s
    if level.kind == "switch":
        share, hop = efficiency.switch_share, 0.0
    elif level.kind == "network":
        share, hop = efficiency.network_share, 0.0
    return Level(level.axis, level.kind, level.size, level.bandwidth * share, level.latency + hop)


def collective_start_s(levels: Sequence[Level], efficiency: Efficiency) -> Number:
    """Return the cost of starting one collective."""
    crosses_nodes = any(level.kind == "network" for level in levels)
    return efficiency.collective_start_s + (efficiency.network_start_s if crosses_nodes else 0.0)
