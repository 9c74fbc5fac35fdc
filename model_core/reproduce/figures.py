"""The figures of Pope as data: curves with the axes of the paper, computed by the live model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from model_core import metrics
from model_core.evaluate import evaluate
from model_core.published.conditions import Library, request_designs
from model_core.published.rows import PublishedFile, PublishedRow, Request
from model_core.reproduce.layouts import feedforward_elements
from model_core.reproduce.sweeps import (
    DTYPES,
    MODELS,
    PREFILL_LAYOUTS,
    Outcome,
    decode_sweep,
    frontier,
    outcomes,
    prefill_sweep,
)
from model_core.reproduce.values import Axis, Curve, Point, Series, Value
from model_core.spec.base import Evidence, replace_at
from model_core.spec.design import Design
from model_core.spec.plan import FfnLayout

LATENCY_PER_TOKEN = Axis("latency per generated token", "s", logarithmic=True)
LATENCY = Axis("latency", "s", logarithmic=True)
COST = Axis("cost", "chip·s per token", logarithmic=True)
MFU = Axis("MFU", "")
TOKENS = Axis("tokens per batch", "", logarithmic=True)
DECODE, PREFILL = "palm-540b-decode-high-throughput", "palm-540b-prefill-high-throughput"


def _value(library: Library, curve: Curve) -> Value:
    """Give a curve the evidence of the design that Pope's figures are about."""
    quantity = evaluate(library.load_design("palm-540b-decode-low-latency")).quantities["step_s"]
    return Value(None, quantity.evidence, quantity.error_band, curve)


def _series(
    label: str, found: Iterable[Outcome], x: Callable[[Outcome], float], y: Callable[[Outcome], float]
) -> Series:
    kept = list(found)
    return Series(label, tuple((x(o), y(o)) for o in kept), tuple(o.note for o in kept))


def _cost(outcome: Outcome) -> float:
    return outcome.cost_chip_s


def _step(outcome: Outcome) -> float:
    return outcome.step_s


def _latency(outcome: Outcome) -> float:
    return outcome.latency_s


def _wasted(outcome: Outcome) -> float:
    return -outcome.mfu


def _label(model: str, dtype: str) -> str:
    return f"{model}, {dtype}"


def figure_1_decode(library: Library) -> Value:
    """Cost against latency of decode at context 2048 (Pope Figure 1, left)."""
    lines = tuple(
        _series(
            _label(model, dtype), frontier(decode_sweep(library, name, dtype), _step, _cost), _step, _cost
        )
        for model, name in MODELS.items()
        for dtype in DTYPES
    )
    return _value(library, Curve("Decode: cost against latency", LATENCY_PER_TOKEN, COST, lines))


def figure_1_prefill(library: Library) -> Value:
    """Cost against latency of prefilling 2048 tokens (Pope Figure 1, right)."""
    lines = tuple(
        _series(
            _label(model, dtype),
            frontier(prefill_sweep(library, name, dtype), _latency, _cost),
            _latency,
            _cost,
        )
        for model, name in MODELS.items()
        for dtype in DTYPES
    )
    return _value(library, Curve("Prefill: cost against latency", LATENCY, COST, lines))


def figure_3(library: Library, model: str, mesh: dict[str, int]) -> Value:
    """Communication volume of the feedforward layer against tokens per batch (Pope Figure 3)."""
    spec = library.load_model(model)
    tokens = [2.0**k for k in range(10, 25)]
    lines = tuple(
        Series(str(layout), tuple((t, float(feedforward_elements(layout, mesh, spec, t))) for t in tokens))
        for layout in PREFILL_LAYOUTS[1:]
    )
    volume = Axis("communication volume", "elements per chip", logarithmic=True)
    return Value(None, curve=Curve("Communication volume of the feedforward layer", TOKENS, volume, lines))


def figure_6(library: Library) -> Value:
    """Latency per token of the 1D and 2D weight-stationary layouts against chips, batch 512 (Pope Figure 6)."""
    base = library.load_design(DECODE)
    lines = []
    for layout in (FfnLayout.WEIGHT_STATIONARY_1D, FfnLayout.WEIGHT_STATIONARY_2D):
        designs = [
            replace_at(
                base.replace(cluster=library.load_cluster(f"tpu-v4-{shape}")), "plan.ffn_layout", layout
            )
            for shape in ("4x4x4", "4x4x8", "4x8x8")
        ]
        lines.append(_series(str(layout), outcomes(designs), lambda o: float(o.chips), _step))
    chips = Axis("chips", "", logarithmic=True)
    return _value(library, Curve("Decode of PaLM 540B, batch 512", chips, LATENCY_PER_TOKEN, tuple(lines)))


def figure_7(library: Library) -> Value:
    """Prefill MFU of each layout against tokens per batch on 64 chips (Pope Figure 7)."""
    base = library.load_design(PREFILL)
    lines = []
    for layout in PREFILL_LAYOUTS[1:]:
        designs = []
        for batch in (2**k for k in range(10)):
            plan = base.plan.replace(
                ffn_layout=layout, attention_sharding="batch" if batch >= 64 else "heads"
            )
            designs.append(base.replace(plan=plan, workload=base.workload.replace(batch=batch)))
        lines.append(_series(str(layout), outcomes(designs), lambda o: 2048.0 * o.batch, lambda o: o.mfu))
    return _value(library, Curve("Prefill of PaLM 540B on 64 chips", TOKENS, MFU, tuple(lines)))


def figure_8(library: Library) -> Value:
    """Latency per token against context, eight layers, batch 256, 64 chips (Pope Figure 8)."""
    variants = {
        "multihead": ("palm-540b-multihead", "heads"),
        "multiquery over heads": ("palm-540b-padded", "heads"),
        "multiquery over batch": ("palm-540b-padded", "batch"),
    }
    lines = []
    for label, (model, sharding) in variants.items():
        points: list[Point] = []
        for context in (2**k for k in range(7, 16)):
            design = _eight_layers(library, model, sharding, context)
            evaluation = evaluate(design)
            if evaluation.time is not None and evaluation.memory is not None and evaluation.memory.fits:
                points.append((float(context), evaluation.time.step_s))
        lines.append(Series(label, tuple(points)))
    context_axis = Axis("context length", "tokens", logarithmic=True)
    curve = Curve("Decode of 8 layers of PaLM 540B, batch 256", context_axis, LATENCY_PER_TOKEN, tuple(lines))
    return _value(library, curve)


def _eight_layers(library: Library, model: str, sharding: str, context: int) -> Design:
    base = library.load_design(DECODE)
    workload = base.workload.replace(batch=256, input_length=context - 1, output_length=1)
    return base.replace(
        model=library.load_model(model).replace(n_layers=8),
        workload=workload,
        plan=base.plan.replace(attention_sharding=sharding),
    )


def figure_9(
    library: Library,
    input_length: int,
    output_length: int,
    lines: Sequence[dict[str, Any]],
    batches: Sequence[int],
    measured: dict[str, list[Point]] | None = None,
) -> Value:
    """MFU against the latency of whole requests across batches, ours and FasterTransformer (Pope Figure 9).

    Args:
        library: presets.
        input_length: input tokens.
        output_length: output tokens.
        lines: label and conditions of each predicted line.
        batches: batches of each line.
        measured: published points by label.
    """
    series = [_request_line(library, line, batches, input_length, output_length) for line in lines]
    series += [
        Series(f"{label}, measured", tuple((x, y) for x, y in points), evidence=Evidence.PUBLISHED)
        for label, points in (measured or {}).items()
    ]
    title = f"{input_length} input and {output_length} output tokens"
    return _value(library, Curve(title, LATENCY, MFU, tuple(series)))


def _request_line(
    library: Library, line: dict[str, Any], batches: Sequence[int], input_length: int, output_length: int
) -> Series:
    file = PublishedFile(title="", source="", rows=(), plan=line.get("plan", {}))
    points: list[Point] = []
    notes: list[str] = []
    for batch in batches:
        request = Request.model_validate(
            {**line["request"], "batch": batch, "input_length": input_length, "output_length": output_length}
        )
        row = PublishedRow(id=line["label"], quantity="mfu", request=request)
        found = [evaluate(design) for design in request_designs(row, request, file, library)]
        if not all(e.ok for e in found):
            continue
        seconds = sum(e.time.latency_s for e in found if e.time is not None)
        parameters, cluster = found[0].parameters, found[0].design.cluster
        tokens = batch * (input_length + output_length)
        if parameters is not None:
            mfu = metrics.mfu(parameters.mfu, tokens, cluster.n_chips, cluster.chip.peak_bf16, seconds)
            points.append((seconds, float(mfu)))
            notes.append(f"C {cluster.n_chips}, B {batch}")
    return Series(line["label"], tuple(points), tuple(notes))


def figure_b1(library: Library) -> Value:
    """Cost against latency of prefill at batch 1 for 32 to 1024 tokens (Pope Figure B.1)."""
    lines = []
    for model, name in MODELS.items():
        for length in (32, 64, 128, 256, 512, 1024):
            found = prefill_sweep(library, name, "int8", (length,), (1,))
            lines.append(_series(f"{model}, S {length}", frontier(found, _latency, _cost), _latency, _cost))
    return _value(library, Curve("Prefill at batch 1: cost against latency", LATENCY, COST, tuple(lines)))


def figure_c1_decode(library: Library) -> Value:
    """MFU against latency of decode at context 2048 (Pope Figure C.1)."""
    return _mfu_curve(library, "Decode: MFU against latency", LATENCY_PER_TOKEN, decode_sweep, _step)


def figure_c1_prefill(library: Library) -> Value:
    """MFU against latency of prefilling 2048 tokens (Pope Figure C.1)."""
    return _mfu_curve(library, "Prefill: MFU against latency", LATENCY, prefill_sweep, _latency)


def _mfu_curve(
    library: Library,
    title: str,
    axis: Axis,
    sweep: Callable[[Library, str, str], tuple[Outcome, ...]],
    time: Callable[[Outcome], float],
) -> Value:
    lines = tuple(
        _series(
            _label(model, dtype), frontier(sweep(library, name, dtype), time, _wasted), time, lambda o: o.mfu
        )
        for model, name in MODELS.items()
        for dtype in DTYPES
    )
    return _value(library, Curve(title, axis, MFU, lines))
