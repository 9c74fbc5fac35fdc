"""The dialog that pairs prefill with decode servers: chips for a rate of requests, and what a request sees."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

from app.background import Task, Ticket
from app.dialogs.search_dialog import SearchDialog
from app.dialogs.search_text import diagnostics_html, pair_html
from app.document import DesignDocument
from app.i18n import tr
from app.theme import active
from app.widgets.form import Form
from app.widgets.quantity_edit import IntEdit, QuantityEdit
from model_core.diagnostics import Diagnostic
from model_core.search.layouts import best_layout
from model_core.search.pairing import Pair, pair
from model_core.spec import Design, Phase
from model_core.units import COUNT

OUTPUT = 64
DECODE_BATCH = 64
RATE = 1.0
MOST = 10**7


class PairingDialog(SearchDialog):
    """Takes model and slice from the document's design; each side gets its best layout."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(
            "pairing_dialog",
            tr("Pair prefill and decode"),
            tr(
                "Servers of the present slice for prefill and for decode, each with its best layout (Pope 4.4)."
            ),
            document,
            parent,
        )
        workload = document.design.workload
        decode = workload.phase is Phase.DECODE
        self.rate = QuantityEdit(COUNT, parent=self)
        self.rate.set_value(RATE)
        self.prefill_batch = self._count(1)
        self.decode_batch = self._count(workload.batch if decode else DECODE_BATCH)
        self.output = self._count(workload.output_length or OUTPUT)
        form = Form(self)
        form.add("rate", tr("Requests per second"), self.rate, tr("How many requests arrive in a second"))
        form.add(
            "prefill",
            tr("Prefill batch"),
            self.prefill_batch,
            tr("Requests that one prefill server takes at once"),
        )
        form.add(
            "decode",
            tr("Decode batch"),
            self.decode_batch,
            tr("Requests that one decode server serves at once"),
        )
        form.add("output", tr("Output tokens"), self.output, tr("Tokens generated for each request"))
        self.form.addWidget(form)
        self.run_button.setText(tr("Compute"))
        self.start()

    def make_task(self) -> Task | None:
        """Return the pairing that the form describes."""
        values = (self.rate.value, self.prefill_batch.value, self.decode_batch.value, self.output.value)
        rate, first, second, output = values
        if rate is None or first is None or second is None or output is None or rate <= 0:
            self.say(tr("Give a rate above 0 and whole numbers from 1 on."))
            return None
        return _PairTask(self._document.design, rate, int(first), int(second), int(output))

    def show_result(self, found: object) -> None:
        """Show the pair."""
        assert isinstance(found, _Paired)
        theme = active()
        text = diagnostics_html(found.problems, theme) if found.pair is None else pair_html(found.pair, theme)
        self.answer.setHtml(text)

    def _count(self, value: int) -> IntEdit:
        edit = IntEdit(1, MOST, parent=self)
        edit.set_value(value)
        return edit


@dataclass(frozen=True, slots=True)
class _Paired:
    """A pair, or why there is none."""

    pair: Pair | None
    problems: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _PairTask:
    """The task of the worker."""

    design: Design
    rate: float
    prefill_batch: int
    decode_batch: int
    output: int

    def __call__(self, ticket: Ticket) -> _Paired | None:
        workload = self.design.workload
        prefill = workload.replace(phase=Phase.PREFILL, batch=self.prefill_batch, output_length=0)
        decode = workload.replace(
            phase=Phase.DECODE, batch=self.decode_batch, output_length=self.output, prefill_chunk=None
        )
        sides = []
        for side in (prefill, decode):
            if ticket.cancelled():
                return None
            sides.append(_with_best_layout(self.design.replace(workload=side)))
        found, problems = pair(sides[0], sides[1], self.rate)
        return _Paired(found, problems)


def _with_best_layout(design: Design) -> Design:
    best = best_layout(design, most_batch=1).best
    if best is None:
        return design
    choice = best.choice
    return design.replace(
        plan=design.plan.replace(ffn_layout=choice.layout, attention_sharding=choice.sharding)
    )
