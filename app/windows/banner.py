"""The offer to restore what a session that ended badly has left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QDateTime, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from app.i18n import tr
from app.storage.recovery import LostSession
from app.theme import Role
from app.theme.icons import pixmap
from model_core.spec import Design

Restore = Callable[[Design, Path | None, Callable[[], object]], object]


class RecoveryBanner(QFrame):
    """A strip above the views: restore, discard, or keep for later; one lost session after the other."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("banner")
        self._sessions: list[LostSession] = []
        self._restore: Restore | None = None
        self._symbol = QLabel(self)
        self._text = QLabel(self)
        self._text.setObjectName("banner_text")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 12, 8)
        row.setSpacing(8)
        row.addWidget(self._symbol)
        row.addWidget(self._text, 1)
        restore = self._button("banner_restore", tr("Restore"), row)
        restore.setProperty("primary", True)
        restore.clicked.connect(self._on_restore)
        self._button("banner_discard", tr("Discard"), row).clicked.connect(self._on_discard)
        self._button("banner_later", tr("Keep for later"), row).clicked.connect(self._on_later)
        self.hide()

    def offer(self, sessions: tuple[LostSession, ...], restore: Restore) -> None:
        """Offer lost sessions; ``restore`` gets the design, its file and what to call when done."""
        self._sessions = list(sessions)
        self._restore = restore
        self._show_next()

    def _button(self, name: str, text: str, row: QHBoxLayout) -> QPushButton:
        button = QPushButton(text, self)
        button.setObjectName(name)
        row.addWidget(button)
        return button

    def _show_next(self) -> None:
        if not self._sessions:
            self.hide()
            return
        session = self._sessions[0]
        when = QDateTime.fromSecsSinceEpoch(session.changed_s).toString("yyyy-MM-dd HH:mm")
        name = session.origin.name if session.origin else tr("a design that was never saved")
        self._text.setText(
            tr(
                "Meshwright ended unexpectedly. Changes to {name} of {when} can be restored.",
                name=name,
                when=when,
            )
        )
        self._symbol.setPixmap(pixmap("reset", 18, self.devicePixelRatioF(), Role.ACCENT))
        self.show()

    def _on_restore(self) -> None:
        from model_core.spec.io import read_design

        session = self._sessions[0]
        design, _ = read_design(session.snapshot)
        if design is None or self._restore is None:
            self._text.setText(
                tr("This snapshot cannot be read. Its file is {path}.", path=str(session.snapshot))
            )
            return
        self._restore(design, session.origin, self._on_discard)

    def _on_discard(self) -> None:
        self._sessions.pop(0).discard()
        self._show_next()

    def _on_later(self) -> None:
        self._sessions.pop(0)
        self._show_next()
