"""Help."""

from __future__ import annotations

from app.actions.registry import ActionSpec
from app.actions.shell import Shell
from app.i18n import tr


class HelpActions:
    """The list of shortcuts and the text about the application."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def specs(self) -> tuple[ActionSpec, ...]:
        """Describe the actions."""
        return (
            ActionSpec(
                "help.shortcuts", tr("&Help and shortcuts"), self._shell.show_shortcuts, ("F1",), "help"
            ),
            ActionSpec("help.about", tr("&About Meshwright"), self._shell.show_about, (), "info"),
        )
