"""Settings and recovery."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.storage.recovery import RecoveryStore
from app.storage.settings import RECENT_LIMIT, Settings
from model_core.spec.io import read_design


def test_that_settings_come_back() -> None:
    settings = Settings()
    assert (settings.theme, settings.language) == ("system", "system")
    settings.theme = "dark"
    settings.language = "zh_CN"
    settings.collapsed = frozenset({"section_model"})
    settings.save_window_layout(QByteArray(b"g"), QByteArray(b"s"))
    again = Settings()
    assert (again.theme, again.language) == ("dark", "zh_CN")
    assert again.collapsed == {"section_model"}
    assert again.window_layout() == (QByteArray(b"g"), QByteArray(b"s"))


def test_that_recent_files_are_ordered_bounded_and_exist(tmp_path: Path) -> None:
    settings = Settings()
    paths = [tmp_path / f"{n}.meshwright.json" for n in range(RECENT_LIMIT + 3)]
    for path in paths:
        path.touch()
        settings.add_recent(path)
    settings.add_recent(paths[-2])
    paths[-1].unlink()
    assert settings.recent[0] == paths[-2]
    assert len(settings.recent) == RECENT_LIMIT - 1
    settings.clear_recent()
    assert settings.recent == ()


def test_that_the_folder_falls_back_to_home(tmp_path: Path) -> None:
    settings = Settings()
    assert settings.folder == Path.home()
    settings.folder = tmp_path
    assert settings.folder == tmp_path
    settings.folder = tmp_path / "gone"
    assert settings.folder == Path.home()


@pytest.fixture
def store(document: DesignDocument, tmp_path: Path) -> RecoveryStore:
    return RecoveryStore(document, tmp_path / "recovery", document)


def test_that_every_change_is_in_the_snapshot(store: RecoveryStore, document: DesignDocument) -> None:
    assert not store.snapshot.exists()
    for value in (65, 66, 67):
        document.edit("workload.batch", value, merge_key="b")
        store.flush()
        assert read_design(store.snapshot) == (document.design, ())
    document.undo_stack.undo()
    assert not store.snapshot.exists()
    document.undo_stack.redo()
    store.flush()
    assert read_design(store.snapshot) == (document.design, ())
    store.close()
    assert not store.snapshot.exists()


def test_that_saving_removes_the_snapshot(
    store: RecoveryStore, document: DesignDocument, tmp_path: Path
) -> None:
    document.edit("workload.batch", 128)
    document.save(tmp_path / "a.meshwright.json")
    assert not store.snapshot.exists()
    store.close()


def test_that_a_living_session_is_not_lost(
    store: RecoveryStore, document: DesignDocument, tmp_path: Path
) -> None:
    document.edit("workload.batch", 128)
    store.flush()
    other = RecoveryStore(document, tmp_path / "recovery", document)
    assert other.lost_sessions() == ()
    other.close()
    store.close()


CRASH = """
import os, sys
from pathlib import Path
os.environ["QT_QPA_PLATFORM"] = "offscreen"
from PySide6.QtWidgets import QApplication
from app.document import DesignDocument
from app.storage.recovery import RecoveryStore
from presets import load_design
app = QApplication([])
document = DesignDocument(load_design("palm-540b-decode-low-latency"), path=Path("/somewhere/mine.meshwright.json"))
store = RecoveryStore(document, Path(sys.argv[1]))
document.edit("workload.batch", 321)
store.flush()
os._exit(9)
"""


def test_that_a_session_that_died_is_found_and_discarded(
    document: DesignDocument, tmp_path: Path, qtbot: QtBot
) -> None:
    folder = tmp_path / "recovery"
    subprocess.run([sys.executable, "-c", CRASH, str(folder)], check=False, cwd=Path(__file__).parents[2])
    store = RecoveryStore(document, folder, document)
    (lost,) = store.lost_sessions()
    recovered, _ = read_design(lost.snapshot)
    assert recovered is not None
    assert recovered.workload.batch == 321
    assert lost.origin == Path("/somewhere/mine.meshwright.json")
    lost.discard()
    assert store.lost_sessions() == ()
    store.close()
    assert list(folder.iterdir()) == []
