"""What single changes to a design would do to each of its terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from model_core.evaluate import evaluate
from model_core.results import Evaluation
from model_core.search.axes import label_of
from model_core.spec.base import get_at
from model_core.spec.design import Design
from model_core.spec.edits import edit
from model_core.spec.plan import AttentionSharding, FfnLayout
from model_core.spec.workload import Phase

STEP_TERMS: Final = ("step_s", "compute_s", "memory_s", "communication_s", "exposed_communication_s")
TERMS: Final = (
    "latency_s",
    *STEP_TERMS,
    "memory_per_chip_bytes",
    "max_context",
    "mfu",
    "cost_chip_s_per_token",
)
"""Numbers that an effect compares; keys as in `Evaluation.quantities`."""

CHUNK: Final = 256
"""Tokens of a chunk that is proposed for a prefill in one piece."""

ROUNDING: Final = 1e-9
"""Relative change that is no change."""

ARITHMETIC: Final = "plan.activation_dtype"


@dataclass(frozen=True, slots=True)
class Effect:
    """One change and what it does.

    ``before`` and ``after`` name the values of the field at ``path``; ``valid`` and ``fits`` speak of the
    changed design. ``deltas`` holds for each of `TERMS` that both designs have the difference, new minus
    old, in the unit of the term: times of one token in decode, of the whole input in prefill.
    """

    path: str
    before: str
    after: str
    design: Design
    valid: bool
    fits: bool
    deltas: Mapping[str, float]


def effects(design: Design) -> tuple[Effect, ...]:
    """Evaluate every applicable single change of a design.

    Source: Pope 3.2 to 3.6: layouts, attention sharding, overlap, incremental prefill, int8
        weights; activations in int8 are expected there to help, and not built
    Args:
        design: the design as it is.

    Returns:
        Formats of weights, activations and KV cache that the chip has arithmetic for or that save bytes;
        the other layouts and the other attention sharding; collectives without overlap; and in prefill,
        chunks. Changes that are no design, and those that change nothing, are left out.
    """
    now = evaluate(design)
    found = []
    for path, value in _changes(design):
        changed, _ = edit(design, path, value)
        if changed is None or changed == design:
            continue
        effect = _effect(design, now, changed, path, value)
        if _changes_anything(effect, now):
            found.append(effect)
    return tuple(found)


def _changes_anything(effect: Effect, now: Evaluation) -> bool:
    """Whether a number changes beyond rounding, or the changed design has other numbers or errors."""
    old = _terms(now)
    if not effect.valid or effect.deltas.keys() != old.keys():
        return True
    return any(abs(delta) > ROUNDING * abs(old[term]) for term, delta in effect.deltas.items())


def _effect(design: Design, now: Evaluation, changed: Design, path: str, value: Any) -> Effect:
    then = evaluate(changed)
    old, new = _terms(now), _terms(then)
    deltas: dict[str, float] = {term: new[term] - old[term] for term in TERMS if term in old and term in new}
    errors = [d for d in then.diagnostics if d.severity == "error" and d.code != "out_of_memory"]
    return Effect(
        path,
        label_of(design, path, get_at(design, path)),
        label_of(changed, path, value),
        changed,
        not errors,
        then.memory is not None and then.memory.fits,
        deltas,
    )


def _terms(evaluation: Evaluation) -> dict[str, float]:
    """Return the terms; those of a step are taken for all chunks of a prefill."""
    workload = evaluation.design.workload
    times = workload.n_steps if workload.phase is Phase.PREFILL else 1
    found = {term: evaluation.value(term) for term in TERMS}
    return {t: v * (times if t in STEP_TERMS else 1) for t, v in found.items() if v is not None}


def _changes(design: Design) -> Iterator[tuple[str, Any]]:
    plan, workload = design.plan, design.workload
    for path in ("plan.weight_dtype", "plan.kv_dtype", ARITHMETIC):
        yield from ((path, dtype) for dtype in _formats(design, path) if dtype != get_at(design, path))
    yield from (("plan.ffn_layout", layout) for layout in FfnLayout if layout is not plan.ffn_layout)
    yield from (
        ("plan.attention_sharding", sharding)
        for sharding in AttentionSharding
        if sharding is not plan.attention_sharding
    )
    yield "plan.collective_overlap", 0.0 if plan.collective_overlap else 1.0
    if workload.phase is Phase.PREFILL:
        whole = workload.prefill_chunk is None
        if not whole or workload.input_length > CHUNK:
            yield "workload.prefill_chunk", CHUNK if whole else None


def _formats(design: Design, path: str) -> tuple[str, ...]:
    chip = design.cluster.chip
    if path == ARITHMETIC:
        # Quantized activations pay in arithmetic only where the chip is faster in their format.
        rates = {"int8": chip.peak_int8, "fp8": chip.peak_fp8}
        return ("bfloat16", *(name for name, rate in rates.items() if rate is not None))
    return ("bfloat16", "int8", "fp8") if chip.peak_fp8 is not None else ("bfloat16", "int8")
