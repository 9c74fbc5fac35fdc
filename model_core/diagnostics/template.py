"""Severity and texts of a diagnostic."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a diagnostic matters: an error makes ``check`` fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Template:
    """The severity and the texts of one diagnostic code."""

    severity: Severity
    message: str
    hint: str
