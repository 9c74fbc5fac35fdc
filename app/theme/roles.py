"""The role table: what a colour means, and which colour each theme gives to it.

Axis, time and memory colours start from the Okabe-Ito set and are moved per theme until graphics have a
contrast of at least 3:1, texts 4.5:1, and each group stays apart under simulated deuteranopia and
protanopia (tests/app/test_theme.py measures all of it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from PySide6.QtGui import QColor


class Role(StrEnum):
    """What a colour is used for."""

    WINDOW = "window"
    PANEL = "panel"
    CARD = "card"
    FIELD = "field"
    HOVER = "hover"
    BORDER = "border"
    FIELD_BORDER = "field_border"
    TEXT = "text"
    TEXT_MUTED = "text_muted"
    TEXT_DISABLED = "text_disabled"
    ACCENT = "accent"
    ON_ACCENT = "on_accent"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"
    SELECTION = "selection"
    AXIS_X = "axis_x"
    AXIS_Y = "axis_y"
    AXIS_Z = "axis_z"
    COMPUTE = "compute"
    WEIGHT = "weight"
    KV = "kv"
    COMMUNICATION = "communication"
    HIDDEN = "hidden"
    ACTIVATION = "activation"
    BUFFER = "buffer"
    RESERVE = "reserve"
    EINSUM = "einsum"
    COLLECTIVE = "collective"
    LOCAL = "local"
    TENSOR = "tensor"
    GRID = "grid"
    FORWARD = "forward"
    BACKWARD = "backward"
    BACKWARD_INPUT = "backward_input"
    BACKWARD_WEIGHT = "backward_weight"
    DARK_ON_CELL = "dark_on_cell"
    LIGHT_ON_CELL = "light_on_cell"


SURFACES: Final = (Role.WINDOW, Role.PANEL, Role.CARD, Role.FIELD)
TEXTS: Final = (Role.TEXT, Role.TEXT_MUTED, Role.ACCENT, Role.GOOD, Role.WARNING, Role.ERROR)
AXES: Final = (Role.AXIS_X, Role.AXIS_Y, Role.AXIS_Z)
TIME: Final = (Role.COMPUTE, Role.WEIGHT, Role.KV, Role.COMMUNICATION)
MEMORY: Final = (Role.WEIGHT, Role.KV, Role.ACTIVATION, Role.BUFFER, Role.RESERVE)
LAYOUT: Final = (Role.EINSUM, Role.COLLECTIVE, Role.LOCAL, Role.TENSOR)
SCHEDULE: Final = (Role.FORWARD, Role.BACKWARD, Role.BACKWARD_INPUT, Role.BACKWARD_WEIGHT)


@dataclass(frozen=True)
class Theme:
    """One assignment of colours to roles. The colour of a role is its line and its solid fill."""

    name: str
    dark: bool
    colors: Mapping[Role, str] = field(repr=False)

    def color(self, role: Role) -> QColor:
        """Return the colour of a role."""
        return QColor(self.colors[role])

    def tint(self, role: Role, strength: float = 0.12, surface: Role = Role.PANEL) -> QColor:
        """Return a quiet fill: the role's colour laid thinly over a surface; text stays readable on it."""
        over, under = self.color(role), self.color(surface)
        mixed = (
            round(u + (o - u) * strength)
            for o, u in zip(over.getRgb()[:3], under.getRgb()[:3], strict=True)  # type: ignore[index]
        )
        return QColor(*mixed)

    def css(self, role: Role) -> str:
        """Return the colour as style sheets and rich text write it."""
        return self.colors[role]


_LIGHT: dict[Role, str] = {
    Role.WINDOW: "#f4f6f8",
    Role.PANEL: "#ffffff",
    Role.CARD: "#f7f9fb",
    Role.FIELD: "#ffffff",
    Role.HOVER: "#eaeef3",
    Role.BORDER: "#dfe3e9",
    Role.FIELD_BORDER: "#c3cad4",
    Role.TEXT: "#171b22",
    Role.TEXT_MUTED: "#566070",
    Role.TEXT_DISABLED: "#9aa3af",
    Role.ACCENT: "#1d5fd0",
    Role.ON_ACCENT: "#ffffff",
    Role.GOOD: "#0a7440",
    Role.WARNING: "#8a5800",
    Role.ERROR: "#b3261e",
    Role.SELECTION: "#dce8fd",
    Role.AXIS_X: "#cf5a00",
    Role.AXIS_Y: "#0b6fb0",
    Role.AXIS_Z: "#0f9a73",
    Role.COMPUTE: "#2f6fcf",
    Role.WEIGHT: "#b58200",
    Role.KV: "#94337c",
    Role.COMMUNICATION: "#38998a",
    Role.HIDDEN: "#868f9c",
    Role.ACTIVATION: "#3f8fd9",
    Role.BUFFER: "#0f6a58",
    Role.RESERVE: "#868f9c",
    Role.EINSUM: "#2f6fcf",
    Role.COLLECTIVE: "#a87400",
    Role.LOCAL: "#6b7686",
    Role.TENSOR: "#6b7686",
    Role.GRID: "#e6eaef",
    Role.FORWARD: "#cb7900",
    Role.BACKWARD: "#3a92d2",
    Role.BACKWARD_INPUT: "#0f9272",
    Role.BACKWARD_WEIGHT: "#2a55ad",
    Role.DARK_ON_CELL: "#0d1118",
    Role.LIGHT_ON_CELL: "#ffffff",
}

_DARK: dict[Role, str] = {
    Role.WINDOW: "#15181d",
    Role.PANEL: "#1b1f26",
    Role.CARD: "#232831",
    Role.FIELD: "#15181d",
    Role.HOVER: "#2a303a",
    Role.BORDER: "#2e3540",
    Role.FIELD_BORDER: "#465060",
    Role.TEXT: "#e8ebf0",
    Role.TEXT_MUTED: "#a3adbb",
    Role.TEXT_DISABLED: "#667182",
    Role.ACCENT: "#7db0ff",
    Role.ON_ACCENT: "#0d1420",
    Role.GOOD: "#5ecf93",
    Role.WARNING: "#eab54a",
    Role.ERROR: "#ff8f86",
    Role.SELECTION: "#2b3f63",
    Role.AXIS_X: "#f08a3c",
    Role.AXIS_Y: "#4aa3e8",
    Role.AXIS_Z: "#3ecfa4",
    Role.COMPUTE: "#6aa5f7",
    Role.WEIGHT: "#dfb03a",
    Role.KV: "#e794cb",
    Role.COMMUNICATION: "#389f8b",
    Role.HIDDEN: "#747e8d",
    Role.ACTIVATION: "#6aa5f7",
    Role.BUFFER: "#3fb59c",
    Role.RESERVE: "#747e8d",
    Role.EINSUM: "#6aa5f7",
    Role.COLLECTIVE: "#dfb03a",
    Role.LOCAL: "#8b96a6",
    Role.TENSOR: "#8b96a6",
    Role.GRID: "#2a303a",
    Role.FORWARD: "#eda63f",
    Role.BACKWARD: "#6cbcf2",
    Role.BACKWARD_INPUT: "#35b894",
    Role.BACKWARD_WEIGHT: "#4f7fe3",
    Role.DARK_ON_CELL: "#0d1118",
    Role.LIGHT_ON_CELL: "#ffffff",
}

_PRINT: dict[Role, str] = _LIGHT | {
    Role.WINDOW: "#ffffff",
    Role.CARD: "#ffffff",
    Role.HOVER: "#ffffff",
    Role.BORDER: "#9aa1ab",
    Role.FIELD_BORDER: "#9aa1ab",
    Role.TEXT: "#000000",
    Role.TEXT_MUTED: "#3c444f",
    Role.LOCAL: "#3c444f",
    Role.TENSOR: "#3c444f",
    Role.GRID: "#d5dae1",
}

LIGHT: Final = Theme("light", False, _LIGHT)
DARK: Final = Theme("dark", True, _DARK)
PRINT: Final = Theme("print", False, _PRINT)
_BY_NAME: Final = {theme.name: theme for theme in (LIGHT, DARK, PRINT)}


def theme_named(name: str) -> Theme:
    """Return the theme of a name.

    Raises:
        KeyError: there is no such theme; the message lists those that exist.
    """
    if name not in _BY_NAME:
        raise KeyError(f"no theme {name!r}; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
