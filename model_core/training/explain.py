"""The cost of one operation of a training program, for its card."""

from __future__ import annotations

from model_core.partition.cost import program_costs
from model_core.results import Evaluation, OpTime
from model_core.spec.workload import Phase
from model_core.stages import op_time
from model_core.training.costs import head_rates, training_rates
from model_core.training.inputs import training_inputs


def training_operation(evaluation: Evaluation, program: str, index: str) -> OpTime | None:
    """Return the time of an operation of the forward pass, of all layers of the model and microbatches of a rank.

    The time of a step has no rows for single operations: its rows sum passes up.
    """
    design = evaluation.design
    found = evaluation.programs.get(program)
    if design.workload.phase is not Phase.TRAINING or found is None or not index.isdigit():
        return None
    if int(index) >= len(found.ops):
        return None
    inputs = training_inputs(design.model, design.cluster, design.workload, design.plan)
    rates, _ = training_rates(design, inputs)
    if program in ("embedding", "logits"):
        rates = head_rates(rates, design)
    cost = program_costs(found, inputs.sizes, rates, inputs.layout.network)[int(index)]
    layers = sum(content.count(program) for content in inputs.contents)
    return op_time(found, program, layers * inputs.layout.microbatches, cost)
