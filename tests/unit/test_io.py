"""Design files: what is written reads back; whatever else is read gives diagnostics, never an exception."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import presets
from model_core.diagnostics import Diagnostic
from model_core.spec import Design
from model_core.spec.io import (
    FORMAT_VERSION,
    MAX_BYTES,
    dump_design,
    parse_design,
    read_design,
    upgrade,
    write_design,
)

DESIGN = presets.load_design("palm-540b-decode-low-latency")
TEXT = dump_design(DESIGN)
KNOWN = tuple(presets.load_design(name) for name in presets.names("designs"))
SLOW = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def document(**design: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(TEXT)
    content["design"].update(design)
    return content


def only(found: tuple[Diagnostic, ...]) -> Diagnostic:
    assert len(found) == 1, [(d.path, d.message) for d in found]
    assert found[0].message
    assert found[0].hint
    return found[0]


def refused(text: str) -> Diagnostic:
    design, found = parse_design(text)
    assert design is None
    return only(found)


@pytest.mark.parametrize("design", KNOWN, ids=lambda d: d.name)
def test_that_a_design_reads_back_as_it_was_written(design: Design) -> None:
    assert parse_design(dump_design(design)) == (design, ())


@given(
    bandwidth=st.floats(1e-300, 1e300),
    target=st.one_of(st.none(), st.floats(0, 1e9)),
    share=st.floats(0, 1),
    notes=st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
)
@SLOW
def test_that_any_quantity_and_any_note_read_back_exactly(
    bandwidth: float, target: float | None, share: float, notes: str
) -> None:
    chip = DESIGN.cluster.chip.replace(hbm_bandwidth=bandwidth)
    design = DESIGN.replace(
        notes=notes,
        cluster=DESIGN.cluster.replace(chip=chip),
        workload=DESIGN.workload.replace(latency_target=target),
        plan=DESIGN.plan.replace(memory_reserve=share),
    )
    assert parse_design(dump_design(design)) == (design, ())


def test_that_quantities_are_written_with_their_units() -> None:
    chip = json.loads(TEXT)["design"]["cluster"]["chip"]
    assert chip["hbm_capacity"] == "32 GiB"
    assert chip["hbm_bandwidth"] == "1.2 TB/s"


@given(st.integers(0, len(TEXT) - 1))
@SLOW
def test_that_a_truncated_file_says_where_it_ends(length: int) -> None:
    if TEXT[:length].strip() != TEXT.strip():
        assert refused(TEXT[:length]).code == "file_not_json"


@given(st.data())
@SLOW
def test_that_mutated_bytes_never_raise(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(TEXT.encode())
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(content) - 1))
        stop = start + data.draw(st.integers(0, 20))
        content[start:stop] = data.draw(st.binary(max_size=10))
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_bytes(content)
    check_outcome(*read_design(path))


def check_outcome(design: Design | None, found: tuple[Diagnostic, ...]) -> None:
    assert (design is None) == bool(found)
    for diagnostic in found:
        assert diagnostic.message
        assert diagnostic.hint


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["1 GB/s", "4x4x4", "torus", "nodes", "heads", "-1 s", "NaN", "1e999", "\ud800", "{0}", "%s"]
    )
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


PLACES = [place for place in places(json.loads(TEXT)) if place]


@given(st.sampled_from(PLACES), JSON)
@SLOW
def test_that_any_value_in_any_place_never_raises(place: tuple[Any, ...], value: Any) -> None:
    content: Any = document()
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    check_outcome(*parse_design(json.dumps(content)))


@given(JSON)
@SLOW
def test_that_foreign_json_never_raises(value: Any) -> None:
    design, found = parse_design(json.dumps(value))
    assert design is None
    assert found


@given(st.text(max_size=200))
@SLOW
def test_that_any_text_never_raises(text: str) -> None:
    design, found = parse_design(text)
    assert design is None
    assert found


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("", 1, 1, "the file is empty"),
        ("{\n", 2, 1, "property name"),
        ('{\n  "a": NaN}', 2, 8, "NaN is not a number"),
        ('{\n  "a": [-Infinity]}', 2, 9, "-Infinity is not a number"),
        ('{"a": "NaN, [", "b": {"a": 1},\n "a": 2}', 2, 2, '"a" is repeated'),
        ('{"a": 1,\n "\\u0061": 2}', 2, 2, "is repeated"),
        ("[" * 100 + "]" * 100, 1, 33, "levels deep"),
        ("[" * 200_000, 1, 33, "levels deep"),
        ('{"a":' * 100_000, 1, 161, "levels deep"),
        ('{"a": ' + "9" * 5_000 + "}", 1, 7, "5,000 digits"),
        ("{} {}", 1, 4, "extra data"),
    ],
)
def test_that_faults_of_json_have_line_and_column(text: str, line: int, column: int, part: str) -> None:
    found = refused(text)
    assert found.code == "file_not_json"
    assert found.message.startswith(f"line {line}, column {column}: ")
    assert part in found.message


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ([], "a list"),
        (None, "nothing"),
        ({}, '"meshwright"'),
        ({"meshwright": {"format": "schedule", "version": 1}, "design": {}}, "schedule"),
        ({"meshwright": {"format": "design", "version": True}, "design": {}}, "version"),
        ({"meshwright": {"format": "design", "version": 0}, "design": {}}, "version"),
        ({"meshwright": {"format": "design", "version": "1"}, "design": {}}, "version"),
        ({"meshwright": {"format": "design", "version": 1}, "design": []}, '"design"'),
    ],
)
def test_that_a_foreign_file_is_named_as_such(content: Any, part: str) -> None:
    found = refused(json.dumps(content))
    assert found.code == "file_foreign"
    assert part in found.message


def test_that_a_newer_version_is_refused_politely() -> None:
    content = document()
    content["meshwright"]["version"] = FORMAT_VERSION + 1
    found = refused(json.dumps(content))
    assert found.code == "file_newer"
    assert str(FORMAT_VERSION + 1) in found.message
    assert "left as it is" in found.hint


def test_that_an_older_version_is_brought_up_step_by_step() -> None:
    steps = {1: lambda d: {**d, "steps": [1]}, 2: lambda d: {**d, "steps": [*d["steps"], 2]}}
    assert upgrade({"name": "old"}, 1, target=3, migrations=steps) == {"name": "old", "steps": [1, 2]}
    assert upgrade({"name": "old"}, 3, target=3, migrations=steps) == {"name": "old"}


def test_that_a_migration_that_fails_on_a_broken_file_is_a_diagnostic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("model_core.spec.io.upgrade", lambda content, version: content["gone"])
    assert "cannot be upgraded" in refused(TEXT).message


@pytest.mark.parametrize(
    ("path", "value", "code", "parts"),
    [
        ("workload.batch", 0, "field_invalid", ["batch", "too small", "from 1 to 10,000,000"]),
        ("workload.batch", 1.5, "field_invalid", ["batch", "whole number"]),
        ("workload.batch", 10**300, "field_invalid", ["batch", "too large"]),
        ("workload.bach", 1, "field_unknown", ["bach", "Nearest: batch"]),
        ("plan.attention_sharding", "head", "field_invalid", ["attention_sharding", "heads, batch"]),
        ("plan.kv_dtype", "bf16", "field_invalid", ["kv_dtype", "Nearest: bfloat16"]),
        ("plan.memory_reserve", "120 %", "field_invalid", ["memory_reserve", "from 0 to 1"]),
        ("cluster.topology.shape", [4, 4, 4, 4], "field_invalid", ["shape", "1 to 3 whole numbers"]),
        ("cluster.topology.kind", "ring", "field_invalid", ["topology", "torus, nodes"]),
        (
            "cluster.topology.link_bandwidth",
            "45 gigs",
            "field_invalid",
            ["link_bandwidth", "'gigs'", "50 GB/s"],
        ),
        ("cluster.chip.peak_fp8", [], "field_invalid", ["peak_fp8", "TFLOP/s", "null"]),
        ("model.gated_ffn", "maybe", "field_invalid", ["gated_ffn", "true or false"]),
        ("model.mla", 3, "field_invalid", ["mla", "kv_lora_rank", "null"]),
        ("name", None, "field_invalid", ["name", "text", "200"]),
        ("name", "\ud800", "field_invalid", ["name", "Unicode"]),
    ],
)
def test_that_a_wrong_field_is_named_with_what_would_be_right(
    path: str, value: Any, code: str, parts: list[str]
) -> None:
    content = document()
    *parents, last = path.split(".")
    place = content["design"]
    for parent in parents:
        place = place[parent]
    place[last] = value
    found = refused(json.dumps(content))
    assert (found.code, found.path) == (code, path)
    for part in parts:
        assert part in f"{found.message} {found.hint}"


def test_that_the_size_of_a_wrong_axis_has_its_own_path() -> None:
    content = document()
    content["design"]["cluster"]["topology"]["shape"] = [4, 0, 4]
    assert refused(json.dumps(content)).path == "cluster.topology.shape.1"


def test_that_fields_that_disagree_are_named() -> None:
    content = document()
    content["design"]["model"]["n_kv_heads"] = 5
    found = refused(json.dumps(content))
    assert found.path == "model.n_heads"
    assert "multiple of n_kv_heads = 5" in found.message


def test_that_an_entry_beside_the_design_is_refused() -> None:
    found = refused(json.dumps({**document(), "desing": {}}))
    assert (found.code, found.path) == ("field_unknown", "desing")


def test_that_a_key_that_is_no_text_is_refused() -> None:
    assert "Unicode" in refused(json.dumps(document(**{"\ud800": 1}))).message


def test_that_a_file_full_of_faults_gives_a_bounded_list() -> None:
    design, found = parse_design(json.dumps(document(**{f"x{i}": 1 for i in range(5_000)})))
    assert design is None
    assert len(found) == 100


def test_that_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "bom.json"
    path.write_text(TEXT, encoding="utf-8-sig")
    assert read_design(path) == (DESIGN, ())
    assert parse_design("\ufeff" + TEXT) == (DESIGN, ())


def test_that_a_wrong_byte_has_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes('{\n "name": "Größe"}'.encode("latin-1"))
    found = only(read_design(path)[1])
    assert found.message == "line 2, column 13: byte 0xf6 is not UTF-8 text"


def test_that_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert only(read_design(path)[1]).code == "file_too_large"
    assert refused(" " * (MAX_BYTES + 1)).code == "file_too_large"


def test_that_what_is_no_file_is_unreadable(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "none.json", tmp_path, pipe, "nul\0.json", Path("/dev/zero")):
        design, found = read_design(path)
        assert design is None
        assert only(found).code == "file_unreadable"


def test_that_saving_replaces_the_file_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "design.meshwright.json"
    path.write_text("old")
    path.chmod(0o640)
    write_design(DESIGN, path)
    assert read_design(path) == (DESIGN, ())
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_that_a_new_file_has_the_permissions_that_the_user_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_design(DESIGN, tmp_path / "new.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o640


def test_that_saving_follows_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "design.json", tmp_path / "link.json"
    link.symlink_to(target)
    write_design(DESIGN, link)
    assert link.is_symlink()
    assert read_design(target) == (DESIGN, ())


def test_that_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "design.json"
    path.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_design(DESIGN, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
