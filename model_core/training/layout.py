"""Parallel degrees of a training step, where their groups lie, and which layers a stage has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from model_core.arithmetic import Number, ceil_div
from model_core.diagnostics import Diagnostic
from model_core.hardware.network import Level, Network
from model_core.memo import memoised
from model_core.spec.cluster import ClusterSpec, NodeTopology
from model_core.spec.model import ModelSpec
from model_core.spec.schedule import ScheduleSpec
from model_core.spec.training import TrainingSpec
from model_core.spec.workload import WorkloadSpec
from model_core.training.programs import CONTEXT, INSIDE, NODES, TENSOR

NO_SCHEDULE = ScheduleSpec(kind="1f1b", pp=1, microbatches=1)
DEFAULTS = TrainingSpec()
SEQUENCE_PARALLEL = "tp x cp (sequence parallelism)"


@dataclass(frozen=True, slots=True)
class Degrees:
    """How many ranks share what; numbers or arrays.

    ``tp``, ``cp``, ``dp`` and ``pp`` multiply to the chips; ``ep`` ranks of one pipeline stage share the
    experts, so that ``expert_dp`` groups of them hold the same ones.
    """

    tp: Number
    cp: Number
    dp: Number
    pp: Number
    ep: Number

    @property
    def stage_ranks(self) -> Number:
        """Ranks of one pipeline stage."""
        return self.tp * self.cp * self.dp

    @property
    def expert_dp(self) -> Number:
        """Ranks of a stage that hold the same experts."""
        return self.stage_ranks / self.ep

    @property
    def data_ways(self) -> Number:
        """Data-parallel ranks of one expert-parallel group, whose tokens its programs see."""
        return self.ep / (self.tp * self.cp)


@dataclass(frozen=True, slots=True)
class TrainingLayout:
    """A training step laid out: degrees, sequences in flight, layers of stages and the network of groups.

    ``between`` holds the levels from one stage to the next, ``replicas`` those of ranks with the same dense
    weights, ``expert_replicas`` those with the same experts.
    """

    degrees: Degrees
    schedule: ScheduleSpec
    microbatches: int
    stage_layers: tuple[int, ...]
    network: Network
    between: tuple[Level, ...]
    replicas: tuple[Level, ...]
    expert_replicas: tuple[Level, ...]
    axes: Mapping[str, int]
    diagnostics: tuple[Diagnostic, ...] = ()


def group_levels(cluster: ClusterSpec, ways: int, stride: int) -> tuple[Level, ...]:
    """Return the links between ranks of a group, ``stride`` ranks apart.

    Formula: in a node lie gcd(ways, ⌊chips of a node / stride⌋) of them, the others across the network
    Args:
        cluster: the cluster; ranks fill one node after the other.
        ways: ranks of the group.
        stride: distance of neighbours.
    Assumes: on a torus the group is a ring of its own
    """
    if ways <= 1:
        return ()
    topology = cluster.topology
    if not isinstance(topology, NodeTopology):
        return (Level("torus", "ring", ways, 2 * topology.link_bandwidth, topology.hop_latency),)
    inside = gcd(ways, max(1, topology.chips_per_node // stride))
    levels = []
    if inside > 1:
        levels.append(Level("nvlink", "switch", inside, topology.nvlink_bandwidth, topology.nvlink_latency))
    if ways > inside:
        levels.append(Level("ib", "network", ways // inside, topology.nic_bandwidth, topology.nic_latency))
    return tuple(levels)


def layers_of_stages(n_layers: int, n_stages: int) -> tuple[int, ...]:
    """Share layers out: full stages first and the rest on the last, or as even as can be where that is empty."""
    most = ceil_div(n_layers, n_stages)
    left = n_layers - most * (n_stages - 1)
    if left >= 1:
        return (*(most,) * (n_stages - 1), left)
    base, extra = divmod(n_layers, n_stages)
    return tuple(base + (stage < extra) for stage in range(n_stages))


@memoised(64)
def training_layout(
    model: ModelSpec,
    cluster: ClusterSpec,
    workload: WorkloadSpec,
    training: TrainingSpec,
    schedule: ScheduleSpec,
    n_stages: int,
    copies: int,
) -> TrainingLayout:
    """Lay a training step out; degrees that do not fit are reported and replaced by what does.

    Args:
        model: the model.
        cluster: the cluster.
        workload: sequences of a step and their length.
        training: the degrees.
        schedule: the pipeline.
        n_stages: parts that the schedule cuts the model into.
        copies: directions of the pipeline, each with its own weights.
    """
    found: list[Diagnostic] = []
    tp, cp, pp = training.tp, training.cp, schedule.pp
    if cluster.n_chips % (tp * cp * pp):
        values = {"chips": cluster.n_chips, "product": tp * cp * pp, "tp": tp, "cp": cp, "pp": pp}
        found.append(Diagnostic("training_degrees", "plan.training.tp", values))
    dp = max(1, cluster.n_chips // (tp * cp * pp))
    ep = _expert_ways(model, training, tp * cp * dp, found)
    found += _divisions(model, training, workload)
    pipelines = dp * training.micro_batch
    if workload.batch % pipelines:
        values = {"batch": workload.batch, "dp": dp, "micro_batch": training.micro_batch, "ways": pipelines}
        values |= {
            "below": workload.batch // pipelines * pipelines,
            "above": -(-workload.batch // pipelines) * pipelines,
        }
        found.append(Diagnostic("training_batch", "workload.batch", values))
    layers = _stage_layers(model, training, n_stages, found)
    degrees = Degrees(tp, cp, dp, pp, ep)
    data = max(1, ep // (tp * cp))
    data_levels = group_levels(cluster, data, tp * cp)
    inside = next((int(level.size) for level in data_levels if level.kind != "network"), 1)
    groups = {
        TENSOR: (tp, group_levels(cluster, tp, 1)),
        CONTEXT: (cp, group_levels(cluster, cp, tp)),
        INSIDE: (inside, tuple(level for level in data_levels if level.kind != "network")),
        NODES: (data // inside, tuple(level for level in data_levels if level.kind == "network")),
    }
    return TrainingLayout(
        degrees,
        schedule,
        max(1, workload.batch // pipelines),
        layers,
        Network({axis: levels for axis, (_, levels) in groups.items()}),
        group_levels(cluster, 2 if pp > 1 else 1, max(1, cluster.n_chips // pp)),
        group_levels(cluster, cp * dp * copies, tp),
        group_levels(cluster, tp * cp * dp // ep * copies, ep),
        {axis: size for axis, (size, _) in groups.items()},
        tuple(found),
    )


def _expert_ways(model: ModelSpec, training: TrainingSpec, ranks: int, found: list[Diagnostic]) -> int:
    """Return the expert parallelism: the tensor and context ranks where the model has no experts."""
    least = training.tp * training.cp
    if model.moe is None:
        return least
    ep = training.ep
    fits = ranks % ep == 0 and ep % least == 0 and model.moe.n_routed_experts % ep == 0
    if not fits:
        values = {"ep": ep, "least": least, "ranks": ranks, "experts": model.moe.n_routed_experts}
        found.append(Diagnostic("training_experts", "plan.training.ep", values))
        ep = least if ranks % max(ep, 1) or ep % least else ep
    return ep


def _divisions(model: ModelSpec, training: TrainingSpec, workload: WorkloadSpec) -> list[Diagnostic]:
    """Say what does not divide; sequence parallelism splits tokens over the tensor-parallel ranks as well."""
    tp, cp, length = training.tp, training.cp, workload.input_length
    splits = training.sequence_parallel and tp > 1
    # Context parallelism is to blame only where it does not divide the tokens by itself.
    blames_tp = splits and not length % cp
    tokens = ("plan.training.tp", SEQUENCE_PARALLEL) if blames_tp else ("plan.training.cp", "cp")
    wanted = (
        ("n_heads", model.n_heads, tp, "plan.training.tp", "tp"),
        ("d_ff", model.d_ff, tp, "plan.training.tp", "tp"),
        ("input_length", length, cp * tp if blames_tp else cp, *tokens),
    )
    return [
        Diagnostic(
            "does_not_divide",
            path,
            {
                "dimension": name,
                "size": size,
                "axes": axes,
                "ways": ways,
                "below": size // ways * ways,
                "above": -(-size // ways) * ways,
            },
        )
        for name, size, ways, path, axes in wanted
        if size % ways
    ]


def _stage_layers(
    model: ModelSpec, training: TrainingSpec, n_stages: int, found: list[Diagnostic]
) -> tuple[int, ...]:
    given = training.stage_layers
    if not given:
        if n_stages > model.n_layers:
            values: dict[str, object] = {"stages": n_stages, "layers": model.n_layers}
            found.append(Diagnostic("pipeline_too_long", "plan.schedule.pp", values))
        return layers_of_stages(model.n_layers, n_stages)
    if len(given) == n_stages and sum(given) == model.n_layers and min(given) >= 0:
        return given
    values = {"count": len(given), "total": sum(given), "stages": n_stages, "layers": model.n_layers}
    found.append(Diagnostic("training_stages", "plan.training.stage_layers", values))
    return layers_of_stages(model.n_layers, n_stages)
