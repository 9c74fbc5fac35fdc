"""Text in the user's language. English is the key; translations are flat JSON files beside the icons.

Does not need Qt, so that the command line can use it. `install_qt` adds the texts of Qt's own dialogs.
"""

from __future__ import annotations

import json
import locale
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import resources

if TYPE_CHECKING:
    from PySide6.QtCore import QTranslator
    from PySide6.QtWidgets import QApplication

    from model_core.diagnostics import Diagnostic

LANGUAGES: Final = {"en": "English", "zh_CN": "简体中文"}
FOLDER: Final = Path(resources.__file__).parent / "i18n"
_SOURCE_LANGUAGE: Final = "en"
# The one mutable thing here, as a language belongs to the process like its locale; empty: not yet asked for.
_chosen: dict[str, str] = {}


def system_language() -> str:
    """Return the language that the environment asks for, or English."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(variable):
            return _nearest(os.environ[variable])
    return _nearest(locale.getlocale()[0] or "")


def _nearest(name: str) -> str:
    return "zh_CN" if name.lower().startswith(("zh", "chinese")) else _SOURCE_LANGUAGE


def language() -> str:
    """Return the language in use."""
    if "language" not in _chosen:
        _chosen["language"] = system_language()
    return _chosen["language"]


def set_language(name: str) -> None:
    """Use a language; text that is made from now on is in it.

    Raises:
        ValueError: there are no translations for it.
    """
    if name not in LANGUAGES:
        raise ValueError(f"no language {name!r}; there are {', '.join(LANGUAGES)}")
    _chosen["language"] = name


@cache
def translations(name: str) -> dict[str, str]:
    """Return the merged translations of a language: source text to translation."""
    merged: dict[str, str] = {}
    for path in sorted([*FOLDER.glob(f"{name}.json"), *FOLDER.glob(f"parts/*.{name}.json")]):
        merged |= json.loads(path.read_text(encoding="utf-8"))
    return merged


def tr_text(english: str) -> str:
    """Translate a text that is not a literal here, such as a field's description; English where none is known."""
    if language() == _SOURCE_LANGUAGE:
        return english
    return translations(language()).get(english, english)


def tr(text: str, **values: object) -> str:
    """Translate a literal and fill its placeholders: ``tr("Open {name}", name=path.name)``."""
    translated = tr_text(text)
    return translated.format(**values) if values else translated


def tr_diagnostic(diagnostic: Diagnostic) -> tuple[str, str]:
    """Return a diagnostic's message and hint in the user's language."""
    values = {
        name: tr_text(value) if isinstance(value, str) else value for name, value in diagnostic.values.items()
    }
    template = diagnostic.template
    return tr_text(template.message).format(**values), tr_text(template.hint).format(**values)


def install_qt(app: QApplication) -> QTranslator | None:
    """Give Qt's own texts (buttons of dialogs, context menus) the language in use.

    Returns:
        The translator installed, for `QApplication.removeTranslator`; none for English.
    """
    if language() == _SOURCE_LANGUAGE:
        return None
    from PySide6.QtCore import QLibraryInfo, QTranslator

    translator = QTranslator(app)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if not translator.load(f"qtbase_{language()}", folder):
        return None
    app.installTranslator(translator)
    return translator
