"""The evaluation service: not on the main thread, latest wins, clean end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.evaluation import EvaluationService, Round
from model_core.results import Evaluation
from model_core.spec import Design


class Recorder:
    """An evaluation that notes what it was asked, and where; it can be held back."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, design: Design) -> Evaluation:
        self.gate.wait(10)
        self.asked.append(design.name)
        self.threads.add(threading.get_ident())
        return Evaluation(design)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def service(recorder: Recorder, qtbot: QtBot) -> Iterator[EvaluationService]:
    made = EvaluationService(recorder)
    yield made
    recorder.gate.set()
    made.stop()
    made.deleteLater()


def named(design: Design, name: str) -> Design:
    return design.replace(name=name)


def test_that_evaluation_happens_on_another_thread(
    service: EvaluationService, recorder: Recorder, design: Design, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(service.evaluated) as signal:
        service.request(design)
    evaluation, seconds = signal.args
    assert evaluation.design is design
    assert seconds >= 0
    assert threading.get_ident() not in recorder.threads


def test_that_a_burst_is_gathered_and_only_the_latest_is_delivered(
    service: EvaluationService, recorder: Recorder, design: Design, qtbot: QtBot
) -> None:
    delivered: list[str] = []
    service.evaluated.connect(lambda evaluation, _: delivered.append(evaluation.design.name))
    recorder.gate.clear()
    for number in range(50):
        service.request(named(design, str(number)))
    recorder.gate.set()
    qtbot.waitUntil(lambda: delivered == ["49"])
    assert recorder.asked == ["0", "49"]
    assert service.idle


def test_that_the_first_change_after_a_rest_does_not_wait(
    service: EvaluationService, recorder: Recorder, design: Design, qtbot: QtBot
) -> None:
    recorder.gate.clear()
    service.request(design)
    assert not service.idle
    recorder.gate.set()
    qtbot.waitUntil(lambda: recorder.asked == [design.name])


def test_that_evaluate_now_forgets_what_was_under_way(
    service: EvaluationService, recorder: Recorder, design: Design, qtbot: QtBot
) -> None:
    delivered: list[str] = []
    service.evaluated.connect(lambda evaluation, _: delivered.append(evaluation.design.name))
    recorder.gate.clear()
    service.request(named(design, "late"))
    recorder.gate.set()
    service.evaluate_now(named(design, "now"))
    qtbot.waitUntil(lambda: service.idle)
    assert delivered == ["now"]


def test_that_nothing_comes_after_stop(
    service: EvaluationService, recorder: Recorder, design: Design, qtbot: QtBot
) -> None:
    delivered: list[object] = []
    service.evaluated.connect(lambda evaluation, _: delivered.append(evaluation))
    service.request(design)
    service.stop()
    service.stop()
    service.request(design)
    qtbot.wait(60)
    assert delivered == []


def test_that_tasks_are_done_in_the_worker_before_the_result_comes(
    service: EvaluationService, recorder: Recorder, design: Design, qtbot: QtBot
) -> None:
    done: list[tuple[Evaluation, int]] = []

    def add_task(round_: Round) -> None:
        round_.add(lambda evaluation: done.append((evaluation, threading.get_ident())))

    service.started.connect(add_task)
    with qtbot.waitSignal(service.evaluated) as signal:
        service.request(design)
    assert done == [(signal.args[0], recorder.threads.pop())]


def test_that_an_error_in_a_task_is_reported_and_loses_no_result(
    service: EvaluationService, design: Design, qtbot: QtBot
) -> None:
    def fail(_evaluation: Evaluation) -> None:
        raise RuntimeError("no picture")

    def add_task(round_: Round) -> None:
        round_.add(fail)

    service.started.connect(add_task)
    with qtbot.captureExceptions() as errors:
        with qtbot.waitSignal(service.evaluated):
            service.request(design)
        # The worker sends the result first and reports the error then.
        qtbot.waitUntil(lambda: bool(errors))
    assert [str(error) for _, error, _ in errors] == ["no picture"]
    assert service.idle


def test_that_a_stream_of_requests_does_not_withhold_what_is_being_drawn(
    service: EvaluationService, recorder: Recorder, design: Design, qtbot: QtBot
) -> None:
    delivered: list[str] = []
    drawing, drawn = threading.Event(), threading.Event()

    def draw(_evaluation: Evaluation) -> None:
        drawing.set()
        drawn.wait(10)

    def add_task(round_: Round) -> None:
        round_.add(draw)

    service.started.connect(add_task)
    service.evaluated.connect(lambda evaluation, _: delivered.append(evaluation.design.name))
    service.request(named(design, "first"))
    assert drawing.wait(10)
    service.request(named(design, "second"))
    drawn.set()
    qtbot.waitUntil(lambda: delivered == ["first", "second"])


def test_that_what_is_forgotten_is_not_delivered(
    service: EvaluationService, recorder: Recorder, design: Design, qtbot: QtBot
) -> None:
    delivered: list[str] = []
    service.evaluated.connect(lambda evaluation, _: delivered.append(evaluation.design.name))
    recorder.gate.clear()
    service.request(named(design, "old"))
    service.forget()
    service.request(named(design, "new"))
    recorder.gate.set()
    qtbot.waitUntil(lambda: service.idle)
    assert delivered == ["new"]
