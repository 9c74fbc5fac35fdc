"""Pages of the views that search, computed on this thread: for the command line, where nothing waits."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSizeF

from app.figures.page import FOOTER, MARGIN, Page, footer_text
from app.i18n import tr
from app.plots.paper.catalogue import ITEM_IDS, VIEW_PREFIX, item_named
from app.plots.scene import Scene
from model_core import evaluate
from model_core.results import Evaluation
from model_core.spec import Design

ENLARGED: Final = 1.45
PAPER_VIEWS: Final = tuple(f"{VIEW_PREFIX}{identifier}" for identifier in ITEM_IDS)
SEARCH_VIEWS: Final = ("frontier", "layouts", "context", *PAPER_VIEWS)


def make_search_page(view: str, design: Design, size: QSizeF) -> Page:
    """Compute a view of a design, or a figure of a paper, and draw it for a page."""
    room = room_on(size)
    if view.startswith(VIEW_PREFIX):
        return page_of(_paper(view, room), None, size)
    evaluation = evaluate(design)
    return page_of(_drawn(view, evaluation, room), evaluation, size)


def room_on(size: QSizeF) -> QSizeF:
    """Return the room for which a drawing is made: less than the page has, so that it is enlarged on it.

    A chart can be drawn for any room; on a slide its words are to be read from afar.
    """
    return QSizeF(size.width() - 2 * MARGIN, size.height() - 2 * MARGIN - FOOTER) / ENLARGED


def page_of(scene: Scene, evaluation: Evaluation | None, size: QSizeF) -> Page:
    """Put a drawing on a page; without an evaluation it is a figure of a paper."""
    footer = paper_footer() if evaluation is None else footer_text(evaluation)
    return Page(scene, footer, size.width(), size.height())


def paper_footer() -> str:
    """Say what a figure of the paper rests on."""
    return tr(
        "Pope et al. 2022, Efficiently Scaling Transformer Inference (arXiv 2211.05102), recomputed by the model"
    )


def _never() -> bool:
    return False


def _drawn(view: str, evaluation: Evaluation, room: QSizeF) -> Scene:
    design = evaluation.design
    if view == "frontier":
        from app.plots.frontier.cloud import Wish, sweep_cloud
        from app.plots.frontier.scene import draw_frontier

        cloud = sweep_cloud(Wish(design), _never)
        assert cloud is not None, "nobody cancels"
        return draw_frontier(cloud, evaluation, room).scene
    if view == "layouts":
        from app.plots.switches import compute_layouts, draw_layouts

        layouts = compute_layouts(design, _never)
        assert layouts is not None, "nobody cancels"
        return draw_layouts(layouts, room)
    from app.plots.context import compute_context, draw_context

    context = compute_context(design, _never)
    assert context is not None, "nobody cancels"
    return draw_context(context, room)


def _paper(view: str, room: QSizeF) -> Scene:
    from app.plots.paper.data import compute
    from app.plots.paper.page import draw_item

    item = item_named(view)
    rows = compute(item, _never)
    assert rows is not None, "nobody cancels"
    return draw_item(item, rows, room)
