"""Random schedules and a slow scalar simulation of them, for the tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from model_core.schedule import KINDS, Durations, Schedule, Simulation, nearest_sizes, schedule, simulate

OPERATION = re.compile(r"(F|B|I|W)(\d+)\.(\d+)|FB(\d+)\.(\d+)/(\d+)\.(\d+)")


def made(kind: str, pp: int, microbatches: int, virtual_stages: int = 2) -> Schedule:
    result, found = schedule(kind, pp, microbatches, virtual_stages)
    assert result is not None, found
    return result


def ran(result: Schedule, durations: Durations | None = None) -> Simulation:
    simulation, found = simulate(result, durations or Durations())
    assert simulation is not None, found
    return simulation


@st.composite
def schedules(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> Schedule:
    """Draw a schedule of a random kind and of the valid size nearest to a random one."""
    kind = draw(st.sampled_from(kinds))
    chunks = draw(st.integers(1, 3))
    size = (draw(st.integers(1, 7)), draw(st.integers(1, 24)))
    if not KINDS[kind].fits(*size, chunks):
        size = draw(st.sampled_from(nearest_sizes(kind, *size, chunks)))
    return made(kind, *size, chunks)


TIMES = st.one_of(
    st.integers(0, 12).map(lambda n: n / 4),
    st.floats(0.01, 9.0),
)


@st.composite
def timed_schedules(draw: st.DrawFn) -> tuple[Schedule, Durations]:
    """Draw a schedule and durations: alike or by stage, with and without messages and overlap."""
    result = draw(schedules())
    stages = result.layout.n_stages

    def times(length: int) -> float | list[float]:
        return draw(st.one_of(TIMES, st.lists(TIMES, min_size=length, max_size=length)))

    pair = times(result.pp) if draw(st.booleans()) else None
    p2p = times(stages - 1) if draw(st.booleans()) else 0.0
    return result, Durations(times(stages), times(stages), times(stages), pair, p2p)


@dataclass(frozen=True)
class Work:
    """One operation, read from the notation: parts are (kind, direction, stage, microbatch)."""

    rank: int
    parts: tuple[tuple[str, int, int, int], ...]
    kind: str


def works(result: Schedule, text: str) -> list[list[Work]]:
    """Read the notation; says itself where stages sit."""
    ranks = [line.split() for line in text.splitlines()]
    return [[_work(result, rank, word) for word in words] for rank, words in enumerate(ranks)]


def place(kind: str, pp: int, rank: int, lane: int) -> tuple[int, int]:
    """Return direction and stage of a lane."""
    if kind in {"dualpipe", "chimera"}:
        return lane, (rank if lane == 0 else pp - 1 - rank)
    if kind in {"dualpipev", "zb-v"}:
        return 0, (rank if lane == 0 else 2 * pp - 1 - rank)
    return 0, lane * pp + rank


def _work(result: Schedule, rank: int, word: str) -> Work:
    match = OPERATION.fullmatch(word)
    assert match is not None, word
    if match[1]:
        where = place(result.kind, result.pp, rank, int(match[2]))
        return Work(rank, ((match[1], *where, int(match[3])),), match[1])
    forward = ("F", *place(result.kind, result.pp, rank, int(match[4])), int(match[5]))
    backward = ("B", *place(result.kind, result.pp, rank, int(match[6])), int(match[7]))
    return Work(rank, (forward, backward), "FB")


def scalar_simulation(
    result: Schedule, ranks: list[list[Work]], durations: Durations
) -> list[list[tuple[float, float]]]:
    """Return start and end of every operation, found one at a time with dictionaries."""
    d, last = durations.on(result.layout), result.layout.n_stages - 1
    done: dict[tuple[str, int, int, int], tuple[float, int]] = {}
    times: list[list[tuple[float, float]]] = [[] for _ in ranks]
    clock, progress = [0.0] * len(ranks), True

    def arrival(part: tuple[str, int, int, int], rank: int) -> float | None:
        kind, direction, stage, microbatch = part
        if kind == "W" or (kind == "F" and stage == 0):
            return 0.0
        source = stage - 1 if kind == "F" else stage + 1
        if kind != "F" and stage == last:
            return 0.0 if ("F", direction, stage, microbatch) in done else None
        found = done.get(("F" if kind == "F" else "G", direction, source, microbatch))
        if found is None:
            return None
        end, other = found
        return end + (float(d.p2p_s[min(stage, source)]) if other != rank else 0.0)

    def length(work: Work) -> float:
        if work.kind == "FB" and d.pair_s is not None:
            return float(d.pair_s[work.rank])
        by_kind = {"F": d.forward_s, "I": d.input_s, "W": d.weight_s, "B": d.input_s + d.weight_s}
        return sum(float(by_kind[kind][stage]) for kind, _, stage, _ in work.parts)

    while progress:
        progress = False
        for rank, queue in enumerate(ranks):
            while len(times[rank]) < len(queue):
                work = queue[len(times[rank])]
                arrivals = [arrival(part, rank) for part in work.parts]
                if any(a is None for a in arrivals):
                    break
                start = max([clock[rank], *(a for a in arrivals if a is not None)])
                clock[rank] = start + length(work)
                times[rank].append((start, clock[rank]))
                for kind, *key in work.parts:
                    name = {"F": "F", "W": "W"}.get(kind, "G")
                    done[name, key[0], key[1], key[2]] = (clock[rank], rank)
                progress = True
    assert all(len(t) == len(q) for t, q in zip(times, ranks, strict=True)), "deadlock"
    return times


def swapped(result: Schedule, a: int, b: int) -> Schedule:
    """Return a schedule with two rows exchanged."""
    order = np.arange(len(result))
    order[[a, b]] = order[[b, a]]
    columns = {
        name: getattr(result, name)[order] for name in ("op", "lane", "microbatch", "lane2", "microbatch2")
    }
    return replace(result, **columns)
