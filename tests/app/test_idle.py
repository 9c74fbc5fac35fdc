"""The garbage collector works at rest, and is left as it was."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.document import DesignDocument
from app.idle import IdleCollector


class Ring:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def collector(document: DesignDocument, monkeypatch: pytest.MonkeyPatch) -> Iterator[IdleCollector]:
    monkeypatch.setattr("app.idle.IDLE_MS", 30)
    made = IdleCollector(document)
    yield made
    made.stop()
    made.deleteLater()


def lost_ring() -> weakref.ref[Ring]:
    return weakref.ref(Ring())


def test_that_garbage_goes_at_rest(collector: IdleCollector, document: DesignDocument, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: gc.get_freeze_count() > 0)
    lost = lost_ring()
    document.edit("workload.batch", 96)
    qtbot.waitUntil(lambda: lost() is None)


def test_that_what_was_set_aside_is_looked_at_after_a_renewal(collector: IdleCollector, qtbot: QtBot) -> None:
    ring = Ring()
    kept = weakref.ref(ring)
    collector.collect()
    del ring
    collector.collect()
    assert kept() is not None
    collector.renew()
    qtbot.waitUntil(lambda: kept() is None)


def test_that_the_collector_is_left_as_it_was(document: DesignDocument) -> None:
    before = gc.get_threshold()
    made = IdleCollector(document)
    made.collect()
    assert gc.get_threshold() != before
    made.stop()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
