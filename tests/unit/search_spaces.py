"""Spaces for the tests of the search, made as the command line makes them."""

from __future__ import annotations

import presets
from model_core import Design
from model_core.search.axis_text import PresetPart, parse_axis
from model_core.search.space import Space, make_space
from model_core.search.sweep import SweepResult, sweep

PARTS = {
    "model": PresetPart(presets.names("models"), presets.load_model),
    "cluster": PresetPart(presets.names("clusters"), presets.load_cluster),
    "cluster.chip": PresetPart(presets.names("chips"), presets.load_chip),
    "workload": PresetPart(presets.names("workloads"), presets.load_workload),
}


def decode_design() -> Design:
    return presets.load_design("palm-540b-decode-low-latency")


def space_of(design: Design, *texts: str) -> Space:
    axes = []
    for text in texts:
        axis, problems = parse_axis(design, text, PARTS)
        assert axis is not None, (text, [problem.message for problem in problems])
        axes.append(axis)
    space, problems = make_space(design, axes)
    assert space is not None, problems
    return space


def swept(design: Design, *texts: str) -> SweepResult:
    result, problems = sweep(space_of(design, *texts))
    assert result is not None, problems
    return result
