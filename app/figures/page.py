"""A page: a drawing with a line below that says which design it shows and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter

from app.i18n import tr, tr_text
from app.plots.facts import PHASE_NAMES, attention_text, layout_text
from app.plots.header import muted
from app.plots.paint import paint
from app.plots.scene import Ink, Scene, SceneBuilder
from app.plots.text import TINY, elided, text_at, wrapped
from app.plots.views import ViewSpec
from app.theme import Role, Theme
from model_core.results import Evaluation
from model_core.units import format_quantity

MARGIN: Final = 24.0
FOOTER: Final = 40.0
FOOTER_LINES: Final = 2
LARGEST: Final = 2.0


@dataclass(frozen=True, slots=True)
class Page:
    """A scene, the footer below it, and the size of the whole in pixels of the screen."""

    scene: Scene
    footer: str
    width: float
    height: float

    @property
    def title(self) -> str:
        """The title of the drawing."""
        return self.scene.title


def make_page(
    view: ViewSpec,
    evaluation: Evaluation,
    size: QSizeF,
    baseline: Evaluation | None = None,
    part: str = "",
) -> Page:
    """Draw a view for a page of a given size."""
    room = QSizeF(size.width() - 2 * MARGIN, size.height() - 2 * MARGIN - FOOTER)
    scene = view.draw(evaluation, baseline, room, part)
    return Page(scene, footer_text(evaluation), size.width(), size.height())


def footer_text(evaluation: Evaluation) -> str:
    """Say what a figure shows: design, model, cluster, workload, plan and evidence level."""
    design = evaluation.design
    work, plan = design.workload, design.plan
    workload = tr(
        "{phase}, batch {batch}, input {input}, output {output}",
        phase=tr_text(PHASE_NAMES[work.phase]),
        batch=work.batch,
        input=work.input_length,
        output=work.output_length,
    )
    dtypes = tr("weights {weights}, KV cache {cache}", weights=plan.weight_dtype, cache=plan.kv_dtype)
    layout = f"{layout_text(evaluation)}, {attention_text(evaluation)}, {dtypes}"
    parts = [design.name, design.model.name, design.cluster.name, workload, layout, evidence_text(evaluation)]
    return " · ".join(part for part in parts if part)


def evidence_text(evaluation: Evaluation) -> str:
    """Say how far the numbers can be trusted."""
    step = evaluation.quantities.get("step_s")
    if step is None:
        return ""
    level = tr_text(str(step.evidence))
    calibrated = evaluation.time is not None and evaluation.time.calibrated
    time = format_quantity(step.value, step.dimension)
    if not calibrated:
        return tr("{time} {level}, uncalibrated", time=time, level=level)
    return tr("{time} ± {band} {level}", time=time, band=f"{step.error_band:.0%}", level=level)


def paint_page(page: Page, painter: QPainter, theme: Theme) -> None:
    """Paint background, drawing and footer; a pixel of the page is a unit of the painter."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRectF(0, 0, page.width, page.height), theme.color(Role.PANEL))
    room_x = page.width - 2 * MARGIN
    room_y = page.height - 2 * MARGIN - FOOTER
    scale = min(room_x / page.scene.width, room_y / page.scene.height, LARGEST)
    painter.save()
    painter.translate(MARGIN + (room_x - page.scene.width * scale) / 2, MARGIN)
    painter.scale(scale, scale)
    paint(page.scene, painter, theme)
    painter.restore()
    paint(_footer(page), painter, theme)


def _footer(page: Page) -> Scene:
    builder = SceneBuilder()
    top = page.height - MARGIN - 24
    right = page.width - MARGIN
    builder.line((MARGIN, top), (right, top), ink=Ink(Role.BORDER))
    mark = text_at(right, top + 18, muted("Meshwright", TINY), 1.0)
    room = page.width - 2 * MARGIN - mark.width - 16
    lines = wrapped(page.footer, TINY, room)
    shown = [*lines[: FOOTER_LINES - 1], " ".join(lines[FOOTER_LINES - 1 :])]
    builder.items.append(mark)
    for number, line in enumerate(line for line in shown if line):
        text = elided(line, TINY, room)
        builder.items.append(text_at(MARGIN, top + 18 + 15 * number, muted(text, TINY)))
    return builder.scene(page.width, page.height, page.title, "")
