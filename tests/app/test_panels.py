"""The field panels: what is typed reaches the design, what is wrong stays to be corrected, the design is shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

import presets
from app.document import DesignDocument
from app.i18n import set_language
from app.panels.cluster import ClusterPanel
from app.panels.model import ModelPanel
from app.panels.panel import FieldPanel
from app.panels.plan import PlanPanel
from app.panels.workload import WorkloadPanel
from app.widgets.choices import CheckEdit, ChoiceBox
from app.widgets.form import Form
from app.widgets.quantity_edit import NumberEdit
from model_core.spec import get_at, replace_at
from tests.app.stage import Stage, part, pick, pick_preset, unfold, visible, write

LINK = "cluster.topology.link_bandwidth"
PANELS = (ModelPanel, ClusterPanel, WorkloadPanel, PlanPanel)


@pytest.fixture
def stage(qtbot: QtBot, document: DesignDocument) -> Stage:
    return Stage(qtbot, document)


def test_that_a_typed_quantity_changes_the_design(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ClusterPanel)
    write(qtbot, part(panel, LINK, NumberEdit), "400 Gb/s")
    assert get_at(document.design, LINK) == 50e9
    assert part(panel, LINK, NumberEdit).text() == "50 GB/s"
    assert document.undo_stack.undoText() == "Change Link bandwidth"


def test_that_what_is_no_quantity_is_refused_and_kept(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ClusterPanel)
    editor = part(panel, LINK, NumberEdit)
    before = editor.text()
    write(qtbot, editor, "50 apples")
    assert "50 GB/s" in panel.error(LINK)
    panel.setFocus()
    document.edit("cluster.topology.hop_latency", 2e-6)
    document.evaluate_now()
    assert editor.text() == "50 apples"
    assert panel.error(LINK)
    assert document.undo_stack.count() == 1
    editor.setFocus()
    qtbot.keyClick(editor, Qt.Key.Key_Escape)
    assert editor.text() == before
    assert not panel.error(LINK)


@pytest.mark.parametrize(("language", "word"), [("en", "not a multiple"), ("zh_CN", "倍数")])
def test_that_a_value_that_disagrees_with_another_is_refused(
    qtbot: QtBot, document: DesignDocument, stage: Stage, language: str, word: str
) -> None:
    set_language(language)
    panel = stage.show(ModelPanel)
    editor = part(panel, "model.n_kv_heads", NumberEdit)
    write(qtbot, editor, "5")
    assert word in panel.error("model.n_kv_heads")
    assert document.undo_stack.count() == 0
    document.edit("model.d_ff", 1024)
    document.evaluate_now()
    assert editor.text() == "5"
    assert word in panel.error("model.n_kv_heads")
    qtbot.keyClick(editor, Qt.Key.Key_Escape)
    assert editor.text() == "1"
    assert not panel.error("model.n_kv_heads")
    write(qtbot, editor, "5")
    write(qtbot, editor, "8")
    assert document.design.model.n_kv_heads == 8
    assert word not in panel.error("model.n_kv_heads")


def test_that_a_refused_text_gives_way_when_the_design_has_another_value(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ModelPanel)
    write(qtbot, part(panel, "model.n_kv_heads", NumberEdit), "5")
    pick_preset(panel, "model", "llama-3.1-70b")
    assert part(panel, "model.n_kv_heads", NumberEdit).text() == "8"
    assert not panel.error("model.n_kv_heads")


def test_that_steps_in_a_row_are_one_step_and_typed_values_are_not(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(WorkloadPanel)
    batch = part(panel, "workload.batch", NumberEdit)
    for _ in range(3):
        qtbot.keyClick(batch, Qt.Key.Key_Up)
    assert document.design.workload.batch == 67
    assert document.undo_stack.count() == 1
    write(qtbot, batch, "128")
    write(qtbot, batch, "256")
    assert document.undo_stack.count() == 3
    document.undo_stack.setIndex(0)
    assert batch.text() == "64"


def test_that_a_field_being_edited_is_not_overwritten(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(WorkloadPanel)
    batch = part(panel, "workload.batch", NumberEdit)
    write(qtbot, batch, "12", enter=False)
    document.edit("workload.batch", 99)
    assert batch.text() == "12"
    qtbot.keyClick(batch, Qt.Key.Key_Escape)
    assert batch.text() == "99"


@pytest.mark.parametrize("make", PANELS)
def test_that_showing_designs_commits_nothing(
    qtbot: QtBot, document: DesignDocument, stage: Stage, make: Callable[[DesignDocument], FieldPanel]
) -> None:
    panel = stage.show(make)
    for name in presets.names("designs"):
        document.show_design(presets.load_design(name))
        document.evaluate_now()
    assert document.undo_stack.count() == 0
    assert panel.isVisible()


@pytest.mark.parametrize("make", PANELS)
def test_that_every_field_has_label_buddy_name_and_tooltip(
    qtbot: QtBot, document: DesignDocument, stage: Stage, make: Callable[[DesignDocument], FieldPanel]
) -> None:
    panel = stage.show(make)
    unfold(panel)
    buddies = {label.buddy() for label in panel.findChildren(QLabel)}
    paths = [path for form in panel.findChildren(Form) for path in form.paths]
    for path in paths:
        editor = panel.editor(path)
        assert editor in buddies, path
        assert editor.accessibleName(), path
        assert editor.toolTip(), path
    assert len(paths) > 5


def test_that_a_tooltip_tells_where_a_value_comes_from(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ModelPanel)
    editor = panel.editor("model.d_model")
    assert "checkpoint.py" in editor.toolTip()
    document.edit("model.d_model", 20480)
    assert "entered by the user" in editor.toolTip()


def test_that_a_diagnostic_is_said_under_its_field(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ModelPanel)
    document.edit("model.d_model", 18433)
    document.evaluate_now()
    assert "does not divide" in panel.error("model.d_model")
    assert visible(panel, "model.d_model")
    document.undo_stack.undo()
    document.evaluate_now()
    assert not panel.error("model.d_model")


def test_that_a_diagnostic_of_a_hidden_field_is_said_at_its_part(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    design = replace_at(presets.load_design("deepseek-v3-decode"), "model.n_kv_heads", 1)
    document.show_design(replace_at(design, "model.n_heads", 126))
    panel = stage.show(PlanPanel)
    document.evaluate_now()
    assert document.evaluation is not None
    assert any(d.path == "plan.mesh.z" for d in document.evaluation.diagnostics)
    assert "126 heads" in panel.error("plan.mesh")


def test_that_a_requested_field_comes_into_view_with_the_focus(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ModelPanel)
    assert panel.focus_field("model.vocab_size")
    editor = panel.editor("model.vocab_size")
    assert editor.hasFocus()
    assert not editor.visibleRegion().isEmpty()
    assert not panel.focus_field("cluster.chip")


def test_that_the_cached_length_appears_in_prefill(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(WorkloadPanel)
    cached = panel.editor("workload.cached_length")
    assert not cached.isVisible()
    pick(part(panel, "workload.phase", ChoiceBox), "prefill")
    assert document.design.workload.phase == "prefill"
    assert cached.isVisible()
    write(qtbot, part(panel, "workload.cached_length", NumberEdit), "1000")
    assert part(panel, "workload.context", QLabel).text() == "3,048 tokens"
    write(qtbot, part(panel, "workload.prefill_chunk", NumberEdit), "512")
    assert document.design.workload.prefill_chunk == 512


def test_that_an_empty_latency_target_is_none(qtbot: QtBot, document: DesignDocument, stage: Stage) -> None:
    panel = stage.show(WorkloadPanel)
    target = part(panel, "workload.latency_target", NumberEdit)
    write(qtbot, target, "")
    assert document.design.workload.latency_target is None
    write(qtbot, target, "25 ms")
    assert document.design.workload.latency_target == 0.025


def test_that_a_check_box_changes_the_design(qtbot: QtBot, document: DesignDocument, stage: Stage) -> None:
    panel = stage.show(ModelPanel)
    panel.focus_field("model.gated_ffn")
    check = part(panel, "model.gated_ffn", CheckEdit)
    assert check.isChecked()
    qtbot.keyClick(check, Qt.Key.Key_Space)
    assert document.design.model.gated_ffn is False
    document.undo_stack.undo()
    assert check.isChecked()
