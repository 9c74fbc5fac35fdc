"""Expert loads: made up, and read from JSON, CSV and the recorder's files, good and bad."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.experts.load_files import read_loads
from model_core.experts.loads import zipf_loads
from model_core.experts.map_files import read_map
from model_core.spec import Evidence

DATA = Path(__file__).parents[1] / "data"


def problem(path: Path) -> tuple[str, str]:
    """Return code and message of the one diagnostic of a bad file."""
    loads, found = read_loads(path)
    assert loads is None
    assert len(found) == 1
    return found[0].code, found[0].message


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_that_zipf_loads_follow_the_exponent_and_the_seed() -> None:
    loads = zipf_loads(1.0, n_layers=3, n_experts=64, seed=5, tokens_per_step=100.0)
    ordered = np.sort(loads.counts, axis=1)[:, ::-1]
    assert np.allclose(ordered[:, 0] / ordered[:, 9], 10)
    assert np.allclose(loads.counts.sum(axis=1), 100)
    assert loads.evidence is Evidence.ASSUMED
    assert np.array_equal(
        loads.counts, zipf_loads(1.0, n_layers=3, n_experts=64, seed=5, tokens_per_step=100).counts
    )
    assert not np.array_equal(loads.counts, zipf_loads(1.0, n_layers=3, n_experts=64, seed=6).counts)


def test_that_layers_are_shuffled_independently() -> None:
    loads = zipf_loads(0.6, n_layers=8, n_experts=32)
    assert len({int(row.argmax()) for row in loads.counts}) > 3


def test_that_noise_spreads_the_logarithms() -> None:
    loads = zipf_loads(0.0, n_layers=40, n_experts=256, noise=0.5)
    assert np.std(np.log(loads.counts)) == pytest.approx(0.5, rel=0.05)


def test_that_drift_moves_loads_from_step_to_step() -> None:
    still = zipf_loads(1.0, n_layers=2, n_experts=64, n_steps=4)
    moving = zipf_loads(1.0, n_layers=2, n_experts=64, n_steps=4, drift=0.25)
    assert still.steps is not None
    assert moving.steps is not None
    assert np.array_equal(still.steps[0], still.steps[3])
    changed = (moving.steps[0] != moving.steps[1]).sum(axis=1)
    assert (changed > 4).all()
    assert (changed <= 16).all()
    assert np.allclose(moving.steps.sum(axis=2), 1e6)


def test_that_shares_of_a_layer_without_load_are_even() -> None:
    loads, _ = read_loads(DATA / "expert_recorder.pt")
    assert loads is not None
    empty = type(loads)(np.zeros((1, 4)), "empty", Evidence.MEASURED)
    assert np.array_equal(empty.shares, np.full((1, 4), 0.25))
    assert not empty.has_load.any()


def test_that_loads_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        zipf_loads(1.0, n_layers=1, n_experts=4).counts[0, 0] = 1


@pytest.mark.parametrize("document", [{"logical_count": [[1, 2], [3, 0.5]]}, [[1, 2], [3, 0.5]]])
def test_that_json_is_read(tmp_path: Path, document: Any) -> None:
    loads, found = read_loads(written(tmp_path, "mine.json", json.dumps(document)))
    assert found == ()
    assert loads is not None
    assert loads.counts.tolist() == [[1, 2], [3, 0.5]]
    assert (loads.name, loads.evidence, loads.steps) == ("mine", Evidence.MEASURED, None)


def test_that_steps_are_summed_and_kept(tmp_path: Path) -> None:
    loads, _ = read_loads(written(tmp_path, "a.json", '{"logical_count": [[[1, 2]], [[3, 4]]]}'))
    assert loads is not None
    assert loads.counts.tolist() == [[4, 6]]
    assert loads.steps is not None
    assert loads.steps.shape == (2, 1, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1;2\n3;4", [[1, 2], [3, 4]]),
        ("# comment\ne0\te1\n1\t2\n\n3\t4\n", [[1, 2], [3, 4]]),
        ("layer,e0,e1\n3,1,2\n4,3,4\n", [[1, 2], [3, 4]]),
        ("layer,expert,count\n0,1,5\n1,0,2\n1,0,3\n", [[0, 5], [5, 0]]),
        ("1,2,\n3,4,\n", [[1, 2], [3, 4]]),
    ],
)
def test_that_csv_is_read(tmp_path: Path, text: str, expected: list[list[float]]) -> None:
    loads, found = read_loads(written(tmp_path, "a.csv", text))
    assert found == ()
    assert loads is not None
    assert loads.counts.tolist() == expected


@pytest.mark.parametrize(
    ("name", "text", "code", "part"),
    [
        ("a.json", '{"logical_count": [[1, 2], [3]]}', "loads_ragged", "logical_count[1] has 1"),
        ("a.json", '{"logical_count": [[1, 2], [3, "x"]]}', "loads_not_number", "logical_count[1][1]"),
        ("a.json", '{"logical_count": [[1, 2], [3, -1]]}', "loads_not_number", "logical_count[1][1] is -1"),
        ("a.json", '{"logical_count": [[1, NaN]]}', "loads_not_number", "logical_count[0][1] is nan"),
        ("a.json", '{"logical_count": [[1, null]]}', "loads_not_number", "logical_count[0][1] is null"),
        ("a.json", '{"logical_count": [1, 2]}', "loads_wrong_shape", "logical_count has the shape 2"),
        ("a.json", '{"logical_count": []}', "loads_not_number", "logical_count is []"),
        ("a.json", '{"logical_count": 5}', "loads_wrong_shape", "the shape 1"),
        ("a.json", '{"logical_count": [[true, false]]}', "loads_not_number", "logical_count[0][0] is true"),
        ("a.json", '{"other": 1}', "loads_missing", "it has other"),
        ("a.json", '{"logical_count": [[1,', "loads_syntax", "line 1, column 23"),
        ("a.json", "", "loads_syntax", "the file is empty"),
        ("a.json", "[" * 100_000, "loads_syntax", "nested too deeply"),
        ("a.csv", "1,2\n3\n", "loads_ragged", "line 2 has 1"),
        ("a.csv", "1,2\n3,x\n", "loads_not_number", "line 2, column 2"),
        ("a.csv", "layer,expert,count\n0,-1,5\n", "loads_not_number", "line 2"),
        ("a.csv", "layer,expert,count\n", "loads_syntax", "empty"),
        ("a.csv", "", "loads_syntax", "empty"),
        ("a.csv", "1,-2\n", "loads_not_number", "logical_count[0][1] is -2"),
        ("a.pt", "no archive", "loads_syntax", "no archive of torch.save"),
    ],
)
def test_that_a_bad_file_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, code: str, part: str
) -> None:
    found, message = problem(written(tmp_path, name, text))
    assert found == code
    assert part in message


def test_that_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert problem(tmp_path / "absent.json")[0] == "file_unreadable"
    assert problem(tmp_path / "absent.pt")[0] == "file_unreadable"
    assert problem(tmp_path)[0] == "file_unreadable"
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    assert problem(tmp_path / "a.json")[0] == "loads_syntax"


def test_that_endless_numbers_of_layers_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "1\n" * 2_001)
    assert problem(path)[0] == "loads_too_many"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3), lambda c: st.lists(c, max_size=4)
    )
)
def test_that_any_json_gives_loads_or_one_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, document: Any
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.json"
    path.write_text(json.dumps({"logical_count": document}), encoding="utf-8")
    loads, found = read_loads(path)
    assert (loads is None) == (len(found) == 1)
    if loads is not None:
        assert all(math.isfinite(value) and value >= 0 for value in loads.counts.ravel())
    for diagnostic in found:
        assert diagnostic.message
        assert diagnostic.hint


def test_that_a_map_of_an_engine_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "map.json", '{"physical_to_logical_map": [[0, 1, 2, 0], [2, 1, 0, 1]]}')
    placement, found = read_map(path, n_experts=3, n_gpus=2, n_nodes=1)
    assert found == ()
    assert placement is not None
    assert placement.replicas.tolist() == [[2, 1, 1], [1, 2, 1]]
    assert placement.by_gpu.shape == (2, 2, 2)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"physical_to_logical": [[0, 1, 2, 3]]}', "map_not_expert"),
        ('{"physical_to_logical": [[0, 1, 2, 1.5]]}', "map_not_expert"),
        ('{"physical_to_logical": [[0, 1, 1, 1]]}', "map_without_expert"),
        ('{"physical_to_logical": [[0, 1, 2]]}', "map_uneven"),
        ('{"physical_to_logical": [0, 1, 2, 0]}', "map_wrong_shape"),
        ('{"map": 1}', "loads_missing"),
        ("[[0, 1], [2]]", "loads_ragged"),
        ("{", "loads_syntax"),
    ],
)
def test_that_a_bad_map_is_told(tmp_path: Path, text: str, code: str) -> None:
    placement, found = read_map(written(tmp_path, "map.json", text), n_experts=3, n_gpus=2, n_nodes=1)
    assert placement is None
    assert [d.code for d in found] == [code]
    assert found[0].message
