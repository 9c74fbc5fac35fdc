"""A picture of a view: its scene and the image of it, made in the evaluation worker or on the main thread."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QSizeF
from PySide6.QtGui import QImage, QPainter

from app.document import is_drawable
from app.evaluation import Round
from app.plots.camera import MARGIN, Camera
from app.plots.paint import paint
from app.plots.scene import Scene
from app.plots.views import ViewSpec
from app.theme import Role, Theme
from model_core.results import Evaluation


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What a picture is made for, beside the evaluation: the widget's state, copied.

    ``ratio`` is the number of the device's pixels per unit of width and height.
    """

    view: ViewSpec
    part: str
    short: bool | None
    baseline: Evaluation | None
    width: int
    height: int
    ratio: float
    theme: Theme
    camera: Camera

    def scene(self, evaluation: Evaluation) -> Scene:
        """Make the scene."""
        room = QSizeF(self.width - 2 * MARGIN, self.height - 2 * MARGIN)
        return self.view.draw(evaluation, self.baseline, room, self.part, self.short)

    def camera_on(self, scene: Scene) -> Camera:
        """Return where a scene lies in the widget."""
        camera = replace(self.camera)
        if camera.fitted:
            camera.fit(scene.width, scene.height, self.width, self.height)
        return camera

    def image(self, scene: Scene) -> QImage:
        """Paint a scene for the widget. An image, as pixmaps belong to the main thread."""
        camera = self.camera_on(scene)
        size = (max(round(self.width * self.ratio), 1), max(round(self.height * self.ratio), 1))
        image = QImage(*size, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(self.ratio)
        image.fill(self.theme.color(Role.PANEL))
        painter = QPainter(image)
        painter.translate(camera.dx, camera.dy)
        painter.scale(camera.scale, camera.scale)
        paint(scene, painter, self.theme, static=True)
        painter.end()
        return image

    def same_scene(self, other: Setting) -> bool:
        """Whether both want the same scene."""
        mine = (self.view, self.part, self.short, self.width, self.height)
        others = (other.view, other.part, other.short, other.width, other.height)
        return mine == others and self.baseline is other.baseline

    def same_image(self, other: Setting) -> bool:
        """Whether both want the same image of the same scene."""
        mine = (self.ratio, self.theme.name)
        lies_alike = self.camera == other.camera or (self.camera.fitted and other.camera.fitted)
        return self.same_scene(other) and lies_alike and mine == (other.ratio, other.theme.name)


class Frame:
    """A picture ordered from the evaluation worker. Without an evaluation it was not made."""

    def __init__(self, setting: Setting, round_: Round) -> None:
        self.setting = setting
        self.evaluation: Evaluation | None = None
        self.scene: Scene | None = None
        self.image: QImage | None = None
        round_.add(self._make)

    def _make(self, evaluation: Evaluation) -> None:
        if is_drawable(evaluation):
            self.scene = self.setting.scene(evaluation)
            self.image = self.setting.image(self.scene)
            self.evaluation = evaluation
