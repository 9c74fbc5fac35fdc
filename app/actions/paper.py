"""The figures of the papers, one click each."""

from __future__ import annotations

from functools import partial

from app.actions.registry import ActionSpec
from app.actions.shell import Shell
from app.i18n import tr
from app.plots.paper.catalogue import items


class PaperActions:
    """Opens a figure or table in the tab of the reproduced ones."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def specs(self) -> tuple[ActionSpec, ...]:
        """Describe the actions, one for each figure and table."""
        return tuple(
            ActionSpec(
                f"paper.{item.id}",
                tr("{figure}: {caption}", figure=item.name, caption=item.caption),
                partial(self._shell.show_paper, item.id),
                icon="reproduce",
                tooltip=item.caption,
            )
            for item in items()
        )
