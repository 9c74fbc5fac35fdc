"""The card "If you change it": every single change with what it does; a click makes it, as one undo step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QListView,
    QSplitter,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.background import Background, Ticket
from app.document import DesignDocument
from app.i18n import tr
from app.panels.explain import ExplainPanel
from app.theme import Role, active
from app.widgets.look import heading
from model_core.results import Evaluation

if TYPE_CHECKING:
    from app.panels.effects_data import EffectRow

QUIET_MS: Final = 250
"""Changes are not looked at while a value is being dragged."""

Index = QModelIndex | QPersistentModelIndex
_PADDING: Final = 12
_ROW: Final = Qt.ItemDataRole.UserRole


class _Model(QAbstractListModel):
    """The rows."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: tuple[EffectRow, ...] = ()

    def show(self, rows: tuple[EffectRow, ...]) -> None:
        """Show other rows."""
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of rows."""
        return len(self.rows)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Let a row be chosen; one that is no good cannot be."""
        good = index.isValid() and not self.rows[index.row()].problem
        enabled = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return enabled if good else Qt.ItemFlag.NoItemFlags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the words of a row."""
        row = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.change
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return row.spoken
        return row if role == _ROW else None


class _Delegate(QStyledItemDelegate):
    """Two lines: the change, and what it does; better and worse by arrow, word and colour."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:
        """Return room for two lines."""
        return QSize(120, 2 * option.fontMetrics.height() + 12)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw in the active theme."""
        theme = active()
        row: EffectRow = index.data(_ROW)
        rect, state, metrics = option.rect, option.state, option.fontMetrics
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, theme.color(Role.SELECTION))
        elif state & QStyle.StateFlag.State_MouseOver and not row.problem:
            painter.fillRect(rect, theme.color(Role.HOVER))
        painter.setPen(theme.color(Role.TEXT_DISABLED if row.problem else Role.TEXT))
        first = QRect(rect.left() + _PADDING, rect.top() + 5, rect.width() - 2 * _PADDING, metrics.height())
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(
            first, flags, metrics.elidedText(row.title, Qt.TextElideMode.ElideRight, first.width())
        )
        second = first.translated(0, metrics.height())
        if row.problem:
            painter.drawText(second, flags, row.problem)
            return
        for part in row.parts:
            role = Role.TEXT_MUTED if part.better is None else Role.GOOD if part.better else Role.ERROR
            painter.setPen(theme.color(role))
            text = metrics.elidedText(part.text, Qt.TextElideMode.ElideRight, max(second.width(), 0))
            painter.drawText(second, flags, text)
            second.setLeft(second.left() + metrics.horizontalAdvance(text) + 10)


class EffectsPanel(QWidget):
    """Follows the document, at rest and while visible."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("effects_panel")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._document = document
        self._asked: Evaluation | None = None
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(QUIET_MS)
        self._quiet.timeout.connect(self._ask)
        self._background = Background(self)
        self._background.finished.connect(self._on_found)
        self._model = _Model(self)
        self.list = QListView(self)
        self.list.setObjectName("effects_list")
        self.list.setAccessibleName(tr("If you change it"))
        self.list.setModel(self._model)
        self.list.setItemDelegate(_Delegate(self.list))
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setMouseTracking(True)
        self.list.setUniformItemSizes(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.clicked.connect(self._on_activated)
        self.list.activated.connect(self._on_activated)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(4)
        title = heading(tr("If you change it"), self)
        title.setContentsMargins(_PADDING, 0, _PADDING, 0)
        title.setToolTip(tr("Each single change and what it does to the present design; a click makes it"))
        column.addWidget(title)
        column.addWidget(self.list, 1)
        document.evaluation_changed.connect(self._on_evaluation_changed)

    @property
    def rows(self) -> tuple[EffectRow, ...]:
        """The changes shown."""
        return self._model.rows

    def apply(self, row: int) -> None:
        """Make a change, as one undo step."""
        chosen = self.rows[row]
        if not chosen.problem:
            self._document.push(chosen.design, tr("Change {field}", field=chosen.title))

    def stop(self) -> None:
        """End the worker; the panel is not used after this."""
        self._quiet.stop()
        self._background.stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up with the document."""
        super().showEvent(event)
        self._quiet.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Leave the processor to others."""
        super().hideEvent(event)
        self._quiet.stop()

    def _on_evaluation_changed(self, _evaluation: object) -> None:
        if self.isVisible():
            self._quiet.start()

    def _ask(self) -> None:
        evaluation = self._document.evaluation
        if evaluation is None or evaluation is self._asked:
            return
        self._asked = evaluation
        self._background.start(_Task(evaluation))

    def _on_found(self, rows: tuple[EffectRow, ...]) -> None:
        self._model.show(rows)

    def _on_activated(self, index: QModelIndex) -> None:
        # A click may come as two signals; the rows are replaced in between by what the change leads to.
        asked = self._asked
        if asked is not None and asked is self._document.evaluation and asked.design == self._document.design:
            self.apply(index.row())


class _Task:
    """The task of the worker."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def __call__(self, ticket: Ticket) -> object:
        from app.panels.effects_data import effect_rows

        return effect_rows(self._evaluation, ticket.cancelled)


class ExplainColumn(QSplitter):
    """The explanation of a number, and below it what would change it."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setObjectName("explain_column")
        self.explain = ExplainPanel(document, self)
        self.effects = EffectsPanel(document, self)
        self.addWidget(self.explain)
        self.addWidget(self.effects)
        self.setSizes([460, 300])
        self.setChildrenCollapsible(False)
