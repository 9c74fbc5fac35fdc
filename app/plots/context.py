"""Latency per token against context length, for the ways to shard attention, and where the KV cache fills the chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from PySide6.QtCore import QSizeF

from app.i18n import tr
from app.plots.facts import seconds
from app.plots.header import head_with_verdict
from app.plots.scene import Ink, Rect, Run, Scene, SceneBuilder
from app.plots.text import TINY, text_at, width_of
from app.plots.xy import MARKERS, PlotLine, plot_of, point_targets
from app.plots.xy_axis import PlotArea, axis_over, compact
from app.theme import Role
from model_core.search.arrays import Rows
from model_core.search.axes import make_axis
from model_core.search.space import SearchCancelledError, make_space
from model_core.search.sweep import sweep
from model_core.spec import AttentionSharding, Design, Phase
from model_core.spec.base import replace_at

INPUT: Final = "workload.input_length"
CONTEXTS: Final = tuple(round(2.0 ** (k / 4)) for k in range(28, 4 * 20 + 1))
PER_MARK: Final = 4
BEYOND: Final = 2.5
"""How far past the longest context that fits, or the present one, a line goes on."""
ROLES: Final = (Role.AXIS_X, Role.KV, Role.AXIS_Z, Role.AXIS_Y)


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """One way to lay attention out: seconds per token over contexts, and the longest context that fits."""

    label: str
    is_own: bool
    contexts: Rows
    step_s: Rows
    longest: float | None


@dataclass(frozen=True, slots=True, eq=False)
class ContextData:
    """What is drawn."""

    design: Design
    variants: tuple[Variant, ...]


def least_height(_width: int) -> int:
    """Return the height that the chart needs."""
    return 380


def compute_context(design: Design, cancelled: Callable[[], bool]) -> ContextData | None:
    """Sweep the context of every variant; ``None`` if cancelled."""
    found = []
    for label, changed in _variants(design):
        try:
            variant = _swept(label, changed, cancelled)
        except SearchCancelledError:
            return None
        if variant is not None:
            found.append(variant)
    return ContextData(design, tuple(found))


def _variants(design: Design) -> list[tuple[str, Design]]:
    """Return multihead over heads, and the model's own attention over heads and over batch."""
    workload = design.workload
    decode = workload.replace(
        phase=Phase.DECODE, output_length=max(workload.output_length, 1), cached_length=0
    )
    base = replace_at(design, "model.max_context", 0).replace(workload=decode)
    model = design.model
    multihead = model.mla is None and model.n_kv_heads == model.n_heads
    found: list[tuple[str, Design]] = []
    if model.mla is None and not multihead:
        full = base.replace(model=base.model.replace(n_kv_heads=model.n_heads))
        found.append((tr("multihead, over heads"), _sharded(full, AttentionSharding.HEADS)))
    kind = (
        tr("latent attention")
        if model.mla is not None
        else tr("multihead")
        if multihead
        else tr("multiquery")
        if model.n_kv_heads == 1
        else tr("grouped-query")
    )
    found.append((tr("{kind}, over heads", kind=kind), _sharded(base, AttentionSharding.HEADS)))
    found.append((tr("{kind}, over batch", kind=kind), _sharded(base, AttentionSharding.BATCH)))
    return found


def _sharded(design: Design, sharding: AttentionSharding) -> Design:
    return design.replace(plan=design.plan.replace(attention_sharding=sharding))


def _swept(label: str, design: Design, cancelled: Callable[[], bool]) -> Variant | None:
    out = design.workload.output_length
    axis, _ = make_axis(design, INPUT, sorted({max(c - out, 1) for c in CONTEXTS}))
    space, _ = make_space(design, [] if axis is None else [axis])
    result, _ = (None, ()) if axis is None or space is None else sweep(space, cancelled)
    if result is None or not result.columns["valid"].any():
        return None
    columns = result.columns
    longest = columns["max_context"][columns["fits"]]
    full = float(longest.min()) if len(longest) else None
    return Variant(label, False, columns["context"], columns["step_s"], full)


# ---- drawing -------------------------------------------------------------------------------


def draw_context(data: ContextData, size: QSizeF) -> Scene:
    """Draw the variants; beyond the longest context that fits a line is dashed."""
    width, height = max(size.width(), 420.0), max(size.height(), 300.0)
    builder = SceneBuilder()
    title = tr("Context: latency per token by attention layout")
    said = _verdict(data)
    top = head_with_verdict(builder, title, data.design.model.name, said, width)
    place = Rect(0, top, width, height - top)
    if data.variants:
        _draw(builder, data, place)
    return builder.scene(width, height, title, f"{title}. {said}")


def _draw(builder: SceneBuilder, data: ContextData, place: Rect) -> None:
    now = float(data.design.workload.max_context)
    kept = {v.label: v.contexts <= BEYOND * max(v.longest or 0.0, now) for v in data.variants}
    xs = [float(c) for v in data.variants for c in v.contexts[kept[v.label]]]
    ys = [float(s) for v in data.variants for s in v.step_s[kept[v.label]] if np.isfinite(s)]
    batch = tr("batch {batch}", batch=f"{data.design.workload.batch:,}")
    x = axis_over([*xs, now], tr("context length (tokens)") + " →", compact, powers_of_two=True)
    y = axis_over(ys, "↑ " + tr("latency per token") + f", {batch}", seconds)
    lines = [line for n, v in enumerate(data.variants) for line in _lines(v, kept[v.label], n)]
    area = plot_of(builder, place, x, y, lines, _Marks(data, now).draw)
    for line in lines:
        point_targets(builder, area, line, _told)


@dataclass(frozen=True, slots=True)
class _Marks:
    """What is marked: the present context, and where the memory is full."""

    data: ContextData
    now: float

    def draw(self, builder: SceneBuilder, area: PlotArea) -> list[Rect]:
        """Draw the marks; return the places of the words."""
        taken = [_now_line(builder, area, self.now)]
        for number, variant in enumerate(self.data.variants):
            taken += _limit(builder, area, variant, number, taken)
        return taken


def _lines(variant: Variant, kept: Rows, number: int) -> list[PlotLine]:
    """Return the part that fits, with its name, and the part beyond, dashed and without marks."""
    points = [
        (float(c), float(s))
        for c, s in zip(variant.contexts[kept], variant.step_s[kept], strict=True)
        if np.isfinite(s)
    ]
    limit = variant.longest or 0.0
    inside = [p for p in points if p[0] <= limit]
    beyond = points[max(len(inside) - 1, 0) :]
    role, marker = ROLES[number % len(ROLES)], MARKERS[number % len(MARKERS)]
    marked = [*inside[::PER_MARK], *inside[-1:]] if inside else []
    found = []
    if marked:
        found.append(PlotLine(variant.label, tuple(dict.fromkeys(marked)), role, marker))
    label = "" if marked else tr("{variant}: does not fit", variant=variant.label)
    if len(beyond) > 1:
        thin = (*beyond[::PER_MARK], beyond[-1])
        found.append(PlotLine(label, thin, role, MARKERS[0].NONE, dashed=True, width=1.3))
    return found


def _limit(
    builder: SceneBuilder, area: PlotArea, variant: Variant, number: int, taken: Sequence[Rect]
) -> list[Rect]:
    """Mark where the memory of a chip is full; marks at one place share their words."""
    if variant.longest is None or not 0 < area.x.share(variant.longest) < 1:
        return []
    at = float(np.interp(variant.longest, variant.contexts, variant.step_s))
    if not np.isfinite(at):
        return []
    x, y = area.at(variant.longest, at)
    cross = Rect(x - 7, y - 7, 14, 14)
    role = ROLES[number % len(ROLES)]
    for end in (6, -6):
        builder.line((x - 6, y - end), (x + 6, y + end), ink=Ink(role), width=2.4)
    text = tr("memory full at {context}", context=compact(round(variant.longest)))
    builder.target(cross, "", variant.label, text)
    if any(cross.overlaps(other, -12) for other in taken):
        return [cross]
    w = width_of(text, TINY)
    place = Rect((x - 14 - w if x - 14 - w > area.rect.x else x + 10), y - 22, w + 4, 15)
    builder.box(place, Ink(Role.PANEL, 0.9), radius=3)
    builder.items.append(text_at(place.x + 2, place.y + 11, (Run(text, TINY, False, Role.TEXT_MUTED),)))
    return [place, cross]


def _now_line(builder: SceneBuilder, area: PlotArea, now: float) -> Rect:
    x, _ = area.at(now, area.y.low)
    rect = area.rect
    builder.line((x, rect.y), (x, rect.bottom), ink=Ink(Role.ACCENT), width=1.8)
    text = tr("now: {tokens}", tokens=f"{now:,.0f}")
    w = width_of(text, TINY, True)
    place = Rect(x + 4 if x + 8 + w < rect.right else x - 8 - w, rect.bottom - 18, w + 4, 15)
    builder.box(place, Ink(Role.PANEL, 0.9), radius=3)
    builder.items.append(text_at(place.x + 2, place.y + 11.5, (Run(text, TINY, True, Role.ACCENT),)))
    return place


def _told(point: tuple[float, float]) -> str:
    return f"{tr('context {tokens}', tokens=f'{point[0]:,.0f}')}: {seconds(point[1])}"


def _verdict(data: ContextData) -> str:
    parts = []
    for variant in data.variants:
        if variant.longest is None:
            parts.append(tr("{variant}: no context fits", variant=variant.label))
        elif variant.longest >= CONTEXTS[-1] * 0.99:
            parts.append(
                tr("{variant}: beyond {context}", variant=variant.label, context=compact(CONTEXTS[-1]))
            )
        else:
            longest = compact(round(variant.longest))
            parts.append(tr("{variant}: fits to about {context}", variant=variant.label, context=longest))
    return " · ".join(parts) or tr("No variant of the attention has a time for this design.")
