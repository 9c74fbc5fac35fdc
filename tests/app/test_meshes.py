"""Designs with a pipeline, and with a mesh that cannot be: every view and panel has something to say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QSizeF
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

import presets
from app.background import Background
from app.document import DesignDocument
from app.plots.views import view_named
from app.windows.main_window import MainWindow
from model_core import evaluate
from model_core.spec import Design, MeshPlan

MESHES = {
    "pipeline": MeshPlan(y=(), z=("nvlink",), pipeline=("ib",)),
    "unknown": MeshPlan(x=("nowhere",), y=(), z=("nvlink",)),
    "twice": MeshPlan(x=("ib",), y=("ib",), z=("nvlink",)),
    "missing": MeshPlan(x=(), y=(), z=("nvlink",)),
}


@pytest.fixture
def clustered(design: Design) -> Design:
    """A large model on four nodes."""
    model, cluster = presets.load_model("mt-nlg-530b"), presets.load_cluster("a100-4x8")
    return design.replace(model=model, cluster=cluster)


def with_mesh(design: Design, name: str) -> Design:
    return design.replace(plan=design.plan.replace(mesh=MESHES[name]))


def test_that_sending_between_stages_has_a_section_of_its_own(clustered: Design) -> None:
    evaluation = evaluate(with_mesh(clustered, "pipeline"))
    scene = view_named("time").draw(evaluation, None, QSizeF(1100, 800))
    texts = [text.plain for text in scene.texts()]
    assert "Pipeline" in texts
    assert "send(ib)" in texts
    assert any(target.key == "op/pipeline/0" for target in scene.targets)
    assert evaluation.explain("op/pipeline/0") is not None


@pytest.mark.qt_log_ignore(r"This plugin does not support raise\(\)")
@pytest.mark.parametrize("name", MESHES)
def test_that_every_view_shows_it(
    name: str,
    clustered: Design,
    document: DesignDocument,
    main_window: Callable[[Design], MainWindow],
    qtbot: QtBot,
) -> None:
    window = main_window(document.design)
    with qtbot.waitSignal(document.evaluation_changed):
        document.push(with_mesh(clustered, name), "change")
    assert document.stale is (name != "pipeline")
    for number in range(window.tabs.count()):
        window.tabs.setCurrentIndex(number)
        qtbot.waitUntil(lambda: not any(b.busy for b in window.findChildren(Background)), timeout=20_000)
        assert window.grab().toImage() != QImage()
    document.select("op/pipeline/0")
    assert ("send(ib)" in window.explain.explain.text) is (name == "pipeline")
