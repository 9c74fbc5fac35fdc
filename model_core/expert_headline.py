"""The numbers of a deployment with experts: how tokens spread, what a layer takes, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterator

from model_core.arithmetic import Number
from model_core.expert_stages import ExpertLayout, choice_of
from model_core.hardware.expert_traffic import ep_limit_s, ep_limit_tpot_s, expected_units, token_bytes
from model_core.quantities import FORMULAS, Quantity, Term, formula
from model_core.results import OpTime, TimeBudget
from model_core.spec.base import Evidence
from model_core.spec.cluster import NodeTopology
from model_core.spec.design import Design
from model_core.spec.plan import DTYPE_BYTES
from model_core.spec.workload import Phase
from model_core.units import BYTES, BYTES_PER_S, COUNT, SECONDS, TOKENS_PER_S, Dimension


@formula("tokens_per_expert")
def tokens_per_expert(tokens: Number, visits: Number, slots: Number) -> Number:
    """Tokens that an expert slot processes in one step.

    Formula: tokens · experts that each visits / slots
    Source: DeepSeek-V3 report, 3.4.2: usually at most 256 in decode
    Assumes: slots are equally loaded
    """
    return tokens * visits / slots


@formula("expert_slots")
def expert_slots(routed: Number, more: Number) -> Number:
    """Expert slots of a layer.

    Formula: routed experts + slots for copies of the busiest and for shared experts treated as routed
    Source: DeepSeek-V3 report, 3.4.1: 256 + 32 on 32 GPUs; 3.4.2: 256 + 64 on 320
    """
    return routed + more


@formula("expert_layer_s")
def expert_layer_s(work: Number, exposed: Number) -> Number:
    """Time of one layer with experts, all microbatches.

    Formula: Σ over operations of microbatches · (work + exposed communication)
    Source: DeepSeek-V3 report, 3.4.1 and 3.4.2
    """
    return work + exposed


@formula("dispatch_combine_s")
def dispatch_combine_s(dispatch: Number, combine: Number) -> Number:
    """Time to dispatch and combine the tokens of one microbatch in one layer.

    Formula: T_dispatch + T_combine
    Source: DeepSeek-V3 report, 3.2.2
    """
    return dispatch + combine


@formula("tokens_per_s_per_node")
def tokens_per_s_per_node(throughput: Number, nodes: Number) -> Number:
    """Throughput of one node.

    Formula: throughput / nodes
    Source: DeepSeek open-infra-index, day 6 (figures per H800 node)
    """
    return throughput / nodes


@formula("prefill_units_per_decode_unit")
def prefill_units_per_decode_unit(
    prefill_tokens_per_s: Number, decode_tokens_per_s: Number, input_tokens: Number, output_tokens: Number
) -> Number:
    """Prefill units that keep one decode unit busy.

    Formula: (decode throughput / output tokens) · (input tokens / prefill throughput)
    Source: DeepSeek-V3 report, 3.4: prefill and decode run on units of their own
    Args:
        prefill_tokens_per_s: of one prefill unit.
        decode_tokens_per_s: of one decode unit.
        input_tokens: of a request, those not found in a cache.
        output_tokens: of a request.
    """
    return decode_tokens_per_s / output_tokens * input_tokens / prefill_tokens_per_s


def expert_quantities(design: Design, layout: ExpertLayout, time: TimeBudget | None) -> Iterator[Quantity]:
    """Yield the numbers of a design whose model has experts."""
    if design.model.moe is None:
        return
    yield _tokens_per_expert(design, layout)
    yield _slots(design, layout)
    yield from _reached(design)
    if time is not None:
        yield from _times(layout, time)
        yield from _per_node(design, time)
    if design.workload.phase is Phase.DECODE and isinstance(design.cluster.topology, NodeTopology):
        yield _limit(design, layout, design.cluster.topology)


def _quantity(
    key: str, label: str, value: float, dimension: Dimension, terms: tuple[Term, ...], identifier: str = ""
) -> Quantity:
    card = FORMULAS[identifier or key]
    return Quantity(key, label, float(value), dimension, card, terms, Evidence.MODELLED)


def _tokens_per_expert(design: Design, layout: ExpertLayout) -> Quantity:
    tokens = design.workload.batch * design.workload.step_length
    visits, slots = choice_of(design.model, design.plan).copies, layout.sizes.values["X"]
    terms = (
        Term("tokens", "of all sequences in a step", tokens, COUNT),
        Term("visits", "experts of a token", visits, COUNT),
        Term("slots", "expert slots of a layer", slots, COUNT),
    )
    value = tokens_per_expert(tokens, visits, slots)
    return _quantity("tokens_per_expert", "Tokens per expert", value, COUNT, terms)


def _slots(design: Design, layout: ExpertLayout) -> Quantity:
    routed, slots = layout.sizes.values["Y"], layout.sizes.values["X"]
    terms = (
        Term("routed", "routed experts", routed, COUNT),
        Term("more", "slots for copies and shared experts", slots - routed, COUNT),
        Term("chips", "that share the slots", design.cluster.n_chips, COUNT),
    )
    return _quantity("expert_slots", "Expert slots", expert_slots(routed, slots - routed), COUNT, terms)


def _reached(design: Design) -> Iterator[Quantity]:
    choice, cluster = choice_of(design.model, design.plan), design.cluster
    units = [("chips_per_token", "Chips that a token reaches", cluster.n_chips)]
    if isinstance(cluster.topology, NodeTopology):
        units.append(("nodes_per_token", "Nodes that a token reaches", cluster.topology.n_nodes))
    for key, label, count in units:
        terms = (
            Term("u", "nodes or chips", count, COUNT),
            Term("k", "routed experts of a token", choice.chosen, COUNT),
            Term("experts", "routed experts", choice.experts, COUNT),
            Term("groups", "of experts", choice.groups, COUNT),
            Term("open", "groups that a token may use", choice.open_groups, COUNT),
        )
        yield _quantity(key, label, expected_units(choice, count), COUNT, terms, "distinct_units")


def _times(layout: ExpertLayout, time: TimeBudget) -> Iterator[Quantity]:
    parts = layout.microbatches
    ops = [op for op in time.ops if op.program == "moe_block"]
    work = parts * sum(op.busy_s for op in ops)
    exposed, whole = parts * sum(op.exposed_s for op in ops), parts * sum(op.communication_s for op in ops)
    terms = (
        Term("work", "arithmetic and loading", work, SECONDS),
        Term("T_comm", "all collectives", whole, SECONDS),
        Term("T_exposed", "exposed communication", exposed, SECONDS),
        Term("microbatches", "that share the layer", parts, COUNT),
    )
    yield _quantity("expert_layer_s", "Layer with experts", expert_layer_s(work, exposed), SECONDS, terms)
    dispatch, combine = (_routed(ops, kind) for kind in ("dispatch", "combine"))
    sent = (
        Term("T_dispatch", "tokens to experts, once", dispatch.communication_s, SECONDS),
        Term("T_combine", "results back, once", combine.communication_s, SECONDS),
        Term("bytes", "received per chip in dispatch", dispatch.collective_bytes, BYTES),
        Term("bytes", "received per chip in combine", combine.collective_bytes, BYTES),
    )
    both = dispatch_combine_s(dispatch.communication_s, combine.communication_s)
    yield _quantity("dispatch_combine_s", "Dispatch and combine", both, SECONDS, sent)


def _routed(ops: list[OpTime], kind: str) -> OpTime:
    return next(op for op in ops if op.kind == kind)


def _per_node(design: Design, time: TimeBudget) -> Iterator[Quantity]:
    topology, workload = design.cluster.topology, design.workload
    if not isinstance(topology, NodeTopology) or not time.latency_s:
        return
    throughput = workload.batch * workload.tokens_per_sequence / time.latency_s
    value = tokens_per_s_per_node(throughput, topology.n_nodes)
    terms = (
        Term("throughput", "of the whole cluster", throughput, TOKENS_PER_S),
        Term("nodes", "of the cluster", topology.n_nodes, COUNT),
    )
    yield _quantity("tokens_per_s_per_node", "Throughput per node", value, TOKENS_PER_S, terms)


def _limit(design: Design, layout: ExpertLayout, topology: NodeTopology) -> Quantity:
    model, plan = design.model, design.plan
    moe = model.moe
    layers = model.n_layers - (moe.n_dense_layers if moe else 0)
    tokens = design.workload.batch / design.cluster.n_chips / layout.microbatches
    visits = choice_of(model, plan).copies
    there, back = (token_bytes(DTYPE_BYTES[d]) for d in (plan.dispatch_dtype, plan.combine_dtype))
    pair = ep_limit_s(tokens, visits, model.d_model, there, back, topology.nic_bandwidth)
    terms = (
        Term("pair", "dispatch and combine of one microbatch", pair, SECONDS),
        Term("tokens", "of a chip and microbatch", tokens, COUNT),
        Term("visits", "experts of a token", visits, COUNT),
        Term("bandwidth", "network of a chip", topology.nic_bandwidth, BYTES_PER_S),
        Term("n_layers", "layers with experts", layers, COUNT),
    )
    value = ep_limit_tpot_s(layers, pair) * layout.microbatches / 2
    return _quantity("ep_limit_tpot_s", "Limit of expert parallelism", value, SECONDS, terms, "ep_limit_tpot")
