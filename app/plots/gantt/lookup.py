"""A chart as an image, with the band of all ranks' memory from the same look-up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PySide6.QtGui import QImage

from app.plots.gantt.camera import TimeCamera
from app.plots.gantt.cells import Floats
from app.plots.gantt.frame import ChartPlace
from app.plots.gantt.raster import Tables, blended_image, edges, image, is_dense, sample, sample_edges


class LookedUp(NamedTuple):
    """The image of a chart, and least and most activations of all ranks in each of its columns."""

    picture: QImage
    band: tuple[Floats, Floats]


def look_up(place: ChartPlace, tables: Tables, camera: TimeCamera, ratio: float) -> LookedUp:
    """Look up what is in view, in pixels of a device with ``ratio`` pixels a unit."""
    cells, start_s, end_s = place.cells, camera.start_s, camera.end_s
    ranks, tops, bottoms = place.rows(camera, ratio)
    columns = max(1, round(place.area.w * ratio))
    lines = max(1, round(place.area.h * ratio))
    row_of_line = np.searchsorted(bottoms, np.arange(lines), side="right")
    row_of_line = np.minimum(row_of_line, len(ranks) - 1)
    if not is_dense(cells, ranks, start_s, end_s, columns):
        sampled = sample(cells, ranks, start_s, end_s, columns)
        picture = image(cells, tables, sampled, row_of_line, tops, bottoms, camera.span_s / columns)
        segment = sampled.segment
    else:
        number = edges(cells, start_s, end_s, columns)
        if number is None or cells.overview is None:
            sampled = sample_edges(cells, ranks, start_s, end_s, columns)
            mean, segment = tables.blend.mean(sampled), sampled.segment
        else:
            mean = tables.blend.mean_at(ranks, number)
            segment = cells.overview.at(ranks, number)
        picture = blended_image(mean, row_of_line, columns)
    picture.setDevicePixelRatio(ratio)
    levels = cells.level[segment]
    return LookedUp(picture, (levels.min(axis=0).astype(np.float64), levels.max(axis=0).astype(np.float64)))
