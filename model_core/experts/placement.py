"""Where experts and their replicas sit: the description that every judge, drawing and export reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model_core.experts.arrays import Ints
from model_core.experts.packing import count_twins


class Policy(StrEnum):
    """How a placement is found."""

    CONTIGUOUS = "contiguous"
    HIERARCHICAL = "hierarchical"
    GLOBAL = "global"
    EXACT = "exact"
    INCREMENTAL = "incremental"
    DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """What is asked for: slots on GPUs on nodes, and whether groups of experts stay on one node.

    ``n_groups`` are the groups that routing is limited by (8 in DeepSeek-V3). Only the hierarchical policy
    keeps the experts of a group on one node unless ``keep_groups`` asks every policy to.
    ``active_per_gpu`` is for the dynamic policy: how many hosted experts a GPU runs in one step.
    """

    n_slots: int
    n_gpus: int
    n_nodes: int = 1
    n_groups: int = 1
    policy: Policy = Policy.HIERARCHICAL
    keep_groups: bool = False
    migration_budget_bytes: float | None = None
    active_per_gpu: int | None = None

    @property
    def slots_per_gpu(self) -> int:
        """Slots of one GPU."""
        return self.n_slots // self.n_gpus

    @property
    def groups_on_nodes(self) -> bool:
        """Whether the experts of a group stay on one node of several."""
        wanted = self.keep_groups or self.policy is Policy.HIERARCHICAL
        return wanted and self.n_nodes > 1 and self.groups_divide

    @property
    def groups_divide(self) -> bool:
        """Whether the groups can be dealt evenly to the nodes."""
        return self.n_groups % self.n_nodes == 0


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Per layer the logical expert in each physical slot.

    Slots are numbered GPU by GPU, GPUs node by node: slot ``s`` is on GPU ``s // slots_per_gpu``, that GPU
    on node ``gpu // gpus_per_node``.
    """

    physical_to_logical: Ints
    n_experts: int
    n_gpus: int
    n_nodes: int

    def __post_init__(self) -> None:
        self.physical_to_logical.flags.writeable = False

    @classmethod
    def of(cls, slots: ArrayLike, *, n_experts: int, n_gpus: int, n_nodes: int = 1) -> Self:
        """Make a placement of layers x slots, or layers x GPUs x slots per GPU."""
        array = np.array(slots, np.intp)
        return cls(array.reshape(len(array), -1), n_experts, n_gpus, n_nodes)

    @property
    def n_layers(self) -> int:
        """Layers."""
        return len(self.physical_to_logical)

    @property
    def n_slots(self) -> int:
        """Physical slots of a layer."""
        return int(self.physical_to_logical.shape[1])

    @property
    def slots_per_gpu(self) -> int:
        """Slots of one GPU in one layer."""
        return self.n_slots // self.n_gpus

    @property
    def by_gpu(self) -> Ints:
        """Layers x GPUs x slots per GPU."""
        return self.physical_to_logical.reshape(self.n_layers, self.n_gpus, -1)

    @property
    def by_node(self) -> Ints:
        """Layers x nodes x slots per node."""
        return self.physical_to_logical.reshape(self.n_layers, self.n_nodes, -1)

    @property
    def replicas(self) -> Ints:
        """Layers x experts: replicas of each expert."""
        return self._counts(self.physical_to_logical[:, None])[:, 0]

    @property
    def duplicates(self) -> int:
        """Slots, over all layers, whose expert is on the same GPU already: they balance nothing."""
        return int(count_twins(self.by_gpu).sum())

    @property
    def hosted(self) -> Ints:
        """Layers x GPUs x experts: replicas of each expert on each GPU."""
        return self._counts(self.by_gpu)

    @property
    def hosted_by_node(self) -> Ints:
        """Layers x nodes x experts: replicas of each expert on each node."""
        return self._counts(self.by_node)

    def _counts(self, slots: Ints) -> Ints:
        n_rows = slots.shape[0] * slots.shape[1]
        cells = slots.reshape(n_rows, -1) + self.n_experts * np.arange(n_rows)[:, None]
        flat = np.bincount(cells.ravel(), minlength=n_rows * self.n_experts)
        return flat.reshape(*slots.shape[:2], self.n_experts)

    def of_layers(self, layers: NDArray[Any]) -> Self:
        """Return the placement of some of the layers, chosen by a mask or by numbers."""
        return replace(self, physical_to_logical=self.physical_to_logical[layers])

    def to_json(self) -> dict[str, Any]:
        """Return the map in the words of the command line."""
        return {
            "physical_to_logical": self.physical_to_logical.tolist(),
            "replicas": self.replicas.tolist(),
        }
