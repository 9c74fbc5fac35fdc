"""The tab of the papers' figures and tables: a list at the left, the chosen one recomputed at the right."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSizeF, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.background import Background, Ticket
from app.i18n import tr
from app.plots.chart_view import ChartView, scrolled
from app.plots.paper.catalogue import ITEM_IDS, PaperItem, items
from app.plots.paper.curves import draw_curve
from app.plots.paper.data import compute
from app.plots.paper.tables import draw_table
from app.plots.scene import Scene
from app.theme.manager import ThemeManager
from model_core.reproduce import ReproducedRow

LIST_WIDTH: Final = 196
LEAST_HEIGHT: Final = 460


class ReproducePage(QWidget):
    """Recomputes what is chosen, in a worker, once; then it is there at once."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("view_reproduce")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._items = {item.id: item for item in items()}
        self._done: dict[str, tuple[ReproducedRow, ...]] = {}
        self._background = Background(self)
        self.list = self._make_list()
        self.chart = ChartView(themes, self)
        self.chart.setObjectName("reproduce_chart")
        self._note = QLabel("", self)
        self._note.setProperty("muted", True)
        self._note.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._busy = QProgressBar(self)
        self._busy.setObjectName("reproduce_busy")
        self._busy.setRange(0, 0)
        self._busy.setTextVisible(False)
        self._busy.setFixedSize(90, 6)
        self._arrange()
        self._background.finished.connect(self._on_computed)
        self._background.busy_changed.connect(self._show_busy)
        self._show_busy(False)

    @property
    def current(self) -> PaperItem:
        """The chosen figure or table."""
        row = self.list.currentItem()
        return self._items[ITEM_IDS[0] if row is None else row.data(Qt.ItemDataRole.UserRole)]

    @property
    def is_ready(self) -> bool:
        """Whether what is chosen is computed and shown."""
        return self.current.id in self._done

    def show_item(self, identifier: str) -> None:
        """Choose a figure or table."""
        self.list.setCurrentRow(ITEM_IDS.index(identifier))

    def scene_for(self, size: QSizeF) -> Scene | None:
        """Return the picture for an export."""
        return self.chart.scene_for(size)

    def stop(self) -> None:
        """End the worker; the page is not used after this."""
        self._background.stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Compute the first figure when the tab is first seen."""
        super().showEvent(event)
        if self.list.currentRow() < 0:
            self.list.setCurrentRow(0)

    def _make_list(self) -> QListWidget:
        made = QListWidget(self)
        made.setObjectName("reproduce_list")
        made.setAccessibleName(tr("Figures and tables"))
        made.setFixedWidth(LIST_WIDTH)
        for item in self._items.values():
            row = QListWidgetItem(item.name, made)
            row.setData(Qt.ItemDataRole.UserRole, item.id)
            row.setToolTip(item.caption)
        made.currentRowChanged.connect(self._on_chosen)
        return made

    def _arrange(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(14, 8, 14, 0)
        head.setSpacing(10)
        head.addWidget(self._note, 1)
        head.addWidget(self._busy, 0, Qt.AlignmentFlag.AlignVCenter)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addLayout(head)
        self.chart.setMinimumHeight(LEAST_HEIGHT)
        right.addWidget(scrolled(self.chart, self), 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.list)
        row.addLayout(right, 1)
        self.setFocusProxy(self.list)

    def _on_chosen(self, _row: int) -> None:
        item = self.current
        if item.id in self._done:
            self._background.cancel()
            self._show(item)
            return
        self.chart.show_drawing(None)
        self._background.start(_Compute(item))

    def _on_computed(self, found: tuple[PaperItem, tuple[ReproducedRow, ...]]) -> None:
        item, rows = found
        self._done[item.id] = rows
        if item.id == self.current.id:
            self._show(item)

    def _show(self, item: PaperItem) -> None:
        self.chart.show_drawing(_Drawing(item, self._done[item.id]))
        self._note.setText(tr("Recomputed by the model of the other views"))

    def _show_busy(self, busy: bool) -> None:
        self._busy.setVisible(busy)
        if busy:
            self._note.setText(tr("Recomputing {name}…", name=self.current.name))


def draw_item(item: PaperItem, rows: tuple[ReproducedRow, ...], size: QSizeF) -> Scene:
    """Draw a figure or table."""
    return draw_table(item, rows, size) if item.is_table else draw_curve(item, rows, size)


class _Drawing:
    """Draws one item for a size."""

    def __init__(self, item: PaperItem, rows: tuple[ReproducedRow, ...]) -> None:
        self._item, self._rows = item, rows

    def __call__(self, size: QSizeF) -> Scene:
        return draw_item(self._item, self._rows, size)


class _Compute:
    """The task of the worker."""

    def __init__(self, item: PaperItem) -> None:
        self._item = item

    def __call__(self, ticket: Ticket) -> tuple[PaperItem, tuple[ReproducedRow, ...]] | None:
        rows = compute(self._item, ticket.cancelled)
        return None if rows is None else (self._item, rows)
