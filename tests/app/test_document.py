"""The document: one undo stack, previews, baseline, files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.i18n import set_language
from model_core.results import Evaluation
from model_core.spec import Design
from model_core.spec.io import read_design


def batch(document: DesignDocument) -> int:
    return document.design.workload.batch


def test_that_an_edit_can_be_undone_and_redone(document: DesignDocument) -> None:
    assert document.edit("workload.batch", 128) == ()
    assert batch(document) == 128
    assert document.modified
    document.undo_stack.undo()
    assert (batch(document), document.modified) == (64, False)
    document.undo_stack.redo()
    assert batch(document) == 128


def test_that_edits_with_one_merge_key_are_one_step(document: DesignDocument) -> None:
    for value in (65, 66, 67):
        document.edit("workload.batch", value, merge_key="workload.batch")
    assert document.undo_stack.count() == 1
    document.edit("workload.input_length", 100, merge_key="workload.input_length")
    document.edit("workload.batch", 68)
    document.edit("workload.batch", 69)
    assert document.undo_stack.count() == 4
    document.undo_stack.setIndex(0)
    assert batch(document) == 64


def test_that_a_merged_change_back_to_the_start_leaves_no_step(document: DesignDocument) -> None:
    document.edit("workload.batch", 65, merge_key="b")
    document.edit("workload.batch", 64, merge_key="b")
    assert document.undo_stack.count() == 0
    assert not document.modified


def test_that_an_edit_to_the_same_value_is_no_step(document: DesignDocument) -> None:
    document.edit("workload.batch", 64)
    assert document.undo_stack.count() == 0


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workload.batch", 0),
        ("workload.batch", "many"),
        ("cluster.chip.hbm_bandwidth", "12 parsec"),
        ("model.n_kv_heads", 7),
    ],
)
def test_that_a_wrong_value_is_diagnosed_and_changes_nothing(
    path: str, value: object, document: DesignDocument
) -> None:
    before = document.design
    found = document.edit(path, value)
    assert found
    assert all(diagnostic.path == path for diagnostic in found)
    assert document.design is before
    assert document.undo_stack.count() == 0


def test_that_an_unknown_path_is_diagnosed(document: DesignDocument) -> None:
    (found,) = document.edit("workload.bacth", 1)
    assert found.code == "field_unknown"
    assert "batch" in found.message + found.hint


def test_that_labels_of_steps_are_in_the_users_language(document: DesignDocument) -> None:
    document.edit("workload.batch", 65)
    english = document.undo_stack.undoText()
    set_language("zh_CN")
    document.edit("workload.batch", 66)
    assert "batch" in english
    assert document.undo_stack.undoText() != english


def test_that_a_preview_is_evaluated_but_not_committed(document: DesignDocument, qtbot: QtBot) -> None:
    other = document.design.replace(workload=document.design.workload.replace(batch=128))
    with qtbot.waitSignal(document.evaluation_changed) as signal:
        document.preview(other)
    assert signal.args[0].design is other
    assert document.shown_design is other
    assert batch(document) == 64
    assert document.undo_stack.count() == 0
    with qtbot.waitSignal(document.evaluation_changed) as signal:
        document.end_preview()
    assert signal.args[0].design is document.design


def test_that_undo_during_a_preview_shows_the_committed_design(
    document: DesignDocument, qtbot: QtBot
) -> None:
    document.edit("workload.batch", 128)
    document.preview(document.design.replace(workload=document.design.workload.replace(batch=256)))
    with qtbot.waitSignal(document.evaluation_changed) as signal:
        document.undo_stack.undo()
    assert document.shown_design is document.design
    assert signal.args[0].design is document.design


def test_that_pushing_the_present_design_ends_a_preview(document: DesignDocument, qtbot: QtBot) -> None:
    other = document.design.replace(workload=document.design.workload.replace(batch=128))
    document.preview(other)
    with qtbot.waitSignal(document.evaluation_changed) as signal:
        document.push(document.design, "nothing")
    assert signal.args[0].design == document.design


def test_that_a_bad_design_keeps_the_last_picture(document: DesignDocument, qtbot: QtBot) -> None:
    good = document.picture
    assert good is not None
    seen: list[bool] = []
    document.stale_changed.connect(seen.append)
    document.accept_evaluation(Evaluation(document.design), 0.0)
    assert document.picture is good
    assert document.stale
    document.evaluate_now()
    assert document.picture is document.evaluation
    assert seen == [True, False]


def test_that_a_model_without_times_still_has_a_picture(document: DesignDocument) -> None:
    from presets import load_model

    document.push(document.design.replace(model=load_model("deepseek-v3")), "model")
    document.edit("plan.mesh", {"z": ("x", "y"), "pipeline": ("z",)})
    document.evaluate_now()
    assert document.evaluation is not None
    assert document.evaluation.time is None
    assert document.picture is document.evaluation
    assert not document.stale


def test_that_the_baseline_is_pinned_and_cleared(document: DesignDocument) -> None:
    seen: list[object] = []
    document.baseline_changed.connect(seen.append)
    document.pin_baseline()
    pinned = document.baseline
    assert pinned is document.evaluation
    document.edit("workload.batch", 128)
    document.evaluate_now()
    assert document.baseline is pinned
    document.clear_baseline()
    document.clear_baseline()
    assert seen == [pinned, None]


def test_that_saving_makes_the_document_clean(document: DesignDocument, tmp_path: Path) -> None:
    path = tmp_path / "a.meshwright.json"
    document.edit("workload.batch", 128)
    document.save(path)
    assert not document.modified
    assert document.path == path
    assert read_design(path) == (document.design, ())
    document.undo_stack.undo()
    assert document.modified


def test_that_a_failed_save_leaves_file_and_document(document: DesignDocument, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    document.edit("workload.batch", 128)
    with pytest.raises(OSError, match="gone"):
        document.save(folder / "a.meshwright.json")
    assert document.modified
    assert document.path is None


def test_that_loading_starts_a_new_history(document: DesignDocument, design: Design, tmp_path: Path) -> None:
    document.edit("workload.batch", 128)
    document.pin_baseline()
    document.select("mfu")
    other = design.replace(name="other")
    document.load(other, tmp_path / "other.meshwright.json")
    assert document.design is other
    assert document.undo_stack.count() == 0
    assert not document.modified
    assert document.baseline is None
    assert document.selection == ""
    document.load(design, None, modified=True)
    assert document.modified


def test_that_saved_files_are_json_for_people(document: DesignDocument, tmp_path: Path) -> None:
    path = tmp_path / "a.meshwright.json"
    document.save(path)
    assert json.loads(path.read_text(encoding="utf-8"))["meshwright"]["format"] == "design"
