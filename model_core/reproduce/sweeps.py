"""The sweeps behind the cost, latency and MFU figures of Pope: designs over slices, batches and layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from model_core.evaluate import evaluate
from model_core.published.conditions import Library
from model_core.spec.base import replace_at
from model_core.spec.cluster import ClusterSpec
from model_core.spec.design import Design
from model_core.spec.plan import FfnLayout

SLICES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8")
BATCHES = tuple(2**k for k in range(11))
MODELS = {"PaLM 8B": "palm-8b", "PaLM 62B": "palm-62b", "PaLM 540B": "palm-540b-padded"}
DTYPES = ("bfloat16", "int8")
PREFILL_LAYOUTS = (
    FfnLayout.WEIGHT_STATIONARY_1D,
    FfnLayout.WEIGHT_STATIONARY_2D,
    FfnLayout.WEIGHT_GATHERED_X,
    FfnLayout.WEIGHT_GATHERED_XY,
    FfnLayout.WEIGHT_GATHERED_XYZ,
)
DECODE_LAYOUTS = (FfnLayout.WEIGHT_STATIONARY_1D, FfnLayout.WEIGHT_STATIONARY_2D)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one design that fits achieves, and what it is."""

    step_s: float
    latency_s: float
    cost_chip_s: float
    mfu: float
    chips: int
    batch: int
    layout: str

    @property
    def note(self) -> str:
        """Chips, batch and layout as the figures name them."""
        return f"C {self.chips}, B {self.batch}, {self.layout}"


def outcomes(designs: Iterable[Design]) -> Iterator[Outcome]:
    """Evaluate designs and yield those without an error: they fit and divide."""
    for design in designs:
        evaluation = evaluate(design)
        if not evaluation.ok or evaluation.time is None:
            continue
        quantities = evaluation.quantities
        yield Outcome(
            evaluation.time.step_s,
            evaluation.time.latency_s,
            quantities["cost_chip_s_per_token"].value,
            quantities["mfu"].value,
            design.cluster.n_chips,
            design.workload.batch,
            str(design.plan.ffn_layout),
        )


def frontier(
    found: Iterable[Outcome], x: Callable[[Outcome], float], y: Callable[[Outcome], float]
) -> list[Outcome]:
    """Return the outcomes that no other beats in both ``x`` and ``y``, which shall be small; ascending in x."""
    kept: list[Outcome] = []
    for outcome in sorted(found, key=lambda o: (x(o), y(o))):
        if not kept or y(outcome) < y(kept[-1]):
            kept.append(outcome)
    return kept


@lru_cache(maxsize=64)
def decode_sweep(library: Library, model: str, dtype: str) -> tuple[Outcome, ...]:
    """Decode with context 2048 on every slice and batch, attention sharded the better way (Figure 1, left)."""
    base = library.load_design("palm-540b-decode-high-throughput").replace(model=library.load_model(model))
    designs = (
        _changed(base.replace(cluster=_slice(library, name)), batch, layout, sharding, dtype)
        for name in SLICES
        for batch in BATCHES
        for layout in DECODE_LAYOUTS
        for sharding in ("heads", "batch")
    )
    return tuple(outcomes(designs))


@lru_cache(maxsize=64)
def prefill_sweep(
    library: Library,
    model: str,
    dtype: str,
    lengths: tuple[int, ...] = (2048,),
    batches: tuple[int, ...] = BATCHES,
) -> tuple[Outcome, ...]:
    """Prefill on every slice, batch and layout (Figures 1, right, and B.1)."""
    base = library.load_design("palm-540b-prefill-low-latency").replace(model=library.load_model(model))
    designs = (
        _changed(
            replace_at(base.replace(cluster=_slice(library, name)), "workload.input_length", length),
            batch,
            layout,
            sharding,
            dtype,
        )
        for name in SLICES
        for length in lengths
        for batch in batches
        for layout in PREFILL_LAYOUTS
        for sharding in ("heads", "batch")
    )
    return tuple(outcomes(designs))


def _slice(library: Library, shape: str) -> ClusterSpec:
    return library.load_cluster(f"tpu-v4-{shape}")


def _changed(design: Design, batch: int, layout: FfnLayout, sharding: str, dtype: str) -> Design:
    plan = design.plan.replace(ffn_layout=layout, attention_sharding=sharding, weight_dtype=dtype)
    return design.replace(workload=design.workload.replace(batch=batch), plan=plan)
