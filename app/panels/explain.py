"""The explanation of the selected number; it follows every evaluation."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QUrl
from PySide6.QtGui import QPalette, QResizeEvent, QTextBlockFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QFrame, QTextBrowser, QVBoxLayout, QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.explain_card import CardStyle, card_html, hint_html, missing_html
from app.panels.html_patch import patch_html
from app.theme import active
from app.theme.fonts import fixed


class _Browser(QTextBrowser):
    """A browser whose tabs lead to its right edge."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Follow the edge."""
        super().resizeEvent(event)
        self.align()

    def align(self) -> None:
        """Set the tab of every paragraph, where there are tabs."""
        document = self.document()
        if "\t" not in document.toRawText():
            return
        edge = self.viewport().width() - 2 * document.documentMargin()
        look = QTextBlockFormat()
        look.setTabPositions([QTextOption.Tab(edge, QTextOption.TabType.RightTab)])
        cursor = QTextCursor(document)
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(look)


class ExplainPanel(QWidget):
    """Shows `DesignDocument.selection` as a card whose text can be selected and copied."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("explain_panel")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._document = document
        self._html = ""
        self._key = ""
        self._browser = _Browser(self)
        self._build()
        document.selection_changed.connect(self._on_selection_changed)
        document.evaluation_changed.connect(self._on_evaluation_changed)
        self.refresh()

    @property
    def text(self) -> str:
        """The card as plain text."""
        return self._browser.toPlainText()

    def refresh(self) -> None:
        """Write the card anew if anything on it changed; place and selection stay while the key does."""
        html = self._card()
        key = self._document.selection
        if html == self._html:
            return
        before, self._html = self._html, html
        if key == self._key and patch_html(self._browser.document(), before, html):
            return
        bar = self._browser.verticalScrollBar()
        cursor = self._browser.textCursor()
        place = (bar.value(), cursor.anchor(), cursor.position()) if key == self._key else (0, 0, 0)
        self._key = key
        self._browser.setHtml(html)
        self._browser.align()
        self._restore(*place)

    def changeEvent(self, event: QEvent) -> None:
        """Take over the colours of a new theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.refresh()

    def _build(self) -> None:
        self._browser.setFrameShape(QFrame.Shape.NoFrame)
        self._browser.setOpenLinks(False)
        self._browser.setAccessibleName(tr("Explanation of the selected number"))
        self._browser.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._browser.document().setDocumentMargin(12)
        clear = self._browser.palette()
        clear.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
        self._browser.setPalette(clear)
        self._browser.anchorClicked.connect(self._on_anchor_clicked)
        self.setFocusProxy(self._browser)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._browser)

    def _card(self) -> str:
        style = CardStyle(active(), fixed().family(), self.font().pointSizeF())
        key, evaluation = self._document.selection, self._document.evaluation
        if not key:
            return hint_html(evaluation, style)
        quantity = None if evaluation is None else evaluation.explain(key)
        if quantity is not None:
            return card_html(quantity, style)
        picture = self._document.picture
        older = None if picture is None or picture is evaluation else picture.explain(key)
        if older is None:
            return missing_html(style)
        return card_html(older, style, tr("Of the last design that could be evaluated."))

    def _restore(self, scroll: int, anchor: int, position: int) -> None:
        if anchor != position:
            last = self._browser.document().characterCount() - 1
            cursor = self._browser.textCursor()
            cursor.setPosition(min(anchor, last))
            cursor.setPosition(min(position, last), QTextCursor.MoveMode.KeepAnchor)
            self._browser.setTextCursor(cursor)
        self._browser.verticalScrollBar().setValue(scroll)

    def _on_selection_changed(self, _key: str) -> None:
        self.refresh()

    def _on_evaluation_changed(self, _evaluation: object) -> None:
        self.refresh()

    def _on_anchor_clicked(self, url: QUrl) -> None:
        self._document.select(url.toString())
