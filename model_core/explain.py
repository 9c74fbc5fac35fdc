"""Makes the card of any number on request: operations, memory items, tensors and parameter groups."""

from __future__ import annotations

from model_core.explain_forms import closed_form_card
from model_core.partition.cost import tensor_bytes
from model_core.partition.pipeline import SEND
from model_core.partition.program import Collective, Einsum, LayerProgram, Tensor
from model_core.partition.sizes import Sizes
from model_core.quantities import FORMULAS, Formula, Quantity, Term
from model_core.results import Evaluation, OpTime
from model_core.spec.base import Evidence
from model_core.spec.workload import Phase
from model_core.stages import element_bytes
from model_core.units import BYTES, BYTES_PER_S, COUNT, FLOPS, FLOPS_PER_S, SECONDS

OPERATION = Formula(
    "operation",
    "Time of an operation",
    "count · (max(FLOPs / rate, (weights + KV + activations) / HBM bandwidth) + exposed communication + fixed cost)",
    "Pope 2",
    "arithmetic and loading of one operation overlap",
)
TRANSFER = FORMULAS["collective_time"]
COLLECTIVE = Formula(
    "collective",
    "Time of a collective",
    f"count · (transfer + hops)\n{TRANSFER.expression}",
    TRANSFER.source,
    TRANSFER.assumes,
)
_ROUTED = FORMULAS["expert_transfer"]
ROUTED = Formula(
    "routed",
    "Time of a dispatch or combine",
    f"count · (transfer + hops)\n{_ROUTED.expression}",
    _ROUTED.source,
    _ROUTED.assumes,
)
SHARD = Formula(
    "shard", "Shard of a tensor", "Π over dimensions of size / ways · bytes of one element", "Pope 3.1"
)

_MEMORY_FORMULAS = {
    "weights": "memory_weights",
    "kv": "memory_kv",
    "activations": "memory_activations",
    "buffers": "memory_activations",
    "gradients": "training_states",
    "optimizer": "training_states",
    "reserve": "memory_per_chip_bytes",
}


def explain(evaluation: Evaluation, key: str) -> Quantity | None:
    """Return the card of a number, or ``None`` where the key names none.

    Keys: those of ``evaluation.quantities``; ``op/PROGRAM/INDEX``; ``memory/ITEM``;
    ``tensor/PROGRAM/NAME``; ``parameters/GROUP``; ``closed_form/NAME`` (see `CLOSED_FORMS`).
    """
    if key in evaluation.quantities:
        return evaluation.quantities[key]
    kind, _, rest = key.partition("/")
    makers = {
        "op": _operation,
        "memory": _memory,
        "tensor": _tensor,
        "parameters": _parameters,
        "closed_form": closed_form_card,
    }
    maker = makers.get(kind)
    return maker(evaluation, key, rest) if maker else None


def _operation(evaluation: Evaluation, key: str, rest: str) -> Quantity | None:
    program, _, index = rest.partition("/")
    for op in evaluation.time.ops if evaluation.time else ():
        if op.program == program and str(op.index) == index:
            return _operation_card(evaluation, key, op)
    if evaluation.design.workload.phase is not Phase.TRAINING:
        return None
    from model_core.training.explain import training_operation

    found = training_operation(evaluation, program, index)
    return None if found is None else _operation_card(evaluation, key, found)


def _operation_card(evaluation: Evaluation, key: str, op: OpTime) -> Quantity:
    if op.kind == SEND:
        return _send_card(key, op)
    if op.program not in evaluation.programs:
        return _part_card(key, op)
    source = evaluation.programs[op.program].ops[op.index]
    if isinstance(source, Collective):
        terms = _collective_terms(evaluation, op, source)
        formula = COLLECTIVE if source.routing is None else ROUTED
        label = f"{source.kind}({''.join(sorted(source.axes))})"
        value = op.count * op.communication_s
    else:
        terms = _work_terms(evaluation, op) if isinstance(source, Einsum) else ()
        formula, value = OPERATION, op.total_s
        label = source.equation if isinstance(source, Einsum) else str(source.kind)
    note = (
        ""
        if op.busy_s or op.communication_s
        else "Elementwise work is not timed: it is fused into its neighbours."
    )
    return Quantity(key, label, value, SECONDS, formula, terms, Evidence.MODELLED, note)


def _send_card(key: str, op: OpTime) -> Quantity:
    terms = (
        Term("bytes", "sent per chip", op.collective_bytes, BYTES),
        Term("transfer", "time on the link, once", op.communication_s - op.latency_part_s, SECONDS),
        Term("hop", "time of the hop, once", op.latency_part_s, SECONDS),
        Term("count", "times per step", op.count, COUNT),
    )
    formula, value = FORMULAS["pipeline_send"], op.count * op.communication_s
    return Quantity(key, op.name, value, SECONDS, formula, terms, Evidence.MODELLED)


def _part_card(key: str, op: OpTime) -> Quantity:
    """Card of a part of a training step, which sums operations of one kind up."""
    parts = (
        ("T_compute", "arithmetic, once", op.compute_s),
        ("T_weights", "weights loaded, once", op.weight_s),
        ("T_activations", "activations loaded, once", op.activation_s),
        ("T_fixed", "fixed costs, or waiting", op.fixed_s),
        ("T_comm", "collectives, once", op.communication_s),
        ("T_exposed", "not hidden, once", op.exposed_s),
    )
    terms = tuple(Term(symbol, meaning, value, SECONDS) for symbol, meaning, value in parts if value)
    terms += (Term("count", "times per step", op.count, COUNT),)
    return Quantity(
        key, op.name, op.total_s, SECONDS, FORMULAS.get("training_step", OPERATION), terms, Evidence.MODELLED
    )


def _collective_terms(evaluation: Evaluation, op: OpTime, source: Collective) -> tuple[Term, ...]:
    k = 1
    for axis in source.axes:
        k *= evaluation.sizes[axis]
    return (
        Term("K", "chips in the group", k, COUNT),
        Term("bytes", "received per chip", op.collective_bytes, BYTES),
        Term("transfer", "time on the links, once", op.communication_s - op.latency_part_s, SECONDS),
        Term("hops", "time of the hops, once", op.latency_part_s, SECONDS),
        Term("exposed", "not hidden behind a product, once", op.exposed_s, SECONDS),
        Term("count", "times per step", op.count, COUNT),
    )


def _work_terms(evaluation: Evaluation, op: OpTime) -> tuple[Term, ...]:
    chip = evaluation.design.cluster.chip
    rate = op.flops / op.compute_s if op.compute_s else chip.peak_bf16
    calibrated = (
        Term("T_loading", "weights, KV and activations, once", op.loading_s, SECONDS),
        Term("T_fixed", "fixed costs", op.fixed_s, SECONDS),
    )
    return (
        Term("FLOPs", "per chip, once", op.flops, FLOPS),
        Term("rate", "of the chip", rate, FLOPS_PER_S),
        Term("weights", "loaded per chip, once", op.weight_bytes, BYTES),
        Term("KV", "loaded per chip, once", op.kv_bytes, BYTES),
        Term("HBM bandwidth", "of the chip", chip.hbm_bandwidth, BYTES_PER_S),
        *(calibrated if evaluation.calibration else ()),
        Term("count", "times per step", op.count, COUNT),
    )


def _memory(evaluation: Evaluation, key: str, rest: str) -> Quantity | None:
    if evaluation.memory is None:
        return None
    item = next((i for i in evaluation.memory.items if i.name == rest), None)
    if item is None:
        return None
    terms = (
        Term("item", item.detail, item.bytes, BYTES),
        Term("capacity", "memory of a chip", evaluation.memory.capacity_bytes, BYTES),
    )
    formula = FORMULAS[_MEMORY_FORMULAS[item.kind]]
    total = evaluation.quantities["memory_per_chip_bytes"]
    return Quantity(key, item.name, item.bytes, BYTES, formula, terms, total.evidence, total.note)


def _tensor(evaluation: Evaluation, key: str, rest: str) -> Quantity | None:
    name, _, tensor_name = rest.partition("/")
    program = evaluation.programs.get(name)
    tensor = next((t for t in tensors(program) if t.name == tensor_name), None) if program else None
    if tensor is None:
        return None
    sizes = Sizes(evaluation.sizes)
    widths = element_bytes(evaluation.design.plan)
    held = tensor_bytes(tensor, sizes, widths)
    local = sizes.shape(tensor.sharding)
    terms = tuple(
        Term(dim, f"split over {axes}" if axes else "whole", size, COUNT)
        for dim, axes, size in zip(tensor.sharding.dims, tensor.sharding.axes, local, strict=True)
    )
    terms += (Term("bytes", "of one element", widths[tensor.role], BYTES),)
    label = f"{tensor.name}: {tensor.sharding.as_printed()}"
    return Quantity(key, label, held, BYTES, SHARD, terms, Evidence.MODELLED)


def tensors(program: LayerProgram) -> tuple[Tensor, ...]:
    """Return every tensor of a program: given, stored and made."""
    return (*program.inputs, *program.weights, *program.caches, *(op.output for op in program.ops))


def _parameters(evaluation: Evaluation, key: str, rest: str) -> Quantity | None:
    count = evaluation.parameters.groups.get(rest) if evaluation.parameters else None
    if count is None:
        return None
    formula = FORMULAS.get(f"parameters_{rest}", FORMULAS["parameters_total"])
    model = evaluation.design.model
    terms = tuple(
        Term(symbol, meaning, value, COUNT)
        for symbol, meaning, value in (
            ("n_layers", "layers", model.n_layers),
            ("E", "d_model", model.d_model),
            ("F", "d_ff", model.d_ff),
            ("H", "query heads", model.n_heads),
            ("K", "key and value heads", model.n_kv_heads),
            ("D", "d_head", model.d_head),
        )
    )
    return Quantity(key, rest, count, COUNT, formula, terms, Evidence.MODELLED)
