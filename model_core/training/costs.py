"""Times of the forward pass (F), the backward for input (I) and for weights (W) of each program, elementwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from model_core.arithmetic import Number, minimum
from model_core.diagnostics import Diagnostic
from model_core.hardware.calibration import BOUND, choose_calibration, efficiency_of
from model_core.hardware.expert_traffic import (
    ExpertRates,
    bandwidth_share,
    compute_share,
    copies_per_token,
    token_bytes,
)
from model_core.partition.cost import OpCost, Rates, program_costs
from model_core.partition.program import CollectiveKind, LayerProgram, Op, Role
from model_core.quantities import formula
from model_core.spec.design import Design
from model_core.spec.plan import DTYPE_BYTES
from model_core.stages import matmul_rate
from model_core.training.inputs import TrainingInputs, choice_of, training_widths
from model_core.training.recompute import training_backward

ROUTED = (str(CollectiveKind.DISPATCH), str(CollectiveKind.COMBINE))
WORK = ("einsum", "local")


@dataclass(slots=True)
class Pass:
    """Time and FLOPs of one pass of a program, for one microbatch on one rank.

    ``arithmetic_s`` are the operations that wait for arithmetic, ``weight_s`` and ``activation_s`` what the others
    load, ``fixed_s`` what costs time whatever the size; ``collective_s`` is communication that waits in line, ``dispatch_s`` and
    ``combine_s`` the all-to-all that a schedule may overlap. ``again_s``: the part that computes the forward again.
    """

    arithmetic_s: Number = 0.0
    weight_s: Number = 0.0
    activation_s: Number = 0.0
    fixed_s: Number = 0.0
    collective_s: Number = 0.0
    dispatch_s: Number = 0.0
    combine_s: Number = 0.0
    again_s: Number = 0.0
    flops: Number = 0.0

    @property
    def work_s(self) -> Number:
        """Time that the chip computes or loads."""
        return self.arithmetic_s + self.weight_s + self.activation_s + self.fixed_s

    @property
    def routed_s(self) -> Number:
        """Dispatch and combine."""
        return self.dispatch_s + self.combine_s

    @property
    def total_s(self) -> Number:
        """Everything, one after the other."""
        return self.work_s + self.collective_s + self.routed_s

    def hide(self, share: Number) -> None:
        """Hide a share of the collectives behind the work."""
        self.collective_s = self.collective_s - minimum(share * self.collective_s, self.work_s)

    def add(self, cost: OpCost, again: bool) -> None:
        """Add one operation."""
        computes = cost.compute_s >= cost.weight_s + cost.activation_s
        self.arithmetic_s = self.arithmetic_s + computes * cost.compute_s
        self.weight_s = self.weight_s + (1 - computes) * cost.weight_s
        self.activation_s = self.activation_s + (1 - computes) * cost.activation_s
        self.fixed_s = self.fixed_s + cost.fixed_s
        self.flops = self.flops + cost.flops
        if cost.kind == ROUTED[0]:
            self.dispatch_s = self.dispatch_s + cost.exposed_s
        elif cost.kind == ROUTED[1]:
            self.combine_s = self.combine_s + cost.exposed_s
        else:
            self.collective_s = self.collective_s + cost.exposed_s
        if again:
            self.again_s = self.again_s + cost.busy_s + cost.exposed_s


@dataclass(slots=True)
class Passes:
    """The three passes of a program: F, I and W."""

    forward: Pass = field(default_factory=Pass)
    inward: Pass = field(default_factory=Pass)
    outward: Pass = field(default_factory=Pass)


def _collect(program: LayerProgram, costs: Iterable[OpCost], again: set[str], skipped: set[str]) -> Pass:
    total = Pass()
    for op, cost in zip(program.ops, costs, strict=True):
        if op.output.name not in skipped:
            total.add(cost, op.output.name in again)
    return total


def _names(ops: Iterable[Op]) -> set[str]:
    return {op.output.name for op in ops}


@formula("training_passes")
def program_passes(program: LayerProgram, inputs: TrainingInputs, rates: Rates) -> Passes:
    """Times of the forward and of the two halves of the backward pass of one program.

    Formula: Σ over operations of max(T_compute, T_loading) + exposed communication; what both halves compute again is
        counted once
    Source: the backward programs are derived from the forward one; Qi et al. 2023 for the halves I and W
    Args:
        program: the forward program.
        inputs: sizes, network, what is recomputed.
        rates: rates of the chip.
    """
    halves = training_backward(program, inputs.training)
    forward_names = _names(program.ops)
    inward_again = _names(halves.input_gradient.ops) & forward_names
    network = inputs.layout.network

    def costs(of: LayerProgram) -> list[OpCost]:
        return program_costs(of, inputs.sizes, rates, network) if of.ops else []

    passes = Passes(
        _collect(program, costs(program), set(), set()),
        _collect(halves.input_gradient, costs(halves.input_gradient), inward_again, set()),
        _collect(halves.weight_gradient, costs(halves.weight_gradient), forward_names, inward_again),
    )
    if inputs.training.overlap_tensor_parallel:
        for one in (passes.forward, passes.inward, passes.outward):
            one.hide(backward_hidden_share(rates))
    return passes


@formula("training_backward_time")
def backward_s(passes: Passes, hidden_share: Number) -> Number:
    """Time of a full backward pass of one program.

    Formula: T_I + T_W − min(h · T_collectives, T_W)
    Source: Korthikanti et al. 2022, 4.2.2 and Megatron-LM: collectives of the input gradient run beside the weight
        gradients
    Args:
        passes: its passes.
        hidden_share: h.
    """
    collectives = passes.inward.collective_s + passes.outward.collective_s
    hidden = minimum(hidden_share * collectives, passes.outward.work_s)
    return passes.inward.total_s + passes.outward.total_s - hidden


def training_rates(design: Design, inputs: TrainingInputs) -> tuple[Rates, tuple[Diagnostic, ...]]:
    """Collect the rates of a training step; a fused causal kernel skips half of the attention.

    Source: DeepSeek-V3 report, 3.2.2 (20 SMs move tokens beside the computation), 3.3.1 (formats of products)
    """
    chip, plan, model, training = design.cluster.chip, design.plan, design.model, inputs.training
    rate, diagnostics = matmul_rate(chip, plan)
    choice = choose_calibration(chip, plan.calibration, "training")
    experts, left = None, 1.0
    if model.moe is not None:
        axes = inputs.layout.axes
        experts = ExpertRates(
            copies=copies_per_token(
                choice_of(model), axes["x"], axes["y"] * axes["c"] * axes["z"], two_hop=True
            ),
            dispatch_bytes=token_bytes(DTYPE_BYTES[plan.dispatch_dtype]),
            combine_bytes=token_bytes(DTYPE_BYTES[plan.combine_dtype]),
            share=bandwidth_share(plan.communication_sms),
            imbalance=plan.expert_imbalance,
        )
        if chip.n_sms is not None and experts.copies.network + experts.copies.inside > 0:
            left = compute_share(plan.communication_sms, chip.n_sms)
    widths: Mapping[Role, float] = training_widths(model, plan, training)
    rates = Rates(
        rate * left,
        chip.peak_bf16 * left,
        chip.hbm_bandwidth,
        widths,
        efficiency=efficiency_of(choice.calibration),
        large_k=plan.large_k,
        experts=experts,
        skip_masked=training.fused_attention,
    )
    return rates, (*diagnostics, *choice.diagnostics)


def head_rates(rates: Rates, design: Design) -> Rates:
    """Return the rates of embedding and head, which stay in bfloat16 (DeepSeek-V3 report, 3.3.1)."""
    return replace(rates, matmul_flops_per_s=minimum(rates.matmul_flops_per_s, design.cluster.chip.peak_bf16))


def backward_hidden_share(rates: Rates) -> Number:
    """Return the share of collectives that hides behind weight gradients."""
    return 1.0 if rates.efficiency is BOUND else rates.efficiency.hidden_share


def all_passes(design: Design, inputs: TrainingInputs, rates: Rates) -> dict[str, Passes]:
    """Return the passes of every program."""
    of_ends = head_rates(rates, design)
    return {
        name: program_passes(program, inputs, rates if name in ("block", "moe_block", "mtp") else of_ends)
        for name, program in inputs.programs.items()
    }
