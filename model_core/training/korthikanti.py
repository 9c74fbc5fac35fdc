"""The closed forms of Korthikanti et al. 2022 for GPT models: explanations and tests; the product counts programs."""

from __future__ import annotations

from dataclasses import dataclass

from model_core.arithmetic import Number
from model_core.quantities import formula


@dataclass(frozen=True, slots=True)
class GptShape:
    """Symbols of the source: s, b (sequences of a microbatch), h, a (heads), L (layers), v, t; numbers or arrays."""

    s: Number
    b: Number
    h: Number
    a: Number
    layers: Number
    v: Number
    t: Number = 1

    @property
    def sbh(self) -> Number:
        """Tokens times width."""
        return self.s * self.b * self.h

    @property
    def scores(self) -> Number:
        """Bytes of attention scores over s·b·h: 5as/h."""
        return 5 * self.a * self.s / self.h


@formula("korthikanti_layer")
def layer_activation_bytes(shape: GptShape, sequence_parallel: bool, selective: bool) -> Number:
    """Activations that one layer of a GPT model keeps of a microbatch, per rank.

    Formula: sbh · (10 + 24/t + 5as/(ht)); sequence parallel: sbh · (34/t + 5as/(ht)); selective recomputation: without
        the term of the scores
    Source: Korthikanti et al. 2022, equations 1, 2 and 4 and Table 2
    Args:
        shape: sizes; t is the tensor parallelism.
        sequence_parallel: norms, residuals and dropout split over t too.
        selective: attention scores are computed again.
    Assumes: 2 bytes per number, dropout with 1-byte masks, attention not fused
    """
    split = 34 / shape.t if sequence_parallel else 10 + 24 / shape.t
    return shape.sbh * (split + (0 if selective else shape.scores / shape.t))


@formula("korthikanti_full")
def full_recompute_bytes(shape: GptShape) -> Number:
    """Activations that one layer keeps with full recomputation.

    Formula: 2sbh
    Source: Korthikanti et al. 2022, Table 2
    Assumes: the input is kept whole on every tensor-parallel rank
    """
    return 2 * shape.sbh


@formula("korthikanti_first_stage")
def first_stage_layers(layers: Number, pp: Number, interleave: Number) -> Number:
    """Layers' worth of activations that the first pipeline stage holds.

    Formula: L · (1 + (p − 1)/(p·m)); not interleaved: L
    Source: Korthikanti et al. 2022, 4.2.3
    Args:
        layers: L of the whole model.
        pp: p.
        interleave: m, chunks on each rank; 1: not interleaved.
    """
    return layers * (1 + (pp - 1) / (pp * interleave) * (interleave > 1))


@formula("korthikanti_model_flops")
def model_flops(shape: GptShape, batch: Number) -> Number:
    """FLOPs of one iteration that the model itself needs, forward and backward.

    Formula: 72 · B·L·s·h² · (1 + s/(6h) + v/(12hL))
    Source: Korthikanti et al. 2022, appendix A; Narayanan et al. 2021 with recomputation: 96 for 72
    Args:
        shape: sizes.
        batch: B, sequences of an iteration.
    Assumes: attention counts the whole rectangle of queries and keys, the masked half included
    """
    h, s = shape.h, shape.s
    return 72 * batch * shape.layers * s * h**2 * (1 + s / (6 * h) + shape.v / (12 * h * shape.layers))


@formula("korthikanti_hardware_flops")
def selective_hardware_flops(shape: GptShape, batch: Number) -> Number:
    """FLOPs of one iteration that the hardware does with selective recomputation, as published.

    Formula: 72 · B·L·s·h² · (1 + s/(3h) + v/(12hL))
    Source: Korthikanti et al. 2022, appendix A
    Assumes: as published, which counts the recomputed scores as forward and backward; the programs count the
        forward only
    """
    h, s = shape.h, shape.s
    return 72 * batch * shape.layers * s * h**2 * (1 + s / (3 * h) + shape.v / (12 * h * shape.layers))
