"""A tab whose chart needs a computation of its own: done in a worker while the tab is visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QElapsedTimer, QSizeF, Qt, QTimer
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.background import Background, Ticket
from app.document import DesignDocument
from app.plots.chart_view import ChartView, scrolled
from app.plots.scene import Scene
from app.theme.manager import ThemeManager
from model_core.spec import Design

Compute = Callable[[Design, Callable[[], bool]], Any]
DrawData = Callable[[Any, QSizeF], Scene]
PATIENCE_MS = 600


class ComputedPage(QWidget):
    """Computes something of the document's design and draws it; the last picture stays until the next is there."""

    def __init__(
        self,
        identifier: str,
        compute: Compute,
        draw: DrawData,
        least: Callable[[int], int],
        document: DesignDocument,
        themes: ThemeManager,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(f"view_{identifier}")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._compute, self._draw, self._document = compute, draw, document
        self._least = least
        self._asked: Design | None = None
        self._next: Design | None = None
        self._running = QElapsedTimer()
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.timeout.connect(self._start_next)
        self._background = Background(self)
        self.chart = ChartView(themes, self)
        self._area = scrolled(self.chart, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._area)
        self.setFocusProxy(self.chart)
        self._background.finished.connect(self._on_computed)
        document.evaluation_changed.connect(self._on_evaluation_changed)

    @property
    def busy(self) -> bool:
        """Whether a newer picture is on its way."""
        return self._background.busy

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the chart tall enough to be read; where there is less room it scrolls."""
        super().resizeEvent(event)
        self.chart.setMinimumHeight(self._least(self.width()))

    def scene_for(self, size: QSizeF) -> Scene | None:
        """Return the picture for an export."""
        return self.chart.scene_for(size)

    def stop(self) -> None:
        """End the worker; the page is not used after this."""
        self._patience.stop()
        self._background.stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up with the document."""
        super().showEvent(event)
        self._on_evaluation_changed(None)

    def hideEvent(self, event: QHideEvent) -> None:
        """Leave the processor to others."""
        super().hideEvent(event)
        self._patience.stop()
        self._next = None
        if self._background.busy:
            self._background.cancel()
            self._asked = None

    def _on_evaluation_changed(self, _value: object) -> None:
        design = self._document.shown_design
        if not self.isVisible() or design == self._asked:
            return
        if self._background.busy and self._running.elapsed() < PATIENCE_MS:
            self._next = design
            if not self._patience.isActive():
                self._patience.start(PATIENCE_MS - int(self._running.elapsed()))
        else:
            self._start(design)

    def _start(self, design: Design) -> None:
        self._asked, self._next = design, None
        self._running.start()
        self._background.start(_Task(self._compute, design))

    def _start_next(self) -> None:
        if self._next is not None:
            self._start(self._next)

    def _on_computed(self, data: object) -> None:
        self.chart.show_drawing(_Drawing(self._draw, data))
        self._start_next()


class _Task:
    """The task of the worker."""

    def __init__(self, compute: Compute, design: Design) -> None:
        self._compute, self._design = compute, design

    def __call__(self, ticket: Ticket) -> object:
        return self._compute(self._design, ticket.cancelled)


class _Drawing:
    """Draws computed data for a size."""

    def __init__(self, draw: DrawData, data: object) -> None:
        self._draw, self._data = draw, data

    def __call__(self, size: QSizeF) -> Scene:
        return self._draw(self._data, size)
