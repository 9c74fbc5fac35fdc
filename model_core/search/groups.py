"""Sorts the designs of a space into groups that share their programs and stacks each group's parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from model_core.partition.structure import Structure
from model_core.search.arrays import Arrays, Rows, stack
from model_core.search.axes import BATCH
from model_core.search.classify import ORDER, Classifier, Configuration, relabelled
from model_core.search.readers import Stacked
from model_core.spec.workload import Phase, WorkloadSpec

COMPONENTS: Final = (*ORDER, "mesh", "rates")
MOST_ROWS: Final = 1 << 18
"""Rows that are sorted together; bounds the memory of a search, however large its space."""


@dataclass(frozen=True, slots=True)
class Group:
    """Designs with common programs; a row is a configuration with one value of the batch.

    ``parts`` holds for each component its stacked variants and, per row, which of them it is. ``offsets``
    is the number of the first design of each row.
    """

    structure: Structure
    phase: Phase
    looped: bool
    calibrated: bool
    parts: dict[str, tuple[Arrays, Rows]]
    batches: Rows | None
    valid: Rows
    offsets: Rows
    dimensions: int

    def stacked(self, rows: slice, window: tuple[slice, ...]) -> Stacked:
        """Return some rows over a window of the numeric axes."""
        found = {name: tree.select(which[rows], window) for name, (tree, which) in self.parts.items()}
        workload: WorkloadSpec = found["workload"]
        if self.batches is not None:
            batches = self._column(self.batches[rows]).astype(np.float64)
            workload = workload.model_copy(update={"batch": batches})
        return Stacked(
            model=found["model"],
            cluster=found["cluster"],
            workload=workload,
            plan=found["plan"],
            parameters=found["parameters"],
            mesh=found["mesh"],
            rates=found["rates"],
            looped=self.looped,
            calibrated=self.calibrated,
            valid=self._column(self.valid[rows]),
        )

    def _column(self, values: Rows) -> Rows:
        return values.reshape(-1, *(1,) * (self.dimensions - 1))


@dataclass(frozen=True, slots=True)
class Loose:
    """Designs that are not evaluated as arrays; ``offsets`` as in `Group`.

    ``is_refused``: they have a part that is none; otherwise each has to be evaluated by itself.
    """

    offsets: Rows
    is_refused: bool


def groups_of(classifier: Classifier) -> Iterator[Group | Loose]:
    """Yield the groups of a space, block by block of configurations.

    Raises:
        SearchCancelledError: it was cancelled.
    """
    most = max(1, MOST_ROWS // classifier.n_batches)
    block: list[Configuration] = []
    loose: dict[bool, list[int]] = {True: [], False: []}
    for found in chain(classifier.configurations(), (None,)):
        if isinstance(found, Configuration):
            block.append(found)
        elif found is not None:
            loose[found.is_refused].append(found.offset)
        if len(block) >= most or (found is None and block):
            yield from _sorted_block(classifier, block)
            block = []
        for is_refused, offsets in loose.items():
            if len(offsets) >= most or (found is None and offsets):
                yield Loose(_with_batches(classifier, np.array(offsets)).reshape(-1), is_refused)
                offsets.clear()


def _batch_steps(classifier: Classifier) -> Rows:
    stride = 0 if classifier.batches is None else classifier.space.strides[BATCH]
    return np.arange(classifier.n_batches) * stride


def _with_batches(classifier: Classifier, offsets: Rows) -> Rows:
    return np.asarray(offsets[:, None] + _batch_steps(classifier))


def _sorted_block(classifier: Classifier, block: Sequence[Configuration]) -> Iterator[Group]:
    structures = np.stack([found.structures for found in block])
    alike = np.array([found.alike for found in block])
    codes = (alike[:, None] * len(classifier.structures.items) + structures).reshape(-1)
    kinds, which = relabelled(codes)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(kinds)))
    offsets = _with_batches(classifier, np.array([found.offset for found in block])).reshape(-1)
    valid = np.array([found.valid for found in block])
    components = np.array([found.components for found in block])
    for kind, rows in zip(kinds, np.split(order, ends[:-1]), strict=True):
        shared, structure = divmod(int(kind), len(classifier.structures.items))
        phase, looped, calibrated = classifier.alike.items[shared]
        configurations, batches = np.divmod(rows, classifier.n_batches)
        yield Group(
            structure=classifier.structures.items[structure],
            phase=phase,
            looped=looped,
            calibrated=calibrated,
            parts=_parts(classifier, components, configurations),
            batches=None if classifier.batches is None else classifier.batches[batches],
            valid=valid[configurations],
            offsets=offsets[rows],
            dimensions=classifier.numeric.dimensions,
        )


def _parts(classifier: Classifier, components: Rows, configurations: Rows) -> dict[str, tuple[Arrays, Rows]]:
    """Stack the variants that a group has of each component."""
    # Rows are in the order of the configurations, so that each is one run.
    starts = np.flatnonzero(np.diff(configurations, prepend=-1))
    run = np.cumsum(np.diff(configurations, prepend=configurations[0]) != 0)
    present = components[configurations[starts]]
    parts: dict[str, tuple[Arrays, Rows]] = {}
    for column, name in enumerate(COMPONENTS):
        used, where = np.unique(present[:, column], return_inverse=True)
        rows = where.reshape(-1)[run]
        parts[name] = (_stacked(classifier, name, used), rows)
        if name == "model":
            parts["parameters"] = (_stacked(classifier, "parameters", used), rows)
    return parts


def _stacked(classifier: Classifier, name: str, used: Rows) -> Arrays:
    """Stack some variants of a component; groups often have the same ones."""
    key = (name, used.tobytes())
    if key not in classifier.stacks:
        trees = [classifier.components[name][number] for number in used]
        stacked = stack(trees, classifier.numeric.dimensions, whole=name == "mesh")
        classifier.stacks[key] = Arrays.of(stacked)
    return classifier.stacks[key]
