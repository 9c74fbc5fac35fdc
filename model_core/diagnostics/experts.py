"""Diagnostics of expert loads and placements."""

from __future__ import annotations

from typing import Final

from model_core.diagnostics.template import Severity, Template

_E = Severity.ERROR
_W = Severity.WARNING
_I = Severity.INFO

CODES: Final[dict[str, Template]] = {
    "loads_too_large": Template(
        _E, "the file has {size}; expert loads have at most {limit}", "Record fewer steps, or sum them first."
    ),
    "loads_syntax": Template(
        _E,
        "{place}: {reason}",
        "Expert loads and maps are JSON, CSV, or files of torch.save that hold tensors.",
    ),
    "loads_unsafe": Template(
        _E,
        "{place}: the file asks for {name}, which only running code could give; nothing was run",
        "Save the tensors alone, for instance torch.save({{'logical_count': counts}}, path).",
    ),
    "loads_missing": Template(
        _E, "the file has no entry {names}; it has {found}", "Rename the entry, or choose another file."
    ),
    "loads_ragged": Template(
        _E,
        "{place} has {found} values where the first has {wanted}",
        "Every layer needs one value for each expert.",
    ),
    "loads_not_number": Template(
        _E, "{place} is {found}, which is no number of tokens", "Loads are finite numbers, 0 or more."
    ),
    "loads_wrong_shape": Template(
        _E,
        "{place} has the shape {found}",
        "Expert loads are layers x experts, or steps x layers x experts.",
    ),
    "loads_too_many": Template(
        _E,
        "{place} has {layers} layers and {experts} experts; at most {most} are read",
        "Check that rows are layers and columns experts.",
    ),
    "map_wrong_shape": Template(
        _E, "{place} has the shape {found}", "A map is layers x slots, with a logical expert in each."
    ),
    "map_uneven": Template(
        _E,
        "the map has {slots} slots, which do not divide by {gpus} GPUs",
        "Give the GPUs that the map is for.",
    ),
    "map_not_expert": Template(
        _E, "{place} is {found}, which is no expert", "Experts are whole numbers from 0 to {last}."
    ),
    "map_without_expert": Template(
        _E, "layer {layer} of the map has no replica of expert {expert}", "Every expert needs a slot."
    ),
    "place_not_positive": Template(_E, "{size} is less than 1", "Use a whole number of 1 or more."),
    "place_too_many_gpus": Template(
        _E, "{gpus} GPUs are more than experts can be placed on here", "Use at most {most} GPUs."
    ),
    "place_not_even": Template(
        _E, "{what} = {size} does not divide by {by} = {ways}", "The nearest that do: {nearest}."
    ),
    "place_groups_uneven": Template(
        _E, "{experts} experts do not divide into {groups} groups", "Nearest numbers of groups: {nearest}."
    ),
    "place_too_few_slots": Template(
        _E, "{slots} slots cannot hold {experts} experts", "Use at least {least} slots."
    ),
    "place_too_many_slots": Template(
        _E,
        "with {slots} slots per GPU and {experts} experts to choose from, a GPU would hold an expert twice",
        "Use at most {most} slots.",
    ),
    "place_groups_not_kept": Template(
        _W,
        "{groups} groups do not divide by {nodes} nodes: the experts of a group are spread over all nodes",
        "Groups stay on one node with these numbers of groups: {nearest}.",
    ),
    "place_active_out_of_range": Template(
        _E,
        "a GPU cannot run {active} experts in a step",
        "Use {least} (so that all experts run) to {most} (its slots).",
    ),
    "place_cannot_run": Template(
        _E,
        "with {active} experts per GPU in a step, an expert of layer {layer} has no GPU to run on",
        "Use more slots, or run more experts in a step.",
    ),
    "place_previous_missing": Template(
        _E, "the incremental policy changes a placement, and none is given", "Give the one that is loaded."
    ),
    "place_previous_differs": Template(
        _E,
        "the previous placement has {found} {what} where {wanted} are asked for",
        "Give a placement of the same layers, slots and experts.",
    ),
    "place_share_impossible": Template(
        _I,
        "{count} experts have more load than one visit of every token",
        "For the traffic their loads are cut to that; a gate that picks {k} experts gives none more than 1/{k}.",
    ),
}
