"""The folded groups of the plan and the chip: each field reaches the design, and the column stays readable."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QCheckBox, QLabel, QSlider, QWidget
from pytestqt.qtbot import QtBot

import presets
from app.document import DesignDocument
from app.i18n import set_language
from app.panels.cluster import ClusterPanel
from app.panels.fields import FieldGroup
from app.panels.group import Group, GroupHeader
from app.panels.list_edit import ChecksEdit, CountsEdit
from app.panels.mesh_edit import MeshEdit
from app.panels.plan import PlanPanel
from app.panels.plan_groups import plan_groups
from app.panels.ratio_edit import RatioEdit
from app.panels.training_groups import training_groups
from app.widgets.choices import CheckEdit, ChoiceBox
from app.widgets.quantity_edit import IntEdit, NumberEdit
from app.windows.main_window import MainWindow
from model_core.spec import Design, MeshPlan, PlanSpec, TrainingSpec, get_at, replace_at
from tests.app.stage import Stage, part, pick, unfold, visible, write

TRAINING = "deepseek-v3-training"
DECODE = "deepseek-v3-decode"
GROUPS = (*plan_groups(), *training_groups())
ONLY_ADAMW = "plan.training.optimizer"
ROWS = [row.path for group in GROUPS for row in group.rows]


@pytest.fixture
def stage(qtbot: QtBot, document: DesignDocument) -> Stage:
    return Stage(qtbot, document)


def show(stage: Stage, document: DesignDocument, name: str) -> PlanPanel:
    document.load(presets.load_design(name), None)
    document.evaluate_now()
    return stage.show(PlanPanel)


def group_of(panel: QWidget, title: str) -> Group:
    for group in panel.findChildren(Group):
        header = group.findChild(GroupHeader)
        if isinstance(header, GroupHeader) and header.text() == title:
            return group
    raise AssertionError(title)


def digest(panel: QWidget, title: str) -> str:
    header = group_of(panel, title).findChild(GroupHeader)
    assert isinstance(header, GroupHeader)
    return header.digest


def change(qtbot: QtBot, editor: QWidget) -> None:
    """Change the value in an editor as a user would, whatever it is."""
    is_share = isinstance(editor, RatioEdit)
    if isinstance(editor, RatioEdit):
        editor = editor.field
    if isinstance(editor, ChecksEdit):
        editor = next(iter(editor.findChildren(CheckEdit)))
    if isinstance(editor, ChoiceBox):
        pick(editor, str(editor.itemData((editor.currentIndex() + 1) % editor.count())))
    elif isinstance(editor, CheckEdit):
        qtbot.keyClick(editor, Qt.Key.Key_Space)
    elif isinstance(editor, CountsEdit):
        editor.selectAll()
        qtbot.keyClicks(editor, "3, 4")
        qtbot.keyClick(editor, Qt.Key.Key_Return)
    else:
        assert isinstance(editor, NumberEdit)
        write(qtbot, editor, "7" if isinstance(editor, IntEdit) else "0.4" if is_share else "1.75")


def test_that_every_field_of_the_plan_has_a_row() -> None:
    elsewhere = {"ffn_layout", "attention_sharding", "mesh", "block", "calibration", "schedule", "training"}
    expected = {f"plan.{name}" for name in PlanSpec.model_fields if name not in elsewhere}
    expected |= {f"plan.training.{name}" for name in TrainingSpec.model_fields}
    assert set(ROWS) == expected
    assert len(ROWS) == len(expected)


@pytest.mark.parametrize("path", [path for path in ROWS if path != ONLY_ADAMW])
def test_that_a_change_reaches_the_design_and_is_undone(
    qtbot: QtBot, document: DesignDocument, stage: Stage, path: str
) -> None:
    panel = show(stage, document, TRAINING)
    document.edit("plan.mesh", MeshPlan(pipeline=("ib",)))
    unfold(panel)
    before, steps = document.design, document.undo_stack.count()
    change(qtbot, panel.editor(path))
    assert get_at(document.design, path) != get_at(before, path)
    assert document.undo_stack.count() == steps + 1
    document.undo_stack.undo()
    assert document.design == before
    change(qtbot, panel.editor(path))
    assert get_at(document.design, path) != get_at(before, path)


def test_that_training_is_filled_with_defaults_at_the_first_edit(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    document.edit("plan.training", None)
    document.edit("workload.phase", "training")
    panel = stage.show(PlanPanel)
    degree = part(panel, "plan.training.tp", NumberEdit)
    assert degree.text() == "1"
    assert part(panel, "plan.training.fused_attention", CheckEdit).isChecked()
    pick(part(panel, "plan.training.recompute", ChoiceBox), "none")
    assert get_at(document.design, "plan.training") is None
    write(qtbot, degree, "8")
    assert document.design.plan.training == TrainingSpec(tp=8)
    document.undo_stack.undo()
    assert get_at(document.design, "plan.training") is None
    assert degree.text() == "1"


def test_that_a_problem_of_training_is_said_under_its_field(document: DesignDocument, stage: Stage) -> None:
    panel = show(stage, document, TRAINING)
    assert not group_of(panel, "Parallel training").form.isVisible()
    document.edit("plan.training.tp", 3)
    document.evaluate_now()
    assert panel.error("plan.training.tp")
    assert visible(panel, "plan.training.tp")
    document.undo_stack.undo()
    document.evaluate_now()
    assert not panel.error("plan.training.tp")


def test_that_a_refused_value_of_training_stays_to_be_corrected(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = show(stage, document, TRAINING)
    unfold(panel)
    stages = part(panel, "plan.training.stage_layers", CountsEdit)
    stages.setText("")
    qtbot.keyClicks(stages, "4, many")
    qtbot.keyClick(stages, Qt.Key.Key_Return)
    assert "whole numbers" in panel.error("plan.training.stage_layers")
    assert stages.text() == "4, many"
    assert document.undo_stack.count() == 0
    qtbot.keyClick(stages, Qt.Key.Key_Escape)
    assert not panel.error("plan.training.stage_layers")
    assert stages.text() == ""
    imbalance = part(panel, "plan.expert_imbalance", NumberEdit)
    write(qtbot, imbalance, "0.5")
    assert "too small" in panel.error("plan.expert_imbalance")
    write(qtbot, imbalance, "1.25")
    assert document.design.plan.expert_imbalance == 1.25
    assert "too small" not in panel.error("plan.expert_imbalance")


def test_that_operands_may_be_as_they_are_stored(document: DesignDocument, stage: Stage) -> None:
    panel = show(stage, document, DECODE)
    box = part(panel, "plan.matmul_dtype", ChoiceBox)
    assert box.currentText() == "fp8"
    pick(box, "")
    assert document.design.plan.matmul_dtype is None
    assert box.currentText() == "as stored"


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [("n_sms", "132", 132), ("price_per_hour", "2 USD/h", 2), ("power", "700 W", 700)],
)
def test_that_optional_values_of_a_chip_may_be_emptied(
    qtbot: QtBot, document: DesignDocument, stage: Stage, field: str, text: str, value: float
) -> None:
    panel = stage.show(ClusterPanel)
    path = f"cluster.chip.{field}"
    assert panel.focus_field(path)
    editor = part(panel, path, NumberEdit)
    write(qtbot, editor, text)
    assert get_at(document.design, path) == value
    write(qtbot, editor, "")
    assert get_at(document.design, path) is None
    assert editor.placeholderText() == "none"
    document.undo_stack.undo()
    assert get_at(document.design, path) == value


def test_that_groups_appear_where_they_apply(document: DesignDocument, stage: Stage) -> None:
    panel = stage.show(PlanPanel)
    shown = {group.title: not group_of(panel, group.title).isHidden() for group in GROUPS}
    hidden = {"Pipeline", "Experts (MoE)", "Parallel training", "Kept activations", "Optimizer"}
    assert {title for title, there in shown.items() if not there} == hidden
    document.load(presets.load_design(TRAINING), None)
    for title in hidden - {"Pipeline"}:
        assert not group_of(panel, title).isHidden()
        assert not group_of(panel, title).form.isVisible()
    assert digest(panel, "Parallel training") == "EP 64, ZeRO-1"
    assert digest(panel, "Experts (MoE)") == "fp8, 0 redundant"


def test_that_an_axis_may_hold_the_stages_of_a_pipeline(document: DesignDocument, stage: Stage) -> None:
    panel = stage.show(PlanPanel)
    document.edit("plan.mesh", MeshPlan(x=("x",), y=("y",), pipeline=("z",)))
    mesh = part(panel, "plan.mesh", MeshEdit)
    assert mesh.axis_box("z").choice == "pipeline"
    assert digest(panel, "Pipeline") == "stages 4, microbatches 1"
    pick(mesh.axis_box("y"), "x")
    assert document.design.plan.mesh == MeshPlan(x=("x", "y"), pipeline=("z",))
    pick(mesh.axis_box("z"), "y")
    assert document.design.plan.mesh == MeshPlan(x=("x", "y"), y=("z",))
    assert group_of(panel, "Pipeline").isHidden()


def test_that_a_mesh_of_a_pipeline_alone_shows_what_is_chosen_for_the_rest(
    document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(PlanPanel)
    document.edit("plan.mesh", MeshPlan(pipeline=("z",)))
    mesh = part(panel, "plan.mesh", MeshEdit)
    assert mesh.axis_box("x").choice in ("x", "y", "z")
    assert mesh.axis_box("z").choice == "pipeline"


def test_that_the_calibration_is_chosen_by_its_software(document: DesignDocument, stage: Stage) -> None:
    panel = stage.show(PlanPanel)
    assert digest(panel, "Calibration") == "Pope et al. 2022 ± 15.1 %"
    unfold(panel)
    box = part(panel, "plan.calibration", ChoiceBox)
    assert box.choice == "auto"
    assert "TPU v4 with Pope et al. 2022" in panel.error("plan.calibration")
    pick(box, "none")
    document.evaluate_now()
    assert document.design.plan.calibration == "none"
    assert panel.error("plan.calibration") == "Times are bounds at peak rates"
    assert digest(panel, "Calibration") == "bound at peak rates"
    pick(box, str(box.itemData(box.findText("Pope et al. 2022"))))
    assert document.design.plan.calibration == "tpu-v4-pope-2022"
    document.edit("plan.calibration", "pope ET AL. 2022")
    assert box.currentText() == "Pope et al. 2022"
    document.edit("plan.calibration", "mine")
    document.evaluate_now()
    assert box.currentText() == "mine"
    assert "no calibration named mine" in panel.error("plan.calibration")


def test_that_a_calibration_of_another_chip_is_borrowed_with_a_warning(
    document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(PlanPanel)
    unfold(panel)
    box = part(panel, "plan.calibration", ChoiceBox)
    chip = document.design.cluster.chip
    assert box.findData("a100-80gb-megatron") < 0
    pick(box, "h100-sxm-tensorrt-llm")
    assert document.undo_stack.count() == 1
    assert document.design.cluster.chip.calibrations[-1].chip == "H100 SXM"
    document.evaluate_now()
    said = panel.error("plan.calibration")
    assert "was measured on H100 SXM, not on TPU v4" in said
    assert "error band" in said
    pick(box, "auto")
    assert document.design.cluster.chip == chip
    document.undo_stack.undo()
    assert box.choice == "h100-sxm-tensorrt-llm"
    document.undo_stack.undo()
    assert document.design.cluster.chip == chip


def texts(column: QWidget) -> list[QWidget]:
    kinds = (QLabel, QCheckBox, ChoiceBox, NumberEdit, CountsEdit, QSlider)
    return [w for w in column.findChildren(QWidget) if isinstance(w, kinds) and w.isVisible()]


def place(widget: QWidget, column: QWidget) -> QRect:
    return QRect(widget.mapTo(column, QPoint(0, 0)), widget.size())


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("name", [TRAINING, DECODE])
def test_that_the_column_is_readable_at_300_pixels(
    qtbot: QtBot, main_window: Callable[[Design], MainWindow], language: str, name: str
) -> None:
    set_language(language)
    borrowed = replace_at(presets.load_design(name), "plan.calibration", "tpu-v4-pope-2022")
    window = main_window(presets.with_calibration(borrowed))
    column = window.inputs.widget()
    assert column is not None
    unfold(column)
    window.inputs.setParent(None)
    qtbot.addWidget(window.inputs)
    window.inputs.resize(300, 900)
    window.inputs.show()
    qtbot.waitUntil(lambda: len(texts(column)) > 60)
    widgets = texts(column)
    places = [place(widget, column) for widget in widgets]
    assert column.width() <= 300
    for widget, box in zip(widgets, places, strict=True):
        assert column.rect().contains(box), widget.objectName()
        if isinstance(widget, QLabel):
            needed = widget.heightForWidth(box.width()) if widget.wordWrap() else widget.sizeHint().height()
            assert box.height() >= needed, widget.text()
            assert widget.wordWrap() or box.width() >= widget.sizeHint().width(), widget.text()
        elif isinstance(widget, QCheckBox):
            assert box.width() >= widget.sizeHint().width(), widget.text()
    for index, box in enumerate(places):
        clash = [w for w, other in zip(widgets[:index], places, strict=False) if box.intersects(other)]
        assert not clash, (widgets[index].objectName(), clash[0].objectName())


def test_that_labels_of_groups_differ() -> None:
    def labels(group: FieldGroup) -> list[str]:
        return [row.label for row in group.rows]

    assert all(len(set(labels(group))) == len(group.rows) for group in GROUPS)
