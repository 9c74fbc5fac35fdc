"""The stages of an evaluation, each memoised on the parts of the design that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from model_core.arithmetic import Number, ceil_div
from model_core.diagnostics import Diagnostic
from model_core.hardware.calibration import BOUND, choose_calibration, efficiency_of
from model_core.hardware.expert_traffic import token_bytes
from model_core.memo import memoised
from model_core.memory.budget import BudgetParts, kv_cache_bytes, program_budget, split_evenly_budget
from model_core.metrics import kv_bytes_per_token
from model_core.parameters import count_parameters
from model_core.partition.checks import layout_diagnostics
from model_core.partition.cost import OpCost, Rates, program_costs
from model_core.partition.layers import (
    block_program,
    embedding_program,
    logits_program,
    residual_sharding,
)
from model_core.partition.mesh import Mesh, resolve_mesh
from model_core.partition.pipeline import (
    critical_counts,
    pipeline_diagnostics,
    send_cost,
    stage_layers,
)
from model_core.partition.program import Collective, Einsum, LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.partition.structure import Structure, structure_of
from model_core.results import MemoryBudget, OpTime, ParameterCount, TimeBudget
from model_core.spec.cluster import ChipSpec, ClusterSpec
from model_core.spec.design import Design
from model_core.spec.model import ModelSpec
from model_core.spec.plan import DTYPE_BYTES, MeshPlan, PlanSpec
from model_core.spec.workload import Phase, WorkloadSpec
from model_core.totals import add_up

CACHE = 256
PROGRAM_COUNTS = ("embedding", "block", "logits")
PIPELINE = "pipeline"


@memoised(CACHE)
def parameters_stage(model: ModelSpec) -> ParameterCount:
    """Count parameters."""
    return count_parameters(model)


@memoised(CACHE)
def mesh_stage(cluster: ClusterSpec, model: ModelSpec, plan: MeshPlan | None) -> Mesh:
    """Assign mesh axes."""
    return resolve_mesh(cluster, model, plan)


@dataclass(frozen=True, slots=True)
class Layout:
    """Programs of a design with their sizes bound; ``stages`` pipeline stages share the blocks."""

    structure: Structure
    programs: Mapping[str, LayerProgram]
    sizes: Sizes
    diagnostics: tuple[Diagnostic, ...]
    stages: int = 1

    def caching(self, n_layers: int) -> Mapping[str, int]:
        """Return the programs that keep a cache, and how many layers of the fullest stage run each."""
        return {"block": stage_layers(n_layers, self.stages)}

    def parts(self, plan: PlanSpec) -> int:
        """Return the number of batches of the programs' size whose caches are kept."""
        return plan.microbatches


def has_programs(model: ModelSpec, workload: WorkloadSpec) -> bool:
    """Tell whether layer programs exist for a model and phase."""
    return model.moe is None and model.mla is None and workload.phase is not Phase.TRAINING


def bound_sizes(
    model: ModelSpec, workload: WorkloadSpec, axes: Mapping[str, int], microbatches: int = 1
) -> dict[str, int]:
    """Bind the dimension letters and mesh axes of the programs, which see one microbatch."""
    length, context = workload.step_length, workload.step_context
    return {
        "B": ceil_div(workload.batch, microbatches),
        "L": length,
        "E": model.d_model,
        "F": model.d_ff,
        "H": model.n_heads,
        "K": model.n_kv_heads,
        "G": model.n_heads // model.n_kv_heads,
        "D": model.d_head,
        "V": model.vocab_size,
        "M": context,
        "P": context - length,
        "S": 2 if model.norm == "layernorm" else 1,
        **axes,
    }


@memoised(CACHE)
def layout_stage(model: ModelSpec, workload: WorkloadSpec, plan: PlanSpec, mesh: Mesh) -> Layout:
    """Write (or find) the programs of a design and bind their sizes."""
    sizes = Sizes(bound_sizes(model, workload, mesh.sizes, plan.microbatches))
    structure = structure_of(model, plan, sizes.values["B"], mesh.sizes)
    programs = programs_of(structure, workload.phase)
    diagnostics = layout_diagnostics(structure, plan, sizes)
    diagnostics += pipeline_diagnostics(model.n_layers, workload.batch, mesh.stages, plan.microbatches)
    return Layout(structure, programs, sizes, diagnostics, mesh.stages)


def programs_of(structure: Structure, phase: Phase) -> dict[str, LayerProgram]:
    """Write (or find) the programs of a structure."""
    return {
        "embedding": embedding_program(structure),
        "block": block_program(structure, str(phase)),
        "logits": logits_program(structure),
    }


def element_bytes(plan: PlanSpec) -> dict[Role, float]:
    """Bytes of one element by role."""
    activation = DTYPE_BYTES[plan.activation_dtype]
    return {
        Role.WEIGHT: DTYPE_BYTES[plan.weight_dtype],
        Role.ACTIVATION: activation,
        Role.KV: DTYPE_BYTES[plan.kv_dtype],
        Role.STATISTIC: 4,
        Role.TOKEN: 4,
        Role.ON_CHIP: activation,
        Role.DISPATCHED: token_bytes(DTYPE_BYTES[plan.dispatch_dtype]),
        Role.ROUTING: 4,
    }


def matmul_rate(chip: ChipSpec, plan: PlanSpec) -> tuple[float, tuple[Diagnostic, ...]]:
    """Arithmetic rate of the weight products: that of the dtype that both operands share."""
    stored = plan.weight_dtype if plan.activation_dtype == plan.weight_dtype else "bfloat16"
    dtype = plan.matmul_dtype or stored
    if dtype not in ("int8", "fp8"):
        return chip.peak_bf16, ()
    rate = chip.peak_int8 if dtype == "int8" else chip.peak_fp8
    if rate is None:
        path = "plan.matmul_dtype" if plan.matmul_dtype else "plan.activation_dtype"
        values = {"chip": chip.name, "dtype": dtype, "used": "bfloat16"}
        return chip.peak_bf16, (Diagnostic("dtype_without_rate", path, values),)
    return rate, ()


@memoised(CACHE)
def rates_stage(chip: ChipSpec, plan: PlanSpec) -> tuple[Rates, tuple[Diagnostic, ...]]:
    """Collect what the cost reader needs of chip and plan, calibrated where the plan says so.

    A bound never counts masked scores; a calibration holds for the kernels it was measured with.
    """
    rate, diagnostics = matmul_rate(chip, plan)
    choice = choose_calibration(chip, plan.calibration)
    rates = Rates(
        rate,
        chip.peak_bf16,
        chip.hbm_bandwidth,
        element_bytes(plan),
        plan.collective_overlap,
        efficiency_of(choice.calibration),
        plan.large_k,
        skip_masked=plan.skip_masked_scores or choice.calibration is None,
    )
    return rates, (*diagnostics, *choice.diagnostics)


@memoised(CACHE)
def time_stage(
    layout: Layout, rates: Rates, mesh: Mesh, n_layers: int, n_steps: int, microbatches: int = 1
) -> TimeBudget:
    """Time every operation of a step and add them up."""
    ops = [
        op_time(layout.programs[name], name, count, cost)
        if name in layout.programs
        else _send_time(layout, mesh, count, cost)
        for name, count, cost in step_costs(layout, rates, mesh, n_layers, microbatches)
    ]
    return time_budget(tuple(ops), n_steps, rates.efficiency is not BOUND)


def step_costs(
    layout: Layout, rates: Rates, mesh: Mesh, n_layers: Number, microbatches: Number = 1
) -> Iterator[tuple[str, Number, OpCost]]:
    """Yield the operations of a step, elementwise: program, how often it runs, cost of one run.

    What goes from stage to stage of a pipeline belongs to no program and comes as ``PIPELINE``.
    """
    counts = critical_counts(n_layers, mesh.stages, microbatches)
    for name in PROGRAM_COUNTS:
        for cost in program_costs(layout.programs[name], layout.sizes, rates, mesh.network):
            yield name, getattr(counts, name), cost
    if mesh.between:
        activations = residual_sharding(layout.structure.axes)
        yield PIPELINE, counts.sends, send_cost(activations, layout.sizes, rates, mesh.between)


def _send_time(layout: Layout, mesh: Mesh, count: int, cost: OpCost) -> OpTime:
    axes = ", ".join(level.axis for level in mesh.between)
    return OpTime(
        program=PIPELINE,
        index=cost.index,
        name=f"{cost.kind}({axes})",
        kind=cost.kind,
        count=count,
        collective_bytes=cost.collective_bytes,
        communication_s=cost.communication_s,
        exposed_s=cost.exposed_s,
        latency_part_s=cost.hops_s,
        axes=axes,
        tensor=residual_sharding(layout.structure.axes).as_printed(),
    )


def op_time(program: LayerProgram, name: str, count: int, cost: OpCost) -> OpTime:
    """Return the time of an operation from its cost."""
    label, axes, tensor = _labels(program)[cost.index]
    return OpTime(
        program=name,
        index=cost.index,
        name=label,
        kind=cost.kind,
        count=count,
        flops=cost.flops,
        weight_bytes=cost.weight_bytes,
        kv_bytes=cost.kv_bytes,
        collective_bytes=cost.collective_bytes,
        compute_s=cost.compute_s,
        weight_s=cost.weight_s,
        kv_s=cost.kv_s,
        activation_s=cost.activation_s,
        fixed_s=cost.fixed_s,
        communication_s=cost.communication_s,
        exposed_s=cost.exposed_s,
        latency_part_s=cost.hops_s,
        axes=axes,
        tensor=tensor,
    )


@lru_cache(maxsize=512)
def _labels(program: LayerProgram) -> tuple[tuple[str, str, str], ...]:
    """Return the name, the axes and the printed output of every operation of a program."""
    return tuple(
        (
            f"{op.kind}({op.axes})" if isinstance(op, Collective) else op.output.name,
            "" if isinstance(op, Einsum) else op.axes,
            op.output.sharding.as_printed(),
        )
        for op in program.ops
    )


def time_budget(ops: tuple[OpTime, ...], n_steps: int, calibrated: bool) -> TimeBudget:
    """Add the operations of a step up."""
    sums = add_up((op.count, op) for op in ops)
    step = sums.step_s
    bound_by = max(sums.binding, key=lambda name: sums.binding[name])
    return TimeBudget(
        step,
        step * n_steps,
        sums.compute_s,
        sums.memory_s,
        sums.communication_s,
        sums.exposed_s,
        bound_by,
        ops,
        calibrated,
    )


@memoised(CACHE)
def memory_stage(
    model: ModelSpec,
    cluster: ClusterSpec,
    workload: WorkloadSpec,
    plan: PlanSpec,
    layout: Layout | None,
    parameters: ParameterCount,
) -> MemoryBudget:
    """Itemise the memory of a chip."""
    parts = BudgetParts(model, cluster, workload, plan, 1 if layout is None else layout.stages)
    if layout is None:
        return split_evenly_budget(parts, parameters, kv_per_token(model, plan))
    return program_budget(parts, layout.programs, layout.sizes, element_bytes(plan), parameters)


def kv_per_token(model: ModelSpec, plan: PlanSpec) -> float:
    """Bytes of key/value cache that one token needs, held once."""
    return float(kv_bytes_per_token(model.n_layers, kv_elements(model), DTYPE_BYTES[plan.kv_dtype]))


def kv_elements(model: ModelSpec) -> int:
    """Elements of the key/value cache of one token in one layer."""
    if model.mla is not None:
        return model.mla.kv_lora_rank + model.mla.qk_rope_head_dim
    return 2 * model.n_kv_heads * model.d_head


def kv_per_context_token(design: Design, layout: Layout | None) -> float:
    """Bytes on one chip for one more token of context of every sequence."""
    if layout is None:
        return kv_per_token(design.model, design.plan) * design.workload.batch / design.cluster.n_chips
    width = DTYPE_BYTES[design.plan.kv_dtype]
    layers = layout.caching(design.model.n_layers)
    held = sum(
        kv_cache_bytes(layout.programs[n], layout.sizes, width, count, 1) for n, count in layers.items()
    )
    return float(held * layout.parts(design.plan))
