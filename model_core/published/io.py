"""Reads a file of published or measured rows, with diagnostics instead of exceptions."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from model_core.diagnostics import Diagnostic
from model_core.published.rows import PublishedFile
from model_core.spec.errors import diagnostics_of

Outcome = tuple[PublishedFile | None, tuple[Diagnostic, ...]]


def read_published(path: str | Path) -> Outcome:
    """Read a file of rows; ``None`` and the reasons where it is not one. Never raises."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return None, (_unreadable(path, "it is not UTF-8 text"),)
    except OSError as error:
        return None, (_unreadable(path, (error.strerror or str(error)).lower()),)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        values: dict[str, object] = {"line": error.lineno, "column": error.colno, "reason": error.msg.lower()}
        return None, (Diagnostic("file_not_json", "", values),)
    except RecursionError:
        return None, (_unreadable(path, "it is nested too deeply"),)
    try:
        return PublishedFile.model_validate(content), ()
    except ValidationError as error:
        return None, diagnostics_of(error)


def _unreadable(path: str | Path, reason: str) -> Diagnostic:
    return Diagnostic("file_unreadable", "", {"file": str(path), "reason": reason})
