"""No drawing of any design may have texts on texts, arrows through cards, or keys that explain nothing."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from PySide6.QtCore import QSizeF

import presets
from app.i18n import set_language
from app.plots.scene import Ink, Line, Rect, Run, Scene, SceneBuilder
from app.plots.text import text_at
from app.plots.views import VIEWS, ViewSpec, view_named
from app.theme import Role
from model_core import Design, Evaluation, evaluate
from model_core.partition.program import Collective, Einsum
from model_core.spec import AttentionSharding, BlockForm, FfnLayout, replace_at
from tests.figures.geometry import faults

SIZES = (QSizeF(612, 436), QSizeF(1400, 820))
DESIGNS = presets.names("designs")


def every_scene(evaluation: Evaluation, baseline: Evaluation | None, size: QSizeF) -> list[Scene]:
    return [view.draw(evaluation, baseline, size, part) for view in VIEWS for part in (view.parts or ("",))]


def with_changes(design: Design, **changes: object) -> Design:
    for path, value in changes.items():
        design = replace_at(design, path.replace("__", "."), value)
    return design


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("name", DESIGNS)
def test_that_no_drawing_of_a_preset_has_a_fault(name: str, language: str) -> None:
    set_language(language)
    base = presets.load_design(name)
    for layout in FfnLayout:
        for attention in AttentionSharding:
            design = with_changes(base, plan__ffn_layout=layout, plan__attention_sharding=attention)
            evaluation = evaluate(design)
            doubled = evaluate(with_changes(design, workload__batch=2 * design.workload.batch))
            for size in SIZES:
                for scene in every_scene(evaluation, doubled, size):
                    assert faults(scene) == [], (layout, attention, scene.title)


@pytest.mark.parametrize("block", list(BlockForm))
@pytest.mark.parametrize("n_kv_heads", [1, 8, 64])
def test_that_no_drawing_of_an_attention_kind_has_a_fault(
    design: Design, n_kv_heads: int, block: BlockForm
) -> None:
    changed = with_changes(design, model__n_kv_heads=n_kv_heads, plan__block=block, model__gated_ffn=False)
    evaluation = evaluate(changed)
    assert evaluation.programs
    for scene in every_scene(evaluation, None, SIZES[0]):
        assert faults(scene) == []


shapes = st.sampled_from([(1, 1, 1), (2, 1, 1), (4, 1, 1), (1, 4, 1), (2, 2, 1), (4, 4, 4), (8, 8, 16)])
small = st.integers(1, 64)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=shapes,
    heads=st.tuples(small, st.integers(1, 8)),
    layout=st.sampled_from(list(FfnLayout)),
    attention=st.sampled_from(list(AttentionSharding)),
    block=st.sampled_from(list(BlockForm)),
    batch=st.integers(1, 4096),
    phase=st.sampled_from(["prefill", "decode"]),
    size=st.tuples(st.integers(300, 2600), st.integers(200, 1500)),
)
def test_that_no_drawing_of_a_random_design_has_a_fault(
    design: Design,
    shape: tuple[int, int, int],
    heads: tuple[int, int],
    layout: FfnLayout,
    attention: AttentionSharding,
    block: BlockForm,
    batch: int,
    phase: str,
    size: tuple[int, int],
) -> None:
    model = design.model.replace(
        n_kv_heads=heads[0], n_heads=heads[0] * heads[1], n_heads_unpadded=None, d_model=4096, d_ff=16384
    )
    try:
        changed = with_changes(
            design.replace(model=model),
            cluster__topology__shape=shape,
            plan__mesh=None,
            plan__ffn_layout=layout,
            plan__attention_sharding=attention,
            plan__block=block,
            workload__batch=batch,
            workload__phase=phase,
        )
    except ValidationError:
        return
    evaluation = evaluate(changed)
    for scene in every_scene(evaluation, evaluate(design), QSizeF(*size)):
        assert faults(scene) == []


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: str(view.id))
@pytest.mark.parametrize("name", DESIGNS)
def test_that_every_key_is_explained(name: str, view: ViewSpec) -> None:
    evaluation = evaluate(presets.load_design(name))
    for part in view.parts or ("",):
        scene = view.draw(evaluation, None, SIZES[1], part)
        for target in scene.targets:
            if target.key.startswith("part/"):
                assert target.key.removeprefix("part/") in view.parts
            else:
                assert evaluation.explain(target.key) is not None, target.key


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("part", ["block", "embedding", "logits"])
def test_that_the_layout_draws_every_step_and_weight_once(
    evaluation: Evaluation, part: str, short: bool
) -> None:
    scene = view_named("layout").draw(evaluation, None, SIZES[1], part, short)
    program = evaluation.programs[part]
    keys = [target.key for target in scene.targets]
    steps = [key for key in keys if key.startswith("op/")]
    assert sorted(steps) == sorted(f"op/{part}/{index}" for index in range(len(program.ops)))
    for weight in program.weights:
        assert keys.count(f"tensor/{part}/{weight.name}") == 1, weight.name
    for op in program.ops:
        assert f"tensor/{part}/{op.output.name}" in keys


@pytest.mark.parametrize("layout", list(FfnLayout))
def test_that_every_input_of_a_step_is_drawn_as_an_arrow_or_in_the_step(
    design: Design, layout: FfnLayout
) -> None:
    evaluation = evaluate(with_changes(design, plan__ffn_layout=layout))
    scene = view_named("layout").draw(evaluation, None, SIZES[1])
    program = evaluation.programs["block"]
    frames = {t.key: t.rect for t in scene.targets if t.key.startswith("op/")}
    ends = [item.points[-1] for item in scene.items if isinstance(item, Line) and item.arrow]
    for index, op in enumerate(program.ops):
        rect = frames[f"op/block/{index}"]
        arrows = sum(abs(x - rect.x) < 0.1 and rect.y < y < rect.bottom for x, y in ends)
        inside = {t.key for t in scene.targets if t.rect != rect and _within(t.rect, rect)}
        named = sum(f"tensor/block/{tensor.name}" in inside for tensor in op.inputs)
        hidden = sum(tensor in program.caches for tensor in op.inputs)
        assert arrows + named + hidden == len(op.inputs), op_text(op)


def _within(rect: Rect, outer: Rect) -> bool:
    return outer.contains(rect.x, rect.y) and outer.contains(rect.right, rect.bottom)


def op_text(op: object) -> str:
    return op.equation if isinstance(op, Einsum) else str(getattr(op, "kind", ""))


def test_that_collectives_show_axes_volume_and_time(evaluation: Evaluation) -> None:
    scene = view_named("layout").draw(evaluation, None, SIZES[1])
    texts = [text.plain for text in scene.texts()]
    assert evaluation.time is not None
    for index, op in enumerate(evaluation.programs["block"].ops):
        if isinstance(op, Collective):
            assert f"{op.kind}({''.join(sorted(op.axes))})" in texts, index
    assert any(text.startswith("432 KiB · ") for text in texts)


def test_that_notation_has_real_subscripts_in_the_colours_of_the_axes(evaluation: Evaluation) -> None:
    scene = view_named("layout").draw(evaluation, None, SIZES[1])
    lowered = [run for text in scene.texts() for _, run in text.runs if run.rise < 0]
    assert {run.role for run in lowered if run.text == "x"} == {Role.AXIS_X}
    assert {run.role for run in lowered if run.text == "y"} == {Role.AXIS_Y}
    assert not any("_" in text.plain for text in scene.texts())


def test_that_a_small_space_gets_the_short_drawing(evaluation: Evaluation) -> None:
    view = view_named("layout")
    assert view.draw(evaluation, None, SIZES[0]).short
    assert not view.draw(evaluation, None, SIZES[1]).short


def test_that_targets_are_in_reading_order(evaluation: Evaluation) -> None:
    scene = view_named("time").draw(evaluation, None, SIZES[1])
    tops = [target.rect.y for target in scene.targets if target.key.startswith("op/")]
    assert tops == sorted(tops)


def test_that_the_smallest_target_under_a_point_is_found() -> None:
    builder = SceneBuilder()
    builder.target(Rect(0, 0, 100, 100), "outer", "outer")
    builder.target(Rect(10, 10, 20, 20), "inner", "inner")
    scene = builder.scene(100, 100, "", "")
    inner, outer = scene.target_at(15, 15), scene.target_at(50, 50)
    assert inner is not None
    assert outer is not None
    assert (inner.key, outer.key) == ("inner", "outer")
    assert scene.target_at(150, 50) is None


def test_that_the_rows_of_the_time_drawing_add_up_to_the_step(evaluation: Evaluation) -> None:
    from app.plots.time_parts import step_parts

    assert evaluation.time is not None
    assert sum(step_parts(evaluation.time).values()) == pytest.approx(evaluation.time.step_s)


def test_that_merged_operations_are_counted_in_words(evaluation: Evaluation) -> None:
    small_scene = view_named("time").draw(evaluation, None, SIZES[0])
    large_scene = view_named("time").draw(evaluation, None, QSizeF(1400, 1400))
    assert any(text.plain.startswith("other (") for text in small_scene.texts())
    assert not any(text.plain.startswith("other (") for text in large_scene.texts())


def test_that_a_design_that_does_not_fit_says_so_in_words(design: Design) -> None:
    changed = with_changes(design, workload__batch=65536)
    scene = view_named("memory").draw(evaluate(changed), None, SIZES[0])
    assert any("does not fit" in text.plain for text in scene.texts())
    assert "does not fit" in scene.summary


def test_that_a_design_without_numbers_says_why(evaluation: Evaluation) -> None:
    empty = Evaluation(design=evaluation.design)
    for view in VIEWS:
        scene = view.draw(empty, None, SIZES[0])
        assert "Problems" in scene.texts()[0].plain


def _scene_with(*texts: tuple[float, float], line: bool = False) -> Scene:
    builder = SceneBuilder()
    for x, y in texts:
        builder.items.append(text_at(x, y, (Run("text", 12),)))
    if line:
        builder.line((0, 20), (100, 20), ink=Ink(Role.TENSOR), arrow=True)
    return builder.scene(100, 40, "", "")


def test_that_the_fault_finder_finds_faults() -> None:
    assert faults(_scene_with((10, 20), (60, 20))) == []
    assert faults(_scene_with((10, 20), (20, 24))) == ["text 'text' on 'text'"]
    assert faults(_scene_with((10, 24), line=True)) == ["line through 'text'"]
    assert faults(_scene_with((90, 20))) == ["text 'text' outside the drawing"]
