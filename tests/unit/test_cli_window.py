"""Opening the window from the command line, and what happens where there is no display."""

import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from app.cli import main
from app.display import has_display
from model_core.spec import Design
from model_core.spec.io import write_design

DESIGN = "palm-62b-decode-low-latency"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stand-ins for the window and the renderer, which tests of the application cover."""
    found: dict[str, Any] = {}
    window, render = ModuleType("app.main"), ModuleType("app.figures.render")

    def run_window(design: Design, path: Path | None) -> int:
        found["window"] = (design, path)
        return 0

    def render_view(design: Design, view: str, out: Path, **options: Any) -> None:
        if out.parent.name == "gone":
            raise FileNotFoundError(2, "No such file or directory")
        found["render"] = (design, view, out, options)

    window.run_window = run_window  # type: ignore[attr-defined]
    render.render_view = render_view  # type: ignore[attr-defined]
    render.VIEWS = ("layout", "window")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "app.main", window)
    monkeypatch.setitem(sys.modules, "app.figures.render", render)
    return found


def with_display(monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    monkeypatch.setattr("app.display.has_display", lambda: answer)


def test_that_no_command_opens_the_default_design(
    calls: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_display(monkeypatch, True)
    assert main([]) == 0
    design, path = calls["window"]
    assert design.name == "palm-540b-decode-low-latency"
    assert path is None


def test_that_a_file_is_opened_as_a_file_unless_it_is_changed(
    calls: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from presets import load_design

    with_display(monkeypatch, True)
    file = tmp_path / "mine.json"
    write_design(load_design(DESIGN), file)
    assert main([str(file)]) == 0
    assert calls["window"] == (load_design(DESIGN), file)
    assert main([str(file), "--set", "workload.batch=3"]) == 0
    assert calls["window"][1] is None
    assert calls["window"][0].workload.batch == 3


def test_that_without_a_display_the_window_is_drawn(
    calls: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_display(monkeypatch, False)
    assert main([DESIGN]) == 0
    design, view, out, _ = calls["render"]
    assert (design.name, view, out) == (DESIGN, "window", Path("meshwright-window.png"))
    captured = capsys.readouterr()
    assert "no display" in captured.err
    assert captured.out == ""
    assert "window" not in calls


def test_that_a_mistyped_command_is_answered_with_the_command(
    calls: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evalute"]) == 1
    assert "evaluate" in capsys.readouterr().err
    assert calls == {}


def test_that_render_passes_its_options_on(calls: dict[str, Any]) -> None:
    options = ["--theme", "dark", "--size", "800x600", "--scale", "2", "--lang", "zh_CN"]
    assert main(["render", DESIGN, "--view", "layout", "-o", "a/b.svg", *options]) == 0
    _, view, out, given = calls["render"]
    assert (view, out) == ("layout", Path("a/b.svg"))
    assert given == {"theme": "dark", "size": (800, 600), "scale": 2.0, "lang": "zh_CN"}


def test_that_render_lists_its_views(calls: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--view", "list"]) == 0
    assert capsys.readouterr().out.split() == ["layout", "window"]


def test_that_an_unknown_view_is_wrong_usage(
    calls: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", DESIGN, "--view", "layuot", "-o", "a.png"]) == 2
    assert "layout, window" in capsys.readouterr().err


def test_that_a_picture_that_cannot_be_written_exits_with_1(
    calls: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", DESIGN, "--view", "layout", "-o", "gone/a.png"]) == 1
    assert "No such file" in capsys.readouterr().err


def test_that_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_display(monkeypatch, True)
    monkeypatch.setitem(sys.modules, "app.main", None)
    assert main([]) == 1
    error = capsys.readouterr().err
    assert "app.main" in error
    assert "meshwright.sh" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("environment", "platform", "answer"),
    [
        ({}, "linux", False),
        ({}, "darwin", True),
        ({}, "win32", True),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":98765"}, "linux", False),
        ({"DISPLAY": "nonsense"}, "linux", False),
        ({"DISPLAY": "localhost:59999"}, "linux", False),
        ({"WAYLAND_DISPLAY": "wayland-none"}, "linux", False),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", False),
        ({"QT_QPA_PLATFORM": "minimal"}, "darwin", False),
        ({"QT_QPA_PLATFORM": "vnc:size=800x600"}, "linux", True),
    ],
)
def test_that_a_display_is_found_where_there_is_one(
    environment: dict[str, str], platform: str, answer: bool
) -> None:
    assert has_display(environment, platform) is answer


def test_that_a_display_counts_only_while_it_answers(tmp_path: Path) -> None:
    path = tmp_path / "wayland-1"
    environment = {"XDG_RUNTIME_DIR": str(tmp_path), "WAYLAND_DISPLAY": "wayland-1"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()
        assert has_display(environment, "linux")
    assert not has_display(environment, "linux")


def test_that_a_display_over_the_network_counts_while_it_answers() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        number = server.getsockname()[1] - 6000
        assert has_display({"DISPLAY": f"127.0.0.1:{number}.0"}, "linux")


def test_that_a_command_that_does_not_exist_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["evaluat", "palm"], ["import", "x"]):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert f"there is no command {words[0]}" in error
        assert "Nearest names: " in error
    assert main(["palm-540b-decode-low-latency", "x"]) == 2
    assert "unrecognized arguments: x" in capsys.readouterr().err
