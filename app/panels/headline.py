"""The strip of headline numbers over the views."""

from __future__ import annotations

from html import escape
from typing import Final, NamedTuple

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QWidget

from app.document import DesignDocument
from app.i18n import tr
from app.panels.headline_data import CellData, headline
from app.panels.numbers import MISSING
from app.panels.wording import EVIDENCE_MARKS, EVIDENCE_ROLES, evidence_meaning, evidence_name
from app.theme import Role, active
from app.theme.fonts import tabular
from model_core.spec import Evidence

_PADDING: Final = 12
_MARK_SCALE: Final = 0.68
_ROLES: Final = {"good": Role.GOOD, "error": Role.ERROR}


class _Type(NamedTuple):
    """A font with its metrics, which are too dear to make for every text painted."""

    font: QFont
    metrics: QFontMetrics

    def fitted(self, text: str, room: int) -> tuple[str, int]:
        """Return a text, shortened to a width where it must be, and the width that it takes."""
        width = self.metrics.horizontalAdvance(text)
        if width <= room:
            return text, width
        text = self.metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        return text, self.metrics.horizontalAdvance(text)


class HeadlineCell(QAbstractButton):
    """Caption, value, and below them the change and a detail. Draws itself, so that new numbers move nothing."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        # Nothing shines through, so that the toolbar and the window need not be painted under new numbers.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._data = CellData("")
        self._muted = False
        self._types = _types()
        self.clicked.connect(self._on_clicked)

    @property
    def cell(self) -> CellData:
        """What is shown."""
        return self._data

    def set_cell(self, data: CellData, muted: bool) -> None:
        """Show other numbers; greyed where they are older than the design."""
        if data == self._data and muted is self._muted:
            return
        caption_stays = muted is self._muted and _caption(data) == _caption(self._data)
        self._data, self._muted = data, muted
        self.setAccessibleName(f"{data.caption}: {data.value}")
        parts = (data.detail, data.change.remark if data.change else "")
        self.setAccessibleDescription(", ".join(filter(None, parts)))
        self.setToolTip(_tooltip(data))
        self.setEnabled(bool(data.key))
        top = self._lines()[1].top() if caption_stays else 0
        self.update(0, top, self.width(), self.height() - top)

    def sizeHint(self) -> QSize:
        """Return room for three lines."""
        return QSize(150, sum(kind.metrics.height() for kind in self._types[:3]) + 14)

    def minimumSizeHint(self) -> QSize:
        """Return the width at which texts are still told apart."""
        return QSize(92, self.sizeHint().height())

    def changeEvent(self, event: QEvent) -> None:
        """Take over another font."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.ApplicationFontChange):
            self._types = _types()
            self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw in the active theme, the caption only where it is to be painted."""
        theme, data = active(), self._data
        painter = QPainter(self)
        lit = self.isChecked() or self.underMouse()
        painter.fillRect(self.rect(), theme.color(Role.HOVER if lit else Role.PANEL))
        painter.setPen(theme.color(Role.BORDER))
        painter.drawLine(self.width() - 1, 0, self.width() - 1, self.height())
        caption, value, detail = self._lines()
        quiet = Role.TEXT_DISABLED if self._muted else Role.TEXT_MUTED
        strong = Role.TEXT_DISABLED if self._muted or data.value == MISSING else Role.TEXT
        if event.rect().top() <= caption.bottom():
            self._draw_caption(painter, caption, quiet)
        value.setLeft(
            self._draw(painter, value, self._types[1], _ROLES.get(data.state, strong), data.value) + 7
        )
        small = self._types[2]
        if small.metrics.horizontalAdvance(data.band) <= value.width():
            self._draw(painter, value.adjusted(0, 3, 0, 3), small, quiet, data.band)
        if data.change is not None:
            role = quiet if data.change.better is None else Role.GOOD if data.change.better else Role.ERROR
            detail.setLeft(self._draw(painter, detail, small, role, data.change.text) + 8)
        if data.change is None or small.metrics.horizontalAdvance(data.detail) <= detail.width():
            self._draw(painter, detail, small, quiet, data.detail)
        self._draw_focus(painter)
        painter.end()

    def _lines(self) -> tuple[QRect, QRect, QRect]:
        heights = [kind.metrics.height() for kind in self._types[:3]]
        top = (self.height() - sum(heights)) // 2
        width = self.width() - 2 * _PADDING
        caption = QRect(_PADDING, top, width, heights[0])
        value = QRect(_PADDING, caption.bottom() + 1, width, heights[1])
        return caption, value, QRect(_PADDING, value.bottom() + 1, width, heights[2])

    def _draw_caption(self, painter: QPainter, box: QRect, role: Role) -> None:
        evidence = self._data.evidence
        mark = "" if evidence is None else EVIDENCE_MARKS[evidence]
        room = box.adjusted(0, 0, -14 if mark else 0, 0)
        right = self._draw(painter, room, self._types[0], role, self._data.caption)
        if evidence is not None:
            usual = self._muted or evidence is Evidence.MODELLED
            color = role if usual else EVIDENCE_ROLES[evidence]
            place = box.adjusted(right + 5 - box.left(), 0, 0, 0)
            self._draw(painter, place, self._types[3], color, mark)

    def _draw(self, painter: QPainter, box: QRect, kind: _Type, role: Role, text: str) -> int:
        """Draw a text, elided to its box, and return where it ends."""
        if not text or box.width() <= 8:
            return box.left()
        painter.setFont(kind.font)
        painter.setPen(active().color(role))
        shown, width = kind.fitted(text, box.width())
        # From a baseline: a box with flags would have Qt lay the text out a second time.
        above = (box.height() - kind.metrics.height()) // 2 + kind.metrics.ascent()
        painter.drawText(box.left(), box.top() + above, shown)
        return box.left() + width

    def _draw_focus(self, painter: QPainter) -> None:
        accent = active().color(Role.ACCENT)
        if self.isChecked():
            painter.fillRect(0, self.height() - 2, self.width() - 1, 2, accent)
        if self.hasFocus():
            painter.setPen(accent)
            painter.drawRect(self.rect().adjusted(1, 1, -3, -2))

    def _on_clicked(self) -> None:
        self.chosen.emit(self._data.key)


def _caption(data: CellData) -> tuple[str, Evidence | None, str]:
    """Return what the first line depends on, and whether the cell can be clicked."""
    return data.caption, data.evidence, data.key


def _types() -> tuple[_Type, _Type, _Type, _Type]:
    """Return the types of caption, value, detail and mark."""
    fonts = (tabular(0.92), tabular(1.4, bold=True), tabular(0.92), tabular(_MARK_SCALE))
    caption, value, detail, mark = (_Type(font, QFontMetrics(font)) for font in fonts)
    return caption, value, detail, mark


class HeadlineStrip(QWidget):
    """The cells; they follow the document's evaluation, baseline and selection."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("headline_strip")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(tr("Headline numbers"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._document = document
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        self.cells = [HeadlineCell(self) for _ in headline(None, None)]
        for cell in self.cells:
            cell.chosen.connect(self._on_chosen)
            row.addWidget(cell, 1)
        self._chosen: QWidget | None = None
        document.evaluation_changed.connect(self._on_changed)
        document.baseline_changed.connect(self._on_changed)
        document.stale_changed.connect(self._on_changed)
        document.selection_changed.connect(self._on_selection_changed)
        self._on_changed(None)

    def _on_changed(self, _what: object) -> None:
        document = self._document
        for cell, data in zip(self.cells, headline(document.evaluation, document.baseline), strict=True):
            cell.set_cell(data, document.stale)
        self._on_selection_changed(document.selection)

    def _on_chosen(self, key: str) -> None:
        sender = self.sender()
        self._chosen = sender if isinstance(sender, QWidget) else None
        self._document.select(key)

    def _on_selection_changed(self, key: str) -> None:
        matching = [cell for cell in self.cells if key and cell.cell.key == key]
        marked = self._chosen if self._chosen in matching else next(iter(matching), None)
        for cell in self.cells:
            cell.setChecked(cell is marked)


def _tooltip(data: CellData) -> str:
    lines = [f"<b>{escape(data.caption)}: {escape(data.value)}</b>"]
    if data.detail:
        lines.append(escape(data.detail))
    if data.band:
        lines.append(escape(tr("calibrated: within {band} on the figures it was fitted to", band=data.band)))
    if data.evidence is not None:
        lines.append(f"{escape(evidence_name(data.evidence))}: {escape(evidence_meaning(data.evidence))}")
    if data.change is not None:
        lines.append(escape(data.change.remark))
    if data.note:
        lines.append(escape(data.note))
    return "<br>".join(lines)
