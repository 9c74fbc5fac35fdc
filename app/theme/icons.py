"""Icons: line drawings in resources/icons, tinted with a colour of the theme."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap, QPixmapCache
from PySide6.QtSvg import QSvgRenderer

import resources
from app.theme.apply import active
from app.theme.roles import Role, Theme

FOLDER = Path(resources.__file__).parent / "icons"
_SIZES = (20, 40)


def icon_names() -> tuple[str, ...]:
    """List the icons that exist."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.svg")))


def icon(name: str, theme: Theme | None = None, role: Role = Role.TEXT) -> QIcon:
    """Return an icon in a role's colour, with its greyed form for disabled actions."""
    used = active() if theme is None else theme
    result = QIcon()
    for size in _SIZES:
        result.addPixmap(_drawn(name, size, used.css(role)))
        result.addPixmap(_drawn(name, size, used.css(Role.TEXT_DISABLED)), QIcon.Mode.Disabled)
    return result


def pixmap(name: str, size: int, ratio: float = 1.0, role: Role = Role.TEXT) -> QPixmap:
    """Return one icon of the active theme as a picture for a device pixel ratio."""
    drawn = _drawn(name, round(size * ratio), active().css(role))
    drawn.setDevicePixelRatio(ratio)
    return drawn


@cache
def _source(name: str) -> str:
    return (FOLDER / f"{name}.svg").read_text(encoding="utf-8")


def _drawn(name: str, size: int, color: str) -> QPixmap:
    key = f"meshwright/{name}/{size}/{color}"
    result = QPixmap()
    if QPixmapCache.find(key, result):
        return result
    # QtSvg does not resolve currentColor from outside, so the colour is written into the source.
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", color).encode()))
    result = QPixmap(QSize(size, size))
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    QPixmapCache.insert(key, result)
    return result
