"""Published figures of expert parallelism: limits, ratios, and the kernels that move tokens."""

from __future__ import annotations

from model_core.evaluate import evaluate
from model_core.experts.traffic import experts_at_same_cost, experts_per_node_hidden
from model_core.hardware.calibration import choose_calibration, derated, efficiency_of
from model_core.hardware.expert_traffic import (
    Choice,
    ExpertRates,
    copies_per_token,
    ep_limit_s,
    ep_limit_tpot_s,
    expected_units,
    token_bytes,
)
from model_core.hardware.network import Level
from model_core.published.conditions import Library
from model_core.reproduce.values import Value
from model_core.spec.cluster import ClusterSpec, NodeTopology

DISPATCH, COMBINE = 1, 2
"""Bytes of a number on the way to experts (FP8) and back (BF16)."""
NORMAL_TOKENS, LOW_LATENCY_TOKENS = 4096, 128


def free_experts(library: Library, cluster: str, nodes: int) -> Value:
    """Experts on some nodes that a token may visit at no extra cost (DeepSeek-V3 report, 3.2.2)."""
    topology = _nodes(library.load_cluster(cluster))
    nvlink, network = topology.nvlink_bandwidth, topology.nic_bandwidth
    if nodes == 1:
        return Value(experts_per_node_hidden(nvlink, network))
    return Value(float(experts_at_same_cost(nodes, nvlink, network)))


def expert_limit(library: Library, hidden: int, bandwidth: float, layers: int = 0) -> Value:
    """Time of a dispatch and combine of 32 tokens to 9 experts, or that of a token through some layers."""
    del library
    pair = ep_limit_s(32, 9, hidden, DISPATCH, COMBINE, bandwidth)
    return Value(ep_limit_tpot_s(layers, pair) if layers else pair)


def compute_over_communication(library: Library, design: str, flops_per_s: float) -> Value:
    """Arithmetic of a layer over its dispatch and combine, 4,096 tokens on each of 64 GPUs, forward pass."""
    evaluation = evaluate(library.load_design(design))
    model, parameters = evaluation.design.model, evaluation.parameters
    if parameters is None or model.mla is None:
        raise ValueError(f"{design} has no latent attention")
    tokens, tables = NORMAL_TOKENS, 2 * model.vocab_size * model.d_model
    widths = model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim + model.mla.v_head_dim
    scores = 2 * model.n_heads * widths * tokens * tokens / 2
    work = 2 * (parameters.active - tables) / model.n_layers * tokens + scores
    cluster = evaluation.design.cluster
    sent = sum(
        _kernel_s(cluster, 64, model.d_model, token_bytes(w), False, False) for w in (DISPATCH, COMBINE)
    )
    return Value(work / flops_per_s / sent)


def deepep_bandwidth(library: Library, cluster: str, gpus: int, width: int) -> Value:
    """Bytes per second of DeepEP's normal kernels, which count what stays on the own node, or in one the own GPU."""
    nodes = gpus // 8
    seconds = _kernel_s(library.load_cluster(cluster), gpus, 7168, token_bytes(width), False, True)
    counted = expected_units(_choice(nodes, False), nodes if nodes > 1 else 8)
    return Value(NORMAL_TOKENS * 7168 * token_bytes(width) * counted / seconds)


def deepep_latency(library: Library, cluster: str, gpus: int, width: int) -> Value:
    """Time of DeepEP's low-latency kernels for 128 tokens of every GPU."""
    return Value(_kernel_s(library.load_cluster(cluster), gpus, 7168, token_bytes(width), True, True))


def _nodes(cluster: ClusterSpec) -> NodeTopology:
    if not isinstance(cluster.topology, NodeTopology):
        raise TypeError(f"{cluster.name} has no nodes")
    return cluster.topology


def _choice(nodes: int, low_latency: bool) -> Choice:
    """Return what DeepEP's tests route: 8 of 256 experts, in normal kernels from at most 4 nodes."""
    groups = 1 if low_latency else nodes
    return Choice(256, 8, groups, min(groups, 4))


def _kernel_s(
    cluster: ClusterSpec, gpus: int, hidden: int, width: float, low_latency: bool, calibrated: bool
) -> float:
    topology, nodes = _nodes(cluster), gpus // 8
    levels = [Level("nvlink", "switch", 8, topology.nvlink_bandwidth, topology.nvlink_latency)]
    if nodes > 1:
        levels.append(Level("ib", "network", nodes, topology.nic_bandwidth, topology.nic_latency))
    choice = choose_calibration(cluster.chip, "auto" if calibrated else "none")
    efficiency = efficiency_of(choice.calibration)
    copies = copies_per_token(_choice(nodes, low_latency), nodes, 8, two_hop=not low_latency)
    tokens = LOW_LATENCY_TOKENS if low_latency else NORMAL_TOKENS
    message = ExpertRates(copies, width, width).message(tokens * hidden * width, derated(levels, efficiency))
    return float(message.transfer_s + message.hops_s + efficiency.dispatch_start_s)
