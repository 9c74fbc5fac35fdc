"""Presets, the shape of a torus, the mesh and shares: editors of more than one value."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

import presets
from app.document import DesignDocument
from app.panels.cluster import ClusterPanel
from app.panels.mesh_edit import BY_HAND, MeshEdit
from app.panels.model import ModelPanel
from app.panels.plan import PlanPanel
from app.panels.preset_picker import PresetPicker
from app.panels.ratio_edit import RatioEdit
from app.panels.shape_edit import ShapeEdit
from app.widgets.quantity_edit import NumberEdit
from model_core.spec import MeshPlan
from tests.app.stage import Stage, edited, mesh_of, part, pick, pick_preset, visible, write


@pytest.fixture
def stage(qtbot: QtBot, document: DesignDocument) -> Stage:
    return Stage(qtbot, document)


def test_that_a_preset_fills_the_whole_part_in_one_step(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ModelPanel)
    heads = part(panel, "model.n_heads", NumberEdit)
    before, text = document.design.model, heads.text()
    pick_preset(panel, "model", "deepseek-v3")
    assert document.design.model == presets.load_model("deepseek-v3")
    assert document.undo_stack.count() == 1
    assert part(panel, "model.mla.kv_lora_rank", NumberEdit).text() == "512"
    assert heads.text() == "128"
    document.undo_stack.undo()
    assert document.design.model == before
    assert heads.text() == text
    document.undo_stack.redo()
    assert heads.text() == "128"


def test_that_groups_of_mla_and_moe_appear_with_the_model(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ModelPanel)
    assert panel.focus_field("model.moe.d_ff_expert")
    assert not visible(panel, "model.moe.d_ff_expert")
    pick_preset(panel, "model", "deepseek-v3")
    assert panel.focus_field("model.moe.d_ff_expert")
    assert visible(panel, "model.moe.d_ff_expert")


def test_that_an_edited_part_says_so_and_can_be_restored(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ModelPanel)
    picker = part(panel, "model", PresetPicker)
    document.edit("model.n_layers", 100)
    assert edited(panel, "model")
    button = picker.findChild(QToolButton)
    assert isinstance(button, QToolButton)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert document.design.model == presets.load_model(picker.choice)
    assert not edited(panel, "model")


def test_that_a_value_typed_back_is_no_longer_edited(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    panel = stage.show(ClusterPanel)
    editor = part(panel, "cluster.chip.hbm_bandwidth", NumberEdit)
    before = editor.text()
    write(qtbot, editor, "2 TB/s")
    assert edited(panel, "cluster")
    write(qtbot, editor, before)
    assert not edited(panel, "cluster")


def test_that_another_kind_of_cluster_makes_the_mesh_automatic(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    mesh = MeshPlan(x=("x",), y=("y",), z=("z",))
    document.edit("plan.mesh", mesh)
    panel = stage.show(ClusterPanel)
    pick_preset(panel, "cluster", "h100-2x8")
    assert mesh_of(document) is None
    assert document.undo_stack.count() == 2
    document.undo_stack.undo()
    assert mesh_of(document) == mesh
    assert document.design.cluster.n_chips == 64


def test_that_the_shape_may_lose_an_axis(qtbot: QtBot, document: DesignDocument, stage: Stage) -> None:
    document.edit("plan.mesh", MeshPlan(x=("x",), y=("y",), z=("z",)))
    panel = stage.show(ClusterPanel)
    shape = part(panel, "cluster.topology.shape", ShapeEdit)
    assert shape.shape == (4, 4, 4)
    write(qtbot, shape.edit("y"), "8")
    assert mesh_of(document) is not None
    write(qtbot, shape.edit("z"), "")
    assert document.design.cluster.axes == {"x": 4, "y": 8}
    assert mesh_of(document) is None
    document.undo_stack.undo()
    assert shape.shape == (4, 8, 4)
    write(qtbot, shape.edit("x"), "many")
    assert "whole number" in panel.error("cluster.topology.shape")
    qtbot.keyClick(shape.edit("x"), Qt.Key.Key_Escape)
    assert not panel.error("cluster.topology.shape")


def test_that_factors_of_a_node_are_axes_of_their_own(document: DesignDocument, stage: Stage) -> None:
    document.show_design(presets.load_design("deepseek-v3-decode"))
    mesh = part(stage.show(PlanPanel), "plan.mesh", MeshEdit)
    assert [mesh.axis_box(axis).choice for axis in ("ib", "nvlink:2", "nvlink:4")] == ["x", "y", "z"]
    pick(mesh.axis_box("nvlink:2"), "z")
    assert document.design.plan.mesh == MeshPlan(x=("ib",), z=("nvlink:2", "nvlink:4"))
    document.evaluate_now()
    assert "X = 40, Y = 1, Z = 8" in mesh.sizes.accessibleName()


def test_that_the_mesh_can_be_assigned_by_hand(qtbot: QtBot, document: DesignDocument, stage: Stage) -> None:
    panel = stage.show(PlanPanel)
    mesh = part(panel, "plan.mesh", MeshEdit)
    pick(mesh.mode, BY_HAND)
    assert document.design.plan.mesh == MeshPlan(x=("x",), y=("y",), z=("z",))
    pick(mesh.axis_box("z"), "y")
    assert document.design.plan.mesh == MeshPlan(x=("x",), y=("y", "z"))
    document.evaluate_now()
    assert "X = 4, Y = 16, Z = 1" in mesh.sizes.accessibleName()
    document.undo_stack.setIndex(0)
    assert mesh.mode.choice != BY_HAND


def test_that_dragging_previews_and_letting_go_is_one_step(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    path = "plan.collective_overlap"
    panel = stage.show(PlanPanel)
    ratio = part(panel, path, RatioEdit)
    ratio.slider.setSliderDown(True)
    for value in (90, 60, 40):
        ratio.slider.setValue(value)
        assert document.shown_design.plan.collective_overlap == value / 100
        assert document.design.plan.collective_overlap == 1.0
    assert ratio.field.text() == "40 %"
    assert document.undo_stack.count() == 0
    ratio.slider.setSliderDown(False)
    assert document.design.plan.collective_overlap == 0.4
    assert document.undo_stack.count() == 1
    document.undo_stack.undo()
    assert ratio.slider.value() == 100
    assert ratio.field.text() == "100 %"


def test_that_a_share_above_all_is_refused_and_kept(
    qtbot: QtBot, document: DesignDocument, stage: Stage
) -> None:
    path = "plan.memory_reserve"
    panel = stage.show(PlanPanel)
    field = part(panel, path, RatioEdit).field
    write(qtbot, field, "150 %")
    assert "too large" in panel.error(path)
    assert field.text() == "150 %"
    assert document.undo_stack.count() == 0
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == "5 %"
    assert not panel.error(path)


def test_that_the_chip_can_be_exchanged_alone(qtbot: QtBot, document: DesignDocument, stage: Stage) -> None:
    panel = stage.show(ClusterPanel)
    pick_preset(panel, "cluster.chip", "tpu-v5p")
    assert document.design.cluster.chip == presets.load_chip("tpu-v5p")
    assert document.design.cluster.n_chips == 64
    assert edited(panel, "cluster")
    assert not edited(panel, "cluster.chip")
