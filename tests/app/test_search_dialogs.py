"""The dialogs that recommend a design and that pair prefill with decode."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.dialogs.pairing import PairingDialog
from app.dialogs.recommend import RecommendDialog
from app.document import DesignDocument
from model_core import evaluate


@pytest.fixture
def dialog(document: DesignDocument, qtbot: QtBot) -> RecommendDialog:
    made = RecommendDialog(document)
    qtbot.addWidget(made)
    for name in ("mesh", "kv", "slice"):
        made.changes[name].set_checked(False)
    made.open()
    return made


def search(dialog: RecommendDialog, qtbot: QtBot) -> str:
    dialog.start()
    qtbot.waitUntil(lambda: not dialog.busy, timeout=60_000)
    return dialog.answer.toPlainText()


def test_that_the_target_of_the_workload_is_offered(dialog: RecommendDialog) -> None:
    assert [row.text for row in dialog.targets] == ["tpot<=30 ms"]
    assert dialog.direction.choice == "min"


def test_that_the_answer_meets_its_target_and_can_be_loaded(
    dialog: RecommendDialog, document: DesignDocument, qtbot: QtBot
) -> None:
    before = document.design
    text = search(dialog, qtbot)
    assert "Best: chip-seconds per token" in text
    assert "What binds" in text
    dialog.load_button.click()
    found = evaluate(document.design)
    assert found.ok
    assert (found.value("step_s") or 1) <= 0.030 * (1 + 1e-9)
    assert (found.value("cost_chip_s_per_token") or 1) <= (
        evaluate(before).value("cost_chip_s_per_token") or 0
    )
    assert document.design.cluster == before.cluster
    document.undo_stack.undo()
    assert document.design == before


def test_that_a_target_that_cannot_be_met_says_how_near_one_comes(
    dialog: RecommendDialog, qtbot: QtBot
) -> None:
    dialog.targets[0].value.setText("1 us")
    assert "Closest" in search(dialog, qtbot)


def test_that_a_bad_target_is_said_and_nothing_is_searched(dialog: RecommendDialog) -> None:
    dialog.targets[0].value.setText("soon")
    dialog.start()
    assert not dialog.busy
    assert "soon" in dialog.problem.text()
    assert not dialog.problem.isHidden()


def test_that_targets_are_added_and_removed(dialog: RecommendDialog) -> None:
    dialog.add_button.click()
    assert dialog.targets[1].text == "memory<="
    dialog.targets[1].removed.emit(dialog.targets[1])
    assert len(dialog.targets) == 1


def test_that_a_goal_of_which_more_is_better_is_maximised(dialog: RecommendDialog) -> None:
    dialog.goal.set_choice("mfu")
    dialog.goal.choice_committed.emit("mfu")
    assert dialog.direction.choice == "max"


def test_that_a_search_can_be_stopped(dialog: RecommendDialog, qtbot: QtBot) -> None:
    for box in dialog.changes.values():
        box.set_checked(True)
    dialog.start()
    begun = dialog.busy
    dialog.stop_button.click()
    assert (begun, dialog.busy) == (True, False)
    assert dialog.answer.toPlainText() == ""


def test_that_a_pair_is_computed_at_once_and_again(document: DesignDocument, qtbot: QtBot) -> None:
    dialog = PairingDialog(document)
    qtbot.addWidget(dialog)
    dialog.open()
    qtbot.waitUntil(lambda: not dialog.busy, timeout=30_000)
    first = dialog.answer.toPlainText()
    assert "128 chips for 1 requests/s" in first
    assert "time to first token (TTFT)" in first
    dialog.rate.set_value(100.0)
    dialog.start()
    qtbot.waitUntil(lambda: not dialog.busy, timeout=30_000)
    assert "for 100 requests/s" in dialog.answer.toPlainText()
    dialog.reject()


def test_that_a_rate_of_zero_is_refused(document: DesignDocument, qtbot: QtBot) -> None:
    dialog = PairingDialog(document)
    qtbot.addWidget(dialog)
    qtbot.waitUntil(lambda: not dialog.busy, timeout=30_000)
    dialog.rate.set_value(0.0)
    dialog.start()
    assert not dialog.busy
    assert dialog.problem.text()
    dialog.reject()
