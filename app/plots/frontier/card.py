"""The card beside the pointer: what a design is, what it gives, and how it differs from the current one."""

from __future__ import annotations

from typing import Final

from app.i18n import tr
from app.plots.frontier.cloud import Cloud
from app.plots.frontier.words import column, difference_lines, short_title
from app.plots.scene import Ink, Rect, Run, Scene, SceneBuilder
from app.plots.text import BODY, SMALL, TINY, elided, runs_width, text_at
from app.theme import Role
from model_core.spec import Design

WIDEST: Final = 380.0
PADDING: Final = 10.0
MOST_LINES: Final = 7


def design_card(cloud: Cloud, number: int, current: Design | None) -> Scene:
    """Write the card of one design."""
    design, row = cloud.result.design(number), cloud.result.row(number)
    x, y = column(cloud.x), column(cloud.y)
    head = f"{x.write(row[cloud.x])} · {y.write(row[cloud.y])}"
    lines: list[tuple[Run, ...]] = [
        (Run(head, BODY, True),),
        (Run(elided(short_title(design), SMALL, WIDEST), SMALL),),
    ]
    facts = tr(
        "{memory} per chip · MFU {mfu}",
        memory=column("memory_per_chip_bytes").write(row["memory_per_chip_bytes"]),
        mfu=column("mfu").write(row["mfu"]),
    )
    lines.append((Run(facts, SMALL, False, Role.TEXT_MUTED),))
    if current is not None:
        told = difference_lines(current, design)[:MOST_LINES]
        lines += [(Run(elided(text, SMALL, WIDEST), SMALL, False, Role.ACCENT),) for text in told]
    hint = tr("double-click: load   P: pin")
    lines.append((Run(hint, TINY, False, Role.TEXT_MUTED),))
    return _boxed(lines, head)


def _boxed(lines: list[tuple[Run, ...]], title: str) -> Scene:
    builder = SceneBuilder()
    width = max(runs_width(line) for line in lines) + 2 * PADDING
    height = 18.0 * len(lines) + 2 * PADDING - 4
    builder.box(Rect(0, 0, width, height), Ink(Role.CARD), Ink(Role.FIELD_BORDER), 6)
    for number, line in enumerate(lines):
        builder.items.append(text_at(PADDING, PADDING + 11 + 18 * number, line))
    return builder.scene(width, height, title, "")
