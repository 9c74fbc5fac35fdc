"""The stages of an evaluation of models with experts or latent attention, memoised like those of `stages`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from model_core.arithmetic import ceil_div
from model_core.diagnostics import Diagnostic
from model_core.hardware.calibration import BOUND
from model_core.hardware.expert_traffic import (
    Choice,
    ExpertRates,
    bandwidth_share,
    compute_share,
    copies_per_token,
    token_bytes,
)
from model_core.hardware.network import Level
from model_core.memo import memoised
from model_core.memory.budget import BudgetParts
from model_core.memory.expert_budget import HeldPrograms, expert_budget
from model_core.partition.checks_experts import expert_diagnostics
from model_core.partition.cost import OpCost, Rates, program_costs
from model_core.partition.expert_layers import expert_programs
from model_core.partition.mesh import Mesh
from model_core.partition.overlap import overlapped
from model_core.partition.sizes import Sizes
from model_core.partition.structure_experts import ExpertStructure, expert_structure
from model_core.results import MemoryBudget, TimeBudget
from model_core.spec.cluster import ChipSpec, ClusterSpec
from model_core.spec.model import ModelSpec
from model_core.spec.plan import DTYPE_BYTES, DispatchMode, PlanSpec
from model_core.spec.workload import Phase, WorkloadSpec
from model_core.stages import CACHE, Layout, bound_sizes, element_bytes, op_time, rates_stage, time_budget

BLOCKS = ("block", "moe_block")


@dataclass(frozen=True, slots=True)
class ExpertLayout(Layout):
    """Programs with the layers that run each; ``microbatches`` of the programs' size make a step."""

    experts: ExpertStructure | None = None
    layers: Mapping[str, int] | None = None
    microbatches: int = 1

    def held(self) -> HeldPrograms:
        """Return what a chip holds."""
        return HeldPrograms(self.programs, self.layers or {}, self.sizes, self.microbatches)

    def caching(self, n_layers: int) -> Mapping[str, int]:
        """Return the programs that keep a cache, and how many of the layers run each."""
        layers = self.layers or {}
        return {name: min(layers[name], n_layers) for name in BLOCKS if name in self.programs}

    def parts(self, plan: PlanSpec) -> int:
        """Return the number of microbatches whose caches are kept."""
        del plan
        return self.microbatches


def has_expert_programs(model: ModelSpec, workload: WorkloadSpec, mesh: Mesh) -> bool:
    """Tell whether programs of experts or latent attention exist for a model, phase and mesh."""
    special = model.moe is not None or model.mla is not None
    return special and workload.phase is not Phase.TRAINING and mesh.stages == 1


def expert_slots(model: ModelSpec, plan: PlanSpec) -> int:
    """Return the expert slots of a layer: one per routed expert, and those for copies and shared experts."""
    moe = model.moe
    if moe is None:
        return 1
    shared = moe.n_shared_experts if plan.shared_expert_as_routed else 0
    return moe.n_routed_experts + max(plan.redundant_experts, shared)


def choice_of(model: ModelSpec, plan: PlanSpec) -> Choice:
    """Return how the tokens of a model choose experts."""
    moe = model.moe
    if moe is None:
        return Choice(1, 1)
    always = moe.n_shared_experts if plan.shared_expert_as_routed else 0
    return Choice(
        moe.n_routed_experts, moe.n_experts_per_token, moe.n_expert_groups, moe.n_groups_per_token, always
    )


def expert_sizes(
    model: ModelSpec, workload: WorkloadSpec, plan: PlanSpec, axes: Mapping[str, int]
) -> dict[str, int]:
    """Bind the dimension letters of the programs, which see one microbatch."""
    found = bound_sizes(model, workload, axes, 2 if plan.overlap_microbatches else 1)
    mla, moe = model.mla, model.moe
    if mla is not None:
        found |= {
            "Q": mla.q_lora_rank or 0,
            "C": mla.kv_lora_rank,
            "N": mla.qk_nope_head_dim,
            "R": mla.qk_rope_head_dim,
            "U": mla.v_head_dim,
            "D": mla.qk_nope_head_dim + mla.qk_rope_head_dim,
        }
    if moe is not None:
        slots = expert_slots(model, plan)
        visits = found["B"] * found["L"] * choice_of(model, plan).copies * plan.expert_imbalance
        found |= {
            "Y": moe.n_routed_experts,
            "X": slots,
            "T": int(ceil_div(visits, slots)),
            "I": moe.d_ff_expert,
            "J": moe.n_shared_experts * moe.d_ff_expert,
        }
    return found


@memoised(CACHE)
def expert_layout_stage(model: ModelSpec, workload: WorkloadSpec, plan: PlanSpec, mesh: Mesh) -> ExpertLayout:
    """Write (or find) the programs of a design and bind their sizes."""
    sizes = Sizes(expert_sizes(model, workload, plan, mesh.sizes))
    structure = expert_structure(model, plan, workload.phase, mesh.sizes, mesh.network)
    n_dense = model.n_layers if model.moe is None else model.moe.n_dense_layers
    layers = {"embedding": 1, "block": n_dense, "moe_block": model.n_layers - n_dense, "logits": 1}
    programs = expert_programs(structure, workload.phase, n_dense > 0, n_dense < model.n_layers)
    return ExpertLayout(
        structure=structure.attention,
        programs=programs,
        sizes=sizes,
        diagnostics=expert_diagnostics(structure, sizes, model),
        experts=structure,
        layers=layers,
        microbatches=2 if plan.overlap_microbatches else 1,
    )


@memoised(CACHE)
def expert_rates_stage(
    model: ModelSpec, chip: ChipSpec, plan: PlanSpec, mesh: Mesh
) -> tuple[Rates, tuple[Diagnostic, ...]]:
    """Collect the rates, with the part of the chip that moves tokens taken from its arithmetic."""
    rates, diagnostics = rates_stage(chip, plan)
    two_hop = plan.dispatch_mode is DispatchMode.TWO_HOP
    experts = None
    if model.moe is not None:
        levels = [level for levels in mesh.network.levels.values() for level in levels]
        nodes, chips_per_node = _chips(levels, across=True), _chips(levels, across=False)
        experts = ExpertRates(
            copies=copies_per_token(choice_of(model, plan), nodes, chips_per_node, two_hop),
            dispatch_bytes=token_bytes(DTYPE_BYTES[plan.dispatch_dtype]),
            combine_bytes=token_bytes(DTYPE_BYTES[plan.combine_dtype]),
            share=bandwidth_share(plan.communication_sms) if two_hop else 1.0,
            imbalance=plan.expert_imbalance,
        )
    left = 1.0
    if experts is not None and two_hop and plan.overlap_microbatches and chip.n_sms is not None:
        left = compute_share(plan.communication_sms, chip.n_sms)
    return replace(
        rates,
        matmul_flops_per_s=rates.matmul_flops_per_s * left,
        attention_flops_per_s=rates.attention_flops_per_s * left,
        experts=experts,
    ), diagnostics


def _chips(levels: list[Level], across: bool) -> int:
    """Return the number of nodes, or of chips in one."""
    size = 1
    for level in levels:
        if (level.kind == "network") is across:
            size *= level.size
    return size


@memoised(CACHE)
def expert_time_stage(layout: ExpertLayout, rates: Rates, mesh: Mesh, n_steps: int) -> TimeBudget:
    """Time every operation of a step and add them up."""
    ops = tuple(
        op_time(layout.programs[name], name, count, cost)
        for name, count, cost in expert_step_costs(layout, rates, mesh)
    )
    return time_budget(ops, n_steps, rates.efficiency is not BOUND)


def expert_step_costs(layout: ExpertLayout, rates: Rates, mesh: Mesh) -> Iterator[tuple[str, int, OpCost]]:
    """Yield the operations of a step: program, how often it runs, cost of one run."""
    layers = layout.layers or {}
    for name, program in layout.programs.items():
        costs = program_costs(program, layout.sizes, rates, mesh.network)
        if layout.microbatches > 1 and name in BLOCKS:
            costs = overlapped(costs, rates.efficiency.hidden_share)
        for cost in costs:
            yield name, layers[name] * layout.microbatches, cost


@memoised(CACHE)
def expert_memory_stage(
    model: ModelSpec, cluster: ClusterSpec, workload: WorkloadSpec, plan: PlanSpec, layout: ExpertLayout
) -> MemoryBudget:
    """Itemise the memory of the fullest chip."""
    return expert_budget(BudgetParts(model, cluster, workload, plan), layout.held(), element_bytes(plan))
