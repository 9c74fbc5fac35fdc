"""What the dialogs that search share: a form on top, a running search with progress, and its result as text."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from app.background import Background, Task
from app.document import DesignDocument
from app.i18n import tr
from app.widgets.look import muted

_WHOLE: Final = 1000


class SearchDialog(QDialog):
    """Runs one search at a time in a worker; its result is text that can be copied."""

    def __init__(
        self, name: str, title: str, intro: str, document: DesignDocument, parent: QWidget | None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(680, 680)
        self._document = document
        self._background = Background(self)
        self._background.finished.connect(self.show_result)
        self._background.busy_changed.connect(self._show_busy)
        self._background.progressed.connect(self._show_progress)
        self.finished.connect(self._on_done)
        self.run_button = self._button(tr("Search"), "run", primary=True)
        self.run_button.clicked.connect(self.start)
        self.stop_button = self._button(tr("Stop"), "stop")
        self.stop_button.clicked.connect(self._background.cancel)
        self.progress = QProgressBar(self)
        self.progress.setRange(0, _WHOLE)
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(6)
        self.problem = QLabel("", self)
        self.problem.setWordWrap(True)
        self.problem.setProperty("severity", "error")
        self.answer = self._make_result()
        self.form = QVBoxLayout()
        self.form.setSpacing(8)
        self.loads = QHBoxLayout()
        self._arrange(intro)
        self._show_busy(False)
        self.problem.hide()

    @property
    def busy(self) -> bool:
        """Whether a search runs."""
        return self._background.busy

    def start(self) -> None:
        """Search with what the form says."""
        task = self.make_task()
        if task is not None:
            self.say("")
            self._background.start(task)

    def make_task(self) -> Task | None:
        """Return the search that the form describes; say what is wrong where it describes none."""
        raise NotImplementedError

    def show_result(self, found: object) -> None:
        """Show what was found."""
        raise NotImplementedError

    def say(self, problem: str) -> None:
        """Show what is wrong with the form; empty: nothing."""
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))

    def _make_result(self) -> QTextBrowser:
        browser = QTextBrowser(self)
        browser.setObjectName("search_result")
        browser.setAccessibleName(tr("Result of the search"))
        browser.setFrameShape(QFrame.Shape.NoFrame)
        browser.setOpenLinks(False)
        clear = browser.palette()
        clear.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
        browser.setPalette(clear)
        return browser

    def _button(self, text: str, name: str, primary: bool = False) -> QPushButton:
        button = QPushButton(text, self)
        button.setObjectName(f"search_{name}")
        button.setDefault(primary)
        button.setAutoDefault(primary)
        return button

    def _arrange(self, intro: str) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(12)
        column.addWidget(muted(intro, self))
        column.addLayout(self.form)
        column.addWidget(self.problem)
        running = QHBoxLayout()
        running.setSpacing(10)
        running.addWidget(self.run_button)
        running.addWidget(self.stop_button)
        running.addWidget(self.progress, 1, Qt.AlignmentFlag.AlignVCenter)
        kept = self.progress.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(kept)
        column.addLayout(running)
        column.addWidget(self.answer, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        last = QHBoxLayout()
        last.addLayout(self.loads)
        last.addStretch(1)
        last.addWidget(buttons)
        column.addLayout(last)

    def _show_busy(self, busy: bool) -> None:
        self.run_button.setEnabled(not busy)
        self.stop_button.setEnabled(busy)
        self.progress.setVisible(busy)
        self.progress.setValue(0)

    def _show_progress(self, share: float) -> None:
        self.progress.setValue(round(share * _WHOLE))

    def _on_done(self, _code: int) -> None:
        self._background.stop()
