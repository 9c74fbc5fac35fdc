"""How many problems there are, for the title of their dock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from PySide6.QtWidgets import QLabel

from app.i18n import tr
from app.widgets.look import set_look
from model_core.diagnostics import Diagnostic, Severity


def show_count(label: QLabel, diagnostics: Sequence[Diagnostic]) -> None:
    """Write the count by severity, in the colour of the worst."""
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    parts = []
    if counts[Severity.ERROR]:
        parts.append(tr("errors: {count}", count=counts[Severity.ERROR]))
    if counts[Severity.WARNING]:
        parts.append(tr("warnings: {count}", count=counts[Severity.WARNING]))
    if counts[Severity.INFO]:
        parts.append(tr("notes: {count}", count=counts[Severity.INFO]))
    label.setText(" · ".join(parts) or tr("none"))
    worst = next((str(severity) for severity in Severity if counts[severity]), "info")
    set_look(label, "severity", worst)
