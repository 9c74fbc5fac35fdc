"""Typed access to the user's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QByteArray, QSettings

RECENT_LIMIT: Final = 10
SYSTEM_LANGUAGE: Final = "system"
# Raise when docks or toolbars change so that an old arrangement would not fit any more.
LAYOUT_VERSION: Final = 1


class Settings:
    """One settings file; every key that the application uses is here."""

    def __init__(self, store: QSettings | None = None) -> None:
        self._store = QSettings() if store is None else store

    @property
    def theme(self) -> str:
        """The theme chosen: ``system``, ``light`` or ``dark``."""
        return self._text("theme", "system")

    @theme.setter
    def theme(self, choice: str) -> None:
        self._store.setValue("theme", choice)

    @property
    def language(self) -> str:
        """The language chosen, or ``system``."""
        return self._text("language", SYSTEM_LANGUAGE)

    @language.setter
    def language(self, name: str) -> None:
        self._store.setValue("language", name)

    @property
    def folder(self) -> Path:
        """The folder last used in a file dialog."""
        text = self._text("folder", "")
        return Path(text) if text and Path(text).is_dir() else Path.home()

    @folder.setter
    def folder(self, folder: Path) -> None:
        self._store.setValue("folder", str(folder))

    @property
    def recent(self) -> tuple[Path, ...]:
        """Files opened or saved lately that still exist, latest first."""
        return tuple(path for path in self._recent_paths() if path.is_file())

    def add_recent(self, path: Path) -> None:
        """Put a file at the head of the recent ones."""
        absolute = path.absolute()
        kept = [absolute, *(p for p in self._recent_paths() if p != absolute)]
        self._write_recent(kept[:RECENT_LIMIT])

    def clear_recent(self) -> None:
        """Forget the recent files."""
        self._write_recent([])

    def window_layout(self) -> tuple[QByteArray, QByteArray]:
        """Return the window's saved geometry and its arrangement of docks; empty when none."""
        return self._bytes("window/geometry"), self._bytes("window/state")

    def save_window_layout(self, geometry: QByteArray, state: QByteArray) -> None:
        """Keep the window's geometry and arrangement."""
        self._store.setValue("window/geometry", geometry)
        self._store.setValue("window/state", state)

    @property
    def collapsed(self) -> frozenset[str]:
        """The ids of the input sections that are folded."""
        text = self._text("window/collapsed", "")
        return frozenset(text.split(",")) - {""}

    @collapsed.setter
    def collapsed(self, ids: frozenset[str]) -> None:
        self._store.setValue("window/collapsed", ",".join(sorted(ids)))

    def _recent_paths(self) -> list[Path]:
        count = self._store.beginReadArray("recent")
        paths = []
        for index in range(count):
            self._store.setArrayIndex(index)
            paths.append(Path(self._text("path", "")))
        self._store.endArray()
        return [path for path in paths if path.name]

    def _write_recent(self, paths: list[Path]) -> None:
        self._store.remove("recent")
        self._store.beginWriteArray("recent", len(paths))
        for index, path in enumerate(paths):
            self._store.setArrayIndex(index)
            self._store.setValue("path", str(path))
        self._store.endArray()

    def _text(self, key: str, default: str) -> str:
        value = self._store.value(key, default)
        return value if isinstance(value, str) else default

    def _bytes(self, key: str) -> QByteArray:
        value = self._store.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()
