"""What each cell of the headline says about an evaluation, beside a pinned baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.i18n import tr, tr_text
from app.panels.numbers import MISSING, change_text, quantity_text, value_text
from model_core.quantities import Quantity
from model_core.report import bound_sign
from model_core.results import Evaluation, TimeBudget
from model_core.spec import Evidence, Phase
from model_core.units import BYTES, RATIO, format_number

_LOWER, _HIGHER = -1, 1
# Which way is better; numbers without a side, such as what bounds the time, are not judged.
_BETTER: Final = {
    "step_s": _LOWER,
    "latency_s": _LOWER,
    "mfu": _HIGHER,
    "tokens_per_s": _HIGHER,
    "cost_chip_s_per_token": _LOWER,
    "memory_per_chip_bytes": _LOWER,
}
_BOUND_KEYS: Final = {
    "compute": "compute_s",
    "weight loading": "memory_s",
    "KV loading": "memory_s",
    "activation traffic": "memory_s",
    "communication": "exposed_communication_s",
}


@dataclass(frozen=True)
class Change:
    """The difference to the baseline; ``better`` is none where neither is."""

    text: str
    better: bool | None
    remark: str


@dataclass(frozen=True)
class CellData:
    """One cell. ``state`` judges the value itself: ``"good"``, ``"error"`` or nothing.

    ``band``: how far off a calibrated number may be.
    """

    caption: str
    value: str = MISSING
    detail: str = ""
    key: str = ""
    state: str = ""
    evidence: Evidence | None = None
    change: Change | None = None
    note: str = ""
    band: str = ""


def headline(evaluation: Evaluation | None, baseline: Evaluation | None) -> tuple[CellData, ...]:
    """Return the cells in order."""
    return tuple(make(evaluation, baseline) for make in _CELLS)


def _fits(evaluation: Evaluation | None, baseline: Evaluation | None) -> CellData:
    caption = tr("Fits")
    memory = None if evaluation is None else evaluation.memory
    if evaluation is None or memory is None:
        return CellData(caption)
    before = None if baseline is None else baseline.memory
    change = None
    if before is not None and before.fits is not memory.fits:
        was = _yes_no(before.fits)
        remark = tr("the baseline: {value}", value=was)
        change = Change(tr("was {value}", value=was), memory.fits, remark)
    used, capacity = memory.per_chip_bytes, memory.capacity_bytes
    return CellData(
        caption,
        _yes_no(memory.fits),
        _used(used, capacity),
        "memory_per_chip_bytes",
        "good" if memory.fits else "error",
        _evidence(evaluation, "memory_per_chip_bytes"),
        change,
    )


def _latency(evaluation: Evaluation | None, baseline: Evaluation | None) -> CellData:
    decode = evaluation is None or evaluation.design.workload.phase is Phase.DECODE
    if not decode:
        return _cell(tr("Latency"), "latency_s", evaluation, baseline, _prefill_detail)
    return _cell(tr("Latency per token"), "step_s", evaluation, baseline, _decode_detail)


def _mfu(evaluation: Evaluation | None, baseline: Evaluation | None) -> CellData:
    return _cell(tr("MFU"), "mfu", evaluation, baseline, _peak_detail)


def _throughput(evaluation: Evaluation | None, baseline: Evaluation | None) -> CellData:
    return _cell(tr("Throughput"), "tokens_per_s", evaluation, baseline, _batch_detail)


def _cost(evaluation: Evaluation | None, baseline: Evaluation | None) -> CellData:
    caption = tr("Chip-seconds per token")
    return _cell(caption, "cost_chip_s_per_token", evaluation, baseline, _chips_detail)


def _memory(evaluation: Evaluation | None, baseline: Evaluation | None) -> CellData:
    return _cell(tr("Memory per chip"), "memory_per_chip_bytes", evaluation, baseline, _largest_detail)


def _bound(evaluation: Evaluation | None, baseline: Evaluation | None) -> CellData:
    caption = tr("Bound by")
    time = None if evaluation is None else evaluation.time
    if evaluation is None or time is None:
        return CellData(caption)
    before = None if baseline is None else baseline.time
    change = None
    if before is not None and before.bound_by != time.bound_by:
        remark = tr("the baseline: {value}", value=tr_text(before.bound_by))
        change = Change(tr("was {value}", value=tr_text(before.bound_by)), None, remark)
    share = _bound_seconds(time) / time.step_s if time.step_s else 0.0
    detail = tr("{share} of the step", share=f"{share:.0%}")
    key = _BOUND_KEYS.get(time.bound_by, "step_s")
    evidence = _evidence(evaluation, key)
    return CellData(caption, tr_text(time.bound_by), detail, key, "", evidence, change)


_CELLS: Final = (_fits, _latency, _mfu, _throughput, _cost, _memory, _bound)


def _cell(
    caption: str,
    key: str,
    evaluation: Evaluation | None,
    baseline: Evaluation | None,
    detail: Callable[[Evaluation], str],
) -> CellData:
    quantity = None if evaluation is None else evaluation.quantities.get(key)
    if evaluation is None or quantity is None:
        return CellData(caption)
    before = None if baseline is None else baseline.quantities.get(key)
    return CellData(
        caption,
        _bounded(quantity, evaluation),
        detail(evaluation),
        key,
        "",
        quantity.evidence,
        None if before is None else _change(quantity, before),
        tr_text(quantity.note),
        f"± {quantity.error_band:.0%}" if quantity.error_band else "",
    )


def _bounded(quantity: Quantity, evaluation: Evaluation) -> str:
    """Mark what is a bound at peak rates: a time can only be longer, a throughput only lower."""
    return f"{bound_sign(evaluation, quantity.key)} {quantity_text(quantity)}".lstrip()


def _change(now: Quantity, before: Quantity) -> Change:
    difference = now.value - before.value
    if abs(difference) <= 1e-9 * abs(before.value):
        return Change("=", None, tr("as the baseline"))
    better = (difference > 0) is (_BETTER[now.key] == _HIGHER)
    text = f"{'▲' if difference > 0 else '▼'} {change_text(difference, now.dimension)}"
    word = tr("better than the baseline") if better else tr("worse than the baseline")
    ratio = f"{difference / before.value:+.1%}" if before.value and now.dimension is not RATIO else ""
    return Change(text, better, f"{word} ({', '.join(filter(None, (quantity_text(before), ratio)))})")


def _evidence(evaluation: Evaluation, key: str) -> Evidence | None:
    quantity = evaluation.quantities.get(key)
    return None if quantity is None else quantity.evidence


def _used(used: float, capacity: float) -> str:
    return tr("{used} of {capacity}", used=value_text(used, BYTES), capacity=value_text(capacity, BYTES))


def _decode_detail(evaluation: Evaluation) -> str:
    total = evaluation.quantities.get("latency_s")
    if total is None:
        return ""
    tokens = f"{evaluation.design.workload.output_length:,}"
    return tr("{time} for {tokens} tokens", time=quantity_text(total), tokens=tokens)


def _prefill_detail(evaluation: Evaluation) -> str:
    return tr("{tokens} tokens", tokens=f"{evaluation.design.workload.input_length:,}")


def _peak_detail(evaluation: Evaluation) -> str:
    chip = evaluation.design.cluster.chip
    return tr("of {peak} TFLOP/s", peak=format_number(chip.peak_bf16 / 1e12))


def _batch_detail(evaluation: Evaluation) -> str:
    return tr("batch {batch}", batch=f"{evaluation.design.workload.batch:,}")


def _chips_detail(evaluation: Evaluation) -> str:
    """Say how many chips there are, and the price and energy of tokens where the chip has them."""
    parts = [tr("{chips} chips", chips=f"{evaluation.design.cluster.n_chips:,}")]
    price, energy = (
        evaluation.quantities.get("usd_per_million_tokens"),
        evaluation.quantities.get("joules_per_token"),
    )
    if price is not None:
        parts.append(tr("${price}/Mtok", price=format_number(price.value)))
    if energy is not None:
        parts.append(tr("{energy}/tok", energy=quantity_text(energy)))
    return " · ".join(parts)


def _largest_detail(evaluation: Evaluation) -> str:
    if evaluation.memory is None or not evaluation.memory.items:
        return ""
    largest = max(evaluation.memory.items, key=lambda item: item.bytes)
    return tr("{item} {size}", item=tr_text(largest.name), size=value_text(largest.bytes, BYTES))


def _bound_seconds(time: TimeBudget) -> float:
    parts = {
        "compute": time.compute_s,
        "weight loading": sum(op.count * op.weight_s for op in time.ops),
        "KV loading": sum(op.count * op.kv_s for op in time.ops),
        "activation traffic": sum(op.count * op.activation_s for op in time.ops),
        "fixed costs": sum(op.count * op.fixed_s for op in time.ops),
        "communication": time.exposed_communication_s,
    }
    return parts.get(time.bound_by, 0.0)


def _yes_no(answer: bool) -> str:
    return tr("yes") if answer else tr("no")
