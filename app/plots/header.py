"""The head of a drawing: title and subtitle, and rows of small marks with words that wrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.plots.scene import Rect, Run, SceneBuilder
from app.plots.text import BODY, SMALL, TITLE, runs_width, text_at, wrapped
from app.theme import Role

GAP = 16.0
LEGEND_ROW = 18.0


@dataclass(frozen=True, slots=True)
class Mark:
    """One entry of a legend: a mark drawn into a rectangle, and its words."""

    draw: Callable[[SceneBuilder, Rect], None]
    words: tuple[Run, ...]
    width: float = 22.0
    height: float = 8.0

    @property
    def space(self) -> float:
        """Width of mark and words."""
        return self.width + 5 + runs_width(self.words)


def title_runs(text: str) -> tuple[Run, ...]:
    """Style a title."""
    return (Run(text, TITLE, True),)


def muted(text: str, size: int = BODY) -> tuple[Run, ...]:
    """Style a remark."""
    return (Run(text, size, False, Role.TEXT_MUTED),)


def words(text: str) -> tuple[Run, ...]:
    """Style the words of a legend."""
    return (Run(text, SMALL, False, Role.TEXT_MUTED),)


def legend_width(marks: Sequence[Mark]) -> float:
    """Return the width of a legend in one row."""
    return sum(mark.space + GAP for mark in marks) - GAP


def legend_rows(marks: Sequence[Mark], width: float) -> list[list[Mark]]:
    """Break a legend into rows that fit a width."""
    rows: list[list[Mark]] = [[]]
    used = 0.0
    for mark in marks:
        if rows[-1] and used + mark.space > width:
            rows.append([])
            used = 0.0
        rows[-1].append(mark)
        used += mark.space + GAP
    return rows


def legend(
    builder: SceneBuilder, marks: Sequence[Mark], x: float, y: float, width: float, right: bool = False
) -> float:
    """Set marks in rows that fit a width; return the lower edge."""
    for row in legend_rows(marks, width):
        at = x + width - legend_width(row) if right else x
        for mark in row:
            mark.draw(builder, Rect(at, y + 8 - mark.height / 2, mark.width, mark.height))
            builder.items.append(text_at(at + mark.width + 5, y + 12, mark.words))
            at += mark.space + GAP
        y += LEGEND_ROW
    return y


def head_with_verdict(builder: SceneBuilder, title: str, subject: str, said: str, width: float) -> float:
    """Write a title, what it is about, and a sentence of at most two lines; return where the drawing begins."""
    builder.items.append(text_at(0, 18, (*title_runs(title), *muted(f"   {subject}"))))
    lines = wrapped(said, BODY, width)[:2]
    for number, line in enumerate(lines):
        builder.items.append(text_at(0, 40 + 18 * number, muted(line)))
    return 54 + 18 * (len(lines) - 1)
