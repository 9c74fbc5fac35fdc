"""The head of the layout drawing: title, what is drawn of the model, and the legend, in as many rows as it takes."""

from __future__ import annotations

from functools import partial
from typing import Final

from app.i18n import tr, tr_text
from app.plots.cards import axis_field
from app.plots.facts import PHASE_NAMES, ProgramFacts, attention_text, layout_text, seconds
from app.plots.header import LEGEND_ROW, Mark, legend, legend_rows, legend_width, muted, title_runs, words
from app.plots.scene import Ink, Rect, Run, SceneBuilder
from app.plots.text import AXIS_ROLE, BODY, SMALL, elided, notation, runs_width, text_at
from app.theme import Role
from model_core.results import Evaluation

PARTS: Final = ("embedding", "block", "moe_block", "logits")
FEEDFORWARD: Final = ("feedforward", "routed experts")
ARROW: Final = 20.0
SPACE: Final = 24.0
ROW: Final = 25.0
BELOW: Final = 12.0


class LayoutHeader:
    """Measures and draws the head for any width."""

    def __init__(self, evaluation: Evaluation, facts: ProgramFacts, short: bool) -> None:
        design = evaluation.design
        self._short = short
        self._part = facts.name
        self._names = part_names(evaluation)
        self._chips = self._make_chips(evaluation)
        self._marks = _marks(facts, short)
        self.title = self._make_title(evaluation)
        weight = next((t for t in facts.program.weights if t.group in FEEDFORWARD), None)
        stored = () if weight is None else (*notation(weight.sharding.as_printed(), BODY), *muted(" · "))
        self._subtitle = (*stored, *muted(f"{design.cluster.name} · {attention_text(evaluation)}"))
        self._title_width = runs_width(title_runs(self.title))
        self._chips_width = sum(runs_width(runs) + 18 for _, runs in self._chips)
        self._chips_width += ARROW * max(len(self._chips) - 1, 0)

    def _make_title(self, evaluation: Evaluation) -> str:
        model = evaluation.design.model
        name = {
            "embedding": tr("Embedding"),
            "block": tr("One block") if model.moe is None else tr("One dense block"),
            "moe_block": tr("One block with experts"),
            "logits": tr("Logits"),
        }[self._part]
        phase = tr_text(PHASE_NAMES[evaluation.design.workload.phase])
        layout = layout_text(evaluation)
        return tr("{part}, {phase} · {layout}", part=name, phase=phase, layout=layout)

    def _make_chips(self, evaluation: Evaluation) -> list[tuple[str, tuple[Run, ...]]]:
        chips: list[tuple[str, tuple[Run, ...]]] = []
        for name in (name for name in PARTS if name in evaluation.programs):
            time = part_seconds(evaluation, name)
            shown = Run(f"  {seconds(time)}" if time else "", SMALL, False, Role.TEXT_MUTED)
            chips.append((name, (Run(self._names[name], SMALL, name == self._part), shown)))
        return chips

    @property
    def least_width(self) -> float:
        """The width that the way through the model needs in a row of its own."""
        return self._chips_width

    def height(self, width: float) -> float:
        """Return the height of the head in a drawing of a given width."""
        rows = 1 + (not self._chips_beside(width)) + self._has_subtitle(width)
        below = 0 if self._legend_beside(width) else len(legend_rows(self._marks, width))
        return ROW * rows + LEGEND_ROW * below + BELOW

    def _has_subtitle(self, width: float) -> bool:
        """In short, the subtitle gives way where it would take a row of its own."""
        return self._legend_beside(width) or not self._short

    def _chips_beside(self, width: float) -> bool:
        return self._title_width + SPACE + self._chips_width <= width

    def _legend_beside(self, width: float) -> bool:
        return runs_width(self._subtitle) + SPACE + legend_width(self._marks) <= width

    def draw(self, builder: SceneBuilder, width: float) -> float:
        """Draw the head and return its lower edge."""
        text = elided(self.title, title_runs("")[0].size, width, True)
        builder.items.append(text_at(0, 18, title_runs(text)))
        y = ROW
        if self._chips_beside(width):
            self._draw_chips(builder, width - self._chips_width, 0.0)
        else:
            self._draw_chips(builder, 0.0, y)
            y += ROW
        if self._has_subtitle(width):
            builder.items.append(text_at(0, y + 16, self._subtitle))
        if self._legend_beside(width):
            left = runs_width(self._subtitle) + SPACE
            legend(builder, self._marks, left, y + 3, width - left, right=True)
        else:
            legend(builder, self._marks, 0, y + 2 + (ROW - 3 if self._has_subtitle(width) else 0), width)
        return self.height(width)

    def _draw_chips(self, builder: SceneBuilder, x: float, y: float) -> None:
        """Draw the way through the model, embedding to logits, to choose from."""
        for number, (name, runs) in enumerate(self._chips):
            if number:
                builder.line((x + 3, y + 11), (x + 17, y + 11), ink=Ink(Role.TENSOR), arrow=True)
                x += ARROW
            rect = Rect(x, y, runs_width(runs) + 18, 22)
            chosen = name == self._part
            fill, stroke = (Role.SELECTION, Role.ACCENT) if chosen else (Role.CARD, Role.FIELD_BORDER)
            builder.box(rect, Ink(fill), Ink(stroke), radius=11)
            builder.items.append(text_at(rect.x + 9, y + 15, runs))
            state = tr("drawn now") if chosen else tr("draw this part")
            builder.target(rect, f"part/{name}", self._names[name], state, radius=11)
            x = rect.right


def part_names(evaluation: Evaluation) -> dict[str, str]:
    """Name the programs of an evaluation."""
    model = evaluation.design.model
    layers = model.n_layers
    names = {
        "embedding": tr("Embedding"),
        "block": tr("Block × {count}", count=layers),
        "logits": tr("Logits"),
        "pipeline": tr("Pipeline"),
    }
    if model.moe is not None:
        dense = model.moe.n_dense_layers
        names["block"] = tr("Dense block × {count}", count=dense)
        names["moe_block"] = tr("Block with experts × {count}", count=layers - dense)
    return names


def part_seconds(evaluation: Evaluation, part: str) -> float:
    """Return what a program adds to the step."""
    ops = () if evaluation.time is None else evaluation.time.ops
    return sum(op.total_s for op in ops if op.program == part)


def _marks(facts: ProgramFacts, short: bool) -> list[Mark]:
    marks = []
    for axis, count in facts.mesh.items():
        runs = (Run(axis, SMALL, True, AXIS_ROLE[axis]), *words(f" = {count}"))
        marks.append(Mark(partial(axis_field, axis=axis, state="split"), runs, 18, 6))
    axis = next(iter(facts.mesh), "x")
    marks.append(
        Mark(
            partial(axis_field, axis=axis, state="partial"),
            words(tr("Σ partial sum") if short else tr("partial sum")),
            18,
            6,
        )
    )
    marks.append(Mark(partial(axis_field, axis=axis, state=""), words(tr("replicated")), 18, 6))
    marks.append(Mark(_exposed_mark, words(tr("exposed, hidden")), 26, 4))
    return marks


def _exposed_mark(builder: SceneBuilder, rect: Rect) -> None:
    builder.box(rect, Ink(Role.COLLECTIVE, 0.16), Ink(Role.COLLECTIVE, 0.6), width=0.6)
    builder.box(Rect(rect.x, rect.y, rect.w / 2, rect.h), Ink(Role.COLLECTIVE))
