"""Finds what a reader would call a mess: texts on texts, arrows through texts or cards, things outside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from app.plots.scene import Box, Line, Rect, Scene, Target, Text
from app.theme import Role

SLACK = 1.0
THIN = 5.0
STROKE = 0.5


def faults(scene: Scene) -> list[str]:
    """Describe every fault of a scene."""
    return [
        *_texts_on_texts(scene),
        *_lines_through_texts(scene),
        *_bars_through_texts(scene),
        *_cards(scene),
        *_outside(scene),
    ]


def _texts_on_texts(scene: Scene) -> Iterator[str]:
    texts = sorted((text for text in scene.texts() if text.plain.strip()), key=lambda text: text.rect.y)
    for index, text in enumerate(texts):
        for other in texts[index + 1 :]:
            if other.rect.y >= text.rect.bottom:
                break
            if text.rect.overlaps(other.rect, SLACK):
                yield f"text {text.plain!r} on {other.plain!r}"


def _segments(line: Line) -> Iterator[Rect]:
    for (x1, y1), (x2, y2) in pairwise(line.points):
        yield Rect(
            min(x1, x2) - STROKE, min(y1, y2) - STROKE, abs(x2 - x1) + 2 * STROKE, abs(y2 - y1) + 2 * STROKE
        )


def _drawn_lines(scene: Scene) -> Iterator[Line]:
    """Lines that are part of the picture; the grid lies behind the texts on purpose."""
    for item in scene.items:
        if isinstance(item, Line) and item.ink.role is not Role.GRID:
            yield item


def _lines_through_texts(scene: Scene) -> Iterator[str]:
    texts = [text for text in scene.texts() if text.plain.strip()]
    for line in _drawn_lines(scene):
        for segment in _segments(line):
            for text in texts:
                if segment.overlaps(text.rect, 0.2):
                    yield f"line through {text.plain!r}"


def _bars_through_texts(scene: Scene) -> Iterator[str]:
    bars = [item.rect for item in scene.items if isinstance(item, Box) and item.rect.h <= THIN]
    for text in scene.texts():
        for bar in bars:
            if bar.overlaps(text.rect, 1.6):
                yield f"bar through {text.plain!r}"


def _cards(scene: Scene) -> Iterator[str]:
    steps = [target for target in scene.targets if target.key.startswith("op/") and target.rect.h > 40]
    for index, step in enumerate(steps):
        for other in steps[index + 1 :]:
            if step.rect.overlaps(other.rect):
                yield f"card {step.title!r} on {other.title!r}"
        yield from _texts_leaving(scene, step)
    for line in _drawn_lines(scene):
        if not line.arrow:
            continue
        for segment in _segments(line):
            for step in steps:
                if segment.overlaps(step.rect.inset(1.5, 1.5)):
                    yield f"arrow through card {step.title!r}"


def _texts_leaving(scene: Scene, step: Target) -> Iterator[str]:
    for text in scene.texts():
        if text.rect.overlaps(step.rect, 2.0) and not _inside(text.rect, step.rect):
            yield f"text {text.plain!r} leaves card {step.title!r}"


def _inside(rect: Rect, outer: Rect) -> bool:
    return (
        rect.x >= outer.x - SLACK
        and rect.right <= outer.right + SLACK
        and rect.y >= outer.y - SLACK
        and rect.bottom <= outer.bottom + SLACK
    )


def _outside(scene: Scene) -> Iterator[str]:
    page = Rect(0, 0, scene.width, scene.height)
    for item in scene.items:
        if isinstance(item, Text) and not _inside(item.rect, page):
            yield f"text {item.plain!r} outside the drawing"
        elif isinstance(item, Box) and not _inside(item.rect, page):
            yield "box outside the drawing"
        elif isinstance(item, Line) and not all(_inside(segment, page) for segment in _segments(item)):
            yield "line outside the drawing"
