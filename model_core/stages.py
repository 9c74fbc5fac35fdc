"""The stages of an evaluation, each memoised on the parts of the design that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from model_core.diagnostics import Diagnostic
from model_core.memo import memoised
from model_core.memory.budget import BudgetParts, kv_cache_bytes, program_budget, split_evenly_budget
from model_core.metrics import kv_bytes_per_token
from model_core.parameters import count_parameters
from model_core.partition.checks import layout_diagnostics
from model_core.partition.cost import OpCost, Rates, program_costs
from model_core.partition.layers import block_program, embedding_program, logits_program
from model_core.partition.mesh import Mesh, resolve_mesh
from model_core.partition.program import Collective, Einsum, LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.partition.structure import Structure, structure_of
from model_core.results import MemoryBudget, OpTime, ParameterCount, TimeBudget
from model_core.spec.cluster import ChipSpec, ClusterSpec
from model_core.spec.design import Design
from model_core.spec.model import ModelSpec
from model_core.spec.plan import DTYPE_BYTES, MeshPlan, PlanSpec
from model_core.spec.workload import Phase, WorkloadSpec

CACHE = 256
PROGRAM_COUNTS = ("embedding", "block", "logits")


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
    """Programs of a design with their sizes bound."""

    structure: Structure
    programs: Mapping[str, LayerProgram]
    sizes: Sizes
    diagnostics: tuple[Diagnostic, ...]


def has_programs(model: ModelSpec, workload: WorkloadSpec) -> bool:
    """Tell whether layer programs exist for a model and phase."""
    return model.moe is None and model.mla is None and workload.phase is not Phase.TRAINING


def step_context(workload: WorkloadSpec) -> int:
    """Context length of a step: prefill: the whole; decode: the mean over the steps, rounded up."""
    if workload.phase is Phase.DECODE:
        past = workload.cached_length + workload.input_length
        return ceil(past + (workload.output_length + 1) / 2)
    return workload.cached_length + workload.input_length


def bound_sizes(model: ModelSpec, workload: WorkloadSpec, axes: Mapping[str, int]) -> dict[str, int]:
    """Bind the dimension letters and mesh axes of the programs."""
    length = 1 if workload.phase is Phase.DECODE else workload.input_length
    context = step_context(workload)
    return {
        "B": workload.batch,
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
    structure = structure_of(model, plan, workload.batch, mesh.sizes)
    programs = {
        "embedding": embedding_program(structure),
        "block": block_program(structure, str(workload.phase)),
        "logits": logits_program(structure),
    }
    sizes = Sizes(bound_sizes(model, workload, mesh.sizes))
    return Layout(structure, programs, sizes, layout_diagnostics(structure, plan, sizes))


def element_bytes(plan: PlanSpec) -> dict[Role, int]:
    """Bytes of one element by role."""
    activation = DTYPE_BYTES[plan.activation_dtype]
    return {
        Role.WEIGHT: DTYPE_BYTES[plan.weight_dtype],
        Role.ACTIVATION: activation,
        Role.KV: DTYPE_BYTES[plan.kv_dtype],
        Role.STATISTIC: 4,
        Role.TOKEN: 4,
        Role.ON_CHIP: activation,
    }


def matmul_rate(chip: ChipSpec, plan: PlanSpec) -> tuple[float, tuple[Diagnostic, ...]]:
    """Arithmetic rate of the weight products: that of the dtype that both operands share."""
    if plan.activation_dtype != plan.weight_dtype or plan.activation_dtype not in ("int8", "fp8"):
        return chip.peak_bf16, ()
    rate = chip.peak_int8 if plan.activation_dtype == "int8" else chip.peak_fp8
    if rate is None:
        values = {"chip": chip.name, "dtype": plan.activation_dtype, "used": "bfloat16"}
        return chip.peak_bf16, (Diagnostic("dtype_without_rate", "plan.activation_dtype", values),)
    return rate, ()


@memoised(CACHE)
def rates_stage(chip: ChipSpec, plan: PlanSpec) -> tuple[Rates, tuple[Diagnostic, ...]]:
    """Collect what the cost reader needs of chip and plan."""
    rate, diagnostics = matmul_rate(chip, plan)
    rates = Rates(rate, chip.peak_bf16, chip.hbm_bandwidth, element_bytes(plan), plan.collective_overlap)
    return rates, diagnostics


@memoised(CACHE)
def time_stage(layout: Layout, rates: Rates, mesh: Mesh, n_layers: int, n_steps: int) -> TimeBudget:
    """Time every operation of a step and add them up."""
    ops: list[OpTime] = []
    for name in PROGRAM_COUNTS:
        count = n_layers if name == "block" else 1
        program = layout.programs[name]
        costs = program_costs(program, layout.sizes, rates, mesh.network)
        ops += [_op_time(program, name, count, cost) for cost in costs]
    return _totals(tuple(ops), n_steps)


def _op_time(program: LayerProgram, name: str, count: int, cost: OpCost) -> OpTime:
    op = program.ops[cost.index]
    return OpTime(
        program=name,
        index=cost.index,
        name=f"{cost.kind}({op.axes})" if isinstance(op, Collective) else op.output.name,
        kind=cost.kind,
        count=count,
        flops=cost.flops,
        weight_bytes=cost.weight_bytes,
        kv_bytes=cost.kv_bytes,
        collective_bytes=cost.collective_bytes,
        compute_s=cost.compute_s,
        weight_s=cost.weight_s,
        kv_s=cost.kv_s,
        communication_s=cost.communication_s,
        exposed_s=cost.exposed_s,
        latency_part_s=cost.hops_s,
        axes="" if isinstance(op, Einsum) else op.axes,
        tensor=op.output.sharding.as_printed(),
    )


def _totals(ops: tuple[OpTime, ...], n_steps: int) -> TimeBudget:
    binding = {"compute": 0.0, "weight loading": 0.0, "KV loading": 0.0, "communication": 0.0}
    step = compute = memory = communication = exposed = 0.0
    for op in ops:
        step += op.total_s
        compute += op.count * op.compute_s
        memory += op.count * (op.weight_s + op.kv_s)
        communication += op.count * op.communication_s
        exposed += op.count * op.exposed_s
        binding["communication"] += op.count * op.exposed_s
        if op.compute_s >= op.weight_s + op.kv_s:
            binding["compute"] += op.count * op.compute_s
        else:
            binding["weight loading"] += op.count * op.weight_s
            binding["KV loading"] += op.count * op.kv_s
    bound_by = max(binding, key=lambda name: binding[name])
    return TimeBudget(step, step * n_steps, compute, memory, communication, exposed, bound_by, ops)


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
    parts = BudgetParts(model, cluster, workload, plan)
    if layout is None:
        return split_evenly_budget(parts, parameters, kv_per_token(model, plan))
    return program_budget(parts, layout.programs, layout.sizes, element_bytes(plan), parameters)


def kv_per_token(model: ModelSpec, plan: PlanSpec) -> float:
    """Bytes of key/value cache that one token needs, held once."""
    if model.mla is not None:
        elements = model.mla.kv_lora_rank + model.mla.qk_rope_head_dim
    else:
        elements = 2 * model.n_kv_heads * model.d_head
    return float(kv_bytes_per_token(model.n_layers, elements, DTYPE_BYTES[plan.kv_dtype]))


def kv_per_context_token(design: Design, layout: Layout | None) -> float:
    """Bytes on one chip for one more token of context of every sequence."""
    if layout is None:
        return kv_per_token(design.model, design.plan) * design.workload.batch / design.cluster.n_chips
    width = DTYPE_BYTES[design.plan.kv_dtype]
    return kv_cache_bytes(layout.programs["block"], layout.sizes, width, design.model.n_layers, 1)
