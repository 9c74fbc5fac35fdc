"""What the panels read out: problems, the explanation of a number, and the headline."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPersistentModelIndex, Qt, QUrl
from PySide6.QtGui import QImage, QTextDocument
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QApplication, QTextBrowser
from pytestqt.qtbot import QtBot

import presets
from app.document import DesignDocument
from app.i18n import set_language
from app.panels.explain import ExplainPanel
from app.panels.headline import HeadlineCell, HeadlineStrip
from app.panels.headline_data import headline
from app.panels.html_patch import patch_html
from app.panels.numbers import change_text, filled_in, value_text
from app.panels.problems import ProblemsPanel
from app.panels.problems_model import Column, ProblemsModel
from app.theme import DARK, apply
from model_core import evaluate
from model_core.diagnostics import Diagnostic
from model_core.explain import tensors
from model_core.quantities import FORMULAS, Formula, Quantity, Term
from model_core.spec import Design, Evidence, replace_at
from model_core.units import CHIP_SECONDS, COUNT, RATIO, SECONDS, TOKENS_PER_S, Dimension

FITS, LATENCY, MFU, THROUGHPUT, COST, MEMORY, BOUND = range(7)


def texts(model: ProblemsModel, column: Column) -> list[str]:
    return [str(model.index(row, column).data()) for row in range(model.rowCount())]


@pytest.fixture
def problems(qtbot: QtBot, document: DesignDocument) -> ProblemsPanel:
    panel = ProblemsPanel(document)
    qtbot.addWidget(panel)
    panel.resize(900, 200)
    panel.show()
    return panel


@pytest.fixture
def card(qtbot: QtBot, document: DesignDocument) -> ExplainPanel:
    panel = ExplainPanel(document)
    qtbot.addWidget(panel)
    panel.resize(320, 600)
    panel.show()
    return panel


@pytest.fixture
def strip(qtbot: QtBot, document: DesignDocument) -> HeadlineStrip:
    made = HeadlineStrip(document)
    qtbot.addWidget(made)
    made.resize(1280, 70)
    made.show()
    return made


def test_that_the_problems_model_keeps_qts_rules() -> None:
    model = ProblemsModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    found = Diagnostic("decode_without_output", "workload.output_length")
    assert model.set_diagnostics((found,))
    assert not model.set_diagnostics((found,))
    assert model.set_diagnostics(())
    assert model.rowCount() == 0


def test_that_rows_of_problems_that_remain_stay() -> None:
    model = ProblemsModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    changed: list[tuple[int, int]] = []
    model.dataChanged.connect(lambda first, _last, _roles: changed.append((first.row(), first.column())))
    model.set_diagnostics((problem("a", 1), problem("c", 1), problem("d", 1)))
    kept = QPersistentModelIndex(model.index(2, Column.FIELD))
    model.set_diagnostics((problem("a", 1), problem("b", 1), problem("d", 2)))
    assert texts(model, Column.FIELD) == ["a", "b", "d"]
    assert (kept.row(), kept.data()) == (2, "d")
    assert changed == [(2, Column.MESSAGE)]
    model.set_diagnostics((problem("d", 2),))
    assert (kept.row(), texts(model, Column.FIELD)) == (0, ["d"])


def problem(path: str, size: int) -> Diagnostic:
    values = {"size": size, "used": "x", "replicas": 2, "ways": 4}
    return Diagnostic("batch_partly_sharded", path, values)


def test_that_the_table_shows_every_word_of_severity_and_field(
    document: DesignDocument, problems: ProblemsPanel
) -> None:
    document.edit("workload.batch", 97)
    document.evaluate_now()
    metrics, table = problems.table.fontMetrics(), problems.table
    for row in range(problems.count):
        for column in (Column.SEVERITY, Column.FIELD):
            text = str(table.model().index(row, column).data())
            assert metrics.horizontalAdvance(text) + 12 <= table.columnWidth(column)
    assert table.grab().toImage() != QImage()


def test_that_problems_come_worst_first(document: DesignDocument, problems: ProblemsPanel) -> None:
    document.edit("workload.input_length", 300_000)
    document.edit("cluster.topology.shape", (4, 4, 6))
    document.evaluate_now()
    model = problems.table.model()
    assert isinstance(model, ProblemsModel)
    severities = texts(model, Column.SEVERITY)
    order = {"Error": 0, "Warning": 1, "Note": 2}
    assert severities == sorted(severities, key=order.__getitem__)
    assert {"Error", "Warning"} <= set(severities)
    assert "cluster.chip.hbm_capacity" in texts(model, Column.FIELD)
    assert all(texts(model, Column.HINT))


def test_that_a_problem_leads_to_its_field(
    qtbot: QtBot, document: DesignDocument, problems: ProblemsPanel
) -> None:
    with qtbot.waitSignal(problems.count_changed) as counted:
        document.edit("model.d_model", 18433)
        document.evaluate_now()
    assert counted.args == [problems.count]
    assert problems.count > 0
    problems.table.selectRow(0)
    with qtbot.waitSignal(problems.field_requested) as requested:
        qtbot.keyClick(problems.table, Qt.Key.Key_Return)
    assert requested.args == ["model.d_model"]
    place = problems.table.visualRect(problems.table.model().index(0, Column.MESSAGE)).center()
    qtbot.mouseClick(problems.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    with qtbot.waitSignal(problems.field_requested) as requested:
        qtbot.mouseDClick(problems.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert requested.args == ["model.d_model"]


def test_that_the_card_says_all_about_a_number(document: DesignDocument, card: ExplainPanel) -> None:
    document.select("mfu")
    assert document.evaluation is not None
    quantity = document.evaluation.explain("mfu")
    assert quantity is not None
    for text in (quantity.label, quantity.formula.title, "modelled", quantity.note, quantity.formula.source):
        assert text in card.text
    for term in quantity.terms:
        assert term.meaning in card.text
        assert term.text in card.text.replace("\N{NO-BREAK SPACE}", " ")


def test_that_the_card_follows_the_design(document: DesignDocument, card: ExplainPanel) -> None:
    document.select("step_s")
    before = card.text
    document.edit("workload.batch", 512)
    document.evaluate_now()
    assert card.text != before
    assert "Latency per token" in card.text
    document.undo_stack.undo()
    document.evaluate_now()
    assert card.text == before


def test_that_the_card_is_changed_in_place_to_what_it_would_be_anew(
    document: DesignDocument, card: ExplainPanel
) -> None:
    assert document.evaluation is not None
    browser = card.findChild(QTextBrowser)
    assert isinstance(browser, QTextBrowser)
    for key in ("", *document.evaluation.quantities, "op/block/0", "tensor/block/W_in"):
        document.select(key)
        for batch in (33, 96, 64):
            document.edit("workload.batch", batch)
            document.evaluate_now()
            changed = browser.document().toHtml()
            fresh = ExplainPanel(document)
            again = fresh.findChild(QTextBrowser)
            assert isinstance(again, QTextBrowser)
            assert again.document().toHtml() == changed
            fresh.deleteLater()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<p>one <b>two</b></p>", "<p>one two</p>"),
        ("<p>one</p><p></p>", "<p>one</p><p>two</p>"),
        ("<p>one  spaced</p>", "<p>two  spaced</p>"),
        ("<p>\N{GRINNING FACE} one</p>", "<p>\N{GRINNING FACE} two</p>"),
    ],
)
def test_that_what_cannot_be_changed_in_place_is_left_alone(
    before: str, after: str, qapp: QApplication
) -> None:
    document = QTextDocument()
    document.setHtml(before)
    html = document.toHtml()
    assert not patch_html(document, before, after)
    assert document.toHtml() == html


def test_that_nothing_selected_offers_the_headline(document: DesignDocument, card: ExplainPanel) -> None:
    assert "Longest context" in card.text
    browser = card.findChild(QTextBrowser)
    assert isinstance(browser, QTextBrowser)
    browser.anchorClicked.emit(QUrl("max_context"))
    assert document.selection == "max_context"
    assert "Pope 3.3" in card.text


def test_that_a_selection_survives_another_number(document: DesignDocument, card: ExplainPanel) -> None:
    document.select("mfu")
    browser = card.findChild(QTextBrowser)
    assert isinstance(browser, QTextBrowser)
    browser.selectAll()
    document.edit("workload.batch", 128)
    document.evaluate_now()
    assert "MFU" in browser.textCursor().selectedText()
    document.select("step_s")
    assert not browser.textCursor().hasSelection()


def test_that_what_cannot_be_computed_says_so(document: DesignDocument, card: ExplainPanel) -> None:
    document.select("op/block/0")
    assert "all-gather" in card.text
    document.edit("workload.output_length", 0)
    document.evaluate_now()
    assert document.stale
    assert "last design that could be evaluated" in card.text
    document.select("no/such/number")
    assert "cannot be computed" in card.text


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_that_every_number_has_a_card(document: DesignDocument, card: ExplainPanel, language: str) -> None:
    set_language(language)
    evaluation = document.evaluation
    assert evaluation is not None
    assert evaluation.time is not None
    keys = [*evaluation.quantities, *(f"op/{op.program}/{op.index}" for op in evaluation.time.ops)]
    keys += [f"tensor/block/{tensor.name}" for tensor in tensors(evaluation.programs["block"])]
    for key in keys:
        document.select(key)
        quantity = evaluation.explain(key)
        assert quantity is not None
        value = value_text(quantity.value, quantity.dimension)
        assert value in card.text.replace("\N{NO-BREAK SPACE}", " "), key


def test_that_the_card_takes_over_a_theme(document: DesignDocument, card: ExplainPanel, qapp: object) -> None:
    from PySide6.QtWidgets import QApplication

    document.select("mfu")
    browser = card.findChild(QTextBrowser)
    assert isinstance(browser, QTextBrowser)
    before = browser.toHtml()
    assert isinstance(qapp, QApplication)
    apply(qapp, DARK)
    assert browser.toHtml() != before


def test_that_the_headline_has_every_number(strip: HeadlineStrip) -> None:
    cells = [cell.cell for cell in strip.cells]
    assert cells[FITS].value == "yes"
    assert "of 32 GiB" in cells[FITS].detail
    assert cells[LATENCY].caption == "Latency per token"
    assert "for 64 tokens" in cells[LATENCY].detail
    assert cells[BOUND].value == "communication"
    assert all(cell.value != "—" and cell.evidence is not None for cell in cells)


def test_that_uncalibrated_numbers_are_marked_as_bounds(
    document: DesignDocument, strip: HeadlineStrip
) -> None:
    assert strip.cells[LATENCY].cell.value[0].isdigit()
    document.edit("plan.calibration", "none")
    document.evaluate_now()
    values = [cell.cell.value for cell in strip.cells]
    assert values[LATENCY].startswith("≥")
    assert values[COST].startswith("≥")
    assert values[MFU].startswith("≤")
    assert values[THROUGHPUT].startswith("≤")
    assert values[MEMORY][0].isdigit()


def test_that_changes_are_judged_against_the_baseline(document: DesignDocument, strip: HeadlineStrip) -> None:
    document.pin_baseline()
    assert strip.cells[LATENCY].cell.change is not None
    document.edit("plan.weight_dtype", "bfloat16")
    document.edit("workload.batch", 256)
    document.evaluate_now()
    latency, throughput = strip.cells[LATENCY].cell.change, strip.cells[THROUGHPUT].cell.change
    assert latency is not None
    assert throughput is not None
    assert latency.text.startswith("▲ +")
    assert latency.better is False
    assert "worse" in strip.cells[LATENCY].toolTip()
    assert throughput.text.startswith("▲ +")
    assert throughput.better is True
    assert "better" in strip.cells[THROUGHPUT].toolTip()
    document.clear_baseline()
    assert "baseline" not in strip.cells[LATENCY].toolTip()


def test_that_missing_numbers_are_dashes(document: DesignDocument, strip: HeadlineStrip) -> None:
    document.show_design(replace_at(presets.load_design("llama-3.1-70b-h100"), "workload.output_length", 0))
    document.evaluate_now()
    assert strip.cells[MFU].cell.value == "—"
    assert not strip.cells[MFU].isEnabled()
    assert strip.cells[MEMORY].isEnabled()
    assert not strip.grab().isNull()


def test_that_a_click_explains_the_number(
    qtbot: QtBot, document: DesignDocument, strip: HeadlineStrip
) -> None:
    qtbot.mouseClick(strip.cells[MEMORY], Qt.MouseButton.LeftButton)
    assert document.selection == "memory_per_chip_bytes"
    assert [cell.isChecked() for cell in strip.cells].index(True) == MEMORY
    strip.cells[MFU].setFocus()
    qtbot.keyClick(strip.cells[MFU], Qt.Key.Key_Space)
    assert document.selection == "mfu"
    assert [cell.isChecked() for cell in strip.cells] == [index == MFU for index in range(7)]
    document.select("")
    assert not any(cell.isChecked() for cell in strip.cells)


def test_that_cells_are_reached_by_keyboard_and_read_aloud(strip: HeadlineStrip) -> None:
    for cell in strip.findChildren(HeadlineCell):
        assert cell.focusPolicy() & Qt.FocusPolicy.TabFocus
        assert cell.cell.value in cell.accessibleName()
        assert cell.cell.caption in cell.accessibleName()


def test_that_new_numbers_move_nothing(document: DesignDocument, strip: HeadlineStrip) -> None:
    before = [cell.geometry() for cell in strip.cells]
    document.pin_baseline()
    document.edit("workload.batch", 9999)
    document.evaluate_now()
    assert [cell.geometry() for cell in strip.cells] == before


def test_that_a_design_that_does_not_fit_is_told_in_words(design: Design) -> None:
    big = evaluate(replace_at(design, "workload.input_length", 300_000))
    cells = headline(big, evaluate(design))
    assert cells[FITS].value == "no"
    assert cells[FITS].state == "error"
    change = cells[FITS].change
    assert change is not None
    assert change.better is False
    assert change.text == "was yes"


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (0.00967, CHIP_SECONDS, "9.67 chip·ms"),
        (6617.4, TOKENS_PER_S, "6,617 tok/s"),
        (2.5e6, TOKENS_PER_S, "2.5 Mtok/s"),
        (0.0297, SECONDS, "29.7 ms"),
    ],
)
def test_that_numbers_read_well(value: float, dimension: Dimension, text: str) -> None:
    assert value_text(value, dimension) == text


@pytest.mark.parametrize(
    ("change", "dimension", "text"),
    [(-0.0009, SECONDS, "−900 µs"), (0.004, RATIO, "+0.4 pp"), (120.0, TOKENS_PER_S, "+120 tok/s")],
)
def test_that_changes_are_signed(change: float, dimension: Dimension, text: str) -> None:
    assert change_text(change, dimension) == text


def test_that_a_formula_is_filled_in_only_where_all_its_symbols_are_known() -> None:
    terms = (Term("step", "", 0.02, SECONDS), Term("steps", "", 64, COUNT))
    known = Formula("f", "", "step · steps; and prose", "")
    assert filled_in(Quantity("q", "", 1.0, SECONDS, known, terms, Evidence.MODELLED)) == "20 ms · 64"
    unknown = Formula("f", "", "step · steps · K", "")
    assert filled_in(Quantity("q", "", 1.0, SECONDS, unknown, terms, Evidence.MODELLED)) == ""
    assert FORMULAS["latency_s"].expression.startswith("step · steps")
