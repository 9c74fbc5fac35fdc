"""Where a scene lies in its widget: zoom and shift."""

from __future__ import annotations

from dataclasses import dataclass

from app.plots.scene import Rect

MARGIN = 14.0
LARGEST_FIT = 1.6
SMALLEST, LARGEST = 0.15, 12.0


@dataclass(slots=True)
class Camera:
    """A position x in the scene is shown at ``x * scale + dx``. ``fitted``: it follows the widget's size."""

    scale: float = 1.0
    dx: float = MARGIN
    dy: float = MARGIN
    fitted: bool = True

    def fit(self, scene_width: float, scene_height: float, width: float, height: float) -> None:
        """Show the whole scene, centred, from the top."""
        room_x, room_y = max(width - 2 * MARGIN, 20.0), max(height - 2 * MARGIN, 20.0)
        self.scale = min(room_x / max(scene_width, 1), room_y / max(scene_height, 1), LARGEST_FIT)
        self.dx = (width - scene_width * self.scale) / 2
        self.dy = MARGIN
        self.fitted = True

    def zoom(self, factor: float, x: float, y: float) -> None:
        """Zoom so that the point under a widget position stays there."""
        target = min(max(self.scale * factor, SMALLEST), LARGEST)
        factor = target / self.scale
        self.dx = x - (x - self.dx) * factor
        self.dy = y - (y - self.dy) * factor
        self.scale = target
        self.fitted = False

    def pan(self, dx: float, dy: float) -> None:
        """Move the picture."""
        self.dx += dx
        self.dy += dy
        self.fitted = False

    def to_scene(self, x: float, y: float) -> tuple[float, float]:
        """Turn a widget position into a scene position."""
        return (x - self.dx) / self.scale, (y - self.dy) / self.scale

    def to_widget(self, rect: Rect) -> Rect:
        """Turn a scene rectangle into a widget rectangle."""
        k = self.scale
        return Rect(rect.x * k + self.dx, rect.y * k + self.dy, rect.w * k, rect.h * k)

    def reveal(self, rect: Rect, width: float, height: float) -> None:
        """Move just so far that a scene rectangle can be seen."""
        shown = self.to_widget(rect)
        dx = max(MARGIN - shown.x, 0.0) or min(width - MARGIN - shown.right, 0.0)
        dy = max(MARGIN - shown.y, 0.0) or min(height - MARGIN - shown.bottom, 0.0)
        if dx or dy:
            self.pan(dx, dy)
