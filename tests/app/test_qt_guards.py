"""Guards against traps that cost time before; each is measured, not assumed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

import app

APP = Path(app.__file__).parent
SOURCES = sorted(APP.rglob("*.py"))


def test_that_qt_calls_lose_no_reference_to_none(qapp: QApplication) -> None:
    thing = QObject()
    before = sys.getrefcount(None)
    for _ in range(1000):
        thing.setObjectName("name")
    assert abs(sys.getrefcount(None) - before) < 100


def modules_after(code: str) -> set[str]:
    script = (
        f"import os, sys\nos.environ['QT_QPA_PLATFORM'] = 'offscreen'\n{code}\nprint(' '.join(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=APP.parent
    )
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_that_the_command_line_does_not_import_qt() -> None:
    assert "PySide6" not in modules_after("import app.cli")


START = """
from PySide6.QtWidgets import QApplication
from presets import load_design
from app.main import Application
qt = QApplication([])
application = Application(qt, load_design("palm-540b-decode-low-latency"), None)
application.window.show()
qt.processEvents()
"""


def test_that_the_window_starts_without_heavy_libraries() -> None:
    loaded = modules_after(START)
    assert "PySide6" in loaded
    assert not loaded & {"pyqtgraph", "scipy", "jax", "torch", "matplotlib", "pandas"}


def calls(path: Path, method: str) -> list[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
    ]


def is_event_loop(path: Path, call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return path == APP / "main.py" and isinstance(owner, ast.Name) and owner.id == "qt"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(APP)))
def test_that_no_dialog_nests_an_event_loop(path: Path) -> None:
    nested = [c.lineno for name in ("exec", "exec_") for c in calls(path, name) if not is_event_loop(path, c)]
    assert not nested


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(APP)))
def test_that_no_lambda_is_connected(path: Path) -> None:
    found = [c.lineno for c in calls(path, "connect") if any(isinstance(a, ast.Lambda) for a in c.args)]
    assert not found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(APP)))
def test_that_colours_come_from_the_theme(path: Path) -> None:
    if path.is_relative_to(APP / "theme"):
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    named = [t for t in texts if re.search(r"#(?:[0-9a-fA-F]{3}){1,2}\b", t)]
    assert not named
