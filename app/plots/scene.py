"""The display list: what a drawing consists of, in plain data that screen and export paint alike.

Colours are roles, so that one scene serves every theme. What can be pointed at is a `Target`; the order of
the targets is the reading order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from app.theme import Role


class Rect(NamedTuple):
    """A rectangle with its origin at the top left."""

    x: float
    y: float
    w: float
    h: float

    @property
    def right(self) -> float:
        """Right edge."""
        return self.x + self.w

    @property
    def bottom(self) -> float:
        """Lower edge."""
        return self.y + self.h

    def contains(self, x: float, y: float) -> bool:
        """Whether a point lies inside."""
        return self.x <= x <= self.right and self.y <= y <= self.bottom

    def inset(self, dx: float, dy: float) -> Rect:
        """Return the rectangle with its edges moved inwards."""
        return Rect(self.x + dx, self.y + dy, self.w - 2 * dx, self.h - 2 * dy)

    def overlaps(self, other: Rect, slack: float = 0.0) -> bool:
        """Whether two rectangles share more than ``slack`` in both directions."""
        return (
            min(self.right, other.right) - max(self.x, other.x) > slack
            and min(self.bottom, other.bottom) - max(self.y, other.y) > slack
        )


class Ink(NamedTuple):
    """A colour: a role, at full strength or laid thinly over the panel."""

    role: Role
    strength: float = 1.0


class Pattern(StrEnum):
    """A second code beside the colour, so that meaning survives without it."""

    SOLID = "solid"
    HATCH = "hatch"
    BACK_HATCH = "back_hatch"
    CROSS = "cross"
    DOTS = "dots"
    VERTICAL = "vertical"


class Run(NamedTuple):
    """A piece of text in one style; ``rise`` moves its baseline down when negative."""

    text: str
    size: int
    bold: bool = False
    role: Role = Role.TEXT
    rise: float = 0.0


class Box(NamedTuple):
    """A rectangle, rounded or not; ``radius`` of half the height makes a pill. ``pattern`` is drawn in ``marks``."""

    rect: Rect
    fill: Ink | None = None
    stroke: Ink | None = None
    radius: float = 0.0
    width: float = 1.0
    dashed: bool = False
    pattern: Pattern = Pattern.SOLID
    marks: Ink = Ink(Role.PANEL)


class Line(NamedTuple):
    """A polyline with an arrowhead or without."""

    points: tuple[tuple[float, float], ...]
    ink: Ink
    width: float = 1.0
    arrow: bool = False
    dashed: bool = False


class Text(NamedTuple):
    """Runs on one baseline, from a left edge on."""

    x: float
    y: float
    runs: tuple[tuple[float, Run], ...]
    width: float
    ascent: float
    descent: float

    @property
    def rect(self) -> Rect:
        """The space that the text takes."""
        return Rect(self.x, self.y - self.ascent, self.width, self.ascent + self.descent)

    @property
    def plain(self) -> str:
        """The text without styles."""
        return "".join(run.text for _, run in self.runs)


class Dots(NamedTuple):
    """Many equal dots; ``size`` is their diameter."""

    points: tuple[tuple[float, float], ...]
    ink: Ink
    size: float = 2.0


Item = Box | Line | Text | Dots


class Target(NamedTuple):
    """A region that can be pointed at, focused and chosen.

    ``key`` is what the evaluation explains (or ``"part/…"`` for a part of the view); ``title`` and
    ``lines`` are the tooltip, and together what a screen reader says. Lines are made when they are read.
    """

    rect: Rect
    key: str
    title: str
    write: Callable[[], Iterable[str]]
    radius: float = 6.0

    @property
    def lines(self) -> tuple[str, ...]:
        """What is said below the title."""
        return tuple(line for line in self.write() if line)

    @property
    def spoken(self) -> str:
        """The tooltip as one sentence."""
        return ", ".join((self.title, *self.lines))


@dataclass(frozen=True, slots=True)
class Scene:
    """A finished drawing. ``summary`` says in words what it shows; ``short``: some details are left out."""

    items: tuple[Item, ...]
    targets: tuple[Target, ...]
    width: float
    height: float
    title: str
    summary: str = ""
    short: bool = False

    def target_at(self, x: float, y: float) -> Target | None:
        """Return the smallest target under a point."""
        found = [target for target in self.targets if target.rect.contains(x, y)]
        return min(found, key=lambda t: t.rect.w * t.rect.h) if found else None

    def nearest(self, x: float, y: float) -> Target | None:
        """Return the target with its middle nearest to a point."""
        return min(
            self.targets,
            key=lambda t: abs(t.rect.x + t.rect.w / 2 - x) + abs(t.rect.y + t.rect.h / 2 - y),
            default=None,
        )

    def texts(self) -> tuple[Text, ...]:
        """Return the text items."""
        return tuple(item for item in self.items if isinstance(item, Text))


@dataclass(slots=True)
class SceneBuilder:
    """Collects items and targets while a drawing is made."""

    items: list[Item] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def box(
        self,
        rect: Rect,
        fill: Ink | None = None,
        stroke: Ink | None = None,
        radius: float = 0.0,
        width: float = 1.0,
        dashed: bool = False,
        pattern: Pattern = Pattern.SOLID,
        marks: Ink = Ink(Role.PANEL),  # noqa: B008
    ) -> None:
        """Add a box."""
        self.items.append(Box(rect, fill, stroke, radius, width, dashed, pattern, marks))

    def line(
        self,
        *points: tuple[float, float],
        ink: Ink,
        width: float = 1.0,
        arrow: bool = False,
        dashed: bool = False,
    ) -> None:
        """Add a line."""
        self.items.append(Line(points, ink, width, arrow, dashed))

    def target(self, rect: Rect, key: str, title: str, *lines: str, radius: float = 6.0) -> None:
        """Add a target; empty lines are left out."""
        self.targets.append(Target(rect, key, title, lines.__iter__, radius))

    def target_told(
        self, rect: Rect, key: str, title: str, write: Callable[[], Iterable[str]], radius: float = 6.0
    ) -> None:
        """Add a target whose lines are written when someone reads them."""
        self.targets.append(Target(rect, key, title, write, radius))

    def scene(self, width: float, height: float, title: str, summary: str, short: bool = False) -> Scene:
        """Return the finished drawing."""
        return Scene(tuple(self.items), tuple(self.targets), width, height, title, summary, short)
