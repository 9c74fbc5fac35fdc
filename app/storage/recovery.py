"""Recovery: a snapshot of the design after every change, and what sessions that died have left.

Each session has three files in one folder: ``<id>.lock`` (held while it lives), ``<id>.meshwright.json``
(the snapshot, a normal design file) and ``<id>.origin`` (the path the design was opened from).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final
from uuid import uuid4

from PySide6.QtCore import QIODevice, QLockFile, QObject, QSaveFile, QStandardPaths, QThreadPool

from app.document import DesignDocument
from model_core.spec import Design

_SNAPSHOT: Final = ".meshwright.json"


def recovery_folder() -> Path:
    """Return the folder of the snapshots."""
    data = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.AppDataLocation)
    return Path(data) / "recovery"


@dataclass(frozen=True)
class LostSession:
    """The snapshot of a session that did not end properly."""

    snapshot: Path
    origin: Path | None
    changed_s: int

    def discard(self) -> None:
        """Delete what the session left."""
        stem = self.snapshot.name.removesuffix(_SNAPSHOT)
        for suffix in (_SNAPSHOT, ".origin", ".lock"):
            self.snapshot.with_name(stem + suffix).unlink(missing_ok=True)


class RecoveryStore(QObject):
    """Writes the snapshots of one document, off the main thread, latest first.

    A change while a snapshot is being written waits for it, and only the latest of several waits.
    """

    def __init__(
        self, document: DesignDocument, folder: Path | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._folder = recovery_folder() if folder is None else folder
        self._session = uuid4().hex
        self._guard = Lock()
        self._waiting: tuple[Design, Path | None] | None = None
        self._writing = False
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = QLockFile(str(self._folder / f"{self._session}.lock"))
        self._lock.setStaleLockTime(0)
        self._lock.tryLock(0)
        document.undo_stack.indexChanged.connect(self._on_index_changed)
        document.undo_stack.cleanChanged.connect(self._on_clean_changed)

    @property
    def snapshot(self) -> Path:
        """The file of this session's snapshot; it exists only while there are unsaved changes."""
        return self._folder / f"{self._session}{_SNAPSHOT}"

    def lost_sessions(self) -> tuple[LostSession, ...]:
        """List the snapshots of sessions that are dead, latest first."""
        found = [self._lost(path) for path in self._folder.glob(f"*{_SNAPSHOT}") if path != self.snapshot]
        return tuple(sorted((s for s in found if s is not None), key=_changed, reverse=True))

    def flush(self) -> None:
        """Wait until the latest snapshot is on the disk."""
        self._pool.waitForDone()

    def close(self) -> None:
        """End the session properly: its snapshot is not needed any more."""
        self._unfollow()
        with self._guard:
            self._waiting = None
        self._pool.waitForDone()
        self._remove()
        self._lock.unlock()

    def abandon(self) -> None:
        """End the session without an answer about its changes: its snapshot is offered at the next start."""
        self._unfollow()
        self.flush()
        self._lock.unlock()

    def _unfollow(self) -> None:
        self._document.undo_stack.indexChanged.disconnect(self._on_index_changed)
        self._document.undo_stack.cleanChanged.disconnect(self._on_clean_changed)

    def _lost(self, snapshot: Path) -> LostSession | None:
        stem = snapshot.name.removesuffix(_SNAPSHOT)
        lock = QLockFile(str(self._folder / f"{stem}.lock"))
        lock.setStaleLockTime(0)
        if not lock.tryLock(0):
            return None
        lock.unlock()
        origin = snapshot.with_name(f"{stem}.origin")
        text = origin.read_text(encoding="utf-8") if origin.exists() else ""
        return LostSession(snapshot, Path(text) if text else None, int(snapshot.stat().st_mtime))

    def _on_index_changed(self, _index: int) -> None:
        if self._document.modified:
            self._schedule()

    def _on_clean_changed(self, clean: bool) -> None:
        if clean:
            with self._guard:
                self._waiting = None
            self._pool.waitForDone()
            self._remove()
        else:
            self._schedule()

    def _schedule(self) -> None:
        with self._guard:
            self._waiting = (self._document.design, self._document.path)
            if self._writing:
                return
            self._writing = True
        self._pool.start(self._write_waiting)

    def _write_waiting(self) -> None:
        while True:
            with self._guard:
                waiting, self._waiting = self._waiting, None
                if waiting is None:
                    self._writing = False
                    return
            self._write(*waiting)

    def _write(self, design: Design, path: Path | None) -> None:
        from model_core.spec.io import dump_design

        _write_file(self.snapshot.with_name(f"{self._session}.origin"), str(path or ""))
        _write_file(self.snapshot, dump_design(design))

    def _remove(self) -> None:
        self.snapshot.unlink(missing_ok=True)
        self.snapshot.with_name(f"{self._session}.origin").unlink(missing_ok=True)


def _changed(session: LostSession) -> int:
    return session.changed_s


def _write_file(path: Path, text: str) -> None:
    file = QSaveFile(str(path))
    if file.open(QIODevice.OpenModeFlag.WriteOnly):
        file.write(text.encode())
        file.commit()
