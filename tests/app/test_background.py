"""Work off the main thread: the latest wins, cancelling stops it, and progress is told."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, get_ident

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.background import Background, Ticket


@pytest.fixture
def background(qapp: QApplication) -> Iterator[Background]:
    made = Background()
    yield made
    made.stop()
    made.deleteLater()


def test_that_a_task_runs_in_another_thread(background: Background, qtbot: QtBot) -> None:
    with qtbot.waitSignal(background.finished) as caught:
        background.start(lambda _ticket: get_ident())
    assert caught.args[0] != get_ident()
    assert not background.busy


def test_that_only_the_latest_result_is_delivered(background: Background, qtbot: QtBot) -> None:
    found: list[object] = []
    background.finished.connect(found.append)
    gate = Event()
    background.start(lambda _ticket: gate.wait(5) and "first")
    background.start(lambda _ticket: "second")
    gate.set()
    qtbot.waitUntil(lambda: not background.busy)
    assert found == ["second"]


def test_that_a_cancelled_task_is_told_and_delivers_nothing(background: Background, qtbot: QtBot) -> None:
    begun, ended = Event(), Event()
    found: list[object] = []
    background.finished.connect(found.append)

    def work(ticket: Ticket) -> str:
        begun.set()
        while not ticket.cancelled():
            ended.wait(0.001)
        ended.set()
        return "too late"

    background.start(work)
    assert begun.wait(5)
    background.cancel()
    assert not background.busy
    assert ended.wait(5)
    with qtbot.waitSignal(background.finished):
        background.start(lambda _ticket: "next")
    assert found == ["next"]


def test_that_progress_is_told_as_a_share(background: Background, qtbot: QtBot) -> None:
    def work(ticket: Ticket) -> bool:
        ticket.progress(1, 4)
        return True

    told: list[float] = []
    background.progressed.connect(told.append)
    with qtbot.waitSignal(background.finished):
        background.start(work)
    assert told == [0.25]


def test_that_a_stopped_worker_takes_nothing_more(background: Background) -> None:
    background.stop()
    background.start(lambda _ticket: 1)
    assert not background.busy
