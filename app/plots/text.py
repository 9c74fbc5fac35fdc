"""Text of drawings: fonts and their metrics, and sharding notation with real subscripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF, QGuiApplication

from app.plots.per_thread import per_thread
from app.plots.scene import Run, Text
from app.theme import Role

TITLE: Final = 18
HEADING: Final = 14
BODY: Final = 13
SMALL: Final = 12
TINY: Final = 11
AXIS_ROLE: Final = {"x": Role.AXIS_X, "y": Role.AXIS_Y, "z": Role.AXIS_Z}
ELLIPSIS: Final = "…"
# The ink of letters, Latin and Chinese, above and below the baseline; a font's own ascent is much taller.
INK_ABOVE: Final = 0.8
INK_BELOW: Final = 0.22

_SUBSCRIPT = re.compile(r"_([a-z]+)|(\(partialsum-)([a-z]+)(\))|([^_(]+|.)")


@lru_cache(maxsize=1)
def family() -> str:
    """Return the family that the application's font stands for; a generic name would not do in a file."""
    return QFontInfo(QGuiApplication.font()).family()


@per_thread(maxsize=64)
def font(size: int, bold: bool) -> QFont:
    """Return the drawing font: the application's family at a pixel size, unhinted so that it scales evenly."""
    result = QFont(QGuiApplication.font())
    result.setFamilies([family()])
    result.setPixelSize(size)
    result.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    result.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    result.setStyleStrategy(QFont.StyleStrategy.PreferAntialias)
    return result


@per_thread(maxsize=64)
def _metrics(size: int, bold: bool) -> QFontMetricsF:
    return QFontMetricsF(font(size, bold))


@lru_cache(maxsize=8192)
def width_of(text: str, size: int, bold: bool = False) -> float:
    """Return the advance of a text."""
    return _metrics(size, bold).horizontalAdvance(text)


def runs_width(runs: Sequence[Run]) -> float:
    """Return the width of runs set one after the other."""
    return _set(tuple(runs))[1]


def text_at(x: float, y: float, runs: Sequence[Run], align: float = 0.0) -> Text:
    """Set runs on a baseline. ``align`` 0 starts at x, 0.5 centres on it, 1 ends there."""
    placed, width, ascent, descent = _set(tuple(runs))
    return Text(x - align * width, y, placed, width, ascent, descent)


@lru_cache(maxsize=4096)
def _set(runs: tuple[Run, ...]) -> tuple[tuple[tuple[float, Run], ...], float, float, float]:
    placed: list[tuple[float, Run]] = []
    offset, ascent, descent = 0.0, 0.0, 0.0
    for run in runs:
        placed.append((offset, run))
        offset += width_of(run.text, run.size, run.bold)
        ascent = max(ascent, run.size * INK_ABOVE + run.rise)
        descent = max(descent, run.size * INK_BELOW - run.rise)
    return tuple(placed), offset, ascent, descent


def elided(text: str, size: int, room: float, bold: bool = False) -> str:
    """Shorten a text with an ellipsis until it fits."""
    if width_of(text, size, bold) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if width_of(text[:middle].rstrip() + ELLIPSIS, size, bold) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + ELLIPSIS


def wrapped(text: str, size: int, room: float) -> list[str]:
    """Break a text into lines at spaces, or between characters where there are none."""
    lines: list[str] = []
    line = ""
    for word in re.findall(r"[\u2e80-\uffff]|[^\s\u2e80-\uffff]+\s*|\s+", text):
        if line and width_of((line + word).rstrip(), size) > room:
            lines.append(line.rstrip())
            line = word
        else:
            line += word
    return [*lines, line.rstrip()] if line.strip() else lines


@lru_cache(maxsize=2048)
def notation(text: str, size: int = BODY, bold: bool = True, role: Role = Role.TEXT) -> tuple[Run, ...]:
    """Turn notation such as ``BLE_xyz`` or ``E_xF_yz`` into runs: subscripts lowered, in the axis colours."""
    small = max(size - 2, 9)
    runs: list[Run] = []
    for axes, opening, summed, closing, letters in _SUBSCRIPT.findall(text):
        if axes:
            runs += [Run(a, small, True, AXIS_ROLE.get(a, role), -size * 0.22) for a in axes]
        elif opening:
            runs.append(Run(opening, small, False, Role.TEXT_MUTED))
            runs += [Run(a, small, True, AXIS_ROLE.get(a, role)) for a in summed]
            runs.append(Run(closing, small, False, Role.TEXT_MUTED))
        elif runs and runs[-1].rise == 0 and runs[-1].size == size:
            runs[-1] = runs[-1]._replace(text=runs[-1].text + letters)
        else:
            runs.append(Run(letters, size, bold, role))
    return tuple(runs)


@lru_cache(maxsize=2048)
def short_notation(text: str, size: int = BODY) -> tuple[Run, ...]:
    """Write notation with ``Σx`` for ``(partialsum-x)``, where there is little room."""
    kept, _, summed = text.rstrip(")").partition("(partialsum-")
    runs = notation(kept, size)
    if not summed:
        return runs
    small = max(size - 2, 9)
    axes = [Run(a, small, True, AXIS_ROLE.get(a, Role.TEXT)) for a in summed]
    return (*runs, Run(" Σ", small, False, Role.TEXT_MUTED), *axes)


@lru_cache(maxsize=512)
def named(name: str, size: int = SMALL, role: Role = Role.TEXT) -> tuple[Run, ...]:
    """Write the name of a tensor; what follows an underscore, as in ``W_in``, is lowered."""
    stem, _, index = name.partition("_")
    head = Run(stem, size, False, role)
    return (head, Run(index, max(size - 2, 9), False, role, -size * 0.22)) if index else (head,)


@lru_cache(maxsize=512)
def axes_call(name: str, axes: str, size: int = SMALL) -> tuple[Run, ...]:
    """Write a collective as ``all-gather(yz)`` with its axes in their colours."""
    letters = [Run(a, size, True, AXIS_ROLE.get(a, Role.TEXT)) for a in sorted(axes)]
    return (Run(f"{name}(", size, True), *letters, Run(")", size, True))
