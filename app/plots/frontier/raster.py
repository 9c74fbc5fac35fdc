"""The designs as an image: one mark a few pixels wide where there is any, stronger where there are many."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtGui import QImage

from app.plots.frontier.cloud import Cloud
from app.plots.frontier.scene import shares
from app.plots.xy_axis import PlotArea
from app.theme import Role, Theme
from model_core.search.arrays import Rows

FAINT: Final = 0.32
STRONG: Final = 0.7
MANY: Final = 64
REACH: Final = 1


def cloud_image(cloud: Cloud, area: PlotArea, theme: Theme, scale: float = 1.0) -> QImage:
    """Paint the designs of a cloud for a plot area; the image lies at the area's corner.

    Its cost grows with the designs by one pass over them, not by one drawn mark each.

    Args:
        cloud: the designs.
        area: the plot area, in units of the scene.
        theme: gives the colour.
        scale: pixels per unit.
    """
    width = max(round(area.rect.w * scale), 1)
    height = max(round(area.rect.h * scale), 1)
    counts = _counts(cloud, area, width, height)
    pixels = _colours(theme)[np.minimum(_spread(counts, max(1, round(REACH * scale))), MANY)]
    image = QImage(pixels.tobytes(), width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied)
    return image.copy()


def _counts(cloud: Cloud, area: PlotArea, width: int, height: int) -> Rows:
    across, up = shares(cloud, area)
    columns, rows = (across * (width - 1)).astype(np.int32), ((1 - up) * (height - 1)).astype(np.int32)
    inside = (across >= 0) & (across <= 1) & (up >= 0) & (up <= 1)
    flat = rows[inside] * width + columns[inside]
    counts = np.minimum(np.bincount(flat, minlength=width * height), MANY)
    return counts.astype(np.uint16).reshape(height, width)


def _spread(counts: Rows, reach: int) -> Rows:
    """Widen every mark by some pixels to each side."""
    for axis in (0, 1):
        total = counts.copy()
        for shift in range(1, reach + 1):
            ahead, behind = np.moveaxis(total, axis, 0), np.moveaxis(counts, axis, 0)
            ahead[shift:] += behind[:-shift]
            ahead[:-shift] += behind[shift:]
        counts = total
    return counts


def _colours(theme: Theme) -> Rows:
    """Return the pixel for every count up to `MANY`, as premultiplied ARGB."""
    counts = np.arange(MANY + 1)
    alpha = FAINT + (STRONG - FAINT) * np.log2(np.maximum(counts, 1)) / np.log2(MANY)
    alpha = np.where(counts > 0, np.round(alpha * 255), 0).astype(np.uint32)
    color = theme.color(Role.TEXT_MUTED)
    shades = ((color.red(), 16), (color.green(), 8), (color.blue(), 0))
    parts = [(np.uint32(part) * alpha // 255) << shift for part, shift in shades]
    return np.asarray((alpha << 24) | parts[0] | parts[1] | parts[2], np.uint32)
