"""The commands sweep, recommend and pair: output, exit codes and messages."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from model_core import evaluate
from model_core.search.readers import COLUMNS
from model_core.spec.io import read_design

DESIGN = "palm-540b-decode-low-latency"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_that_a_sweep_is_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(
        capsys, "sweep", DESIGN, "--axis", "workload.batch=1:64:*4", "--axis", "plan.ffn_layout=all"
    )
    assert found["designs"] == len(found["rows"]) == 20
    assert [axis["path"] for axis in found["axes"]] == ["workload.batch", "plan.ffn_layout"]
    assert found["axes"][0]["values"] == [1, 4, 16, 64]
    for row in found["rows"]:
        assert set(row) == {"workload.batch", "plan.ffn_layout", *COLUMNS}
        assert row["batch"] == row["workload.batch"]
    assert found["valid"] == sum(row["valid"] for row in found["rows"])


def test_that_a_row_is_what_evaluate_prints(capsys: pytest.CaptureFixture[str]) -> None:
    row = document(capsys, "sweep", DESIGN, "--axis", "workload.batch=128")["rows"][0]
    single = document(capsys, "evaluate", DESIGN, "--set", "workload.batch=128")
    assert row["step_s"] == pytest.approx(single["time"]["step_s"], rel=1e-12)
    assert row["memory_per_chip_bytes"] == pytest.approx(single["memory"]["per_chip_bytes"], rel=1e-12)
    assert row["mfu"] == pytest.approx(single["mfu"], rel=1e-12)
    assert row["bound_by"] == single["time"]["bound_by"]


def test_that_frontiers_alone_are_printed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    axes = ("--axis", "workload.batch=1:512:*2", "--axis", "plan.weight_dtype=int8,bfloat16")
    found = document(capsys, "sweep", DESIGN, *axes, "--pareto")
    assert "rows" not in found
    assert len(found["frontiers"]) == 4
    for frontier in found["frontiers"]:
        steps = [point[frontier["x"]] for point in frontier["points"]]
        assert steps == sorted(steps)
        assert all(
            point["plan.weight_dtype"] == frontier["of"]["plan.weight_dtype"] for point in frontier["points"]
        )


def test_that_a_csv_file_holds_every_design(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "designs.csv"
    axes = ("--axis", "workload.batch=1,2", "--axis", "plan.mesh=all")
    assert run(capsys, "sweep", DESIGN, *axes, "--csv", str(file))[0] == 0
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    assert len(rows) == 56
    assert list(rows[0]) == ["workload.batch", "plan.mesh", *COLUMNS]
    code, out, _ = run(capsys, "sweep", DESIGN, *axes, "--csv", "-")
    assert code == 0
    assert list(csv.DictReader(io.StringIO(out))) == rows


def test_that_a_csv_file_may_hold_the_frontier_only(capsys: pytest.CaptureFixture[str]) -> None:
    axes = ("--axis", "workload.batch=1:512", "--axis", "plan.ffn_layout=all")
    code, out, _ = run(capsys, "sweep", DESIGN, *axes, "--pareto", "--csv", "-")
    assert code == 0
    assert 2 < len(out.splitlines()) < 500


def test_that_a_sweep_is_summed_up_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "sweep", DESIGN, "--axis", "workload.batch=1:512:*2")
    assert code == 0
    assert "10 designs" in out
    assert "Frontier of step and cost per token" in out
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("sweep", DESIGN), 2, "--axis"),
        (("sweep", DESIGN, "--axis", "workload.batch=x"), 1, "workload.batch"),
        (("sweep", DESIGN, "--axis", "workload.bach=1"), 1, "workload.batch"),
        (("sweep", DESIGN, "--axis", "workload.batch=1", "--axis", "workload.batch=2"), 1, "given twice"),
        (
            ("sweep", DESIGN, "--axis", "model.n_heads=48,64", "--axis", "model.n_kv_heads=5"),
            1,
            "no combination",
        ),
        (("sweep", DESIGN, "--axis", "workload.batch=1", "--csv", "/nowhere/at/all.csv"), 1, "cannot write"),
        (("sweep", "palm-540", "--axis", "workload.batch=1"), 1, "palm-540b"),
        (("recommend", DESIGN, "--target", "tpto<=3ms"), 1, "tpot"),
        (("recommend", DESIGN, "--minimize", "pain"), 1, "pain"),
        (("recommend", DESIGN, "--minimize", "cost", "--maximize", "mfu"), 2, "not allowed"),
        (("recommend", DESIGN, "--fix", "workload.bach"), 1, "workload.batch"),
        (("pair", DESIGN, DESIGN), 1, "prefill"),
        (("pair", DESIGN, DESIGN, "--rate", "0"), 2, "above 0"),
        (("pair", DESIGN, "nothing"), 1, "nothing"),
    ],
)
def test_that_mistakes_name_what_is_wrong(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, part: str
) -> None:
    found, out, err = run(capsys, *arguments)
    assert found == code
    assert out == ""
    assert part in err
    assert "Traceback" not in err


def test_that_a_mistake_is_json_where_json_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "sweep", DESIGN, "--axis", "workload.batch=0", "--json")
    assert code == 1
    assert json.loads(out)["diagnostics"][0]["path"] == "workload.batch"


FIXED = ("--fix", "cluster", "--fix", "plan.mesh")


def test_that_a_recommendation_is_one_json_document(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "best.meshwright.json"
    found = document(
        capsys, "recommend", DESIGN, "--target", "tpot<=40ms", "--minimize", "cost", *FIXED, "-o", str(file)
    )
    assert found["goal"] == {"name": "cost", "direction": "minimize"}
    assert found["best"]["columns"]["step_s"] <= 0.04
    assert found["next_best"]["value"] > found["best"]["value"]
    assert [constraint["name"] for constraint in found["constraints"]] == ["memory of the chip", "tpot<=40ms"]
    design, problems = read_design(file)
    assert design is not None, problems
    assert evaluate(design).value("cost_chip_s_per_token") == pytest.approx(found["best"]["value"], rel=1e-9)


def test_that_a_recommendation_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "recommend", DESIGN, "--target", "tpot<=40ms", *FIXED)
    assert code == 0
    for part in ("Best: cost", "workload.batch", "Next best", "Constraints", "binds: without it"):
        assert part in out


def test_that_a_target_out_of_reach_fails_and_says_what_comes_closest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = run(capsys, "recommend", DESIGN, "--target", "tpot<=1ms", *FIXED)
    assert code == 1
    assert "Closest" in out
    assert "the best that can be had is tpot" in err
    code, out, _ = run(capsys, "recommend", DESIGN, "--target", "tpot<=1ms", *FIXED, "--json")
    assert code == 1
    assert json.loads(out)["diagnostics"][0]["code"] == "no_design"


def test_that_a_pair_is_sized(capsys: pytest.CaptureFixture[str]) -> None:
    pair = (
        "pair",
        "palm-540b-prefill-low-latency",
        DESIGN,
        "--rate",
        "20",
        "--set",
        "workload.input_length=1984",
    )
    found = document(capsys, *pair)
    assert found["chips"] == found["prefill"]["chips"] + found["decode"]["chips"]
    code, out, _ = run(capsys, *pair)
    assert code == 0
    for part in ("20 requests a second", "time to first token", "prefill servers per decode server"):
        assert part in out


def test_that_a_sweep_of_bounds_and_calibrated_designs_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", "palm-540b-decode-low-latency", "--axis"]
    assert main([*line, "plan.calibration=none,auto"]) == 0
    assert "some designs of this search are calibrated" in capsys.readouterr().err
    assert main([*line, "workload.batch=32,64"]) == 0
    assert capsys.readouterr().err == ""
