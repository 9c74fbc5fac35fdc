"""Read preset files: JSON in which every value has its unit as text, its source and its evidence.

A file is parsed when it is first asked for and kept; listing names reads folder entries only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from model_core.spec.base import FieldSource
from model_core.spec.cluster import ChipSpec, ClusterSpec
from model_core.spec.design import Design
from model_core.spec.model import ModelSpec
from model_core.spec.workload import WorkloadSpec
from presets.calibrations import calibrations_of

Kind = Literal["models", "chips", "clusters", "workloads", "designs"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_FOLDER = Path(__file__).parent


class UnknownPresetError(LookupError):
    """No preset has the name; ``nearest`` holds the names most like it."""

    def __init__(self, kind: Kind, name: str) -> None:
        self.kind = kind
        self.name = name
        self.nearest = nearest(name, names(kind))
        super().__init__(f"no preset in {kind} is named {name!r}; nearest: {', '.join(self.nearest)}")


@cache
def names(kind: Kind) -> tuple[str, ...]:
    """List the presets of a kind, numbers inside names in numeric order."""
    return tuple(sorted((path.stem for path in (_FOLDER / kind).glob("*.json")), key=_natural))


def nearest(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """List the names most like a mistyped one: those that begin with it, then those spelled alike."""
    known = tuple(known)
    low = name.lower().strip()
    beginning = [candidate for candidate in known if low and candidate.startswith(low)]
    alike = get_close_matches(low, known, count, cutoff=0.4)
    return tuple(dict.fromkeys([*beginning, *alike]))[:count]


def title(kind: Kind, name: str) -> str:
    """Return the short human label of a preset.

    Raises:
        UnknownPresetError: no preset has the name.
    """
    return str(_file(kind, name)["title"])


@cache
def load_model(name: str) -> ModelSpec:
    """Load a model.

    Raises:
        UnknownPresetError: no preset has the name.
    """
    return ModelSpec.model_validate(_sourced("models", name))


@cache
def load_chip(name: str) -> ChipSpec:
    """Load a chip with the calibrations that were measured on it.

    Raises:
        UnknownPresetError: no preset has the name.
    """
    content = _sourced("chips", name)
    calibrations = calibrations_of(content["name"])
    return ChipSpec.model_validate({**content, **({"calibrations": calibrations} if calibrations else {})})


@cache
def load_cluster(name: str) -> ClusterSpec:
    """Load a cluster with the chip that it names; sources have paths such as ``topology.shape``.

    Raises:
        UnknownPresetError: no preset has the name.
    """
    chip = load_chip(_file("clusters", name)["chip"])
    return ClusterSpec.model_validate({**_sourced("clusters", name), "chip": chip})


@cache
def load_workload(name: str) -> WorkloadSpec:
    """Load a workload.

    Raises:
        UnknownPresetError: no preset has the name.
    """
    return WorkloadSpec.model_validate({"name": title("workloads", name), **_values("workloads", name)})


@cache
def load_design(name: str) -> Design:
    """Load a design with the model, cluster and workload that it names.

    Raises:
        UnknownPresetError: no preset has the name.
    """
    data = _file("designs", name)
    return Design.model_validate(
        {
            "name": name,
            "notes": data["notes"],
            "model": load_model(data["model"]),
            "cluster": load_cluster(data["cluster"]),
            "workload": load_workload(data["workload"]),
            **_values("designs", name),
        }
    )


@cache
def _file(kind: Kind, name: str) -> dict[str, Any]:
    if name not in names(kind):
        raise UnknownPresetError(kind, name)
    content: dict[str, Any] = json.loads((_FOLDER / kind / f"{name}.json").read_text(encoding="utf-8"))
    return content


def _sourced(kind: Kind, name: str) -> dict[str, Any]:
    fields = _file(kind, name)["fields"]
    sources = tuple(
        FieldSource(field=path, source=entry["source"], evidence=entry["evidence"])
        for path, entry in fields.items()
    )
    return {"name": title(kind, name), "sources": sources, **_values(kind, name)}


def _values(kind: Kind, name: str) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, entry in _file(kind, name)["fields"].items():
        *parents, last = path.split(".")
        place = nested
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = entry["value"]
    return nested


def _natural(name: str) -> list[tuple[int, str]]:
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
