"""Models and parts of training steps that tests share."""

from __future__ import annotations

from typing import Any

from model_core.memory.training import stage_contents
from model_core.memory.training_budget import TrainingParts
from model_core.partition.sizes import Sizes
from model_core.schedule.registry import schedule
from model_core.spec import ModelSpec, PlanSpec, TrainingSpec
from model_core.training.inputs import training_sizes, training_widths
from model_core.training.layout import Degrees, layers_of_stages
from model_core.training.programs import training_programs, training_structure

KORTHIKANTI: dict[str, dict[str, int]] = {
    "22B": {"a": 64, "h": 6144, "layers": 48, "b": 4, "pp": 1, "m": 1, "microbatches": 1},
    "175B": {"a": 96, "h": 12288, "layers": 96, "b": 1, "pp": 8, "m": 3, "microbatches": 64},
    "530B": {"a": 128, "h": 20480, "layers": 105, "b": 1, "pp": 35, "m": 3, "microbatches": 280},
    "1T": {"a": 160, "h": 25600, "layers": 128, "b": 1, "pp": 64, "m": 1, "microbatches": 512},
}
"""Korthikanti et al. 2022, Table 3; sequences of 2048, vocabulary 51,200, t = 8."""


def gpt(h: int, a: int, layers: int, vocab: int = 51_200, **changes: Any) -> ModelSpec:
    return ModelSpec.model_validate(
        {
            "name": f"GPT {h}",
            "n_layers": layers,
            "d_model": h,
            "d_ff": 4 * h,
            "n_heads": a,
            "n_kv_heads": a,
            "d_head": h // a,
            "vocab_size": vocab,
            "gated_ffn": False,
            "norm": "layernorm",
            "tied_embedding": True,
            **changes,
        }
    )


def parts_of(
    model: ModelSpec,
    training: TrainingSpec,
    *,
    kind: str = "1f1b",
    pp: int = 1,
    microbatches: int = 1,
    chunks: int = 1,
    length: Any = 2048,
    micro_batch: Any = None,
    dp: Any = 1,
    axes: dict[str, Any] | None = None,
    ep: Any = None,
    stage_layers: tuple[int, ...] = (),
    tp: Any = None,
) -> TrainingParts:
    """Collect a step without a cluster; ``axes`` may hold arrays, the structure goes by the training spec."""
    sizes: dict[str, Any] = {"x": 1, "y": 1, "c": training.cp, "z": training.tp, **(axes or {})}
    made, problems = schedule(kind, pp, microbatches, chunks)
    assert made is not None, problems
    shape = {name: training.tp if name == "z" else (2 if name in (axes or {}) else 1) for name in sizes}
    shape["c"] = training.cp
    structure = training_structure(model, shape, training.sequence_parallel, training.fused_attention)
    layers = stage_layers or layers_of_stages(model.n_layers, made.layout.n_stages)
    batch = training.micro_batch if micro_batch is None else micro_batch
    tp = sizes["z"] if tp is None else tp
    return TrainingParts(
        model=model,
        training=training,
        degrees=Degrees(tp, sizes["c"], dp, pp, tp * sizes["c"] if ep is None else ep),
        schedule=made,
        contents=stage_contents(model, layers),
        programs=training_programs(structure, model),
        sizes=Sizes(training_sizes(model, sizes, batch, length)),
        widths=training_widths(model, PlanSpec(), training),
        combine_bytes=2,
        capacity=80e9,
        reserve=0.05,
    )
