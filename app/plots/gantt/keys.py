"""Keys that move the camera."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt

from app.plots.gantt.camera import TimeCamera

KEY_ZOOM: Final = 1.25
KEY_PAN: Final = 0.12
"""Part of what is shown that one key press moves by."""

_PANS: Final = {
    Qt.Key.Key_A: (-KEY_PAN, 0.0),
    Qt.Key.Key_D: (KEY_PAN, 0.0),
    Qt.Key.Key_Left: (-KEY_PAN, 0.0),
    Qt.Key.Key_Right: (KEY_PAN, 0.0),
    Qt.Key.Key_Up: (0.0, -KEY_PAN),
    Qt.Key.Key_Down: (0.0, KEY_PAN),
}
_ZOOMS: Final = {
    Qt.Key.Key_W: KEY_ZOOM,
    Qt.Key.Key_Plus: KEY_ZOOM,
    Qt.Key.Key_Equal: KEY_ZOOM,
    Qt.Key.Key_S: 1 / KEY_ZOOM,
    Qt.Key.Key_Minus: 1 / KEY_ZOOM,
    Qt.Key.Key_Underscore: 1 / KEY_ZOOM,
}


def move_by_key(camera: TimeCamera, key: Qt.Key) -> bool:
    """Pan with A, D and arrows, zoom with W, S, + and −, fit with 0; return whether the key does any of these."""
    if key in _PANS:
        time, rows = _PANS[key]
        camera.pan(time * camera.span_s, rows)
    elif key in _ZOOMS:
        camera.zoom(_ZOOMS[key], (camera.start_s + camera.end_s) / 2)
    elif key in (Qt.Key.Key_0, Qt.Key.Key_Home):
        camera.fit()
    else:
        return False
    return True
