"""A layer program as a graph on a grid: columns by depth, lanes by branch, cut into bands that fit a width.

Pure data, no Qt. A band is a part of the drawing that is complete in itself: a tensor made in another band
comes in through a port that names its step, so that no arrow ever leaves a band.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from model_core.partition.program import Einsum, LayerProgram, Local, LocalKind, Op, Role, Tensor


class CellKind(StrEnum):
    """What occupies a place of the grid."""

    STEP = "step"
    PORT = "port"
    WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Cell:
    """One place: a step with the tensor that it makes, a port, or a stored weight that is communicated.

    ``operand`` is a second input written inside the step; ``inputs`` are the tensors that arrive by arrow.
    """

    kind: CellKind
    tensor: Tensor
    index: int = -1
    op: Op | None = None
    operand: Tensor | None = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of the program: its cells by column."""

    title: str
    columns: tuple[tuple[Cell, ...], ...]


Place = tuple[int, int]
# The title of the steps before the first section of a program.
BEFORE_SECTIONS = ""


@dataclass(slots=True)
class Band:
    """Cells by (column, lane) and arrows between them. Column 0 holds the ports of the first steps."""

    title: str
    first: bool
    cells: dict[Place, Cell] = field(default_factory=dict)
    edges: list[tuple[Place, Place]] = field(default_factory=list)

    @property
    def n_columns(self) -> int:
        """Columns, the port column included."""
        return max((column for column, _ in self.cells), default=0) + 1

    @property
    def n_lanes(self) -> int:
        """Lanes."""
        return max((lane for _, lane in self.cells), default=0) + 1

    def column(self, index: int) -> Iterator[Cell]:
        """Yield the cells of a column."""
        for (column, _), cell in self.cells.items():
            if column == index:
                yield cell


def producers(program: LayerProgram) -> dict[str, int]:
    """Map the name of every tensor that is made to the index of its step."""
    return {op.output.name: index for index, op in enumerate(program.ops)}


def sections(program: LayerProgram) -> tuple[Section, ...]:
    """Split a program at its sections and give every cell its column."""
    starts = [(title, index) for title, index in program.sections if index < len(program.ops)]
    if not starts:
        starts = [(program.name.partition(",")[0].capitalize(), 0)]
    elif starts[0][1] > 0:
        starts.insert(0, (BEFORE_SECTIONS, 0))
    ends = [index for _, index in starts[1:]] + [len(program.ops)]
    return tuple(
        Section(title, _columns(program, start, end))
        for (title, start), end in zip(starts, ends, strict=True)
        if end > start
    )


def _columns(program: LayerProgram, start: int, end: int) -> tuple[tuple[Cell, ...], ...]:
    cells = _cells(program, start, end)
    made = {cell.tensor.name: position for position, cell in enumerate(cells)}
    before = [[made[name] for name in cell.inputs if name in made] for cell in cells]
    depth = [0] * len(cells)
    for position, sources in enumerate(before):
        depth[position] = max((depth[source] + 1 for source in sources), default=0)
    _delay_weights(cells, before, depth)
    width = max(depth) + 1
    return tuple(
        tuple(cell for cell, at in zip(cells, depth, strict=True) if at == column) for column in range(width)
    )


def _delay_weights(cells: list[Cell], before: list[list[int]], depth: list[int]) -> None:
    """Move chains that begin at a stored weight as far right as their use allows."""
    only_weight = [cell.kind is CellKind.WEIGHT for cell in cells]
    for position, sources in enumerate(before):
        if sources and len(sources) == len(cells[position].inputs):
            only_weight[position] = all(only_weight[source] for source in sources)
    for position in reversed(range(len(cells))):
        uses = [at for at, sources in enumerate(before) if position in sources]
        if only_weight[position] and uses:
            depth[position] = min(depth[at] for at in uses) - 1


def _cells(program: LayerProgram, start: int, end: int) -> list[Cell]:
    made = producers(program)
    stored = {t.name for t in (*program.weights, *program.caches) if t.name not in made}
    cells: list[Cell] = []
    shown: set[str] = set()
    for index in range(start, end):
        op = program.ops[index]
        operand = next((t for t in op.inputs if t.name in stored and t.role is Role.WEIGHT), None)
        if operand is not None and len(op.inputs) == 1 and not isinstance(op, Local):
            if operand.name not in shown:
                cells.append(Cell(CellKind.WEIGHT, operand))
                shown.add(operand.name)
            operand = None
        arriving = tuple(t.name for t in op.inputs if t is not operand and not _same_as_output(op, t, stored))
        cells.append(Cell(CellKind.STEP, op.output, index, op, operand, arriving))
    return cells


def _same_as_output(op: Op, tensor: Tensor, stored: set[str]) -> bool:
    """Whether an input is the cache that the step appends to: the step's own tensor shows it."""
    return isinstance(op, Local) and op.kind is LocalKind.CACHE_APPEND and tensor.name in stored


def band(program: LayerProgram, title: str, first: bool, columns: tuple[tuple[Cell, ...], ...]) -> Band:
    """Arrange some columns of a section: ports, lanes and arrows."""
    tensors = {t.name: t for op in program.ops for t in (*op.inputs, op.output)}
    inside = {cell.tensor.name for column in columns for cell in column}
    depth: dict[str, int] = {}
    cells: dict[str, Cell] = {}
    order: list[str] = []
    for number, column in enumerate(columns, 1):
        for cell in column:
            name = cell.tensor.name
            placed = _with_operand(cell, inside, tensors)
            cells[name], depth[name] = placed, number
            order.append(name)
    for name in list(order):
        for source in cells[name].inputs:
            if source not in cells:
                cells[source] = Cell(CellKind.PORT, tensors[source])
                order.append(source)
            if cells[source].kind is CellKind.PORT:
                depth[source] = min(depth.get(source, depth[name]), depth[name] - 1)
    lanes = _lanes(order, cells, depth)
    result = Band(title, first)
    places = {name: (depth[name], lanes[name]) for name in order}
    result.cells = {places[name]: cells[name] for name in sorted(order, key=lambda n: places[n])}
    result.edges = [(places[source], places[name]) for name in order for source in cells[name].inputs]
    return result


def _with_operand(cell: Cell, inside: set[str], tensors: Mapping[str, Tensor]) -> Cell:
    """Write one input from elsewhere into the step, where another input arrives by arrow."""
    outside = [name for name in cell.inputs if name not in inside]
    if cell.kind is not CellKind.STEP or cell.operand is not None or len(cell.inputs) < 2 or not outside:
        return cell
    name = outside[-1]
    rest = tuple(other for other in cell.inputs if other != name)
    return Cell(cell.kind, cell.tensor, cell.index, cell.op, tensors[name], rest) if rest else cell


def _lanes(order: list[str], cells: Mapping[str, Cell], depth: Mapping[str, int]) -> dict[str, int]:
    """Give every chain of main inputs a lane of its own where it needs one, the first chain the first."""
    follower: dict[str, str] = {}
    by_step = sorted(order, key=lambda name: (cells[name].index < 0, cells[name].index, depth[name]))
    led: set[str] = set()
    for name in by_step:
        for source in sorted(cells[name].inputs, key=lambda source: -depth[source]):
            if source not in follower:
                follower[source] = name
                led.add(name)
                break
    taken: set[Place] = set()
    lanes: dict[str, int] = {}
    heads = [name for name in order if name not in led]
    for head in sorted(heads, key=lambda name: (_first_step(name, cells, follower), depth[name])):
        chain = [head]
        while chain[-1] in follower:
            chain.append(follower[chain[-1]])
        span = range(depth[chain[0]], depth[chain[-1]] + 1)
        lane = 0
        while any((column, lane) in taken for column in span):
            lane += 1
        taken |= {(column, lane) for column in span}
        lanes |= dict.fromkeys(chain, lane)
    return lanes


def _first_step(name: str, cells: Mapping[str, Cell], follower: Mapping[str, str]) -> int:
    while cells[name].index < 0 and name in follower:
        name = follower[name]
    return cells[name].index


def is_product(cell: Cell) -> bool:
    """Whether a cell is an einsum."""
    return isinstance(cell.op, Einsum)
