"""Fine adjustment of a form's rows: one label width in every group, and rows of equal height."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from app.widgets.form import LABEL_WIDTH, Form

ROW_HEIGHT: Final = 24
_BREAK: Final = "\u200b"


def settle_row(form: Form, label: str, editor: QWidget) -> None:
    """Adjust the row just added.

    Names such as ``n_experts_per_token`` may break after an underscore, so that no group needs a wider
    label than another; the label of an editor of several lines stands beside the first.
    """
    text = next(child for child in form.findChildren(QLabel) if child.buddy() is editor)
    text.setText(label.replace("_", f"_{_BREAK}"))
    text.setAccessibleName(label)
    text.setFixedWidth(LABEL_WIDTH)
    grid = form.layout()
    if editor.layout() is not None and grid is not None:
        text.setMinimumHeight(ROW_HEIGHT + 4)
        grid.setAlignment(text, Qt.AlignmentFlag.AlignTop)
    elif editor.sizeHint().height() < ROW_HEIGHT:
        editor.setMinimumHeight(ROW_HEIGHT)
