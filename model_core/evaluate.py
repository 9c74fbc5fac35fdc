"""The only facade of the core: ``evaluate(design) -> Evaluation``."""

from __future__ import annotations

from model_core.diagnostics import Diagnostic
from model_core.headline import headline_quantities
from model_core.results import Evaluation, MemoryBudget, TimeBudget
from model_core.spec.design import Design
from model_core.spec.workload import Phase
from model_core.stages import (
    Layout,
    has_programs,
    layout_stage,
    memory_stage,
    mesh_stage,
    parameters_stage,
    rates_stage,
    time_stage,
)
from model_core.units import BYTES, SECONDS, format_quantity


def evaluate(design: Design) -> Evaluation:
    """Evaluate a design; never raises for a bad one, but says what is wrong beside what is known.

    Returns:
        Parameters, memory, time, programs and quantities, as far as they can be computed.
    """
    try:
        return _evaluate(design)
    except Exception as error:  # a bug: the caller keeps its window and the user's work
        values = {"stage": "evaluate", "reason": f"{type(error).__name__}: {error}"}
        return Evaluation(design, (Diagnostic("internal", "", values),))


def _evaluate(design: Design) -> Evaluation:
    model, workload, plan = design.model, design.workload, design.plan
    parameters = parameters_stage(model)
    mesh = mesh_stage(design.cluster, model, plan.mesh)
    diagnostics = [*mesh.diagnostics, *_workload_diagnostics(design)]
    layout: Layout | None = None
    time: TimeBudget | None = None
    if has_programs(model, workload):
        layout = layout_stage(model, workload, plan, mesh)
        rates, rate_diagnostics = rates_stage(design.cluster.chip, plan)
        diagnostics += [*layout.diagnostics, *rate_diagnostics]
        steps = workload.output_length if workload.phase is Phase.DECODE else 1
        if steps > 0:
            time = time_stage(layout, rates, mesh, model.n_layers, steps)
    else:
        diagnostics.append(_not_modelled(design))
    memory = memory_stage(model, design.cluster, workload, plan, layout, parameters)
    diagnostics += [*_memory_diagnostics(memory), *_target_diagnostics(design, time)]
    return Evaluation(
        design=design,
        diagnostics=tuple(diagnostics),
        parameters=parameters,
        memory=memory,
        time=time,
        programs={} if layout is None else layout.programs,
        sizes=mesh.sizes if layout is None else layout.sizes.values,
        quantities=headline_quantities(design, layout, parameters, memory, time),
    )


def _not_modelled(design: Design) -> Diagnostic:
    if design.workload.phase is Phase.TRAINING:
        return Diagnostic("training_not_modelled", "workload.phase")
    if design.model.moe is not None:
        return Diagnostic("time_not_modelled", "model.moe", {"what": "mixture of experts"})
    return Diagnostic("time_not_modelled", "model.mla", {"what": "latent attention"})


def _workload_diagnostics(design: Design) -> list[Diagnostic]:
    workload, limit = design.workload, design.model.max_context
    found = []
    if workload.phase is Phase.DECODE and workload.output_length == 0:
        found.append(Diagnostic("decode_without_output", "workload.output_length"))
    if limit and workload.max_context > limit:
        values = {"context": workload.max_context, "limit": limit}
        found.append(Diagnostic("context_too_long", "workload.input_length", values))
    return found


def _memory_diagnostics(memory: MemoryBudget) -> list[Diagnostic]:
    if memory.fits:
        return []
    largest = max((i for i in memory.items if i.kind != "reserve"), key=lambda item: item.bytes)
    values = {
        "needed": format_quantity(memory.per_chip_bytes, BYTES),
        "capacity": format_quantity(memory.capacity_bytes, BYTES),
        "item": largest.name,
        "item_bytes": format_quantity(largest.bytes, BYTES),
    }
    return [Diagnostic("out_of_memory", "cluster.chip.hbm_capacity", values)]


def _target_diagnostics(design: Design, time: TimeBudget | None) -> list[Diagnostic]:
    target = design.workload.latency_target
    if time is None or target is None or time.step_s <= target:
        return []
    values = {
        "latency": format_quantity(time.step_s, SECONDS),
        "unit": "token" if design.workload.phase is Phase.DECODE else "input",
        "target": format_quantity(target, SECONDS),
    }
    return [Diagnostic("above_target", "workload.latency_target", values)]
