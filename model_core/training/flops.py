"""FLOPs of a training step: what the model needs, and what the hardware does."""

from __future__ import annotations

from collections.abc import Mapping

from model_core.arithmetic import Number
from model_core.memo import memoised
from model_core.partition.products import readings
from model_core.partition.sizes import Sizes
from model_core.quantities import formula
from model_core.spec.model import ModelSpec
from model_core.training.costs import Passes
from model_core.training.inputs import TrainingInputs, training_sizes
from model_core.training.programs import training_programs, training_structure


@memoised(64)
@formula("training_model_flops")
def model_flops_per_token(model: ModelSpec, length: int) -> float:
    """FLOPs that the model needs for one token of a training step.

    Formula: 3 · Σ over products of the forward programs of 2 · rows · columns · depth / tokens
    Source: Korthikanti et al. 2022, appendix A: 72 · B·L·s·h² · (1 + s/(6h) + v/(12hL)) for a GPT model
    Args:
        model: the model.
        length: tokens of a sequence.
    Assumes: attention counts the masked half too; recomputation and multi-token prediction do not count
    """
    structure = training_structure(model, {}, True, True)
    programs = training_programs(structure, model)
    sizes = Sizes(training_sizes(model, {"x": 1, "y": 1, "c": 1, "z": 1}, 1, length))
    n_dense = model.n_layers if model.moe is None else model.moe.n_dense_layers
    counts = {"block": n_dense, "moe_block": model.n_layers - n_dense, "logits": 1}
    total = 0.0
    for name, count in counts.items():
        if name in programs:
            products = (reading.product for reading in readings(programs[name]))
            total += count * sum(float(p.shape(sizes).flops) for p in products if p is not None)
    return 3 * total / length


@formula("training_hardware_flops")
def hardware_flops(inputs: TrainingInputs, passes: Mapping[str, Passes]) -> Number:
    """FLOPs that the chips do in one step, recomputation included; attention counts like in the model FLOPs.

    Formula: Σ over stages, programs and microbatches of the FLOPs of F, I and W with recomputation, on all ranks
    Source: Korthikanti et al. 2022, appendix A (hardware FLOPs)
    Args:
        inputs: layout and programs of stages.
        passes: of each program, whole attention scores included.
    Assumes: attention counts the masked half too, also where a fused kernel skips it, as in the model FLOPs: HFU ≥ MFU
    """
    degrees = inputs.layout.degrees
    total: Number = 0.0
    for content in inputs.contents:
        for name, count in content.programs.items():
            one = passes[name]
            total = total + count * (one.forward.flops + one.inward.flops + one.outward.flops)
    return total * degrees.tp * degrees.cp * degrees.dp * inputs.layout.microbatches


@formula("training_mfu")
def training_mfu(
    flops_per_token: Number, tokens: Number, chips: Number, peak: Number, seconds: Number
) -> Number:
    """Model FLOPs utilization of a training step.

    Formula: model FLOPs per token · tokens / (n_chips · peak · step)
    Source: Korthikanti et al. 2022, 6.3
    Args:
        flops_per_token: model FLOPs of one token.
        tokens: of the step.
        chips: n_chips.
        peak: bfloat16, per chip.
        seconds: step.
    Assumes: attention counts the masked half too; the peak is that of bfloat16 whatever the format
    """
    return flops_per_token * tokens / (chips * peak * seconds)


@formula("training_hfu")
def training_hfu(flops: Number, chips: Number, peak: Number, seconds: Number) -> Number:
    """Hardware FLOPs utilization of a training step: recomputation counts.

    Formula: hardware FLOPs / (n_chips · peak · step)
    Source: Korthikanti et al. 2022, 6.3
    Assumes: attention counts the masked half too, as in MFU: HFU is never below it
    """
    return flops / (chips * peak * seconds)


@formula("gpu_hours_per_trillion_tokens")
def chip_hours_per_trillion(chips: Number, seconds: Number, tokens: Number) -> Number:
    """Chip-hours to train on a trillion tokens.

    Formula: n_chips · step / tokens · 10¹² / 3600
    Source: DeepSeek-V3 report, 1: 180K H800 hours for a trillion tokens
    Assumes: every step takes the same time; restarts, evaluation and checkpoints are not counted
    """
    return chips * seconds / tokens * 1e12 / 3600
