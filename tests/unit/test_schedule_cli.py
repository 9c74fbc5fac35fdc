"""The command ``schedule``: formats, exit codes and that it needs no Qt."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from model_core.schedule import KINDS, ops_text
from tests.unit.schedule_cases import made

SIZE = ("--pp", "8", "--microbatches", "20")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["schedule", *arguments]) == code
    return capsys.readouterr().out


def test_that_ops_prints_one_line_for_each_rank(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--kind", "dualpipe", *SIZE, "--format", "ops")
    assert text == ops_text(made("dualpipe", 8, 20))
    assert "F0.3" in text.split()


def test_that_json_has_the_agreed_fields(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--kind", "dualpipe", *SIZE, "--f", "1", "--i", "1", "--w", "0.5", "--fb", "2")
    document: dict[str, Any] = json.loads(printed(capsys, *options, "--format", "json"))
    assert {
        "kind",
        "pp",
        "microbatches",
        "makespan",
        "busy",
        "bubble",
        "peak_activations",
        "operations",
    } <= set(document)
    assert max(document["bubble"]) == 3 * (2 - 0.5 - 0.5) + 3
    assert json.loads(printed(capsys, *options, "--json")) == document


def test_that_times_take_units(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--kind", "1f1b", *SIZE, "--f", "10 ms", "--i", "10ms", "--w", "0.01", "--p2p", "1 us")
    assert json.loads(printed(capsys, *options, "--json"))["makespan"] == pytest.approx(0.81, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_that_every_kind_has_a_table_for_people(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    text = printed(capsys, "--kind", kind, "--pp", "4", "--microbatches", "8")
    assert KINDS[kind].title in text
    assert "Formula" in text
    assert "Peak activations" in text
    assert "holds" in text


def test_that_many_ranks_are_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--kind", "1f1b", "--pp", "100", "--microbatches", "8")
    assert len(text.splitlines()) < 50
    assert "…" in text


def test_that_list_prints_the_kinds_and_their_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--kind", "list")
    assert all(kind in text for kind in KINDS)


def test_that_schedules_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--compare", "1f1b,zb-h1,dualpipe", *SIZE)
    assert all(KINDS[kind].title in text for kind in ("1f1b", "zb-h1", "dualpipe"))
    document = json.loads(printed(capsys, "--compare", "1f1b,dualpipev", *SIZE, "--json"))
    assert [row["kind"] for row in document["schedules"]] == ["1f1b", "dualpipev"]


def test_that_a_file_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "schedule.csv"
    options = ("--kind", "dualpipev", "--pp", "4", "--microbatches", "8", "--format", "csv", "-o", str(path))
    assert printed(capsys, *options) == ""
    assert path.read_text().startswith("0F0,0F1,")
    assert main(["schedule", *options[:-1], str(tmp_path / "no" / "folder")]) == 1
    assert "error" in capsys.readouterr().err


def test_that_invalid_sizes_end_with_1_and_name_valid_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "--kind", "dualpipe", "--pp", "8", "--microbatches", "15"]) == 1
    assert "pp=8 microbatches=16" in capsys.readouterr().err
    document = json.loads(
        printed(capsys, "--kind", "dualpipe", "--pp", "7", "--microbatches", "20", "--json", code=1)
    )
    assert document["diagnostics"][0]["code"] == "schedule_size"
    assert main(["schedule", "--kind", "chimera", "--pp", "4", "--microbatches", "8", "--format", "csv"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--kind", "nonsense"),
        ("--kind", "1f1b", "--compare", "1f1b"),
        ("--compare", "1f1b,nonsense"),
        ("--kind", "1f1b", "--f", "fast"),
        ("--kind", "1f1b", "--w", "-1"),
        ("--kind", "1f1b", "--pp", "many"),
        ("--kind", "1f1b", "--format", "pdf"),
    ],
)
def test_that_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert main(["schedule", *arguments]) == 2
    assert "usage" in capsys.readouterr().err


def test_that_the_command_does_not_import_qt() -> None:
    script = (
        "import sys; from app.cli import main; "
        "main(['schedule', '--kind', 'dualpipe', '--format', 'ops']); "
        "sys.exit(any(name.startswith('PySide6') for name in sys.modules))"
    )
    outcome = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, timeout=60)
    assert outcome.returncode == 0


def test_that_a_file_that_cannot_be_written_is_a_diagnostic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "missing" / "x"
    assert main(["schedule", "--kind", "1f1b", "-o", str(file)]) == 1
    assert f"error: cannot write {file}: no such file or directory" in capsys.readouterr().err
