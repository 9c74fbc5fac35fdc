"""Preferences: theme and language. A choice counts at once; there is nothing to confirm."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from app.i18n import LANGUAGES, tr
from app.storage.settings import SYSTEM_LANGUAGE, Settings
from app.theme.manager import ThemeManager
from app.widgets.choices import ChoiceBox
from app.widgets.form import Form


class PreferencesDialog(QDialog):
    """The choices; `language_chosen` asks for the window in another language."""

    language_chosen = Signal(str)

    def __init__(self, settings: Settings | None, themes: ThemeManager, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("preferences_dialog")
        self.setWindowTitle(tr("Preferences"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setMinimumWidth(420)
        self._settings = settings
        self._themes = themes
        form = Form(self)
        form.add("theme", tr("Theme"), self._theme_box(), tr("Colours of the window; exports have their own"))
        form.add(
            "language",
            tr("Language"),
            self._language_box(),
            tr("Language of every text; the window is rebuilt"),
        )
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 12)
        column.addWidget(form)
        column.addStretch(1)
        column.addWidget(buttons)

    def _theme_box(self) -> ChoiceBox:
        box = ChoiceBox(
            (("system", tr("As the desktop")), ("light", tr("Light")), ("dark", tr("Dark"))), self
        )
        box.set_choice(self._themes.choice)
        box.choice_committed.connect(self._on_theme)
        return box

    def _language_box(self) -> ChoiceBox:
        box = ChoiceBox(((SYSTEM_LANGUAGE, tr("As the desktop")), *LANGUAGES.items()), self)
        box.set_choice(SYSTEM_LANGUAGE if self._settings is None else self._settings.language)
        box.choice_committed.connect(self._on_language)
        return box

    def _on_theme(self, choice: str) -> None:
        self._themes.choose(choice)

    def _on_language(self, name: str) -> None:
        if self._settings is not None:
            self._settings.language = name
        self.language_chosen.emit(name)
