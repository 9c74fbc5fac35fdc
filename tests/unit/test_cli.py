"""The command line: output, exit codes and what it imports."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import presets
from app.cli import main
from model_core import evaluate
from model_core.spec.io import read_design, write_design

DESIGN = "palm-540b-decode-low-latency"
SUBPROCESS_TIMEOUT_S = 60


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=SUBPROCESS_TIMEOUT_S,
        cwd=cwd,
    )


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[Any, str]:
    """Run a command with ``--json`` and return its document and what went to standard error."""
    assert main([*arguments, "--json"]) == code
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_that_presets_lists_names(capsys: pytest.CaptureFixture[str]) -> None:
    document, errors = printed(capsys, "presets")
    assert document == {kind: list(presets.names(kind)) for kind in presets.KINDS}
    assert errors == ""


def test_that_presets_has_a_text_form_with_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets"]) == 0
    assert "TPU v4 4x4x4" in capsys.readouterr().out


@pytest.mark.parametrize("name", presets.names("designs"))
def test_that_every_preset_design_evaluates(capsys: pytest.CaptureFixture[str], name: str) -> None:
    document, _ = printed(capsys, "evaluate", name)
    assert document["design"] == name
    assert document["parameters"]["total"] == sum(document["parameters"]["groups"].values())
    assert document["memory"]["fits"]
    if name.startswith(("palm", "llama")):
        assert 0 < document["mfu"] < 1
        assert document["time"]["latency_s"] > 0


def test_that_evaluate_prints_the_fields_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    document, _ = printed(capsys, "evaluate", DESIGN)
    fields = "design diagnostics parameters kv_cache memory time collectives mfu tokens_per_s cost_chip_s_per_token"
    assert {*fields.split(), "evidence"} <= set(document)
    assert {"total", "active", "groups"} <= set(document["parameters"])
    assert {"bytes_per_token", "max_context"} <= set(document["kv_cache"])
    assert {"capacity_bytes", "per_chip_bytes", "fits", "items"} <= set(document["memory"])
    times = "latency_s step_s compute_s memory_s communication_s exposed_communication_s bound_by"
    assert set(times.split()) <= set(document["time"])
    collective = {"op", "axes", "tensor", "bytes_per_chip", "time_s", "exposed_s"}
    assert all(collective <= set(entry) for entry in document["collectives"])
    assert all({"name", "bytes"} <= set(item) for item in document["memory"]["items"])


def test_that_evaluate_has_a_text_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", DESIGN]) == 0
    text = capsys.readouterr().out
    for part in (
        "MFU",
        "Memory per chip",
        "KV cache",
        "Time of one step",
        "Collectives",
        "all-gather",
        "TPU v4",
    ):
        assert part in text


def test_that_set_changes_fields_and_whole_parts(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["workload.batch=8", "cluster=h100-1x8", "model=palm-8b", "cluster.chip.hbm_capacity=40 GB"]
    document, _ = printed(capsys, "evaluate", DESIGN, *(f"--set={text}" for text in sets))
    assert document["memory"]["capacity_bytes"] == 40e9
    assert document["parameters"]["total"] < 10e9


def test_that_a_whole_part_is_set_before_the_fields_inside_it(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["--set", "cluster.chip.hbm_capacity=20 GB", "--set", "cluster.chip=a100-80gb"]
    document, _ = printed(capsys, "evaluate", DESIGN, *sets)
    assert document["memory"]["capacity_bytes"] == 20e9


def test_that_a_file_is_a_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.meshwright.json"
    write_design(presets.load_design(DESIGN).replace(name="mine"), path)
    assert printed(capsys, "evaluate", str(path))[0]["design"] == "mine"
    assert main(["check", str(path)]) == 0


def test_that_a_file_with_a_preset_like_name_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_design(presets.load_design(DESIGN).replace(name="mine"), "palm-540")
    assert printed(capsys, "evaluate", "palm-540")[0]["design"] == "mine"


def test_that_check_is_silent_about_a_good_design(capsys: pytest.CaptureFixture[str]) -> None:
    document, errors = printed(capsys, "check", DESIGN)
    assert document == {"design": DESIGN, "diagnostics": []}
    assert errors == ""
    assert main(["check", DESIGN]) == 0
    assert "no problems" in capsys.readouterr().out


def test_that_a_design_that_does_not_fit_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["--set", "workload.batch=100000"]
    assert main(["check", DESIGN, *sets]) == 1
    assert "do not fit" in capsys.readouterr().out
    document, errors = printed(capsys, "evaluate", DESIGN, *sets, code=1)
    assert not document["memory"]["fits"]
    assert "out_of_memory" in {entry["code"] for entry in document["diagnostics"]}
    assert "do not fit" in errors


@pytest.mark.parametrize(
    ("arguments", "code", "path", "part"),
    [
        ([DESIGN, "--set", "workload.bach=1"], "field_unknown", "workload.bach", "workload.batch"),
        ([DESIGN, "--set", "batch=1"], "field_unknown", "batch", "workload.batch"),
        ([DESIGN, "--set", "workload.batch=many"], "field_invalid", "workload.batch", "10,000,000"),
        ([DESIGN, "--set", "cluster=tpu-v4"], "preset_unknown", "cluster", "tpu-v4-2x2x1"),
        (
            [DESIGN, "--set", "cluster.chip.hbm_bandwidth=fast"],
            "field_invalid",
            "cluster.chip.hbm_bandwidth",
            "GB/s",
        ),
        (["palm-540b-decode"], "preset_unknown", "", "palm-540b-decode-high-throughput"),
        (["llama-3.1-70b-h10"], "preset_unknown", "", "llama-3.1-70b-h100"),
        (["gone.meshwright.json"], "file_unreadable", "", "no such file"),
        (["."], "file_unreadable", "", "not a regular file"),
        (["x" * 5000], "file_unreadable", "", "too long"),
        (["nul\0"], "preset_unknown", "", "Nearest"),
    ],
)
@pytest.mark.parametrize("command", ["check", "evaluate"])
def test_that_bad_input_is_a_diagnostic(
    capsys: pytest.CaptureFixture[str], command: str, arguments: list[str], code: str, path: str, part: str
) -> None:
    document, errors = printed(capsys, command, *arguments, code=1)
    (entry,) = document["diagnostics"]
    assert (entry["code"], entry["path"], entry["severity"]) == (code, path, "error")
    assert part in f"{entry['message']} {entry['hint']}"
    assert entry["message"] in errors


def test_that_a_broken_file_is_a_diagnostic_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{"meshwright": {\n  "format": ')
    document, _ = printed(capsys, "check", str(path), code=1)
    assert document["diagnostics"][0]["message"].startswith("line 2, column 13")


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate"],
        ["evaluate", DESIGN, "--set", "batch"],
        ["evaluate", DESIGN, "--set", "=1"],
        ["evaluate", DESIGN, "--jsn"],
        ["presets", "extra"],
        ["render", DESIGN],
        ["render", DESIGN, "--view", "layout", "-o", "picture.bmp"],
        ["render", DESIGN, "--view", "layout", "-o", "p.png", "--size", "10x10"],
        ["render", DESIGN, "--view", "layout", "-o", "p.png", "--size", "99999x900"],
        ["render", DESIGN, "--view", "layout", "-o", "p.png", "--scale", "nan"],
        ["render", DESIGN, "--view", "layout", "-o", "p.png", "--theme", "blue"],
        ["render", DESIGN, "--view", "layout"],
        [DESIGN, "extra"],
    ],
)
def test_that_wrong_usage_exits_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: meshwright" in captured.err


def test_that_help_lists_only_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for command in ("presets", "check", "evaluate", "render"):
        assert command in text
        assert main([command, "--help"]) == 0


def test_that_a_bug_is_a_diagnostic(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("app.cli_design.open_design", broken)
    document, errors = printed(capsys, "evaluate", DESIGN, code=1)
    assert document["diagnostics"][0]["code"] == "internal"
    assert "RuntimeError: boom" in errors
    assert "Traceback" not in errors


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_that_no_argument_ends_in_an_exception(
    capsys: pytest.CaptureFixture[str], name: str, path: str, value: str
) -> None:
    code = main(["check", name, f"--set={path}={value}", "--json"])
    captured = capsys.readouterr()
    assert code in (0, 1, 2)
    if code < 2:
        assert "internal" not in {entry["code"] for entry in json.loads(captured.out)["diagnostics"]}


PROBE = """
import json, sys
from app.cli import main
from model_core import evaluate
for arguments in (["presets"], ["check", {design!r}], ["evaluate", {design!r}, "--json"]):
    assert main(arguments) == 0
found = sorted({{name.partition(".")[0] for name in sys.modules}} & {{"PySide6", "shiboken6", "pyqtgraph"}})
print(json.dumps(found), file=sys.stderr)
"""


def test_that_evaluate_and_check_never_import_qt() -> None:
    outcome = subprocess.run(
        [sys.executable, "-c", PROBE.format(design=DESIGN)],
        check=True,
        capture_output=True,
        text=True,
        timeout=SUBPROCESS_TIMEOUT_S,
    )
    assert json.loads(outcome.stderr) == []


def test_that_python_m_app_is_the_command(tmp_path: Path) -> None:
    outcome = run("evaluate", DESIGN, "--json")
    assert outcome.returncode == 0
    assert outcome.stderr == ""
    assert json.loads(outcome.stdout)["design"] == DESIGN
    assert run("--version").stdout.startswith("meshwright ")
    failed = run("evaluate", str(tmp_path / "gone.json"))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "Traceback" not in failed.stderr


def test_that_a_reader_that_ends_early_leaves_no_message() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "app", "presets"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(SUBPROCESS_TIMEOUT_S) == 1


def test_that_text_which_no_terminal_can_show_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "odd.meshwright.json"
    write_design(presets.load_design(DESIGN).replace(name="模型 µ"), path)
    assert read_design(path)[1] == ()
    outcome = subprocess.run(
        [sys.executable, "-m", "app", "evaluate", str(path)],
        check=False,
        capture_output=True,
        timeout=SUBPROCESS_TIMEOUT_S,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"},
    )
    assert outcome.returncode == 0
    assert rb"\u6a21" in outcome.stdout
    assert outcome.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("output", ["> /dev/full", ">&-"])
@pytest.mark.parametrize("command", ["presets", "presets --json", f"evaluate {DESIGN}"])
def test_that_output_which_cannot_be_written_is_said(command: str, output: str) -> None:
    line = f'"{sys.executable}" -m app {command} {output}'
    outcome = subprocess.run(["/bin/sh", "-c", line], check=False, capture_output=True, text=True)
    reason = "No space left on device" if "full" in output else "Bad file descriptor"
    assert outcome.returncode == 1
    assert outcome.stderr == f"error: cannot write the output: {reason}\n"


def test_that_the_entry_point_imports_little_before_it_can_be_interrupted() -> None:
    probe = "import app.cli, sys; print(sorted({'numpy', 'pydantic', 'model_core'} & set(sys.modules)))"
    outcome = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True)
    assert outcome.stdout == "[]\n"


def test_that_an_interrupt_ends_without_a_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.cli_design.open_design", interrupted)
    assert main(["check", DESIGN]) == 130
    assert capsys.readouterr() == ("", "")


def test_that_an_empty_name_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    document, _ = printed(capsys, "check", "", code=1)
    assert document["diagnostics"][0]["code"] == "preset_unknown"


def test_that_an_unknown_calibration_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    document, _ = printed(capsys, "check", DESIGN, "--set=plan.calibration=foo", code=1)
    (found,) = [d for d in document["diagnostics"] if d["code"] == "calibration_unknown"]
    assert found["severity"] == "error"


def test_that_evaluate_has_every_quantity(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("usd_per_million_tokens", "joules_per_token", "hfu", "bubble_fraction")
    for design, present in (("llama-3.1-70b-h100", names[:2]), ("mt-nlg-530b-training", names[2:])):
        document, _ = printed(capsys, "evaluate", design)
        known = {name for name in names if document[name] is not None}
        assert set(present) <= known
        assert {name: document["quantities"].get(name) for name in names} == {n: document[n] for n in names}
        assert document["quantities"]["step_s"] == pytest.approx(document["time"]["step_s"])
        assert main(["evaluate", design]) == 0
        text = capsys.readouterr().out
        labels = [q.label for q in evaluate(presets.load_design(design)).quantities.values()]
        missing = [label for label in labels if label not in text]
        assert set(missing) <= {"Compute time", "Memory time", "Communication time", "Exposed communication"}


def test_that_bounds_carry_signs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", DESIGN, "--set=plan.calibration=none"]) == 0
    bound = capsys.readouterr().out
    assert re.search(r"Latency per token +≥ ", bound)
    assert re.search(r"MFU +≤ ", bound)
    assert not re.search(r"Memory per chip +[≥≤]", bound)
    assert main(["evaluate", DESIGN]) == 0
    assert not re.search("[≥≤]", capsys.readouterr().out)


def test_that_training_names_its_degrees_and_what_communicates(capsys: pytest.CaptureFixture[str]) -> None:
    document, _ = printed(capsys, "evaluate", "deepseek-v3-training")
    operations = {entry["op"] for entry in document["collectives"]}
    assert "forward, expert blocks: dispatch and combine" in operations
    assert "gradient reduction" in operations
    assert all(entry["time_s"] > 0 and entry["bytes_per_chip"] != 0 for entry in document["collectives"])
    assert main(["evaluate", "deepseek-v3-training"]) == 0
    title = capsys.readouterr().out.split("\n\n")[0]
    assert "256 x 8 H800 SXM, 2,048 chips; TP 1, PP 16, DP 128, EP 64" in title
    assert "attention" not in title
    assert "KV cache" not in title


def test_that_a_cluster_is_named_by_the_shape_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", DESIGN, "--set=cluster.topology.shape=2x2x4"])
    assert "TPU v4 2x2x4, 16 chips" in capsys.readouterr().out
    main(["evaluate", DESIGN])
    assert "TPU v4 4x4x4, 64 chips" in capsys.readouterr().out


def test_that_a_send_names_the_axis_of_the_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assignments = ("cluster=h100-2x8", "plan.mesh.pipeline=ib")
    document, _ = printed(capsys, "evaluate", "llama-3.1-70b-h100", *(f"--set={a}" for a in assignments))
    assert [entry["axes"] for entry in document["collectives"] if entry["op"] == "send"] == ["ib"]
