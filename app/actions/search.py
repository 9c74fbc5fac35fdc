"""Searches in dialogs: a recommendation, and the pairing of prefill and decode."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.actions.registry import ActionSpec
from app.document import DesignDocument
from app.i18n import tr
from model_core.spec import Phase


class SearchActions:
    """Opens the dialogs; they are imported on first use."""

    def __init__(self, document: DesignDocument, window: QWidget) -> None:
        self._document = document
        self._window = window

    def specs(self) -> tuple[ActionSpec, ...]:
        """Describe the actions."""
        return (
            ActionSpec(
                "search.recommend",
                tr("&Recommend…"),
                self.recommend,
                ("Ctrl+R",),
                "recommend",
                tr("Find the best design that meets targets"),
                enabled=self._is_inference,
            ),
            ActionSpec(
                "search.pairing",
                tr("Pair prefill and &decode…"),
                self.pair,
                (),
                "pairing",
                tr("Chips for a rate of requests"),
                enabled=self._is_inference,
            ),
        )

    def recommend(self) -> None:
        """Open the recommendation."""
        from app.dialogs.recommend import RecommendDialog

        RecommendDialog(self._document, self._window).open()

    def pair(self) -> None:
        """Open the pairing."""
        from app.dialogs.pairing import PairingDialog

        PairingDialog(self._document, self._window).open()

    def _is_inference(self) -> bool:
        return self._document.design.workload.phase is not Phase.TRAINING
