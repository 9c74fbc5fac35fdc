"""Drawings without a display, in English unless a test says otherwise."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from app.i18n import set_language
from model_core import Evaluation, evaluate
from model_core.spec import Design
from presets import load_design


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what the offscreen platform says about every window with a smallest size."""
    config.addinivalue_line("qt_log_ignore", r"This plugin does not support propagateSizeHints\(\)")


@pytest.fixture(autouse=True)
def _english(qapp: QApplication) -> Iterator[None]:
    set_language("en")
    yield
    set_language("en")


@pytest.fixture
def design() -> Design:
    """The design that the application opens with."""
    return load_design("palm-540b-decode-low-latency")


@pytest.fixture
def evaluation(design: Design) -> Evaluation:
    """Its evaluation."""
    return evaluate(design)
