"""Colours: contrast, and differences that people with colour-blindness see too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from app.theme import DARK, LIGHT, PRINT, Role, Theme, active, apply, theme_named
from app.theme.icons import icon, icon_names, pixmap
from app.theme.manager import ThemeManager
from app.theme.roles import AXES, LAYOUT, MEMORY, SCHEDULE, SURFACES, TEXTS, TIME

THEMES = (LIGHT, DARK, PRINT)
GRAPHICS = tuple(dict.fromkeys((*AXES, *TIME, *MEMORY, *LAYOUT, *SCHEDULE, Role.HIDDEN)))
# Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB.
SEEN_AS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
}
Vector = NDArray[np.float64]


def linear(color: QColor) -> Vector:
    srgb = np.array([color.redF(), color.greenF(), color.blueF()])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def contrast(one: QColor, other: QColor) -> float:
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: Vector) -> Vector:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: QColor, other: QColor, seen_as: str) -> float:
    matrix = SEEN_AS[seen_as]
    return float(np.linalg.norm(lab(matrix @ linear(one)) - lab(matrix @ linear(other))))


def test_that_contrast_is_measured_as_defined() -> None:
    assert contrast(QColor("#000000"), QColor("#ffffff")) == pytest.approx(21)
    assert contrast(QColor("#777777"), QColor("#ffffff")) == pytest.approx(4.48, abs=0.01)


def test_that_the_simulation_confuses_what_is_known_to_be_confused() -> None:
    red, green = QColor("#a8604c"), QColor("#7b7b4f")
    assert difference(red, green, "deuteranopia") < difference(red, green, "normal") / 2


@pytest.mark.parametrize("theme", THEMES, ids=lambda t: t.name)
def test_that_every_role_has_a_colour(theme: Theme) -> None:
    assert set(theme.colors) == set(Role)
    assert all(theme.color(role).isValid() for role in Role)


@pytest.mark.parametrize("surface", [*SURFACES, Role.HOVER, Role.SELECTION])
@pytest.mark.parametrize("theme", THEMES, ids=lambda t: t.name)
def test_that_texts_can_be_read_on_every_surface(theme: Theme, surface: Role) -> None:
    low = {r: contrast(theme.color(r), theme.color(surface)) for r in TEXTS}
    assert min(low.values()) >= 4.5, low


@pytest.mark.parametrize("theme", THEMES, ids=lambda t: t.name)
def test_that_texts_can_be_read_on_a_filled_button(theme: Theme) -> None:
    assert contrast(theme.color(Role.ON_ACCENT), theme.color(Role.ACCENT)) >= 4.5


@pytest.mark.parametrize("theme", THEMES, ids=lambda t: t.name)
def test_that_texts_can_be_read_on_tints(theme: Theme) -> None:
    for role in (*GRAPHICS, Role.GOOD, Role.WARNING, Role.ERROR):
        assert contrast(theme.color(Role.TEXT), theme.tint(role)) >= 4.5


@pytest.mark.parametrize("surface", [Role.PANEL, Role.CARD, Role.WINDOW])
@pytest.mark.parametrize("theme", THEMES, ids=lambda t: t.name)
def test_that_graphics_stand_out_from_their_surface(theme: Theme, surface: Role) -> None:
    low = {r: contrast(theme.color(r), theme.color(surface)) for r in GRAPHICS}
    assert min(low.values()) >= 3, low


@pytest.mark.parametrize("seen_as", SEEN_AS)
@pytest.mark.parametrize("group", [AXES, TIME, MEMORY, SCHEDULE], ids=["axes", "time", "memory", "schedule"])
@pytest.mark.parametrize("theme", THEMES, ids=lambda t: t.name)
def test_that_colours_of_a_group_stay_apart(theme: Theme, group: tuple[Role, ...], seen_as: str) -> None:
    for one, other in itertools.combinations(group, 2):
        assert difference(theme.color(one), theme.color(other), seen_as) >= 12, (one, other)


def test_that_themes_are_found_by_name() -> None:
    assert theme_named("dark") is DARK
    with pytest.raises(KeyError, match="light, dark, print"):
        theme_named("sepia")


@pytest.mark.parametrize("theme", THEMES, ids=lambda t: t.name)
def test_that_applying_a_theme_colours_the_application(theme: Theme, qapp: QApplication) -> None:
    apply(qapp, theme)
    assert active() is theme
    assert qapp.palette().color(QPalette.ColorRole.WindowText) == theme.color(Role.TEXT)
    assert theme.css(Role.BORDER) in qapp.styleSheet()
    assert "$" not in qapp.styleSheet()


def test_that_the_desktop_is_followed_until_the_user_chooses(qapp: QApplication) -> None:
    manager = ThemeManager(qapp)
    seen: list[str] = []
    manager.theme_changed.connect(lambda theme: seen.append(theme.name))
    manager.follow_scheme(Qt.ColorScheme.Dark)
    manager.follow_scheme(Qt.ColorScheme.Dark)
    assert seen == ["dark"]
    manager.choose("light")
    manager.follow_scheme(Qt.ColorScheme.Dark)
    assert manager.theme is LIGHT
    manager.toggle()
    assert (manager.theme, manager.choice) == (DARK, "dark")
    manager.choose("sepia")
    assert manager.choice == "dark"
    manager.deleteLater()


@pytest.mark.parametrize("name", icon_names())
def test_that_an_icon_is_drawn_in_the_colour_of_its_role(name: str, qapp: QApplication) -> None:
    image = pixmap(name, 40, role=Role.ERROR).toImage()
    painted = [image.pixelColor(x, y) for x in range(40) for y in range(40)]
    solid = [color for color in painted if color.alpha() == 255]
    assert solid
    assert {color.name() for color in solid} == {LIGHT.css(Role.ERROR)}
    assert not icon(name, DARK).isNull()
