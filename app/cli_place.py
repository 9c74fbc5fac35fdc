"""The command ``place``: experts and their replicas on GPUs, and what that costs. Needs no Qt."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import presets
from app.cli_report import table_lines
from model_core.diagnostics import Diagnostic, Severity
from model_core.experts.judge import ExpertCosts, Judgement, judge
from model_core.experts.load_files import read_loads
from model_core.experts.loads import MAX_EXPERTS, MAX_LAYERS, ExpertLoads, zipf_loads
from model_core.experts.map_files import read_map
from model_core.experts.migration import Links
from model_core.experts.place import PlacementResult, place
from model_core.experts.placement import Placement, PlacementRequest, Policy
from model_core.experts.routing import RoutingModel, RoutingSpec, fit_routing
from model_core.experts.traffic import token_bytes
from model_core.spec import DTYPE_BYTES, ModelSpec, MoeSpec
from model_core.units import (
    BYTES,
    BYTES_PER_S,
    SECONDS,
    Dimension,
    QuantityError,
    format_quantity,
    parse_quantity,
)

Output = tuple[str | None, tuple[Diagnostic, ...]]

DEFAULT_MODEL: Final = "deepseek-v3"


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    _add_load_options(parser.add_argument_group("loads"))
    _add_request_options(parser.add_argument_group("request"))
    _add_cost_options(parser.add_argument_group("costs"))
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _add_load_options(group: argparse._ArgumentGroup) -> None:
    which = group.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--loads",
        metavar="FILE",
        type=Path,
        help="tokens per layer and expert: JSON with logical_count, CSV, or a .pt file of SGLang's recorder",
    )
    which.add_argument("--zipf", metavar="EXPONENT", type=_number(0, 10), help="make up loads; 0 is even")
    group.add_argument("--layers", type=_whole(1, MAX_LAYERS), default=58, help="of --zipf (default: 58)")
    group.add_argument("--experts", type=_whole(1, MAX_EXPERTS), default=256, help="of --zipf (default: 256)")
    group.add_argument("--seed", type=_whole(0, 2**32 - 1), default=0, help="of --zipf (default: 0)")
    group.add_argument("--noise", type=_number(0, 10), default=0.0, help="of --zipf: spread of log(load)")


def _add_request_options(group: argparse._ArgumentGroup) -> None:
    size = int
    group.add_argument("--slots", metavar="S", type=size, required=True, help="physical experts of a layer")
    group.add_argument("--gpus", metavar="P", type=size, required=True)
    group.add_argument("--nodes", metavar="N", type=size, default=1, help="default: 1")
    group.add_argument("--groups", metavar="G", type=size, default=1, help="groups of experts (default: 1)")
    group.add_argument(
        "--policy", choices=[*Policy], default=Policy.HIERARCHICAL, help="default: hierarchical"
    )
    group.add_argument("--keep-groups", action="store_true", help="keep groups on nodes under any policy")
    group.add_argument("--previous", metavar="MAP", type=Path, help="the placement that is loaded")
    group.add_argument("--budget", metavar="BYTES", type=_quantity(BYTES), help="most bytes to migrate")
    group.add_argument(
        "--active", metavar="A", type=size, help="experts that a GPU runs in a step, for dynamic"
    )
    group.add_argument(
        "--thorough", action="store_true", help="choose what runs by integer programs, for dynamic"
    )
    group.add_argument(
        "--on-the-fly", action="store_true", help="split loads over replicas in the best way, not evenly"
    )


def _add_cost_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model", choices=_moe_models(), default=DEFAULT_MODEL, help=f"default: {DEFAULT_MODEL}"
    )
    group.add_argument("--weight-dtype", choices=[*DTYPE_BYTES], default="fp8", help="default: fp8")
    group.add_argument(
        "--top-k", type=_whole(1, MAX_EXPERTS), help="experts of a token; default: the model's"
    )
    group.add_argument(
        "--group-limit", type=_whole(1, MAX_EXPERTS), help="groups of a token at most; default: the model's"
    )
    rate = _quantity(BYTES_PER_S)
    links = Links()
    group.add_argument("--network-bandwidth", metavar="RATE", type=rate, default=links.network_bytes_per_s)
    group.add_argument("--nvlink-bandwidth", metavar="RATE", type=rate, default=links.nvlink_bytes_per_s)


def _moe_models() -> list[str]:
    return [name for name in presets.names("models") if presets.load_model(name).moe is not None]


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.strip().isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most:,}")
        return int(text)

    return read


def _number(least: float, most: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least:g} to {most:g}")
        return value

    return read


def _quantity(dimension: Dimension) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = parse_quantity(text, dimension)
        except QuantityError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if value < 0 or (value == 0 and dimension is BYTES_PER_S):
            raise argparse.ArgumentTypeError(f"{text!r} is too small")
        return value

    return read


def place_output(options: argparse.Namespace) -> Output:
    """Return the text that the command prints, and what there is to say; no text where it cannot be done."""
    loads, found = _loads(options)
    if loads is None:
        return None, found
    request = _request(options)
    previous, problems = _previous(options, loads, request)
    if problems:
        return None, problems
    costs = _costs(options)
    result = place(loads, request, previous, costs.expert_bytes)
    if result.placement is None or any(d.severity is Severity.ERROR for d in result.diagnostics):
        return None, result.diagnostics
    routing, notes = _routing(options, loads)
    verdict = judge(result.placement, loads, request, costs, routing, previous, on_the_fly=options.on_the_fly)
    found = (*result.diagnostics, *notes)
    if options.json:
        return _json(loads, result, verdict, found), found
    return "\n".join(_lines(loads, result, verdict)) + "\n", found


def _loads(options: argparse.Namespace) -> tuple[ExpertLoads | None, tuple[Diagnostic, ...]]:
    if options.loads is not None:
        return read_loads(options.loads)
    size = {"n_layers": options.layers, "n_experts": options.experts}
    return zipf_loads(options.zipf, **size, seed=options.seed, noise=options.noise), ()


def _request(options: argparse.Namespace) -> PlacementRequest:
    return PlacementRequest(
        options.slots,
        options.gpus,
        options.nodes,
        options.groups,
        Policy(options.policy),
        options.keep_groups,
        options.budget,
        options.active,
    )


def _previous(
    options: argparse.Namespace, loads: ExpertLoads, request: PlacementRequest
) -> tuple[Placement | None, tuple[Diagnostic, ...]]:
    if options.previous is None or min(request.n_gpus, request.n_nodes) < 1:
        return None, ()
    previous, found = read_map(
        options.previous, n_experts=loads.n_experts, n_gpus=request.n_gpus, n_nodes=request.n_nodes
    )
    place = str(options.previous)
    return previous, tuple(d if place in d.message else replace(d, path=place) for d in found)


def _model(options: argparse.Namespace) -> tuple[ModelSpec, MoeSpec]:
    model = presets.load_model(options.model)
    if model.moe is None:
        raise ValueError(f"{options.model} has no experts")
    return model, model.moe


def _costs(options: argparse.Namespace) -> ExpertCosts:
    model, moe = _model(options)
    matrices = 3 if model.gated_ffn else 2
    expert_bytes = float(matrices * model.d_model * moe.d_ff_expert * DTYPE_BYTES[options.weight_dtype])
    links = Links(options.nvlink_bandwidth, options.network_bandwidth)
    return ExpertCosts(expert_bytes, token_bytes(model.d_model), links)


def _routing(
    options: argparse.Namespace, loads: ExpertLoads
) -> tuple[RoutingModel | None, tuple[Diagnostic, ...]]:
    """Fit the routing to the layers with load; none where a gate cannot choose so many experts."""
    _, moe = _model(options)
    n_per_token = options.top_k or moe.n_experts_per_token
    limit = min(options.group_limit or moe.n_groups_per_token, options.groups)
    if options.groups == 1 or n_per_token > limit * (loads.n_experts // options.groups):
        limit = options.groups
    if not loads.has_load.any() or n_per_token >= loads.n_experts:
        return None, ()
    spec = RoutingSpec(loads.n_experts, n_per_token, options.groups, limit)
    routing = fit_routing(loads.shares[loads.has_load], spec)
    if not routing.clipped:
        return routing, ()
    values = {"count": routing.clipped, "k": n_per_token}
    return routing, (Diagnostic("place_share_impossible", "loads", values),)


def _json(
    loads: ExpertLoads, result: PlacementResult, verdict: Judgement, found: tuple[Diagnostic, ...]
) -> str:
    """Write one entry per line: indented number by number the maps would be 30,000 lines."""
    request = result.request
    document: dict[str, Any] = {
        "loads": loads.name,
        "evidence": str(loads.evidence),
        "policy": str(request.policy),
        "slots": request.n_slots,
        "gpus": request.n_gpus,
        "nodes": request.n_nodes,
        "groups": request.n_groups,
        **verdict.to_json(),
        "seconds": result.seconds,
        "diagnostics": [diagnostic.to_json() for diagnostic in found],
    }
    entries = (
        f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in document.items()
    )
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _lines(loads: ExpertLoads, result: PlacementResult, verdict: Judgement) -> Iterator[str]:
    request = result.request
    kept = "groups kept on nodes" if request.groups_on_nodes else "over all GPUs"
    yield f"{loads.name} ({loads.evidence}): {int(verdict.has_load.sum())} layers with load, {loads.n_experts} experts"
    yield (
        f"{request.n_slots} slots, {request.slots_per_gpu} on each of {request.n_gpus} GPUs, "
        f"{request.n_nodes} nodes; {request.policy}, {kept}"
    )
    yield ""
    yield from table_lines(list(_summary(result, verdict)), "<><")
    yield ""
    yield from table_lines([_HEAD, *_rows(loads, verdict)], ">>>>>>")


def _summary(result: PlacementResult, verdict: Judgement) -> Iterator[tuple[str, str, str]]:
    worst = int(verdict.max_over_mean.argmax())
    yield "max / mean GPU load", f"{verdict.mean_balance:.4f}", f"layer {worst}: {verdict.worst_balance:.4f}"
    gap = verdict.mean_balance / verdict.mean_lower_bound - 1
    yield "lower bound", f"{verdict.mean_lower_bound:.4f}", f"what is reached is {gap:.2%} above"
    yield "duplicates", str(verdict.duplicates), ""
    if verdict.traffic is not None:
        traffic = verdict.traffic
        sent = format_quantity(float(traffic.network_bytes_per_token.mean()), BYTES)
        remote = float(traffic.remote_nodes_per_token.mean())
        yield "nodes per token", f"{traffic.nodes_per_token.mean():.3f}", f"{remote:.3f} of them remote"
        yield "network per token and layer", sent, "dispatch and combine"
    redundant = format_quantity(verdict.redundant_bytes_per_gpu, BYTES)
    yield "redundant experts per GPU", redundant, f"of {format_quantity(verdict.slot_bytes_per_gpu, BYTES)}"
    if verdict.migration is not None:
        moved = verdict.migration
        sent = f"{int(moved.received.sum()):,} experts in {format_quantity(moved.seconds, SECONDS)}"
        yield "migration", format_quantity(moved.bytes, BYTES), sent
    yield "found in", format_quantity(result.seconds, SECONDS), ""


_HEAD: Final = ("layer", "hottest expert / mean", "max / mean", "bound", "gap", "nodes per token")


def _rows(loads: ExpertLoads, verdict: Judgement) -> Iterator[tuple[str, ...]]:
    hottest = loads.hottest_over_mean
    nodes = iter(() if verdict.traffic is None else verdict.traffic.nodes_per_token)
    for layer in np.flatnonzero(verdict.has_load):
        reached, bound = verdict.max_over_mean[layer], verdict.lower_bound[layer]
        yield (
            str(layer),
            f"{hottest[layer]:.2f}",
            f"{reached:.4f}",
            f"{bound:.4f}",
            f"{reached / bound - 1:.2%}",
            f"{next(nodes, np.nan):.3f}",
        )
