"""What single changes would do, as rows of words; made in a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.i18n import tr
from app.plots.frontier.words import field_name, shown_value
from model_core.results import Evaluation
from model_core.search.effects import Effect, effects
from model_core.spec import Design, Phase
from model_core.units import format_number

SAME: Final = 0.0005
SHOWN: Final = ("latency", "memory_per_chip_bytes", "cost_chip_s_per_token")


@dataclass(frozen=True, slots=True)
class Part:
    """The change of one number; ``better`` is none where nothing changes."""

    text: str
    better: bool | None


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One change: what it is, what it does, and the design that it makes. ``problem``: why it is no good."""

    title: str
    change: str
    parts: tuple[Part, ...]
    design: Design
    problem: str
    gain: float

    @property
    def spoken(self) -> str:
        """The row as one sentence."""
        return ", ".join(filter(None, (self.title, self.problem, *(part.text for part in self.parts))))


def effect_rows(evaluation: Evaluation, cancelled: Callable[[], bool]) -> tuple[EffectRow, ...] | None:
    """Evaluate the single changes of a design; the one that saves most time comes first, bad ones last."""
    if cancelled():
        return None
    found = [_row(effect, evaluation) for effect in effects(evaluation.design)]
    return tuple(sorted(found, key=lambda row: (bool(row.problem), row.gain)))


def _row(effect: Effect, now: Evaluation) -> EffectRow:
    latency = "step_s" if now.design.workload.phase is Phase.DECODE else "latency_s"
    keys = ((latency, tr("latency")), (SHOWN[1], tr("memory")), (SHOWN[2], tr("cost")))
    shares = {key: _share(effect, now, key) for key, _ in keys}
    parts = [part for part in (_part(name, shares[key]) for key, name in keys) if part is not None]
    before, after = shown_value(effect.path, effect.before), shown_value(effect.path, effect.after)
    name = field_name(effect.path)
    return EffectRow(
        f"{name}: {after}",
        f"{name}: {before} → {after}",
        tuple(parts) or (Part(tr("no change"), None),),
        effect.design,
        "" if effect.valid and effect.fits else tr("does not fit") if effect.valid else tr("not possible"),
        shares[latency] or 0.0,
    )


def _share(effect: Effect, now: Evaluation, key: str) -> float | None:
    before = now.value(key)
    return None if before in (None, 0.0) or key not in effect.deltas else effect.deltas[key] / (before or 1.0)


def _part(name: str, share: float | None) -> Part | None:
    if share is None:
        return None
    if abs(share) < SAME:
        return None
    mark, amount = ("▲" if share > 0 else "▼"), f"{format_number(abs(share) * 100, 2)}%"
    if share >= 2:
        amount = f"×{format_number(1 + share, 2)}"
    return Part(f"{name} {mark}{amount}", share < 0)
