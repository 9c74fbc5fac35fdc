"""Published figures that take more than one evaluation, each a function of the library and JSON arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from model_core import metrics
from model_core.evaluate import evaluate
from model_core.published.conditions import Library, design_of, request_designs
from model_core.published.rows import PublishedFile, PublishedRow, Reading, Request
from model_core.reproduce import experts, figures
from model_core.reproduce.layouts import chips_where_2d_pays, switch_tokens
from model_core.reproduce.readings import read, value_of
from model_core.reproduce.sweeps import MODELS, decode_sweep
from model_core.reproduce.training import TRAINING_COMPUTATIONS
from model_core.reproduce.values import Value, combined
from model_core.results import Evaluation
from model_core.spec.plan import FfnLayout

ATTENTION = ("scores", "mixed")


def difference(library: Library, more: dict[str, Any], less: dict[str, Any]) -> Value:
    """Difference of two numbers."""
    parts = [read(Reading.model_validate(reading), library) for reading in (more, less)]
    return combined(parts[0].known - parts[1].known, parts)


def overall_mfu(library: Library, prefill: dict[str, Any], decode: dict[str, Any]) -> Value:
    """MFU of prefill and decode of one batch together (Pope 1)."""
    found = [evaluate(design_of(Reading.model_validate(reading), library)) for reading in (prefill, decode)]
    return _mfu_of(found)


def _mfu_of(found: Sequence[Evaluation]) -> Value:
    parts = [value_of(evaluation, "latency_s") for evaluation in found]
    tokens = sum(e.design.workload.batch * e.design.workload.tokens_per_sequence for e in found)
    parameters, cluster = found[0].parameters, found[0].design.cluster
    if parameters is None:
        raise ValueError("a design without parameters has no MFU")
    seconds = sum(part.known for part in parts)
    value = metrics.mfu(parameters.mfu, tokens, cluster.n_chips, cluster.chip.peak_bf16, seconds)
    return combined(value, parts)


def attention_share(library: Library, reading: dict[str, Any]) -> Value:
    """Share of a step that reading the cache and attending to it takes (Pope 4.2)."""
    evaluation = evaluate(design_of(Reading.model_validate(reading), library))
    step = value_of(evaluation, "step_s")
    names = evaluation.programs["block"].ops
    attended = sum(
        op.total_s
        for op in (evaluation.time.ops if evaluation.time else ())
        if op.program == "block" and names[op.index].output.name in ATTENTION
    )
    return combined(attended / step.known, [step])


def latency_exponent(library: Library) -> Value:
    """Exponent of the lowest decode latency in the model size, over PaLM 8B, 62B and 540B (Pope 4.4)."""
    sizes, latencies = [], []
    for name in MODELS.values():
        found = decode_sweep(library, name, "int8")
        sizes.append(_parameters(library, name))
        latencies.append(min(outcome.step_s for outcome in found))
    slope = np.polyfit(np.log(sizes), np.log(latencies), 1)[0]
    band = read(Reading(design="palm-540b-decode-low-latency"), library)
    return combined(float(slope), [Value(0.0, band.evidence)])


def _parameters(library: Library, name: str) -> float:
    reading = Reading(design="palm-540b-decode-low-latency", set={"model": name}, key="parameters_total")
    return read(reading, library).known


def cost_ratio_at_latency(library: Library, reading: dict[str, Any]) -> Value:
    """Lowest cost with bfloat16 by that with int8 weights, at most as slow as a design: 540B, decode (Pope 4.4)."""
    target = read(Reading.model_validate(reading), library)
    plain, quantized = (
        min(
            o.cost_chip_s
            for o in decode_sweep(library, MODELS["PaLM 540B"], dtype)
            if o.step_s <= target.known
        )
        for dtype in ("bfloat16", "int8")
    )
    return combined(plain / quantized, [target])


def layout_switch(library: Library, before: str, after: str, model: str, mesh: dict[str, int]) -> Value:
    """Tokens per batch at which a layout begins to move less than another (Pope Figure 3)."""
    return Value(switch_tokens(FfnLayout(before), FfnLayout(after), mesh, library.load_model(model)))


def crossing_1d_2d(library: Library, model: str) -> Value:
    """Fewest chips at which the 2D layout moves no more than the 1D one, plain feedforward (Pope 3.2.2)."""
    return Value(chips_where_2d_pays(library.load_model(model).replace(gated_ffn=False)))


def highest_mfu(
    library: Library, requests: Sequence[dict[str, Any]], batches: Sequence[int], plan: dict[str, Any]
) -> Value:
    """Highest MFU of whole requests over batches and workloads that fit (Pope 5)."""
    file = PublishedFile(title="", source="", plan=plan, rows=())
    found = []
    for content in requests:
        for batch in batches:
            request = Request.model_validate({**content, "batch": batch})
            evaluations = [evaluate(design) for design in _designs(request, file, library)]
            if all(evaluation.ok for evaluation in evaluations):
                found.append(_mfu_of(evaluations))
    return max(found, key=lambda value: value.known)


def _designs(request: Request, file: PublishedFile, library: Library) -> Iterator[Any]:
    row = PublishedRow(id=request.model, quantity="mfu", request=request)
    return request_designs(row, request, file, library)


COMPUTATIONS: dict[str, Callable[..., Value]] = {
    "difference": difference,
    "overall_mfu": overall_mfu,
    "attention_share": attention_share,
    "latency_exponent": latency_exponent,
    "cost_ratio_at_latency": cost_ratio_at_latency,
    "layout_switch": layout_switch,
    "crossing_1d_2d": crossing_1d_2d,
    "highest_mfu": highest_mfu,
    "free_experts": experts.free_experts,
    "expert_limit": experts.expert_limit,
    "compute_over_communication": experts.compute_over_communication,
    "deepep_bandwidth": experts.deepep_bandwidth,
    "deepep_latency": experts.deepep_latency,
    "figure_1_decode": figures.figure_1_decode,
    "figure_1_prefill": figures.figure_1_prefill,
    "figure_3": figures.figure_3,
    "figure_6": figures.figure_6,
    "figure_7": figures.figure_7,
    "figure_8": figures.figure_8,
    "figure_9": figures.figure_9,
    "figure_b1": figures.figure_b1,
    "figure_c1_decode": figures.figure_c1_decode,
    "figure_c1_prefill": figures.figure_c1_prefill,
    **TRAINING_COMPUTATIONS,
}
"""Computations by the name that published rows use."""
