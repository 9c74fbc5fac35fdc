"""Brings a design to what the readers of a training step take: layout, programs, sizes, bytes, rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from model_core.arithmetic import Number, ceil_div
from model_core.diagnostics import Diagnostic
from model_core.hardware.expert_traffic import Choice, token_bytes
from model_core.memo import memoised
from model_core.memory.training import STATE_BYTES, StageContent, stage_contents
from model_core.memory.training_budget import TrainingParts
from model_core.partition.program import LayerProgram, Role
from model_core.partition.sizes import Sizes
from model_core.results import ParameterCount
from model_core.schedule.operations import Schedule
from model_core.schedule.registry import KINDS, nearest_sizes, schedule
from model_core.spec.cluster import ClusterSpec
from model_core.spec.design import Design
from model_core.spec.model import ModelSpec
from model_core.spec.plan import DTYPE_BYTES, PlanSpec
from model_core.spec.training import TrainingSpec
from model_core.spec.workload import WorkloadSpec
from model_core.training.layout import DEFAULTS, NO_SCHEDULE, TrainingLayout, training_layout
from model_core.training.programs import TrainingStructure, training_programs, training_structure

INDEX_BYTES = 8
"""An expert's number and its weight, for each expert that a token visits."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingInputs:
    """A training step, ready to be read; ``schedule`` is empty where it cannot have the size."""

    training: TrainingSpec
    layout: TrainingLayout
    schedule: Schedule | None
    contents: tuple[StageContent, ...]
    structure: TrainingStructure
    programs: Mapping[str, LayerProgram]
    sizes: Sizes
    diagnostics: tuple[Diagnostic, ...]


def training_sizes(
    model: ModelSpec, axes: Mapping[str, Number], micro_batch: Number, length: Number, imbalance: Number = 1.0
) -> dict[str, Number]:
    """Bind the dimension letters of the programs: one microbatch of every rank of an expert-parallel group."""
    data = axes.get("x", 1) * axes.get("y", 1)
    found: dict[str, Number] = {
        "B": micro_batch * data,
        "L": length,
        "M": length,
        "P": 0,
        "E": model.d_model,
        "Z": 2 * model.d_model,
        "F": model.d_ff,
        "H": model.n_heads,
        "K": model.n_kv_heads,
        "G": model.n_heads // model.n_kv_heads,
        "D": model.d_head,
        "V": model.vocab_size,
        "S": 2 if model.norm == "layernorm" else 1,
        **axes,
    }
    mla, moe = model.mla, model.moe
    if mla is not None:
        found |= {
            "Q": mla.q_lora_rank or 0,
            "C": mla.kv_lora_rank,
            "N": mla.qk_nope_head_dim,
            "R": mla.qk_rope_head_dim,
            "U": mla.v_head_dim,
        }
    if moe is not None:
        slots = moe.n_routed_experts
        found |= {
            "Y": slots,
            "X": slots,
            "T": _whole(ceil_div(found["B"] * length * moe.n_experts_per_token * imbalance, slots)),
            "I": moe.d_ff_expert,
            "J": moe.n_shared_experts * moe.d_ff_expert,
        }
    return found


def training_widths(model: ModelSpec, plan: PlanSpec, training: TrainingSpec) -> dict[Role, float]:
    """Bytes of one element by role, in a training step."""
    activation = max(2, DTYPE_BYTES[plan.activation_dtype])
    moe = model.moe
    return {
        Role.WEIGHT: STATE_BYTES[training.parameter_dtype],
        Role.ACTIVATION: activation,
        Role.KV: activation,
        Role.STATISTIC: 4,
        Role.TOKEN: 4,
        Role.ON_CHIP: activation,
        Role.DISPATCHED: token_bytes(DTYPE_BYTES[plan.dispatch_dtype]),
        Role.ROUTING: 0.0 if moe is None else INDEX_BYTES * moe.n_experts_per_token / moe.n_routed_experts,
    }


def _whole(size: Number) -> Number:
    return int(size) if isinstance(size, float) else size


@memoised(16)
def _schedule(
    kind: str, pp: int, microbatches: int, virtual_stages: int
) -> tuple[Schedule | None, tuple[Diagnostic, ...]]:
    """Make a schedule, or find it again: what is remembered of one goes by its identity.

    Where there is none of this size, that with the nearest number of microbatches shows what a step comes to.
    """
    made, problems = schedule(kind, pp, microbatches, virtual_stages)
    for ranks, count in nearest_sizes(kind, pp, microbatches, virtual_stages) if made is None else ():
        if ranks == pp and made is None:
            made, _ = schedule(kind, pp, count, virtual_stages)
    return made, problems


@memoised(64)
def training_inputs(
    model: ModelSpec, cluster: ClusterSpec, workload: WorkloadSpec, plan: PlanSpec
) -> TrainingInputs:
    """Lay a training step out and write (or find) its programs and its schedule."""
    training = plan.training or DEFAULTS
    pipeline = plan.schedule or NO_SCHEDULE
    kind = KINDS[pipeline.kind]
    chunks = pipeline.virtual_stages if pipeline.kind == "interleaved" else kind.n_chunks
    n_stages = pipeline.pp * chunks
    layout = training_layout(model, cluster, workload, training, pipeline, n_stages, kind.n_directions)
    found = list(layout.diagnostics)
    made, problems = _schedule(pipeline.kind, pipeline.pp, layout.microbatches, pipeline.virtual_stages)
    found += (replace(problem, path=f"plan.schedule.{problem.path or 'kind'}") for problem in problems)
    if plan.schedule is not None and not layout.diagnostics and pipeline.microbatches != layout.microbatches:
        values = {"given": pipeline.microbatches, "derived": layout.microbatches}
        found.append(Diagnostic("training_microbatches", "plan.schedule.microbatches", values))
    structure = training_structure(
        model, dict(layout.axes), training.sequence_parallel, training.fused_attention
    )
    sizes = training_sizes(
        model, layout.axes, training.micro_batch, workload.input_length, plan.expert_imbalance
    )
    contents = stage_contents(model, layout.stage_layers)
    programs = training_programs(structure, model)
    return TrainingInputs(training, layout, made, contents, structure, programs, Sizes(sizes), tuple(found))


def memory_parts(
    design: Design, inputs: TrainingInputs, made: Schedule, parameters: ParameterCount
) -> TrainingParts:
    """Collect what the memory of a training step depends on."""
    model, plan, degrees = design.model, design.plan, inputs.layout.degrees
    biases = parameters.groups.get("biases", 0) / model.n_layers
    return TrainingParts(
        model=model,
        training=inputs.training,
        degrees=degrees,
        schedule=made,
        contents=inputs.contents,
        programs=inputs.programs,
        sizes=inputs.sizes,
        widths=training_widths(model, plan, inputs.training),
        combine_bytes=DTYPE_BYTES[plan.combine_dtype],
        capacity=design.cluster.chip.hbm_capacity,
        reserve=plan.memory_reserve,
        small=biases / degrees.tp,
        positions=parameters.groups.get("positions", 0),
    )


def choice_of(model: ModelSpec) -> Choice:
    """Return how the tokens of a model choose experts."""
    moe = model.moe
    if moe is None:
        return Choice(1, 1)
    return Choice(moe.n_routed_experts, moe.n_experts_per_token, moe.n_expert_groups, moe.n_groups_per_token)
