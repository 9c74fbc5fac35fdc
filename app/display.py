"""Whether a window can be shown here. Asked before Qt starts, as Qt ends the process where it cannot."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

_INVISIBLE = ("offscreen", "minimal", "minimalegl")
_TIMEOUT_S = 2.0
_X11_PORT = 6000


def has_display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Tell whether Qt would find a display that answers."""
    chosen = environment.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if chosen:
        return chosen not in _INVISIBLE
    if platform in ("win32", "darwin"):
        return True
    return _wayland_answers(environment) or _x11_answers(environment.get("DISPLAY", ""))


def _wayland_answers(environment: Mapping[str, str]) -> bool:
    name = environment.get("WAYLAND_DISPLAY", "")
    folder = environment.get("XDG_RUNTIME_DIR", "")
    return bool(name and (folder or name.startswith("/"))) and _connects(str(Path(folder) / name))


def _x11_answers(display: str) -> bool:
    match = re.fullmatch(r"(?:unix|([^:/]*)):(\d+)(?:\.\d+)?", display)
    if match is None:
        return False
    host, number = match[1], int(match[2])
    if not host:
        path = f"/tmp/.X11-unix/X{number}"
        return _connects(path) or _connects(f"\0{path}")
    try:
        with socket.create_connection((host, _X11_PORT + number), _TIMEOUT_S):
            return True
    except (OSError, OverflowError, UnicodeError):
        return False


def _connects(path: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(_TIMEOUT_S)
            client.connect(path)
    except (OSError, ValueError):
        return False
    return True
