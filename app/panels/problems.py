"""The problems panel: what is wrong with the design, and the way to the field that it concerns."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QStackedLayout,
    QTableView,
    QWidget,
)

from app.document import DesignDocument
from app.i18n import tr
from app.panels.problems_delegate import SYMBOL, ProblemsDelegate
from app.panels.problems_model import Column, ProblemsModel
from app.theme import Role
from app.theme.icons import pixmap
from app.widgets.look import muted
from model_core.results import Evaluation


class ProblemsPanel(QWidget):
    """The diagnostics of the latest evaluation; a double click or Enter asks for the field."""

    field_requested = Signal(str)
    count_changed = Signal(int)

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("problems_panel")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._model = ProblemsModel(self)
        self._table = QTableView(self)
        self._delegate = ProblemsDelegate(self._model, self._table)
        self._empty = QWidget(self)
        self._symbol = QLabel(self._empty)
        self._pages = QStackedLayout(self)
        self._build_table()
        self._build_empty()
        document.evaluation_changed.connect(self._on_evaluation_changed)
        if document.evaluation is not None:
            self._on_evaluation_changed(document.evaluation)

    @property
    def count(self) -> int:
        """How many problems there are."""
        return self._model.rowCount()

    @property
    def table(self) -> QTableView:
        """The table."""
        return self._table

    def changeEvent(self, event: QEvent) -> None:
        """Tint the symbols anew when the theme changes."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._tint()
        elif event.type() == QEvent.Type.FontChange:
            self._fit_columns()

    def _build_table(self) -> None:
        table = self._table
        table.setObjectName("problems_table")
        table.setModel(self._model)
        table.setItemDelegate(self._delegate)
        table.setAccessibleName(tr("Problems of the design"))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTabKeyNavigation(False)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setIconSize(QSize(SYMBOL, SYMBOL))
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 10)
        header = table.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setHighlightSections(False)
        header.setSectionResizeMode(Column.SEVERITY, QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(Column.FIELD, QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(Column.MESSAGE, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(Column.HINT, QHeaderView.ResizeMode.Stretch)
        table.activated.connect(self._on_activated)
        self._pages.addWidget(table)

    def _build_empty(self) -> None:
        row = QHBoxLayout(self._empty)
        row.setContentsMargins(12, 8, 12, 8)
        row.addWidget(self._symbol)
        row.addWidget(muted(tr("No problems: the design fits and divides."), self._empty), 1)
        row.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages.addWidget(self._empty)
        self._pages.setCurrentWidget(self._empty)
        self._tint()

    def _tint(self) -> None:
        self._symbol.setPixmap(pixmap("good", SYMBOL, self.devicePixelRatioF(), Role.GOOD))
        self._table.viewport().update()

    def _on_evaluation_changed(self, evaluation: Evaluation) -> None:
        before = self.count
        if not self._model.set_diagnostics(evaluation.diagnostics):
            return
        self._fit_columns()
        self._pages.setCurrentWidget(self._table if self.count else self._empty)
        if self.count != before:
            self.count_changed.emit(self.count)

    def _fit_columns(self) -> None:
        """Fit two columns to their texts; Qt does it with a style option for every cell, over and over."""
        header, metrics = self._table.horizontalHeader(), self._table.fontMetrics()
        for column in (Column.SEVERITY, Column.FIELD):
            title = self._model.headerData(column, Qt.Orientation.Horizontal)
            width = self._delegate.column_width(column, (title, *self._model.texts(column)), metrics)
            if width != header.sectionSize(column):
                header.resizeSection(column, width)

    def _on_activated(self, index: QModelIndex) -> None:
        self.field_requested.emit(self._model.path(index.row()))
