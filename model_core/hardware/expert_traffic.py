"""What travels between tokens and experts: expected copies per token, bytes and time, elementwise.

A token that visits k experts is sent to the chips that hold them. In two hops, one copy per node crosses the
network to the chip with the same place in its node and goes on over NVLink, one copy per chip; otherwise each
of the k copies goes straight to its chip. The results come back along the same ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb

from model_core.arithmetic import Number, maximum, minimum, where
from model_core.hardware.network import Level
from model_core.quantities import formula

SATURATING_SMS = 20
"""Streaming multiprocessors that fill NVLink and network (DeepSeek-V3 report, 3.2.2)."""
SCALE_BYTES, SCALE_TILE = 4, 128
"""An 8-bit token has one 32-bit scale for every 128 of its numbers (DeepSeek-V3 report, 3.3.2)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a token chooses: ``chosen`` of ``experts``, which are in ``groups`` of which ``open_groups`` may be used.

    ``always`` counts experts that every token visits beside those (shared experts treated as routed).
    """

    experts: int
    chosen: int
    groups: int = 1
    open_groups: int = 1
    always: int = 0

    @property
    def copies(self) -> int:
        """Experts that a token visits."""
        return self.chosen + self.always


def _ways(size: Number, chosen: int) -> Number:
    """Ways to choose from a set, as a binomial coefficient."""
    ways: Number = 1.0
    for drawn in range(chosen):
        ways = ways * maximum(size - drawn, 0) / (drawn + 1)
    return ways


def _ways_hitting(full: int, size: Number, part: int, part_size: Number, chosen: int) -> Number:
    """Ways to choose so that each of ``full`` groups of one size and ``part`` of another has at least one."""
    ways: Number = 0.0
    for a in range(full + 1):
        for b in range(part + 1):
            left = (full - a) * size + (part - b) * part_size
            ways = ways + (-1) ** (a + b) * comb(full, a) * comb(part, b) * _ways(left, chosen)
    return ways


def touched_groups(choice: Choice) -> dict[int, float]:
    """Return the chance of each number of groups that the experts of a token are in.

    A gate without limit opens groups in the order of its scores; the first ones up to the limit stay open.
    """
    size = choice.experts // choice.groups
    limit = min(choice.open_groups, choice.chosen)
    chances: dict[int, float] = {}
    for count in range(1, limit):
        hitting = comb(choice.groups, count) * _ways_hitting(count, size, 0, 0, choice.chosen)
        chances[count] = float(hitting / comb(choice.experts, choice.chosen))
    return {**chances, limit: 1 - sum(chances.values())}


def _missed(choice: Choice, in_unit: int, held: Number) -> Number:
    """Chance that a token reaches none of ``held`` experts in each of ``in_unit`` groups."""
    size = choice.experts // choice.groups
    missed: Number = 0.0
    for count, chance in touched_groups(choice).items():
        if chance <= 0:
            continue
        all_ways = comb(choice.groups, count) * _ways_hitting(count, size, 0, 0, choice.chosen)
        for here in range(min(in_unit, count) + 1):
            picks = comb(in_unit, here) * comb(choice.groups - in_unit, count - here)
            ways = picks * _ways_hitting(count - here, size, here, size - held, choice.chosen)
            missed = missed + chance * ways / all_ways
    return missed


@formula("distinct_units")
def expected_units(choice: Choice, units: Number) -> Number:
    """Nodes, or chips, that a token reaches on average.

    Formula: u · (1 − Σ_t P(t) · P(none of the unit's experts | t)), t groups that the token's experts are in
    Source: inclusion and exclusion over groups; DeepSeek-V3 report, 2.1.2 (node-limited routing)
    Args:
        choice: how a token chooses.
        units: u, nodes or chips that share the experts evenly.
    Assumes: every expert is as likely as any other; groups lie on as few units as they fill
    """
    return _cached_units(choice, units) if isinstance(units, int) else _units(choice, units)


@lru_cache(maxsize=1024)
def _cached_units(choice: Choice, units: int) -> Number:
    return _units(choice, units)


def _units(choice: Choice, units: Number) -> Number:
    in_unit = max(choice.groups // units, 1) if isinstance(units, int) else 1
    held = minimum(choice.experts / units / in_unit, choice.experts // choice.groups)
    whole = held // 1
    part = held - whole
    # A part of an expert: one of its copies, which as large a part of its tokens visit.
    missed = (1 - part) * _missed(choice, in_unit, whole) + part * _missed(choice, in_unit, whole + 1)
    return units * (1 - missed * (1 - 1 / units) ** choice.always)


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of a token that are received over each kind of link, on average."""

    network: Number
    inside: Number


@formula("expert_copies")
def copies_per_token(choice: Choice, nodes: Number, chips_per_node: Number, two_hop: bool) -> Copies:
    """Copies of a token received over the network and inside nodes.

    Formula: two hops: network D_nodes · (1 − 1/n), inside D_chips · (1 − 1/g); direct: network k · (1 − 1/n),
        inside k · (1/n − 1/(n·g))
    Source: DeepSeek-V3 report, 3.2.2 (two hops, deduplicated per node) and 3.4.2 (direct point-to-point)
    Args:
        choice: how a token chooses.
        nodes: n.
        chips_per_node: g.
        two_hop: one copy per node, passed on inside it.
    Assumes: experts on the token's own chip or node are as likely as others
    """
    if not two_hop:
        return Copies(
            choice.copies * (1 - 1 / nodes), choice.copies * (1 / nodes - 1 / (nodes * chips_per_node))
        )
    reached_nodes = expected_units(choice, nodes)
    reached_chips = expected_units(choice, nodes * chips_per_node)
    return Copies(reached_nodes * (1 - 1 / nodes), reached_chips * (1 - 1 / chips_per_node))


def token_bytes(dtype_bytes: Number) -> Number:
    """Bytes of one number of a token on the way, with its part of the scales where it has 8 bits."""
    return dtype_bytes + where(dtype_bytes == 1, SCALE_BYTES / SCALE_TILE, 0.0)


@formula("communication_sms")
def bandwidth_share(sms: Number) -> Number:
    """Share of the links' bandwidth that some streaming multiprocessors can fill.

    Formula: min(1, SMs / 20)
    Source: DeepSeek-V3 report, 3.2.2: 20 SMs in 10 channels suffice for InfiniBand and NVLink
    Args:
        sms: SMs that move tokens.
    Assumes: below 20 the bandwidth is in proportion
    """
    return minimum(1.0, sms / SATURATING_SMS)


@formula("compute_share")
def compute_share(sms: Number, all_sms: Number) -> Number:
    """Share of the arithmetic that is left beside communication.

    Formula: max(SMs of the chip − communication SMs, 1) / SMs of the chip
    Source: DeepSeek-V3 report, 3.5.1: 20 of 132 SMs
    """
    return maximum(all_sms - sms, 1) / all_sms


@dataclass(frozen=True, slots=True)
class Message:
    """One dispatch or combine as a chip sees it."""

    bytes: Number
    transfer_s: Number
    hops_s: Number


@dataclass(frozen=True, slots=True)
class ExpertRates:
    """How the tokens of a chip travel: copies, bytes of one number each way, and how full the links are.

    ``imbalance``: what the busiest chip receives over the mean.
    """

    copies: Copies
    dispatch_bytes: Number
    combine_bytes: Number
    share: Number = 1.0
    imbalance: Number = 1.0

    def message(self, one_copy_bytes: Number, levels: Sequence[Level]) -> Message:
        """Return the cost of sending one copy of every token of a chip to all its experts, or back."""
        network = one_copy_bytes * self.copies.network * self.imbalance
        inside = one_copy_bytes * self.copies.inside * self.imbalance
        hops: Number = 0.0
        for kind in {level.kind for level in levels}:
            hops = hops + max(level.latency for level in levels if level.kind == kind)
        return Message(network + inside, expert_transfer_s(network, inside, levels, self.share), hops)


@formula("expert_transfer")
def expert_transfer_s(
    network_bytes: Number, inside_bytes: Number, levels: Sequence[Level], share: Number = 1.0
) -> Number:
    """Time of a dispatch or combine on the links.

    Formula: max(network bytes / network bandwidth, inside bytes / NVLink bandwidth) / share
    Source: DeepSeek-V3 report, 3.2.2: both kinds of link work at once
    Args:
        network_bytes: received over the network by one chip.
        inside_bytes: received over NVLink by one chip.
        levels: physical axes that hold the experts.
        share: of the bandwidth that communication SMs fill.
    Assumes: on a torus, all copies pass its links: bytes over the bandwidth of all axes together
    """
    slowest: Number = 0.0
    torus: Number = 0.0
    for level in levels:
        if level.kind in ("ring", "line"):
            torus = torus + level.bandwidth
        else:
            part = network_bytes if level.kind == "network" else inside_bytes
            slowest = maximum(slowest, part / level.bandwidth)
    if not isinstance(torus, float):
        slowest = maximum(slowest, (network_bytes + inside_bytes) / torus)
    return slowest / share


@formula("ep_limit")
def ep_limit_s(
    tokens: Number,
    experts: Number,
    hidden: Number,
    dispatch_bytes: Number,
    combine_bytes: Number,
    bandwidth: Number,
) -> Number:
    """Shortest time of a dispatch and combine where every copy crosses the network.

    Formula: (dispatch bytes + combine bytes) · tokens · experts · hidden / bandwidth
    Source: Insights into DeepSeek-V3 (arXiv 2505.09343), 2.3.2: 120.96 µs for (1 + 2) · 32 · 9 · 7,000 at 50 GB/s
    Args:
        tokens: of one chip and microbatch.
        experts: that each token visits.
        hidden: numbers of a token.
        dispatch_bytes: bytes of a number sent to experts.
        combine_bytes: bytes of a number sent back.
        bandwidth: network bandwidth of a chip, bytes/s.
    """
    return (dispatch_bytes + combine_bytes) * tokens * experts * hidden / bandwidth


@formula("ep_limit_tpot")
def ep_limit_tpot_s(layers: Number, pair_s: Number) -> Number:
    """Shortest time per token when all else hides behind dispatch and combine.

    Formula: n_layers · 2 microbatches · time of a dispatch and combine
    Source: Insights into DeepSeek-V3 (arXiv 2505.09343), 2.3.2: 61 · 2 · 120.96 µs = 14.76 ms
    """
    return 2 * layers * pair_s
