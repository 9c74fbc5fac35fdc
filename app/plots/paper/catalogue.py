"""The list of figures and tables that can be recomputed, with the rows that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.i18n import tr

VIEW_PREFIX: Final = "paper:"


@dataclass(frozen=True, slots=True)
class PaperItem:
    """One figure or table. ``rows``: the beginning of the ids of its published rows; ``exactly``: one id."""

    id: str
    name: str
    caption: str
    rows: str
    is_table: bool = False

    @property
    def view(self) -> str:
        """Name of the view for `meshwright render`."""
        return f"{VIEW_PREFIX}{self.id}"


ITEM_IDS: Final = (
    "fig1-left",
    "fig1-right",
    "fig3",
    "fig6",
    "fig7",
    "fig8",
    "fig9",
    "fig9-20-8",
    "figB1",
    "figC1-decode",
    "figC1-prefill",
    "table1",
    "table2",
    "table3",
    "sections",
)


def items() -> tuple[PaperItem, ...]:
    """Return all items in the order of the paper, in the user's language."""
    return (
        PaperItem(
            "fig1-left",
            tr("Figure 1, left"),
            tr("Decode: cost against latency per token, context 2048"),
            "pope-figure-1-decode",
        ),
        PaperItem(
            "fig1-right",
            tr("Figure 1, right"),
            tr("Prefill of 2048 tokens: cost against latency"),
            "pope-figure-1-prefill",
        ),
        PaperItem(
            "fig3",
            tr("Figure 3"),
            tr("Communication of the feedforward layer against tokens per batch"),
            "pope-figure-3",
        ),
        PaperItem(
            "fig6",
            tr("Figure 6"),
            tr("Latency per token against chips, 1D and 2D weight-stationary, batch 512"),
            "pope-figure-6",
        ),
        PaperItem(
            "fig7", tr("Figure 7"), tr("Prefill MFU against tokens per batch, 64 chips"), "pope-figure-7"
        ),
        PaperItem(
            "fig8",
            tr("Figure 8"),
            tr("Latency per token against context length, 8 layers, batch 256, 64 chips"),
            "pope-figure-8",
        ),
        PaperItem(
            "fig9",
            tr("Figure 9"),
            tr("MFU against latency, 60 input and 20 output tokens"),
            "pope-figure-9",
        ),
        PaperItem(
            "fig9-20-8",
            tr("Figure 9, 20 in and 8 out"),
            tr("MFU against latency, beside FasterTransformer as measured"),
            "pope-figure-9-20-8",
        ),
        PaperItem(
            "figB1",
            tr("Figure B.1"),
            tr("Prefill at batch 1: cost against latency over sequence lengths"),
            "pope-figure-b1",
        ),
        PaperItem(
            "figC1-decode",
            tr("Figure C.1, decode"),
            tr("Decode: MFU against latency"),
            "pope-figure-c1-decode",
        ),
        PaperItem(
            "figC1-prefill",
            tr("Figure C.1, prefill"),
            tr("Prefill: MFU against latency"),
            "pope-figure-c1-prefill",
        ),
        PaperItem(
            "table1", tr("Table 1"), tr("Longest context by attention layout, 64 chips"), "pope-table-1", True
        ),
        PaperItem("table2", tr("Table 2"), tr("PaLM 540B: latency and MFU"), "pope-table-2", True),
        PaperItem("table3", tr("Table 3"), tr("PaLM 62B: latency and MFU"), "pope-table-3", True),
        PaperItem("sections", tr("In the text"), tr("Numbers of the text and of Table D.1"), "pope-", True),
    )


def item_named(identifier: str) -> PaperItem:
    """Return an item by its id, with or without the prefix of views.

    Raises:
        KeyError: there is none.
    """
    wanted = identifier.removeprefix(VIEW_PREFIX)
    return {item.id: item for item in items()}[wanted]
