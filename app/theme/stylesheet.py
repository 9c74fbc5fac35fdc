"""The style sheet: spacing in steps of 4 and 8 px, hairline borders, no ornament.

Widgets ask for a look by dynamic properties, not by colour: ``muted``, ``heading``, ``title``, ``card``,
``primary`` (all true or absent) and ``severity`` (error, warning, info).
"""

from __future__ import annotations

from string import Template

from app.theme.roles import Role, Theme

_SHEET = Template("""
QToolTip { background: $card; color: $text; border: 1px solid $field_border; padding: 6px; }

QMainWindow::separator { background: $border; width: 1px; height: 1px; }
QMainWindow::separator:hover { background: $accent; }
QMenuBar { background: $panel; padding: 2px 4px; }
QMenuBar::item { padding: 4px 8px; border-radius: 4px; background: transparent; }
QMenuBar::item:selected { background: $hover; }
QMenu { background: $panel; border: 1px solid $field_border; padding: 4px; }
QMenu::item { padding: 5px 24px 5px 8px; border-radius: 4px; }
QMenu::item:selected { background: $selection; color: $text; }
QMenu::item:disabled { color: $text_disabled; }
QMenu::icon { padding-left: 6px; }
QMenu::separator { height: 1px; background: $border; margin: 4px 8px; }

QToolBar { background: $panel; border: none; border-bottom: 1px solid $border; padding: 4px 8px; spacing: 4px; }
QToolBar#headline_bar { padding: 0; spacing: 0; }
QToolBar::separator { background: $border; width: 1px; margin: 4px 6px; }
QToolBar QToolButton { border: 1px solid transparent; border-radius: 5px; padding: 4px 8px; }
QToolBar QToolButton:hover { background: $hover; }
QToolBar QToolButton:pressed, QToolBar QToolButton:checked { background: $selection; }
QToolBar QToolButton:focus { border-color: $accent; }
QStatusBar { background: $panel; border-top: 1px solid $border; color: $text_muted; }
QStatusBar::item { border: none; }
QStatusBar QLabel { color: $text_muted; padding: 2px 8px; }

QDockWidget { titlebar-close-icon: none; titlebar-normal-icon: none; }
QDockWidget > QWidget { background: $panel; }
QWidget#dock_title { background: $panel; border-bottom: 1px solid $border; }
QWidget[panel="true"] { background: $panel; }
QScrollArea, QScrollArea > QWidget > QWidget[panel="true"] { background: $panel; border: none; }

QTabWidget::pane { border: none; border-top: 1px solid $border; background: $panel; }
QTabWidget::tab-bar { left: 8px; }
QTabBar { background: transparent; }
QTabBar::tab { background: $panel; padding: 7px 10px; color: $text_muted; border: none; border-bottom: 2px solid transparent; }
QTabBar::tab:hover { color: $text; }
QTabBar::tab:selected { color: $text; border-bottom: 2px solid $accent; }
QTabBar::tab:focus { background: $hover; }

QLineEdit, QComboBox, QPlainTextEdit, QAbstractSpinBox {
  background: $field; border: 1px solid $field_border; border-radius: 5px; padding: 3px 7px; min-height: 18px;
  selection-background-color: $selection; selection-color: $text;
}
QLineEdit:hover, QComboBox:hover { border-color: $text_muted; }
QLineEdit:focus, QComboBox:focus, QPlainTextEdit:focus { border: 1px solid $accent; }
QLineEdit[severity="error"] { border: 1px solid $error; }
QLineEdit:disabled, QComboBox:disabled { color: $text_disabled; background: $window; }
QLineEdit:read-only { background: $card; }
QComboBox::drop-down { border: none; width: 20px; }
QComboBox::down-arrow { image: none; width: 0; height: 0; }
QComboBox QAbstractItemView { background: $panel; border: 1px solid $field_border; outline: none; padding: 2px; }
QComboBox QAbstractItemView::item { min-height: 24px; padding: 0 6px; }

QDialogButtonBox, QMessageBox { dialogbuttonbox-buttons-have-icons: 0; }
QDialog { background: $panel; }
QPushButton { background: $panel; border: 1px solid $field_border; border-radius: 5px; padding: 5px 14px; min-height: 18px; }
QPushButton:hover { background: $hover; }
QPushButton:pressed { background: $selection; }
QPushButton:focus { border-color: $accent; }
QPushButton:disabled { color: $text_disabled; border-color: $border; }
QPushButton[primary="true"], QPushButton:default { background: $accent; color: $on_accent; border-color: $accent; }
QPushButton[primary="true"]:disabled { background: $border; color: $text_disabled; border-color: $border; }
QToolButton[flat="true"] { border: 1px solid transparent; border-radius: 4px; padding: 3px; background: transparent; }
QToolButton[flat="true"]:hover { background: $hover; }
QToolButton[flat="true"]:focus { border-color: $accent; }
QToolButton#section_header {
  border: none; border-radius: 0; padding: 8px 12px; background: $card; font-weight: 600; text-align: left;
  border-bottom: 1px solid $border;
}
QToolButton#section_header:hover { background: $hover; }
QToolButton#section_header:focus { border: 1px solid $accent; }

QAbstractItemView { background: $panel; border: none; outline: none; }
QAbstractItemView::item { padding: 3px 6px; }
QAbstractItemView::item:hover { background: $hover; color: $text; }
QAbstractItemView::item:selected { background: $selection; color: $text; }
QHeaderView::section { background: $card; color: $text_muted; border: none; border-bottom: 1px solid $border; padding: 4px 8px; }

QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: $field_border; border-radius: 3px; margin: 2px; min-height: 24px; min-width: 24px; }
QScrollBar::handle:hover { background: $text_muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: none; }

QLabel[muted="true"] { color: $text_muted; }
QLabel[heading="true"] { font-weight: 600; }
QLabel[title="true"] { font-weight: 600; font-size: 14pt; }
QLabel[severity="error"] { color: $error; }
QLabel[severity="warning"] { color: $warning; }
QLabel[severity="info"] { color: $text_muted; }
QFrame[card="true"] { background: $card; border: 1px solid $border; border-radius: 6px; }
QFrame#banner { background: $selection; border: none; border-bottom: 1px solid $border; }
QFrame#palette_frame { background: $panel; border: 1px solid $field_border; border-radius: 8px; }
QFrame#palette_frame QLineEdit { border: none; font-size: 12pt; padding: 8px 10px; background: transparent; }
""")


def stylesheet(theme: Theme) -> str:
    """Return the application's style sheet in a theme's colours."""
    return _SHEET.substitute({str(role): theme.css(role) for role in Role})
