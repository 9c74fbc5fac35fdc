"""Computes the rows of a figure or table, in a worker or on the command line."""

from __future__ import annotations

from collections.abc import Callable

import presets
from app.plots.paper.catalogue import PaperItem
from model_core.published.rows import PublishedFile
from model_core.reproduce import ReproducedRow, reproduce

SOURCE = "pope-2022"
_ELSEWHERE = ("pope-figure-", "pope-table-1", "pope-table-2", "pope-table-3")
_SWITCH = "pope-figure-3-switch"


def compute(item: PaperItem, cancelled: Callable[[], bool]) -> tuple[ReproducedRow, ...] | None:
    """Recompute the rows of an item; ``None`` if cancelled."""
    file = presets.load_published(SOURCE)
    wanted = tuple(row for row in file.rows if _belongs(item, row.id))
    found: list[ReproducedRow] = []
    for row in wanted:
        if cancelled():
            return None
        found += _one(file, row.id)
    return tuple(found)


def _one(file: PublishedFile, identifier: str) -> tuple[ReproducedRow, ...]:
    # `reproduce` takes the beginning of an id, and one id may begin with another.
    return tuple(row for row in reproduce((file,), presets, identifier) if row.row.id == identifier)


def _belongs(item: PaperItem, identifier: str) -> bool:
    if item.id == "sections":
        return identifier.startswith(item.rows) and (
            not identifier.startswith(_ELSEWHERE) or identifier.startswith(_SWITCH)
        )
    return identifier.startswith(item.rows) if item.is_table else identifier == item.rows
