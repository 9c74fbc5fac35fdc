"""Cells as an image: every pixel is looked up, so that the time taken hardly depends on how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

from app.plots.gantt.cells import FIRST_CELL, Cells, Floats, Ints, Overview
from app.plots.gantt.inks import IDLE, border_color, inks_of, label_role
from app.plots.paint import color
from app.plots.scene import Ink
from app.theme import Role, Theme

Pixels = NDArray[np.uint32]
_GAP, _TOP_RIM, _UPPER, _UPPER_BAR, _LOWER, _LOWER_BAR, _RIM = range(7)
_BANDS: Final = 7
HALVED_ROW: Final = 19
"""Pixels that a row needs for texts in both halves of a pair."""
EDGE_WIDTH: Final = 5.0
"""Pixels that a cell needs to get an edge."""
NARROW: Final = 2.5
"""Mean pixels of a cell below which colours are blended."""
FULL_ROW: Final = 8
"""Pixels that a row needs for a gap and for the bars of the reverse direction."""


class Blend:
    """The mean colour of any stretch of a rank's time, from sums over its segments."""

    def __init__(self, cells: Cells, colors: Pixels) -> None:
        channels = np.stack([colors >> 16 & 255, colors >> 8 & 255, colors & 255], axis=-1).astype(np.float64)
        self._cells = cells
        self._mixed = ((channels[_UPPER] + channels[_LOWER]) / 2).astype(np.float32)

    @cached_property
    def _sums(self) -> NDArray[np.float32]:
        """Colour times time before each segment [segments, 3], from the start of its rank on."""
        cells = self._cells
        lengths = np.where(np.isinf(cells.end), 0.0, cells.end - cells.start)
        sums = np.cumsum(self._mixed[cells.code] * (lengths / cells.makespan_s)[:, None], axis=0)
        sums = np.concatenate([np.zeros((1, 3)), sums[:-1]])
        sums -= np.repeat(sums[cells.offsets[:-1]], np.diff(cells.offsets), axis=0)
        return sums.astype(np.float32)

    @cached_property
    def overview(self) -> NDArray[np.float32]:
        """Colour times time before each time of the cells' overview [ranks, times, 3]."""
        overview = self._cells.overview
        assert overview is not None
        time = np.minimum(np.arange(overview.segment.shape[1]) * overview.step_s, self._cells.makespan_s)
        return self._before(time, overview.segment)

    def mean_at(self, ranks: Ints, number: Ints) -> Pixels:
        """Return the mean colours between times of the overview, given by their numbers."""
        overview = self._cells.overview
        assert overview is not None
        last = overview.segment.shape[1] - 1
        whole = len(ranks) == self._cells.pp and bool((ranks == np.arange(len(ranks))).all())
        sums = self.overview if whole else self.overview[ranks]
        inside = np.clip(number, 0, last)
        return self._mean(sums.take(inside, axis=1), _seconds(inside, overview), _seconds(number, overview))

    def mean(self, sampled: Sampled) -> Pixels:
        """Return the mean colours between the times that were sampled [ranks, columns - 1]."""
        time = np.clip(sampled.time_s, 0.0, self._cells.makespan_s)
        return self._mean(self._before(time, sampled.segment), time, sampled.time_s)

    def _before(self, time_s: Floats, segment: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return colour times time before some times; ``segment`` is what is there."""
        cells = self._cells
        into = ((time_s - cells.start[segment]) / cells.makespan_s).astype(np.float32)
        before: NDArray[np.float32] = self._sums.take(segment, axis=0)
        before += self._mixed.take(cells.code[segment], axis=0) * into[..., None]
        return before

    def _mean(self, sums: NDArray[np.float32], time_s: Floats, wanted_s: Floats) -> Pixels:
        length = np.diff(time_s)
        # Beyond the start and the end there is nothing to take the mean of.
        outside = length < 0.5 * np.diff(wanted_s).mean()
        scale = (self._cells.makespan_s / np.where(outside, 1.0, length)).astype(np.float32)
        mean = np.diff(sums, axis=1)
        mean *= scale[:, None]
        mean[:, outside] = self._mixed[0]
        bytes_ = np.full((*mean.shape[:2], 4), 255, np.uint8)
        # In memory a pixel is blue, green, red, opaque.
        bytes_[..., 2::-1] = mean
        packed: Pixels = bytes_.view(np.uint32)[..., 0]
        return packed


def _seconds(number: Ints, overview: Overview) -> Floats:
    return number.astype(np.float64) * overview.step_s


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Colour of each code in each band of a row [bands, codes + 2]; the last two codes are edges."""

    colors: Pixels
    blend: Blend

    @property
    def edge(self) -> int:
        """The code of the edge between cells."""
        return int(self.colors.shape[1]) - 2


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Which segment is at some times [columns] on some ranks: [ranks, columns]."""

    ranks: Ints
    time_s: Floats
    segment: NDArray[np.int32]


def make_tables(cells: Cells, theme: Theme) -> Tables:
    """Look up the colours of all codes."""
    name = theme.name
    inks = inks_of(cells)
    border = border_color(theme).rgb()
    columns: list[list[int]] = [
        [theme.color(Role.PANEL).rgb()] + [color(name, IDLE[code]).rgb()] * (_BANDS - 1)
        for code in range(FIRST_CELL)
    ]
    for ink in inks:
        upper, lower = color(name, ink.upper), color(name, ink.lower)
        columns.append(
            [
                theme.color(Role.PANEL).rgb(),
                border if ink.is_pair else upper.rgb(),
                upper.rgb(),
                (_bar(theme, ink.upper) if ink.upper_bar else upper).rgb(),
                lower.rgb(),
                (_bar(theme, ink.lower) if ink.lower_bar else lower).rgb(),
                border if ink.is_pair else (_bar(theme, ink.lower) if ink.lower_bar else lower).rgb(),
            ]
        )
    columns.append([theme.color(Role.PANEL).rgb()] * _BANDS)
    columns.append([theme.color(Role.PANEL).rgb()] + [border] * (_BANDS - 1))
    colors = np.array(columns, np.uint32).T.copy()
    return Tables(colors, Blend(cells, colors))


def _bar(theme: Theme, ink: Ink) -> QColor:
    """Return the colour of the bar that marks the reverse direction."""
    return theme.color(label_role(theme.name, ink))


def sample(cells: Cells, ranks: Ints, start_s: float, end_s: float, columns: int) -> Sampled:
    """Find the segment at the middle of every column.

    Segments are put where they start and spread to the right; nothing is searched for.
    """
    first, last = cells.visible(ranks, start_s, end_s)
    per_column = (end_s - start_s) / columns
    index = joined_ranges(first, last)
    line = np.repeat(np.arange(len(ranks), dtype=np.int32), last - first)
    column = _columns(cells.start[index], start_s, per_column, columns)
    shown = column < columns
    found = np.zeros((len(ranks), columns), np.int32)
    found[:, 0] = first
    place = line * np.int32(columns) + column
    if not shown.all():
        place, index = place[shown], index[shown]
    found.reshape(-1)[place] = index
    np.maximum.accumulate(found, axis=1, out=found)
    times = (start_s + per_column * (np.arange(columns) + 0.5)).astype(np.float64)
    return Sampled(ranks, times, found)


def _columns(start: Floats, start_s: float, per_column: float, columns: int) -> NDArray[np.int32]:
    """Return the first column whose middle is not before each start; ``columns`` where there is none."""
    place = start - (start_s + 0.5 * per_column)
    place /= per_column
    np.ceil(place, out=place)
    np.clip(place, 0, columns, out=place)
    rounded: NDArray[np.int32] = place.astype(np.int32)
    return rounded


def joined_ranges(first: Ints, last: Ints) -> Ints:
    """Return all numbers from each first to before each last."""
    counts = last - first
    if bool((first[1:] == last[:-1]).all()):
        return np.arange(int(first[0]), int(last[-1]))
    before = np.cumsum(counts) - counts
    joined: Ints = np.arange(int(counts.sum())) + np.repeat(first - before, counts)
    return joined


def image(
    cells: Cells, tables: Tables, sampled: Sampled, rows: Ints, tops: Ints, bottoms: Ints, per_column_s: float
) -> QImage:
    """Make the image of a chart.

    Args:
        cells: the schedule.
        tables: its colours.
        sampled: what is in the columns.
        rows: for each line of pixels the row of ``sampled``.
        tops: first line of each row, which may lie above the image.
        bottoms: line after the last of each row.
        per_column_s: time of a column.
    """
    codes = cells.code[sampled.segment]
    heights = bottoms - tops
    if int(heights.min()) >= FULL_ROW:
        _mark_edges(codes, cells, sampled, tables.edge, per_column_s)
    bands = _bands(np.arange(len(rows)) - tops[rows], heights[rows])
    pixels = np.empty((len(rows), codes.shape[1]), np.uint32)
    for band in range(_BANDS):
        lines = np.flatnonzero(bands == band)
        if len(lines):
            _fill(pixels, tables.colors[band], codes, rows, lines)
    height, width = pixels.shape
    picture = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)
    # The image must not outlive the array whose memory it shows.
    return picture.copy()


def is_dense(cells: Cells, ranks: Ints, start_s: float, end_s: float, columns: int) -> bool:
    """Tell whether cells are so narrow that single ones would be chosen by chance."""
    first, last = cells.visible(ranks, start_s, end_s)
    return int((last - first).sum()) > len(ranks) * columns / NARROW


def edges(cells: Cells, start_s: float, end_s: float, columns: int) -> Ints | None:
    """Return the edges of every second column as numbers of times of the overview; none where it is too coarse."""
    step_s = 2.0 * (end_s - start_s) / columns
    overview = cells.overview
    if overview is None or step_s < overview.step_s:
        return None
    times = start_s + step_s * np.arange(columns // 2 + 2)
    return np.round(times / overview.step_s).astype(np.int64)


def sample_edges(cells: Cells, ranks: Ints, start_s: float, end_s: float, columns: int) -> Sampled:
    """Find the segments at the edges of every second column."""
    count, step_s = columns // 2 + 2, 2.0 * (end_s - start_s) / columns
    begin = start_s - step_s / 2
    return sample(cells, ranks, begin, begin + count * step_s, count)


def blended_image(mean: Pixels, rows: Ints, columns: int) -> QImage:
    """Make the image of a chart whose cells are narrower than pixels, from mean colours.

    A colour stands for two columns: finer ones would cost twice the time and show no more.
    """
    pixels = np.repeat(mean, 2, axis=1)[:, :columns].take(rows, axis=0)
    height, width = pixels.shape
    return QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32).copy()


def _fill(pixels: Pixels, colors: Pixels, codes: NDArray[np.uint16], rows: Ints, lines: Ints) -> None:
    """Colour the lines of one band; equal lines of a row are looked up once."""
    row = rows[lines]
    fresh = np.concatenate([[True], row[1:] != row[:-1]])
    looked_up = colors[codes[row[fresh]]]
    pixels[lines] = looked_up[np.cumsum(fresh) - 1]


def _bands(offset: Ints, height: Ints) -> NDArray[np.int8]:
    """Return which band of its row each line of pixels is in."""
    full = height >= FULL_ROW
    gap = np.where(full, np.maximum(1, height // 12), 0)
    bar = np.where(full, np.maximum(2, height // 12), 0)
    inner = height - gap
    half = inner // 2
    bands = np.full(len(offset), _LOWER, np.int8)
    bands[offset < half] = _UPPER
    # In low rows one text stands across both halves, and a bar would cross it.
    halved = height >= HALVED_ROW
    bands[halved & (offset < half) & (offset >= half - bar)] = _UPPER_BAR
    bands[full & (offset >= inner - bar)] = _LOWER_BAR
    bands[full & (offset == 0)] = _TOP_RIM
    bands[full & (offset == inner - 1)] = _RIM
    bands[full & (offset >= inner)] = _GAP
    return bands


def _mark_edges(
    codes: NDArray[np.uint16], cells: Cells, sampled: Sampled, edge: int, per_column_s: float
) -> None:
    """Begin every cell that is wide enough with an edge; pairs have a dark one at both ends."""
    columns = codes.shape[1]
    changed = np.flatnonzero(np.diff(sampled.segment.ravel(), prepend=-1))
    segment = sampled.segment.ravel()[changed]
    flat = codes.reshape(-1)
    code = cells.code[segment]
    wide = (cells.end[segment] - cells.start[segment] >= EDGE_WIDTH * per_column_s) & (code >= FIRST_CELL)
    wide &= changed % columns > 0
    flat[changed[wide]] = edge
    pair = np.array([False] * FIRST_CELL + [ink.is_pair for ink in inks_of(cells)])[code] & wide
    flat[changed[pair]] = edge + 1
    after = np.append(changed[1:], columns * len(codes))[pair]
    inside = after % columns > 0
    flat[after[inside]] = edge + 1
