"""The command ``place``: fields of the contract, tables, and what it says about bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

SMALL = ["place", "--zipf", "0.6", "--layers", "3", "--experts", "32", "--slots", "40", "--gpus", "8"]
NODES = ["--nodes", "2", "--groups", "4", "--top-k", "4", "--group-limit", "2"]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_that_place_prints_the_fields_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    document = printed(capsys, *SMALL, *NODES)
    assert [len(row) for row in document["physical_to_logical"]] == [40] * 3
    assert [sum(row) for row in document["replicas"]] == [40] * 3
    assert len(document["balance"]["max_over_mean"]) == len(document["lower_bound"]) == 3
    assert document["duplicates"] == 0
    assert 1 <= document["cross_node_traffic"]["nodes_per_token"] <= 2
    assert document["migration_bytes"] == 0
    assert 0 < document["seconds"] < 60


@pytest.mark.parametrize("policy", ["contiguous", "hierarchical", "global", "exact", "dynamic"])
def test_that_every_policy_has_a_table(capsys: pytest.CaptureFixture[str], policy: str) -> None:
    assert main([*SMALL, *NODES, "--policy", policy]) == 0
    text = capsys.readouterr().out
    for part in ("max / mean GPU load", "lower bound", "nodes per token", "redundant experts", policy):
        assert part in text
    assert len([line for line in text.splitlines() if line.endswith(("1", "2", "3")) or "%" in line]) >= 3


def test_that_a_printed_placement_is_the_start_of_the_next(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*SMALL, "--policy", "contiguous", "--json"]) == 0
    (tmp_path / "map.json").write_text(capsys.readouterr().out, encoding="utf-8")
    more = ["--previous", str(tmp_path / "map.json"), "--policy", "incremental", "--budget", "420 MiB"]
    document = printed(capsys, *SMALL, *more)
    assert 0 < document["migrated_experts"] <= 10
    assert document["migration_bytes"] == document["migrated_experts"] * 42 * 2**20
    assert document["migration_seconds"] > 0
    assert main([*SMALL, *more]) == 0
    assert "migration" in capsys.readouterr().out


def test_that_loads_come_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "loads.csv"
    path.write_text("5,1,1,1\n0,0,0,0\n", encoding="utf-8")
    document = printed(capsys, "place", "--loads", str(path), "--slots", "6", "--gpus", "2", "--top-k", "2")
    assert document["replicas"][0] == [2, 2, 1, 1]
    assert document["balance"]["max_over_mean"][1] == 1
    assert document["evidence"] == "measured"


def test_that_more_experts_run_where_more_may(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL, "--slots", "64", "--policy", "dynamic", "--active", "5"]
    quick, thorough = printed(capsys, *arguments), printed(capsys, *arguments, "--thorough")
    assert thorough["balance"]["mean"] <= quick["balance"]["mean"] * 1.02
    assert min(quick["lower_bound"]) >= 1


def test_that_an_infeasible_request_is_an_error_with_the_nearest_sizes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*SMALL, "--slots", "41", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["diagnostics"][0]["code"] == "place_not_even"
    assert "40, 48" in captured.err


def test_that_bad_files_are_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    size = ["--slots", "4", "--gpus", "2"]
    assert main(["place", "--loads", str(tmp_path / "absent.json"), *size]) == 1
    assert "cannot read" in capsys.readouterr().err
    (tmp_path / "map.json").write_text("[[0, 1]]", encoding="utf-8")
    assert main([*SMALL, "--previous", str(tmp_path / "map.json")]) == 1
    assert "divide" in capsys.readouterr().err


def test_that_groups_that_do_not_divide_are_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--nodes", "8", "--groups", "4", "--top-k", "2"]) == 0
    assert "warning: groups: 4 groups do not divide by 8 nodes" in capsys.readouterr().err


def test_that_an_impossible_share_is_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL, "--zipf", "2", "--top-k", "4"]
    document = printed(capsys, *arguments)
    assert [d["code"] for d in document["diagnostics"]] == ["place_share_impossible"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["place", "--slots", "4", "--gpus", "2"],
        [*SMALL, "--policy", "best"],
        [*SMALL, "--budget", "5 apples"],
        [*SMALL, "--seed", "-1"],
        [*SMALL, "--zipf", "many"],
        [*SMALL, "--network-bandwidth", "0 GB/s"],
        [*SMALL, "--model", "palm-8b"],
    ],
)
def test_that_wrong_usage_is_told(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    assert "usage" in capsys.readouterr().err


def test_that_place_never_imports_qt() -> None:
    code = f"import sys; from app.cli import main; main({SMALL!r}); sys.exit(any(m.startswith('PySide6') for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_that_a_previous_map_that_is_wrong_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "before.json"
    file.write_text("no map")
    assert main([*SMALL, "--previous", str(file)]) == 1
    assert f"error: {file}: " in capsys.readouterr().err
