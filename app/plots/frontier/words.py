"""Words of the frontier: names of columns and fields, and how a design differs from the current one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.i18n import tr, tr_text
from app.plots.facts import LAYOUT_NAMES
from model_core.search.axes import label_of
from model_core.search.differences import Difference, differences
from model_core.search.readers import DIMENSIONS
from model_core.spec import Design, FfnLayout, Phase
from model_core.units import (
    COUNT,
    Dimension,
    format_number,
    format_quantity,
)


@dataclass(frozen=True, slots=True)
class Column:
    """How a column of a sweep is shown: its title, its values, and whether its axis is logarithmic."""

    title: str
    dimension: Dimension
    log: bool = True

    def write(self, value: float) -> str:
        """Write a value."""
        if self.dimension is COUNT:
            return f"{value:,.0f}"
        return format_quantity(value, self.dimension)


def column(name: str) -> Column:
    """Return how a column is shown."""
    titles = {
        "step_s": tr("latency per token"),
        "latency_s": tr("latency"),
        "cost_chip_s_per_token": tr("chip-seconds per token"),
        "mfu": tr("MFU"),
        "tokens_per_s": tr("throughput"),
        "memory_per_chip_bytes": tr("memory per chip"),
        "usd_per_million_tokens": tr("price per million tokens"),
        "joules_per_token": tr("energy per token"),
        "n_chips": tr("chips"),
        "batch": tr("batch"),
    }
    return Column(titles[name], DIMENSIONS[name], name != "mfu")


def field_name(path: str) -> str:
    """Name a field of a design in a word or two."""
    names = {
        "workload.batch": tr("batch"),
        "workload.input_length": tr("input"),
        "cluster.topology.shape": tr("slice"),
        "cluster.topology": tr("nodes"),
        "cluster.topology.n_nodes": tr("nodes"),
        "cluster.topology.chips_per_node": tr("chips per node"),
        "plan.ffn_layout": tr("layout"),
        "plan.attention_sharding": tr("attention over"),
        "plan.weight_dtype": tr("weights"),
        "plan.kv_dtype": tr("KV cache"),
        "plan.mesh": tr("mesh"),
        "plan.activation_dtype": tr("activations"),
        "plan.block": tr("block"),
        "plan.collective_overlap": tr("overlap of collectives"),
        "plan.microbatches": tr("microbatches"),
        "workload.prefill_chunk": tr("prefill chunk"),
    }
    return names.get(path) or path.rpartition(".")[2].replace("_", " ")


def short_layout(layout: FfnLayout | str) -> str:
    """Name a layout in the space of a table cell: ``2D WS``, ``XY WG``."""
    return {
        FfnLayout.WEIGHT_STATIONARY_1D: "1D WS",
        FfnLayout.WEIGHT_STATIONARY_2D: "2D WS",
        FfnLayout.WEIGHT_GATHERED_X: "X WG",
        FfnLayout.WEIGHT_GATHERED_XY: "XY WG",
        FfnLayout.WEIGHT_GATHERED_XYZ: "XYZ WG",
    }[FfnLayout(layout)]


def shown_value(path: str, text: str) -> str:
    """Write a value of a field as people know it."""
    if path == "plan.ffn_layout":
        return tr_text(LAYOUT_NAMES[FfnLayout(text)])
    return tr_text(text)


def difference_lines(current: Design, other: Design) -> tuple[str, ...]:
    """Say in lines how a design differs from the current one."""
    found = differences(current, other)
    return tuple(_line(entry) for entry in found) or (tr("as the current design"),)


def _line(entry: Difference) -> str:
    before, after = shown_value(entry.path, entry.before), shown_value(entry.path, entry.after)
    return f"{field_name(entry.path)}: {before} → {after}"


def short_title(design: Design) -> str:
    """Name a design by chips, batch, layout, attention and weights, as the figures of papers do."""
    plan = design.plan
    parts = (
        tr("{chips} chips", chips=f"{design.cluster.n_chips:,}"),
        tr("batch {batch}", batch=f"{design.workload.batch:,}"),
        short_layout(plan.ffn_layout),
        tr("attention {over}", over=tr_text(str(plan.attention_sharding))),
        plan.weight_dtype,
    )
    return " · ".join(parts)


def slice_text(design: Design) -> str:
    """Write the shape of the slice, or the nodes."""
    topology = design.cluster.topology
    shape = getattr(topology, "shape", None)
    path = "cluster.topology.shape" if shape is not None else "cluster.topology"
    return label_of(design, path, topology if shape is None else shape)


def phase_title(phase: Phase) -> str:
    """Return the title of the view for a phase."""
    if phase is Phase.DECODE:
        return tr("Frontier of decode")
    return tr("Frontier of prefill") if phase is Phase.PREFILL else tr("Frontier")


def percent(share: float) -> str:
    """Write a share with its sign."""
    return f"{'+' if share > 0 else '−' if share < 0 else '±'}{format_number(abs(share) * 100, 2)} %"


Writer = Callable[[float], str]
