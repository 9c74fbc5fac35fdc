"""The drawings by id; the window makes a tab of each, and the command line renders them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QSizeF

from app.i18n import tr
from app.plots import layout, memory, time
from app.plots.scene import Scene
from model_core.results import Evaluation


@dataclass(frozen=True, slots=True)
class TabSpec:
    """A view that has a widget of its own. ``title`` is English, for `tr_text`."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """One drawing. ``title`` is English, for `tr_text`; the first of ``parts`` is shown at first."""

    id: str
    title: str
    make_scene: Callable[..., Scene]
    parts: tuple[str, ...] = ()

    def draw(
        self,
        evaluation: Evaluation,
        baseline: Evaluation | None,
        size: QSizeF,
        part: str = "",
        short: bool | None = None,
    ) -> Scene:
        """Make the scene for a space.

        Args:
            evaluation: what to draw.
            baseline: what to compare with.
            size: the space.
            part: one of `parts`; by default the first.
            short: leave details out, in a view that can; by default where they would be too small.
        """
        if not self.parts:
            return self.make_scene(evaluation, baseline, size)
        return self.make_scene(evaluation, baseline, size, part or self.parts[0], short)


VIEWS: Final = (
    ViewSpec("layout", "Layout", layout.make_scene, (*layout.BLOCKS, "embedding", "logits")),
    ViewSpec("memory", "Memory", memory.make_scene),
    ViewSpec("time", "Time", time.make_scene),
)

SCHEDULE: Final = TabSpec("schedule", "Schedule")
SEARCH: Final = (
    TabSpec("frontier", "Frontier"),
    TabSpec("layouts", "Layouts"),
    TabSpec("context", "Context"),
    TabSpec("reproduce", "Reproduce"),
)
"""Views that search, whose pages are made when they are first shown."""

TABS: Final[tuple[ViewSpec | TabSpec, ...]] = (*VIEWS, SCHEDULE, *SEARCH)
"""What the window has a tab for, in order."""


def shown_title(view: ViewSpec) -> str:
    """Return the title of a view in the user's language."""
    return {"layout": tr("Layout"), "memory": tr("Memory"), "time": tr("Time")}[view.id]


def view_named(identifier: str) -> ViewSpec:
    """Return the view of an id.

    Raises:
        KeyError: there is none; the message lists those that exist.
    """
    for view in VIEWS:
        if view.id == identifier:
            return view
    raise KeyError(f"no view {identifier!r}; there are {', '.join(view.id for view in VIEWS)}")
