"""Prints the error of the calibrated model for every group of published rows.

``python -m tests.benchmarks.bench_calibration``. Where the reference figures lie beside the project, rows of
other software on chips with a calibration are predicted as well; none of them took part in a fit.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

import presets
from model_core import evaluate
from model_core.reproduce import ReproducedRow, reproduce
from model_core.spec import Design, FfnLayout, MeshPlan, Phase, PlanSpec, WorkloadSpec, replace_at

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
SERVED = {"meta-llama/Llama-3.1-70B": "llama-3.1-70b"}


def main() -> None:
    """Print the groups of every file, then the calibrations, then what was never fitted."""
    print(f"{'group':44} {'rows':>4} {'mean':>7} {'bias':>7} {'worst':>7}")
    for name in presets.published_names():
        for label, errors in _groups(reproduce([presets.load_published(name)], presets)):
            _print(label, errors)
    for name in presets.calibration_names():
        calibration = presets.load_calibration(name)
        print(f"{name}: error band ± {calibration.error_band:.1%}")
        for factor in calibration.factors:
            print(f"    {factor.name:20} {factor.value:10.4g} {'fitted' if factor.fitted else ''}")
    served = list(_served())
    if served:
        _print("H200, TensorRT-LLM, TPOT (H100 factors)", served)


def _groups(rows: Iterable[ReproducedRow]) -> Iterator[tuple[str, list[float]]]:
    """Yield the errors of latencies by group; rows without a group stand by their table."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        is_latency = row.row.quantity.startswith(("latency", "output_tok"))
        if row.error is not None and is_latency:
            label = row.row.group or f"{row.row.id.split('-')[0]}, {row.row.source.split(':')[0]}"
            groups.setdefault(f"{label}{'' if row.fitted else ' (predicted)'}", []).append(row.error)
    yield from groups.items()


def _print(label: str, errors: list[float]) -> None:
    mean, bias, worst = np.mean(np.abs(errors)), np.mean(errors), max(errors, key=abs)
    print(f"{label:44} {len(errors):4} {mean:7.1%} {bias:+7.1%} {worst:+7.1%}")


def _served() -> Iterator[float]:
    """Predict the time per token of served models on H200, with the factors of H100 (never fitted).

    A batch of b that is refilled as answers end prefills b / osl prompts in every step.
    """
    path = REFERENCE / "11_serving_measured.csv"
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if (row["backend"], row["system"]) != ("trtllm", "h200_sxm") or row["model_path"] not in SERVED:
                continue
            batch, prompt, answer = (int(row[key]) for key in ("batch_size", "isl", "osl"))
            design = _design(SERVED[row["model_path"]], int(row["tp_size"]), batch, prompt, answer)
            step = evaluate(design).value("step_s")
            one = replace_at(replace_at(design, "workload.phase", Phase.PREFILL), "workload.batch", 1)
            prefill = evaluate(one).value("latency_s")
            if step is not None and prefill is not None:
                yield (step + batch / answer * prefill) / (float(row["silicon_tpot_ms"]) / 1e3) - 1


def _design(model: str, chips: int, batch: int, prompt: int, answer: int) -> Design:
    cluster = replace_at(presets.load_cluster("h200-1x8"), "topology.chips_per_node", chips)
    plan = PlanSpec(
        ffn_layout=FfnLayout.WEIGHT_STATIONARY_1D,
        mesh=MeshPlan(y=("ib",), z=("nvlink",)),
        weight_dtype="fp8",
        kv_dtype="fp8",
        matmul_dtype="fp8",
        calibration="h100-sxm-tensorrt-llm",
    )
    workload = WorkloadSpec(phase=Phase.DECODE, batch=batch, input_length=prompt, output_length=answer)
    design = Design(
        name="served", model=presets.load_model(model), cluster=cluster, workload=workload, plan=plan
    )
    return presets.with_calibration(design)


if __name__ == "__main__":
    main()
