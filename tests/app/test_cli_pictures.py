"""The command line with the real renderer, in processes of their own and without a display."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT_S = 120
HIDDEN = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=folder,
        env=environment,
    )


def test_that_the_window_becomes_a_picture_where_there_is_no_display(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    assert "no display" in outcome.stderr
    assert outcome.stdout == ""
    assert (tmp_path / "meshwright-window.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_that_a_view_is_drawn_in_each_format(tmp_path: Path, name: str, start: bytes) -> None:
    outcome = run(tmp_path, "render", "palm-62b-decode-low-latency", "--view", "layout", "-o", name)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    assert (tmp_path / name).read_bytes().startswith(start)


def test_that_a_design_with_errors_is_drawn_and_named(tmp_path: Path) -> None:
    sets = ["--set", "workload.batch=100000"]
    outcome = run(tmp_path, "render", "palm-62b-decode-low-latency", "--view", "memory", "-o", "a.png", *sets)
    assert outcome.returncode == 1
    assert "do not fit" in outcome.stderr
    assert (tmp_path / "a.png").exists()


def test_that_a_picture_that_is_too_large_is_refused(tmp_path: Path) -> None:
    size = ["--size", "16000x16000", "--scale", "16"]
    outcome = run(tmp_path, "render", "palm-62b-decode-low-latency", "--view", "layout", "-o", "a.png", *size)
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("error: ")
    assert "Traceback" not in outcome.stderr
    assert not (tmp_path / "a.png").exists()
