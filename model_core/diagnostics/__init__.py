"""Diagnostics: what is wrong with an input, where, and what would be right.

Every code is in `CATALOGUE`, with a message and a hint template; both are filled from ``values``. The
templates are the keys of the translations, so that a front end can show them in another language. Each
module beside this one holds the codes of one area.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from model_core.diagnostics import design, experts, files, schedule, search
from model_core.diagnostics.template import Severity, Template

__all__ = ["CATALOGUE", "Diagnostic", "Severity", "Template", "has_errors"]

CATALOGUE: dict[str, Template] = {
    **files.CODES,
    **design.CODES,
    **search.CODES,
    **schedule.CODES,
    **experts.CODES,
}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a code of `CATALOGUE`, the field it concerns and the values of its texts.

    ``path`` is a dotted field path such as ``"workload.batch"``; empty for the whole file.
    """

    code: str
    path: str
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def template(self) -> Template:
        """The catalogue entry."""
        return CATALOGUE[self.code]

    @property
    def severity(self) -> Severity:
        """Error, warning or info."""
        return self.template.severity

    @property
    def message(self) -> str:
        """What is wrong, in English."""
        return self.template.message.format(**self.values)

    @property
    def hint(self) -> str:
        """What would be right, in English."""
        return self.template.hint.format(**self.values)

    def to_json(self) -> dict[str, str]:
        """Return the fields that the command line prints."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
        }


def has_errors(diagnostics: tuple[Diagnostic, ...]) -> bool:
    """Tell whether any diagnostic is an error."""
    return any(d.severity is Severity.ERROR for d in diagnostics)
