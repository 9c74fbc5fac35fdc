"""What the bar charts share: bars by role, with their patterns, and a ruled axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from app.plots.scene import Ink, Pattern, Rect, Run, SceneBuilder
from app.plots.text import TINY, text_at, width_of
from app.theme import Role

PATTERN: Final = {
    Role.COMPUTE: Pattern.SOLID,
    Role.WEIGHT: Pattern.DOTS,
    Role.KV: Pattern.HATCH,
    Role.COMMUNICATION: Pattern.CROSS,
    Role.HIDDEN: Pattern.BACK_HATCH,
    Role.ACTIVATION: Pattern.VERTICAL,
    Role.BUFFER: Pattern.CROSS,
    Role.RESERVE: Pattern.BACK_HATCH,
}
HOLLOW: Final = (Role.HIDDEN, Role.RESERVE)
THINNEST: Final = 0.75


class Scale(NamedTuple):
    """Values to horizontal positions."""

    x: float
    width: float
    top_value: float

    def at(self, value: float) -> float:
        """Position of a value."""
        return self.x + (self.width * value / self.top_value if self.top_value > 0 else 0.0)


def bar(builder: SceneBuilder, rect: Rect, role: Role, strength: float = 1.0) -> None:
    """Draw a bar in a role's colour and pattern; hidden and reserved parts are hollow."""
    pattern = PATTERN.get(role, Pattern.SOLID) if rect.w >= 4 else Pattern.SOLID
    rect = Rect(rect.x, rect.y, max(rect.w, THINNEST), rect.h)
    if role in HOLLOW:
        builder.box(rect, Ink(role, 0.1), Ink(role, 0.9), width=0.8, pattern=pattern, marks=Ink(role, 0.8))
    else:
        builder.box(rect, Ink(role, strength), pattern=pattern, marks=Ink(Role.PANEL))


def ticks(top: float, count: int = 6) -> tuple[float, ...]:
    """Return round values from zero to at most ``top``, about as many as asked for."""
    if top <= 0 or not math.isfinite(top):
        return (0.0,)
    rough = top / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= rough * (1 - 1e-9))
    return tuple(step * i for i in range(int(top / step * (1 + 1e-9)) + 1))


def axis(
    builder: SceneBuilder,
    scale: Scale,
    top: float,
    bottom: float,
    unit: float,
    label: Callable[[float], str],
) -> None:
    """Rule vertical lines at round values, in multiples of ``unit``, with their labels below."""
    count = max(2, min(8, int(scale.width / 90)))
    last = -math.inf
    for value in ticks(scale.top_value / unit, count):
        x = scale.at(value * unit)
        builder.line((x, top), (x, bottom), ink=Ink(Role.GRID))
        text = label(value)
        half = width_of(text, TINY) / 2
        middle = min(max(x, scale.x + half), scale.x + scale.width - half)
        if middle - half > last:
            builder.items.append(
                text_at(middle, bottom + 13, (Run(text, TINY, False, Role.TEXT_MUTED),), 0.5)
            )
            last = middle + half + 8


def share_text(value: float, whole: float) -> str:
    """Write a share in percent; tiny ones as less than a tenth."""
    share = 100 * value / whole if whole > 0 else 0.0
    if 0 < share < 0.1:
        return "< 0.1 %"
    return f"{share:.1f} %" if share < 99.95 else f"{share:.0f} %"
