"""Keeps the pauses of Python's garbage collector out of edits: it works while nothing happens."""

from __future__ import annotations

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

from app.document import DesignDocument

IDLE_MS: Final = 1500
# Young objects are looked at as ever; all objects only after four million, to which no burst of edits comes.
_THRESHOLDS: Final = (2000, 20, 100)


class IdleCollector(QObject):
    """Collects all garbage when the document has been at rest for a while.

    What was made until the first rest (modules, widgets, presets: most of all objects) is set aside, so that
    later collections need not look at it; after `renew` the next one does so once more.
    """

    def __init__(self, document: DesignDocument, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settled = False
        self._before = gc.get_threshold()
        gc.set_threshold(*_THRESHOLDS)
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(IDLE_MS)
        self._rest.timeout.connect(self.collect)
        document.design_changed.connect(self._on_changed)
        document.evaluation_changed.connect(self._on_changed)
        self._rest.start()

    def renew(self) -> None:
        """Look at everything again next time: much of what was set aside is gone, such as a window."""
        self._settled = False
        self._rest.start()

    def collect(self) -> None:
        """Collect now."""
        if self._settled:
            gc.collect()
            return
        self._settled = True
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def stop(self) -> None:
        """Leave the collector as it was."""
        self._rest.stop()
        gc.unfreeze()
        gc.set_threshold(*self._before)

    def _on_changed(self, _value: object) -> None:
        self._rest.start()
