"""Fitting: known factors are found again, shipped calibrations can be refitted, bad rows are refused."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import presets
from app.cli import main
from model_core import evaluate
from model_core.calibrate import Fit, FitError, calibration_document, calibration_text, fit_file, fit_lines
from model_core.calibrate.batches import Latencies
from model_core.hardware.calibration import efficiency_of
from model_core.published.conditions import request_designs
from model_core.published.rows import PublishedFile, PublishedRow
from model_core.spec import replace_at

SETUPS = {name: presets.load_published(name).calibration for name in presets.published_names()}
SHIPPED = {name: setup.name for name, setup in SETUPS.items() if setup is not None}
FITTED = list(SHIPPED)


@cache
def fitted(name: str) -> Fit:
    return fit_file(presets.load_published(name), presets)


def shipped_document(name: str) -> dict[str, Any]:
    path = Path(presets.__file__).parent / "calibrations" / f"{SHIPPED[name]}.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_that_what_can_be_fitted_is_shipped() -> None:
    assert {"a100-80gb-fastertransformer", "h100-sxm-tensorrt-llm", "tpu-v4-pope-2022"} <= set(
        SHIPPED.values()
    )
    assert set(SHIPPED.values()) <= set(presets.calibration_names())


@pytest.mark.parametrize("name", FITTED)
def test_that_a_refit_gives_the_shipped_calibration(name: str) -> None:
    fit, shipped = fitted(name), shipped_document(name)
    calibration = presets.load_calibration(SHIPPED[name])
    for factor, kept in zip(fit.calibration.factors, calibration.factors, strict=True):
        assert factor.name == kept.name
        assert factor.value == pytest.approx(kept.value, rel=0.01, abs=1e-9)
    assert fit.calibration.error_band == pytest.approx(calibration.error_band, abs=0.003)
    assert [row["id"] for row in shipped["residuals"]] == [row.id for row in fit.residuals]
    for row, residual in zip(shipped["residuals"], fit.residuals, strict=True):
        assert residual.error == pytest.approx(row["error"], abs=0.003)


@pytest.mark.parametrize("name", FITTED)
def test_that_there_are_more_rows_than_fitted_factors(name: str) -> None:
    file = presets.load_published(name)
    assert file.calibration is not None
    free = [factor for factor in file.calibration.factors if factor.fitted]
    assert len(free) < sum(row.fit for row in file.rows)
    for factor in free:
        assert factor.low is not None
        assert factor.high is not None
    assert all(factor.source for factor in file.calibration.factors)


@pytest.mark.parametrize("name", FITTED)
def test_that_stacked_latencies_are_those_of_the_evaluation(name: str) -> None:
    file = presets.load_published(name)
    designs = []
    for row in file.rows:
        if row.request is not None:
            designs += list(request_designs(row, row.request, file, presets))
        elif row.reading is not None and row.fit:
            designs.append(replace_at(presets.load_design(row.reading.design), "plan.calibration", "auto"))
    calibration = presets.load_calibration(SHIPPED[name])
    together = Latencies(designs).seconds(efficiency_of(calibration))
    single = [evaluate(design).value("latency_s") for design in designs]
    assert together == pytest.approx(single, rel=1e-9)


def synthetic(values: dict[str, float], uncertain: float = 0.0) -> PublishedFile:
    """Rows that the model itself made with known factors."""
    file = presets.load_published("fastertransformer")
    assert file.calibration is not None
    factors = tuple(f.replace(value=values.get(f.name, f.value)) for f in file.calibration.factors)
    calibration = presets.load_calibration("a100-80gb-fastertransformer").replace(factors=factors)
    kept = [row for row in file.rows if "20b" in row.id or "530b" in row.id][::5]
    rows: list[PublishedRow] = []
    for row in kept:
        assert row.request is not None
        designs = tuple(request_designs(row, row.request, file, presets))
        seconds = float(Latencies(designs).seconds(efficiency_of(calibration)).sum())
        rows.append(row.replace(value=seconds, uncertainty=uncertain))
    return file.replace(rows=tuple(rows))


def test_that_known_factors_are_found_again() -> None:
    truth = {
        "matmul_share": 0.5,
        "hbm_share": 0.7,
        "switch_share": 0.6,
        "collective_start_s": 1e-5,
        "network_start_s": 6e-5,
        "layer_s": 3e-5,
    }
    fit = fit_file(synthetic(truth), presets)
    for name, value in truth.items():
        assert fit.calibration.factor(name) == pytest.approx(value, rel=0.02), name
    assert fit.calibration.error_band < 0.01
    assert all(abs(residual.error) < 1e-3 for residual in fit.residuals)


def test_that_fewer_rows_than_factors_are_refused() -> None:
    file = synthetic({})
    with pytest.raises(FitError, match="more rows than factors"):
        fit_file(file.replace(rows=file.rows[:5]), presets)


def test_that_a_file_without_a_calibration_is_refused() -> None:
    with pytest.raises(FitError, match="no calibration"):
        fit_file(presets.load_published("deepseek-v3"), presets)


def test_that_a_fitted_factor_needs_bounds() -> None:
    file = synthetic({})
    assert file.calibration is not None
    factors = tuple(f.replace(low=None) if f.fitted else f for f in file.calibration.factors)
    with pytest.raises(FitError, match="bound"):
        fit_file(file.replace(calibration=file.calibration.replace(factors=factors)), presets)


def test_that_a_fit_is_written_and_printed() -> None:
    fit = fitted("pope-2022")
    text = calibration_text(fit)
    assert json.loads(text) == calibration_document(fit)
    assert all(residual.id in text for residual in fit.residuals)
    lines = "\n".join(fit_lines(fit))
    assert "error band" in lines
    assert all(factor.name in lines for factor in fit.calibration.factors)


def test_that_the_error_band_is_the_scatter_of_rows_left_out() -> None:
    fit = fitted("pope-2022")
    latencies = [r.held_out for r in fit.residuals if "table-2" in r.id]
    band = float(np.sqrt(np.mean(np.log1p(latencies) ** 2)))
    assert fit.calibration.error_band == pytest.approx(band, abs=1e-3)


def test_that_the_command_refits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "calibration.json"
    assert main(["calibrate", "pope-2022", "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"calibration", "residuals", "spreads"} <= set(document)
    assert json.loads(out.read_text(encoding="utf-8")) == document


def bad_rows() -> dict[str, str]:
    row = {"id": "a", "quantity": "latency_s", "value": 1.0, "fit": True}
    head = {"title": "t", "source": "s"}
    factor = {"name": "matmul_share", "value": 0.5, "fitted": True, "low": 0.1, "high": 1, "source": "s"}
    setup = {"name": "n", "chip": "c", "stack": "s", "date": "d", "factors": [factor]}
    reading = {"reading": {"design": "no-such-design"}}
    wrong = {"reading": {"design": "palm-540b-decode-low-latency", "set": {"workload.no": 1}}}
    negative = {"reading": {"design": "palm-540b-decode-low-latency", "set": {"workload.batch": -1}}}

    def file(*conditions: dict[str, Any]) -> str:
        rows = [{**row, **condition, "id": str(i)} for i, condition in enumerate(conditions)]
        return json.dumps({**head, "calibration": setup, "rows": rows})

    return {
        "empty": "",
        "cut": '{"rows": [',
        "list": "[]",
        "deep": "[" * 100_000,
        "foreign": '{"a": 1}',
        "no condition": json.dumps({**head, "rows": [row]}),
        "unknown design": file(reading, reading),
        "unknown field": file(wrong, wrong),
        "wrong value": file(negative, negative),
        "twice": json.dumps({**head, "rows": [{**row, **reading}] * 2}),
        "nothing to fit": json.dumps({**head, "calibration": setup, "rows": []}),
    }


@pytest.mark.parametrize("name", list(bad_rows()))
def test_that_bad_rows_give_diagnostics(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(bad_rows()[name], encoding="utf-8")
    assert main(["calibrate", str(path), "--json"]) == 1
    found = capsys.readouterr()
    diagnostics = json.loads(found.out)["diagnostics"]
    assert diagnostics
    assert all(d["code"] != "internal" for d in diagnostics), diagnostics
    assert "Traceback" not in found.err


def test_that_a_missing_file_of_rows_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "/nowhere/rows.json"]) == 1
    assert "/nowhere/rows.json" in capsys.readouterr().err


def test_that_a_calibration_that_cannot_be_written_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "pope-2022", "-o", "/nowhere/at/all.json"]) == 1
    assert "/nowhere/at/all.json" in capsys.readouterr().err
