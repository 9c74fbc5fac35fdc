"""How a program is cut, laid into lanes and routed: data only, no pictures."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.plots import flow, route
from app.plots.flow import Band, CellKind
from model_core import Evaluation, evaluate
from model_core.partition.program import LayerProgram
from model_core.spec import Design, FfnLayout, replace_at

CELL, GAP = 78.0, 10.0


def bands(program: LayerProgram, columns_per_band: int) -> list[Band]:
    made = []
    for section in flow.sections(program):
        for start in range(0, len(section.columns), columns_per_band):
            columns = section.columns[start : start + columns_per_band]
            made.append(flow.band(program, section.title, start == 0, columns))
    return made


@pytest.fixture(params=list(FfnLayout))
def program(request: pytest.FixtureRequest, design: Design) -> LayerProgram:
    return evaluate(replace_at(design, "plan.ffn_layout", request.param)).programs["block"]


def test_that_columns_hold_every_step_once_in_order_of_need(program: LayerProgram) -> None:
    made: set[str] = set()
    steps = []
    for section in flow.sections(program):
        for column in section.columns:
            for cell in column:
                for op in [cell.op] if cell.op is not None else []:
                    own = {c.tensor.name for col in section.columns for c in col}
                    assert not ({t.name for t in op.inputs} & own) - made
                    steps.append(cell.index)
            made |= {cell.tensor.name for cell in column}
    assert sorted(steps) == list(range(len(program.ops)))


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 20])
def test_that_places_are_unique_and_arrows_run_to_the_right(program: LayerProgram, columns: int) -> None:
    for band in bands(program, columns):
        names = [cell.tensor.name for cell in band.cells.values()]
        assert len(names) == len(set(names))
        for source, target in band.edges:
            assert source in band.cells
            assert source[0] < target[0]
            assert band.cells[source].tensor.name in band.cells[target].inputs


@pytest.mark.parametrize("columns", [1, 3, 20])
def test_that_a_port_is_a_tensor_of_another_band(program: LayerProgram, columns: int) -> None:
    made = flow.producers(program)
    for band in bands(program, columns):
        inside = {cell.index for cell in band.cells.values() if cell.kind is CellKind.STEP}
        for cell in band.cells.values():
            if cell.kind is CellKind.PORT:
                assert made.get(cell.tensor.name, -1) not in inside


@pytest.mark.parametrize("columns", [2, 4, 20])
def test_that_arrows_of_different_sources_never_run_on_each_other(
    program: LayerProgram, columns: int
) -> None:
    for band in bands(program, columns):
        chosen = route.plan(band)
        widths = tuple(100.0 for _ in range(band.n_columns))
        geometry = route.geometry(band, chosen, widths, CELL, GAP)
        pieces: dict[tuple[float, float, float, float], flow.Place] = {}
        for (source, _), points in zip(band.edges, geometry.arrows, strict=True):
            for (x1, y1), (x2, y2) in pairwise(points):
                assert x1 == x2 or y1 == y2
                for (a1, b1, a2, b2), other in pieces.items():
                    if other == source:
                        continue
                    same_row = y1 == y2 == b1 == b2 and min(x2, a2) - max(x1, a1) > 0.5
                    low, high = sorted((y1, y2))
                    low2, high2 = sorted((b1, b2))
                    same_column = x1 == x2 == a1 == a2 and min(high, high2) - max(low, low2) > 0.5
                    assert not same_row
                    assert not same_column
                pieces[(x1, y1, x2, y2)] = source


def test_that_sections_are_titled_as_the_program_says(evaluation: Evaluation) -> None:
    program = evaluation.programs["block"]
    titles = [section.title for section in flow.sections(program) if section.title]
    assert titles == [title for title, _ in program.sections]
