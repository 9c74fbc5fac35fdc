"""The table under the frontier: the current design, the pinned ones with their differences, and the selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from app.i18n import tr, tr_text
from app.plots.frontier.words import column, difference_lines, field_name, percent, short_layout, slice_text
from app.theme.fonts import tabular
from model_core.spec import Design
from model_core.units import format_number

Index = QModelIndex | QPersistentModelIndex
NUMBERS: Final = ("cost_chip_s_per_token", "mfu", "memory_per_chip_bytes")
FIELDS: Final = (
    "n_chips",
    "cluster.topology.shape",
    "batch",
    "plan.ffn_layout",
    "plan.attention_sharding",
    "plan.weight_dtype",
    "plan.kv_dtype",
)
_TIMES: Final = 3.0
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class Entry:
    """One row. ``mark``: the letter of a pin, a ring for the current design; ``number``: in the cloud shown."""

    mark: str
    design: Design
    row: dict[str, float]
    number: int | None = None


class DesignsModel(QAbstractTableModel):
    """Rows of designs; numbers stand beside their difference to the first row, the current design."""

    def __init__(self, parent: Any = None) -> None:
        super().__init__(parent)
        self._entries: tuple[Entry, ...] = ()
        self._latency = "step_s"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The rows."""
        return self._entries

    def show(self, entries: Sequence[Entry], latency: str) -> None:
        """Show other rows; ``latency`` is the column that is the latency of the phase."""
        self.beginResetModel()
        self._entries, self._latency = tuple(entries), latency
        self.endResetModel()

    @property
    def columns(self) -> tuple[str, ...]:
        """Keys of the columns after the first, which holds the mark."""
        return (self._latency, *NUMBERS, *FIELDS)

    def rowCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of rows."""
        return len(self._entries)

    def columnCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of columns."""
        return 1 + len(self.columns)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Name the columns."""
        if orientation is not Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        if section == 0:
            return ""
        key = self.columns[section - 1]
        return field_name(key) if "." in key else column(key).title

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text of a cell."""
        entry = self._entries[index.row()]
        if role == Qt.ItemDataRole.FontRole:
            return tabular(bold=index.column() == 0)
        if role == Qt.ItemDataRole.ToolTipRole and self._entries:
            return "\n".join(difference_lines(self._entries[0].design, entry.design))
        if index.column() == 0:
            return entry.mark if role == Qt.ItemDataRole.DisplayRole else None
        key = self.columns[index.column() - 1]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return None if "." in key else int(_RIGHT)
        return self._text(entry, key) if role == Qt.ItemDataRole.DisplayRole else None

    def _text(self, entry: Entry, key: str) -> str:
        if "." in key:
            return _field_text(entry.design, key)
        value = entry.row.get(key)
        if value is None:
            return "—"
        text = column(key).write(value)
        first = self._entries[0].row.get(key)
        if entry is self._entries[0] or not first or key in ("n_chips", "batch"):
            return text
        if key == "mfu":
            change = (value - first) * 100
            return f"{text}  ({'+' if change > 0 else '−'}{format_number(abs(change), 2)} pp)"
        ratio = value / first
        if max(ratio, 1 / ratio) >= _TIMES:
            return f"{text}  ({'×' if ratio > 1 else '÷'}{format_number(max(ratio, 1 / ratio), 2)})"
        return f"{text}  ({percent(ratio - 1)})"


def _field_text(design: Design, path: str) -> str:
    plan = design.plan
    if path == "cluster.topology.shape":
        return slice_text(design)
    if path == "plan.ffn_layout":
        return short_layout(plan.ffn_layout)
    if path == "plan.attention_sharding":
        return tr_text(str(plan.attention_sharding))
    return str(plan.weight_dtype if path == "plan.weight_dtype" else plan.kv_dtype)


def current_entry(design: Design, values: dict[str, float]) -> Entry:
    """Return the row of the current design."""
    return Entry("◎", design, values)


def caption(pins: int, selected: int, listed: int) -> str:
    """Say what the table holds."""
    parts = [tr("current design")]
    if pins:
        parts.append(tr("{count} pinned", count=pins))
    if selected:
        parts.append(tr("{count} selected", count=f"{selected:,}"))
    if listed < selected:
        parts.append(tr("the best {count} are listed", count=listed))
    return " · ".join(parts)
