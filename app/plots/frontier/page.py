"""The frontier tab: the bar, the plot, and the table of designs to compare."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Final

from PySide6.QtCore import QElapsedTimer, QModelIndex, QSizeF, Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QSplitter,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.background import Background, Ticket
from app.document import DesignDocument
from app.i18n import tr
from app.plots.frontier.bar import FrontierBar
from app.plots.frontier.canvas import MOST_SELECTED, FrontierCanvas
from app.plots.frontier.cloud import Cloud, NoCloud, Wish, best_of, sweep_cloud
from app.plots.frontier.scene import Pin
from app.plots.frontier.table import DesignsModel, Entry, caption, current_entry
from app.plots.frontier.words import short_title
from app.plots.scene import Scene
from app.theme.manager import ThemeManager
from model_core.search.pareto import latency_column
from model_core.search.readers import DIMENSIONS
from model_core.spec import Design

PATIENCE_MS: Final = 400
"""A sweep that takes longer than this gives way to a newer one; a shorter one is shown first."""

TABLE_HEIGHT: Final = 140


class FrontierPage(QWidget):
    """Sweeps the designs around the document's in a worker while it is visible, and keeps up with it."""

    def __init__(self, document: DesignDocument, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("view_frontier")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._document = document
        self._wish: Wish | None = None
        self._next: Wish | None = None
        self._pins: list[Pin] = []
        self._selected: list[int] = []
        self._running = QElapsedTimer()
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.timeout.connect(self._start_next)
        self._background = Background(self)
        self.bar = FrontierBar(self)
        self.canvas = FrontierCanvas(themes, self)
        self.model = DesignsModel(self)
        self.table = self._make_table()
        self._arrange()
        self._connect()

    def scene_for(self, size: QSizeF) -> Scene | None:
        """Return the picture for an export."""
        return self.canvas.scene_for(size)

    @property
    def cloud(self) -> Cloud | NoCloud | None:
        """The designs shown."""
        return self.canvas.cloud

    @property
    def pins(self) -> tuple[Pin, ...]:
        """The pinned designs."""
        return tuple(self._pins)

    def stop(self) -> None:
        """End the worker; the page is not used after this."""
        self._patience.stop()
        self._background.stop()

    def load_design(self, number: int) -> None:
        """Make a design of the cloud the current one, as one undo step."""
        if isinstance(self.cloud, Cloud):
            self._load(self.cloud.result.design(number))

    def pin(self, number: int) -> None:
        """Keep a design for comparison, or let it go if it is kept already."""
        cloud = self.cloud
        if not isinstance(cloud, Cloud):
            return
        design = cloud.result.design(number)
        kept = [pin for pin in self._pins if pin.design != design]
        if len(kept) == len(self._pins):
            letter = next((c for c in ascii_uppercase if c not in {p.letter for p in kept}), "*")
            kept.append(Pin(letter, design, _numbers(cloud, number)))
        self._pins = kept
        self._show_pins()

    # ---- building --------------------------------------------------------------------------

    def _make_table(self) -> QTableView:
        table = QTableView(self)
        table.setObjectName("frontier_table")
        table.setAccessibleName(tr("Designs to compare"))
        table.setModel(self.model)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(24)
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        table.horizontalHeader().setResizeContentsPrecision(40)
        table.horizontalHeader().setHighlightSections(False)
        return table

    def _arrange(self) -> None:
        self._caption = QLabel("", self)
        self._caption.setProperty("muted", True)
        self.load_button = self._button("frontier_load", tr("Load"), self._on_load)
        self.pin_button = self._button("frontier_pin", tr("Pin"), self._on_pin)
        self.clear_button = self._button("frontier_clear", tr("Clear"), self._on_clear)
        head = QHBoxLayout()
        head.setContentsMargins(14, 4, 14, 4)
        head.setSpacing(8)
        head.addWidget(self._caption)
        head.addStretch(1)
        for button in (self.load_button, self.pin_button, self.clear_button):
            head.addWidget(button)
        self._lower = QWidget(self)
        lower = QVBoxLayout(self._lower)
        lower.setContentsMargins(0, 0, 0, 0)
        lower.setSpacing(0)
        lower.addLayout(head)
        lower.addWidget(self.table)
        split = QSplitter(Qt.Orientation.Vertical, self)
        split.addWidget(self.canvas)
        split.addWidget(self._lower)
        split.setStretchFactor(0, 1)
        split.setCollapsible(0, False)
        split.setSizes([10_000, TABLE_HEIGHT])
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bar)
        column.addWidget(split, 1)
        self._lower.hide()
        self.setFocusProxy(self.canvas)

    def _button(self, name: str, text: str, slot: object) -> QPushButton:
        button = QPushButton(text, self)
        button.setObjectName(name)
        button.clicked.connect(slot)
        return button

    def _connect(self) -> None:
        self.bar.sweep_changed.connect(self._ask)
        self.bar.target_committed.connect(self._on_target)
        self.bar.cancel_requested.connect(self._on_cancel)
        self.canvas.chosen.connect(self._on_chosen)
        self.canvas.selected.connect(self._on_selected)
        self.canvas.load_requested.connect(self.load_design)
        self.canvas.pin_requested.connect(self.pin)
        self._background.finished.connect(self._on_swept)
        self._background.busy_changed.connect(self.bar.show_busy)
        self._background.progressed.connect(self.bar.show_progress)
        self.table.doubleClicked.connect(self._on_row_activated)
        self.table.activated.connect(self._on_row_activated)
        self.table.selectionModel().currentRowChanged.connect(self._on_row_changed)
        self._document.evaluation_changed.connect(self._on_evaluation_changed)
        self._document.stale_changed.connect(self._on_evaluation_changed)

    # ---- sweeping --------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up with the document."""
        super().showEvent(event)
        self._on_evaluation_changed(None)

    def hideEvent(self, event: QHideEvent) -> None:
        """Leave the processor to others."""
        super().hideEvent(event)
        self._on_cancel()

    def _on_evaluation_changed(self, _value: object) -> None:
        if not self.isVisible():
            return
        evaluation = self._document.evaluation
        self.bar.show_target(self._document.shown_design.workload.latency_target)
        self.canvas.show_evaluation(evaluation, self._document.stale)
        self._show_table()
        self._ask()

    def _ask(self) -> None:
        wish = Wish(self._document.shown_design, self.bar.swept, self.bar.measure.choice)
        if self._wish is not None and wish.same_designs(self._wish):
            return
        if self._background.busy and self._running.elapsed() < PATIENCE_MS:
            self._next = wish
            if not self._patience.isActive():
                self._patience.start(PATIENCE_MS - int(self._running.elapsed()))
        else:
            self._start(wish)

    def _start(self, wish: Wish) -> None:
        self._wish, self._next = wish, None
        self._running.start()
        self._background.start(_Sweep(wish))

    def _start_next(self) -> None:
        if self._next is not None:
            self._start(self._next)

    def _on_cancel(self) -> None:
        self._patience.stop()
        self._next = None
        if self._background.busy:
            self._background.cancel()
            # Not done: the next change of anything asks for it again.
            self._wish = None

    def _on_swept(self, cloud: Cloud | NoCloud) -> None:
        self._selected = []
        self.canvas.show_cloud(cloud)
        self._show_table()
        self._start_next()

    # ---- choosing and comparing ------------------------------------------------------------

    def _on_chosen(self, number: int) -> None:
        if number not in self._selected:
            self._selected = [number]
        self._show_table(number)

    def _on_selected(self, numbers: list[int]) -> None:
        cloud = self.cloud
        self._selected = best_of(cloud, numbers) if isinstance(cloud, Cloud) and numbers else []
        self._show_table(self._selected[0] if self._selected else None)

    def _show_pins(self) -> None:
        self.canvas.set_pins(self._pins)
        self._show_table(self.canvas.current)

    def _show_table(self, current: int | None = None) -> None:
        evaluation, cloud = self._document.evaluation, self.cloud
        design = self._document.shown_design
        values = (
            {}
            if evaluation is None
            else {k: q.value for k, q in evaluation.quantities.items() if k in DIMENSIONS}
        )
        values |= {"n_chips": float(design.cluster.n_chips), "batch": float(design.workload.batch)}
        listed = self._selected[:MOST_SELECTED] if isinstance(cloud, Cloud) else []
        entries = [current_entry(design, values)]
        entries += [Entry(pin.letter, pin.design, pin.row) for pin in self._pins]
        entries += [self._entry(cloud, number) for number in listed if isinstance(cloud, Cloud)]
        self.model.show(entries, latency_column(design.workload.phase))
        self._caption.setText(caption(len(self._pins), len(self._selected), len(listed)))
        self._lower.setVisible(len(entries) > 1)
        self.canvas.mark(listed, current)
        row = next(
            (i for i, entry in enumerate(entries) if entry.number is not None and entry.number == current), 0
        )
        if row:
            self.table.selectRow(row)
        self._refresh_buttons()

    def _entry(self, cloud: Cloud, number: int) -> Entry:
        return Entry("", cloud.result.design(number), _numbers(cloud, number), number)

    def _row(self) -> Entry | None:
        index = self.table.currentIndex()
        return self.model.entries[index.row()] if index.isValid() else None

    def _refresh_buttons(self) -> None:
        entry = self._row()
        self.load_button.setEnabled(entry is not None and entry is not self.model.entries[0])
        pinned = entry is not None and any(pin.design == entry.design for pin in self._pins)
        self.pin_button.setText(tr("Unpin") if pinned else tr("Pin"))
        self.pin_button.setEnabled(pinned or (entry is not None and entry.number is not None))

    def _on_row_changed(self, _now: QModelIndex, _before: QModelIndex) -> None:
        entry = self._row()
        if entry is not None and entry.number is not None:
            self.canvas.mark(self._selected[:MOST_SELECTED], entry.number)
        self._refresh_buttons()

    def _on_row_activated(self, _index: QModelIndex) -> None:
        self._on_load()

    def _on_load(self) -> None:
        entry = self._row()
        if entry is not None and entry is not self.model.entries[0]:
            self._load(entry.design)

    def _on_pin(self) -> None:
        entry = self._row()
        if entry is None:
            return
        if entry.number is not None:
            self.pin(entry.number)
        else:
            self._pins = [pin for pin in self._pins if pin.design != entry.design]
            self._show_pins()

    def _on_clear(self) -> None:
        self._pins, self._selected = [], []
        self._show_pins()

    def _load(self, design: Design) -> None:
        own = self._document.design
        workload = design.workload.replace(latency_target=own.workload.latency_target)
        cluster = design.cluster
        if cluster.topology != own.cluster.topology and cluster.name == own.cluster.name:
            cluster = cluster.replace(name=f"{cluster.chip.name} {cluster.shape_text}")
        loaded = design.replace(name=own.name, notes=own.notes, workload=workload, cluster=cluster)
        self._document.push(loaded, tr("Load {design}", design=short_title(loaded)))

    def _on_target(self, seconds: float | None) -> None:
        self._document.edit(
            "workload.latency_target", seconds, tr("Change the latency target"), "frontier target"
        )


def _numbers(cloud: Cloud, number: int) -> dict[str, float]:
    row = cloud.result.row(number)
    return {name: float(row[name]) for name in DIMENSIONS if row.get(name) is not None}


class _Sweep:
    """The task of the worker."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish

    def __call__(self, ticket: Ticket) -> Cloud | NoCloud | None:
        return sweep_cloud(self._wish, ticket.cancelled, ticket.progress)
