"""The schedules by name, the sizes that each can have, and the one function that makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from model_core.diagnostics import Diagnostic
from model_core.schedule.kinds import (
    chimera,
    dualpipe,
    dualpipev,
    gpipe,
    interleaved,
    one_f_one_b,
    zb_2p,
    zb_h1,
    zb_v,
)
from model_core.schedule.operations import MAX_LANES, Schedule

MAX_OPERATIONS: Final = 10_000_000
"""Forwards and backwards of a schedule; more would fill the memory of a workstation."""
MAX_RANKS: Final = 16_384


@dataclass(frozen=True, slots=True)
class ScheduleKind:
    """A schedule: its names, what sizes it can have and how it is made.

    ``fits`` and ``build`` take ranks, microbatches and chunks per rank (used by interleaved only).
    """

    name: str
    title: str
    source: str
    rule: str
    fits: Callable[[int, int, int], bool]
    build: Callable[[int, int, int], Schedule]
    n_chunks: int = 1
    n_directions: int = 1
    overlaps: bool = False


_ANY: Final = "at least one rank and one microbatch"


def _anything(_pp: int, _microbatches: int, _virtual_stages: int) -> bool:
    return True


def _dualpipe_fits(pp: int, microbatches: int, _virtual_stages: int) -> bool:
    return pp % 2 == 0 and microbatches % 2 == 0 and microbatches >= 2 * pp


def _v_fits(pp: int, microbatches: int, _virtual_stages: int) -> bool:
    return microbatches >= 2 * pp


def _zb_v_fits(pp: int, microbatches: int, _virtual_stages: int) -> bool:
    return microbatches >= 2 * pp - 1


def _chimera_fits(pp: int, microbatches: int, _virtual_stages: int) -> bool:
    return pp % 2 == 0 and microbatches % pp == 0


def _interleaved_fits(pp: int, microbatches: int, virtual_stages: int) -> bool:
    return 1 <= virtual_stages <= MAX_LANES and interleaved.group_size(pp, microbatches) > 0


KINDS: Final[dict[str, ScheduleKind]] = {
    kind.name: kind
    for kind in (
        ScheduleKind("gpipe", "GPipe", "Huang et al. 2019", _ANY, _anything, gpipe.build),
        ScheduleKind("1f1b", "1F1B", "Narayanan et al. 2021", _ANY, _anything, one_f_one_b.build),
        ScheduleKind(
            "interleaved",
            "Interleaved 1F1B",
            "Narayanan et al. 2021, 2.2",
            "the microbatches divide evenly into rounds of at least as many as there are ranks",
            _interleaved_fits,
            interleaved.build,
        ),
        ScheduleKind("zb-h1", "ZB-H1 (ZB1P)", "Qi et al. 2023, 2.1", _ANY, _anything, zb_h1.build),
        ScheduleKind("zb-2p", "ZB-2P", "Qi et al. 2023, 2.2 (ZB-H2)", _ANY, _anything, zb_2p.build),
        ScheduleKind(
            "zb-v",
            "ZB-V",
            "Qi et al. 2024 (V-ZB)",
            "at least one microbatch less than twice the ranks",
            _zb_v_fits,
            zb_v.build,
            n_chunks=2,
        ),
        ScheduleKind(
            "chimera",
            "Chimera",
            "Li and Hoefler 2021",
            "an even number of ranks, and a multiple of that of microbatches",
            _chimera_fits,
            chimera.build,
            n_directions=2,
        ),
        ScheduleKind(
            "dualpipe",
            "DualPipe",
            "DSV3 3.2.1, Figure 5",
            "an even number of ranks, and an even number of microbatches of at least twice that",
            _dualpipe_fits,
            dualpipe.build,
            n_directions=2,
            overlaps=True,
        ),
        ScheduleKind(
            "dualpipev",
            "DualPipeV",
            "DualPipe repository, 2025",
            "at least twice as many microbatches as ranks",
            _v_fits,
            dualpipev.build,
            n_chunks=2,
            overlaps=True,
        ),
    )
}

Outcome = tuple[Schedule | None, tuple[Diagnostic, ...]]


def schedule(kind: str, pp: int, microbatches: int, virtual_stages: int = 2) -> Outcome:
    """Make a schedule.

    Args:
        kind: a name of `KINDS`.
        pp: ranks.
        microbatches: over all directions.
        virtual_stages: chunks on each rank; for interleaved 1F1B only.

    Returns:
        The schedule; or why there is none, with the nearest sizes that are valid.
    """
    problem = _problem(kind, pp, microbatches, virtual_stages)
    if problem is not None:
        return None, (problem,)
    return KINDS[kind].build(pp, microbatches, virtual_stages), ()


def _problem(kind: str, pp: int, microbatches: int, virtual_stages: int) -> Diagnostic | None:
    if kind not in KINDS:
        names = get_close_matches(kind, KINDS, cutoff=0.3) or list(KINDS)
        return Diagnostic("schedule_unknown", "kind", {"kind": kind, "nearest": ", ".join(names)})
    found, interleaves = KINDS[kind], kind == "interleaved"
    if interleaves and not 1 <= virtual_stages <= MAX_LANES:
        return Diagnostic(
            "schedule_chunks", "virtual_stages", {"count": virtual_stages, "limit": f"{MAX_LANES:,}"}
        )
    chunks = virtual_stages if interleaves else found.n_chunks
    operations = 2 * pp * microbatches * chunks
    values: dict[str, object]
    if pp > MAX_RANKS or (pp > 0 and operations > MAX_OPERATIONS):
        values = {
            "count": f"{operations:,}",
            "pp": f"{pp:,}",
            "limit": f"{MAX_OPERATIONS:,}",
            "ranks": f"{MAX_RANKS:,}",
        }
        return Diagnostic("schedule_too_large", "microbatches", values)
    if min(pp, microbatches) >= 1 and found.fits(pp, microbatches, virtual_stages):
        return None
    near = nearest_sizes(kind, pp, microbatches, virtual_stages)
    values = {
        "kind": found.title,
        "pp": pp,
        "microbatches": microbatches,
        "rule": found.rule,
        "nearest": "; ".join(f"pp={a} microbatches={b}" for a, b in near),
    }
    return Diagnostic("schedule_size", "microbatches", values)


def nearest_sizes(
    kind: str, pp: int, microbatches: int, virtual_stages: int = 2
) -> tuple[tuple[int, int], ...]:
    """Return the valid sizes nearest to one that is not: (ranks, microbatches), up to four.

    With the same ranks if they can be had, else with one fewer and one more.
    """
    fits = KINDS[kind].fits
    found: list[tuple[int, int]] = []
    for ranks in (pp, pp - 1, pp + 1) if pp > 0 else (1, 2):
        for candidates in (_downwards(microbatches, ranks), _upwards(microbatches, ranks)):
            fitting = (m for m in candidates if ranks > 0 and fits(ranks, m, virtual_stages))
            first = next(fitting, None)
            if first is not None and (ranks, first) not in found:
                found.append((ranks, first))
        if found and ranks == pp:
            break
    return tuple(found)


def _downwards(microbatches: int, ranks: int) -> range:
    return range(microbatches, max(0, microbatches - 2 * ranks - 2), -1)


def _upwards(microbatches: int, ranks: int) -> range:
    first = max(1, microbatches)
    return range(first, first + 2 * ranks + 2)
