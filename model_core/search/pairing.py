"""Pairs a prefill design with a decode design: servers and chips for a rate of requests (Pope 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from model_core.arithmetic import Number
from model_core.diagnostics import Diagnostic
from model_core.evaluate import evaluate
from model_core.quantities import formula
from model_core.results import Evaluation
from model_core.spec.design import Design
from model_core.spec.workload import Phase
from model_core.units import COUNT, format_quantity


@formula("requests_per_s")
def requests_per_s(batch: Number, latency: Number) -> Number:
    """Requests that one server completes in a second.

    Formula: B / T; T: latency of the phase
    Source: Pope 4.4
    Args:
        batch: B, sequences served together.
        latency: T, seconds.
    Assumes: the next batch is ready when one is done; batches are full
    """
    return batch / latency


@formula("servers_needed")
def servers_needed(rate: Number, per_server: Number) -> Number:
    """Servers that a rate of requests needs, before rounding up.

    Formula: rate / requests of one server
    Source: Pope 4.4: a batch-1 prefill server feeds a batch-64 decode server
    """
    return rate / per_server


@dataclass(frozen=True, slots=True)
class Side:
    """The servers of one phase.

    per_server: requests a second that one can serve. needed: servers for the rate, not rounded. servers:
    whole servers. utilisation: share of their time that they work.
    """

    design: Design
    latency_s: float
    step_s: float
    per_server: float
    needed: float
    servers: int
    chips: int
    utilisation: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Prefill and decode servers for a rate of requests.

    ttft_s: from the start of a request's prefill to its first token. tpot_s: per further token.
    request_s: the whole request. handover_bytes: KV cache that goes from a prefill to a decode server for
    one request. prefill_per_decode: prefill servers that keep one decode server busy.
    cost_chip_s_per_request: chips times time. Waiting and handing over are not counted.
    """

    prefill: Side
    decode: Side
    requests_per_s: float
    ttft_s: float
    tpot_s: float
    request_s: float
    handover_bytes: float
    prefill_per_decode: float
    chips: int
    cost_chip_s_per_request: float


def pair(prefill: Design, decode: Design, rate: float) -> tuple[Pair | None, tuple[Diagnostic, ...]]:
    """Size the servers of both phases for a rate of requests.

    Formula: servers = ⌈rate · T / B⌉ in each phase; TTFT = T of the prefill; TPOT = step of the decode
    Source: Pope 4.4 (low latency combines a batch-1 prefill with a batch-32-to-64 decode)
    Args:
        prefill: design of one prefill server.
        decode: design of one decode server; its input and cache are what the prefill leaves.
        rate: requests a second.

    Returns:
        The pair; or what keeps the two designs from working together.
    """
    problems = _mismatches(prefill, decode)
    first, second = evaluate(prefill), evaluate(decode)
    errors = [d for found in (first, second) for d in found.diagnostics if d.severity == "error"]
    problems += [d for d in errors if not problems]
    if problems or first.time is None or second.time is None:
        unknown = [d for found in (first, second) for d in found.diagnostics if d.code.endswith("modelled")]
        return None, tuple(problems or unknown)
    before, after = _side(first, rate), _side(second, rate)
    per_token = second.value("kv_bytes_per_token") or 0.0
    context = decode.workload.cached_length + decode.workload.input_length
    chips = before.chips + after.chips
    return (
        Pair(
            prefill=before,
            decode=after,
            requests_per_s=rate,
            ttft_s=before.latency_s,
            tpot_s=after.step_s,
            request_s=before.latency_s + after.latency_s,
            handover_bytes=per_token * context,
            prefill_per_decode=after.per_server / before.per_server,
            chips=chips,
            cost_chip_s_per_request=chips / rate,
        ),
        (),
    )


def _side(found: Evaluation, rate: float) -> Side:
    assert found.time is not None
    design = found.design
    per_server = float(requests_per_s(design.workload.batch, found.time.latency_s))
    needed = float(servers_needed(rate, per_server))
    # A rate that is a whole number of servers must not need one more for a rounding error.
    servers = max(1, ceil(needed * (1 - 1e-12)))
    return Side(
        design,
        found.time.latency_s,
        found.time.step_s,
        per_server,
        needed,
        servers,
        servers * design.cluster.n_chips,
        needed / servers,
    )


def _mismatches(prefill: Design, decode: Design) -> list[Diagnostic]:
    found = [
        Diagnostic("pair_wrong_phase", "workload.phase", {"phase": str(phase)})
        for design, phase in ((prefill, Phase.PREFILL), (decode, Phase.DECODE))
        if design.workload.phase is not phase
    ]
    if found:
        return found
    held, used = _tokens_before(decode, prefill)
    pairs = (
        ("model", "model", prefill.model.name, decode.model.name, prefill.model == decode.model),
        ("KV cache format", "plan.kv_dtype", prefill.plan.kv_dtype, decode.plan.kv_dtype, None),
        ("context", "workload.input_length", held, used, None),
    )
    for what, path, first, second, same in pairs:
        if not (first == second if same is None else same):
            values = {"what": what, "first": str(first), "second": str(second)}
            found.append(Diagnostic("pair_mismatch", path, values))
    return found


def _tokens_before(decode: Design, prefill: Design) -> tuple[str, str]:
    """Return the tokens that the prefill leaves in the cache and those that the decode starts from."""
    counts = (design.workload.cached_length + design.workload.input_length for design in (prefill, decode))
    held, used = (format_quantity(count, COUNT) for count in counts)
    return held, used
