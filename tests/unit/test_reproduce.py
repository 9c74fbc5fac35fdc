"""``reproduce``: its fields, its curves, and that what was fitted is marked."""

from __future__ import annotations

import json
from typing import Any

import pytest

import presets
from app.cli import main
from model_core.published.rows import PublishedFile
from model_core.reproduce import reproduce
from model_core.reproduce.sweeps import Outcome, frontier

FIELDS = {"id", "source", "quantity", "unit", "published", "predicted", "error", "evidence", "fitted"}
CURVES = {
    "pope-figure-1-decode": 6,
    "pope-figure-1-prefill": 6,
    "pope-figure-3": 4,
    "pope-figure-6": 2,
    "pope-figure-7": 4,
    "pope-figure-8": 3,
    "pope-figure-9": 5,
    "pope-figure-9-20-8": 8,
    "pope-figure-b1": 18,
    "pope-figure-c1-decode": 6,
    "pope-figure-c1-prefill": 6,
}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["reproduce", "--json", *arguments]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_that_rows_have_the_agreed_fields(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--only", "pope-table")
    assert len(found) == 6 + 8 + 8 + 2
    for row in found:
        assert set(row) >= FIELDS
        assert row["error"] == pytest.approx(row["predicted"] / row["published"] - 1)
        assert row["evidence"] == "modelled"
        assert "Pope" in row["source"]
        assert row["fitted"] is ("table-2" in row["id"])


def test_that_one_row_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = printed(capsys, "--only", "pope-chatbot-turn")
    assert row["published"] == 1.9
    assert row["error_band"] == presets.load_calibration("tpu-v4-pope-2022").error_band


def test_that_an_unknown_row_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--only", "nonsense"]) == 1
    assert "nonsense" in capsys.readouterr().err


def test_that_the_table_for_people_marks_fitted_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--only", "pope-table-2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert all("fitted" in line for line in lines[1:])


@pytest.mark.parametrize(("identifier", "lines"), CURVES.items())
def test_that_curves_are_data_with_the_axes_of_the_paper(identifier: str, lines: int) -> None:
    found = {row.row.id: row for row in reproduce([presets.load_published("pope-2022")], presets, identifier)}
    row = found[identifier].to_json()
    assert row["published"] is None
    assert row["predicted"] is None
    curve = row["curve"]
    assert curve["x"]["quantity"]
    assert curve["y"]["quantity"]
    assert len(curve["series"]) == lines
    for series in curve["series"]:
        assert series["points"]
        assert all(x > 0 and y > 0 for x, y in series["points"])
        assert series["notes"] == [] or len(series["notes"]) == len(series["points"])
    json.dumps(row, allow_nan=False)


def test_that_measured_points_of_fastertransformer_stand_beside_ours() -> None:
    (row,) = reproduce([presets.load_published("pope-2022")], presets, "pope-figure-9-20-8")
    series = row.to_json()["curve"]["series"]
    measured = [line for line in series if line["evidence"] == "published"]
    assert [len(line["points"]) for line in measured] == [9, 9, 9]
    assert all(line["label"].endswith("measured") for line in measured)


def test_that_figure_6_prefers_the_2d_layout_more_with_more_chips() -> None:
    (row,) = reproduce([presets.load_published("pope-2022")], presets, "pope-figure-6")
    assert row.predicted.curve is not None
    line, plane = (dict(series.points) for series in row.predicted.curve.series)
    gains = [line[chips] / plane[chips] for chips in sorted(line)]
    assert gains == sorted(gains)
    assert gains[0] > 1


def test_that_figure_7_switches_from_stationary_to_gathered_weights() -> None:
    (row,) = reproduce([presets.load_published("pope-2022")], presets, "pope-figure-7")
    assert row.predicted.curve is not None
    lines = {series.label: dict(series.points) for series in row.predicted.curve.series}
    most = max(lines["weight_gathered_xyz"])
    assert max(lines, key=lambda label: lines[label].get(most, 0.0)) == "weight_gathered_xyz"
    assert max(lines, key=lambda label: lines[label].get(2048.0, 0.0)) == "weight_stationary_2d"


def test_that_figure_8_keeps_the_optimised_layout_flat() -> None:
    (row,) = reproduce([presets.load_published("pope-2022")], presets, "pope-figure-8")
    assert row.predicted.curve is not None
    lines = {series.label: dict(series.points) for series in row.predicted.curve.series}
    optimised, baseline = lines["multiquery over batch"], lines["multiquery over heads"]
    longest = max(baseline)
    assert baseline[longest] / optimised[longest] > 3
    assert max(optimised) > longest
    shortest = min(baseline)
    assert baseline[shortest] / optimised[shortest] < 1.1


def test_that_every_row_has_a_source_and_a_condition() -> None:
    for name in presets.published_names():
        file = presets.load_published(name)
        for row in file.rows:
            assert row.quantity, row.id
            assert row.source or file.source, row.id
            assert "recalled" not in row.source + file.source


def test_that_a_row_rests_on_fitted_rows_only_if_all_are() -> None:
    file = presets.load_published("pope-2022")
    ids = {row.id for row in file.rows}
    assert all(set(row.rests_on) <= ids for row in file.rows)
    row = next(row for row in file.rows if row.id == "pope-decode-int8")
    others = PublishedFile(title="t", source="s", rows=(row,))
    (found,) = reproduce([others], presets)
    assert not found.fitted


def test_that_a_frontier_holds_what_nothing_beats() -> None:
    def outcome(step: float, cost: float) -> Outcome:
        return Outcome(step, step, cost, 0.5, 8, 1, "layout")

    found = [outcome(1, 5), outcome(2, 3), outcome(2, 4), outcome(3, 3), outcome(4, 1)]
    kept = frontier(found, lambda o: o.step_s, lambda o: o.cost_chip_s)
    assert [(o.step_s, o.cost_chip_s) for o in kept] == [(1, 5), (2, 3), (4, 1)]
