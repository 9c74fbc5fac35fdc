"""The only facade of the core: ``evaluate(design) -> Evaluation``."""

from __future__ import annotations

from model_core.diagnostics import Diagnostic, has_errors
from model_core.expert_headline import expert_quantities
from model_core.expert_stages import (
    ExpertLayout,
    expert_layout_stage,
    expert_memory_stage,
    expert_rates_stage,
    expert_time_stage,
    has_expert_programs,
)
from model_core.hardware.calibration import choose_calibration
from model_core.headline import headline_quantities
from model_core.results import Evaluation, MemoryBudget, ParameterCount, TimeBudget
from model_core.schedule_plan import planned_problems
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
    if workload.phase is Phase.TRAINING:
        return _training(design, parameters)
    mesh = mesh_stage(design.cluster, model, plan.mesh)
    diagnostics = [*mesh.diagnostics, *_workload_diagnostics(design), *planned_problems(plan.schedule)]
    layout: Layout | None = None
    time: TimeBudget | None = None
    if has_errors(mesh.diagnostics):
        known = headline_quantities(design, None, parameters, None, None)
        return Evaluation(design, tuple(diagnostics), parameters, quantities=known)
    if has_programs(model, workload):
        layout = layout_stage(model, workload, plan, mesh)
        rates, rate_diagnostics = rates_stage(design.cluster.chip, plan)
        diagnostics += [*layout.diagnostics, *rate_diagnostics]
        steps = workload.n_steps
        if steps > 0:
            time = time_stage(layout, rates, mesh, model.n_layers, steps, plan.microbatches)
    elif has_expert_programs(model, workload, mesh):
        layout = expert_layout_stage(model, workload, plan, mesh)
        rates, rate_diagnostics = expert_rates_stage(model, design.cluster.chip, plan, mesh)
        diagnostics += [*layout.diagnostics, *rate_diagnostics]
        if workload.n_steps > 0:
            time = expert_time_stage(layout, rates, mesh, workload.n_steps)
    else:
        diagnostics.append(Diagnostic("expert_pipeline", "plan.mesh.pipeline"))
    if isinstance(layout, ExpertLayout):
        memory = expert_memory_stage(model, design.cluster, workload, plan, layout)
    else:
        memory = memory_stage(model, design.cluster, workload, plan, layout, parameters)
    diagnostics += [*_memory_diagnostics(memory), *_target_diagnostics(design, time)]
    quantities = headline_quantities(design, layout, parameters, memory, time)
    if isinstance(layout, ExpertLayout):
        quantities |= {found.key: found for found in expert_quantities(design, layout, time)}
    return Evaluation(
        design=design,
        diagnostics=tuple(diagnostics),
        parameters=parameters,
        memory=memory,
        time=time,
        programs={} if layout is None else layout.programs,
        sizes=mesh.sizes if layout is None else layout.sizes.values,
        quantities=quantities,
        calibration=None
        if time is None
        else choose_calibration(design.cluster.chip, plan.calibration).calibration,
    )


def _training(design: Design, parameters: ParameterCount) -> Evaluation:
    # Imported on first use: start-up and inference do without.
    from model_core.training.evaluation import training_stage
    from model_core.training.headline import training_quantities

    plan = design.plan
    result = training_stage(design.model, design.cluster, design.workload, plan, parameters)
    # The step has microbatches of its own: the plan's schedule and it may have the same problem.
    known = {
        (found.code, found.path): found for found in (*planned_problems(plan.schedule), *result.diagnostics)
    }
    diagnostics = [*_workload_diagnostics(design), *known.values()]
    if result.memory is not None:
        diagnostics += _memory_diagnostics(result.memory)
    return Evaluation(
        design=design,
        diagnostics=tuple(diagnostics),
        parameters=parameters,
        memory=result.memory,
        time=result.time,
        programs=result.inputs.programs,
        sizes=result.inputs.sizes.values,
        quantities=training_quantities(design, result, parameters),
        calibration=choose_calibration(design.cluster.chip, plan.calibration, "training").calibration,
    )


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
    is_decode = design.workload.phase is Phase.DECODE
    latency = 0.0 if time is None else time.step_s if is_decode else time.latency_s
    if target is None or latency <= target:
        return []
    values = {
        "latency": format_quantity(latency, SECONDS),
        "unit": "token" if is_decode else "input",
        "target": format_quantity(target, SECONDS),
    }
    return [Diagnostic("above_target", "workload.latency_target", values)]
