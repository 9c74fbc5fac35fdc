"""Every text has a translation, every translation a text, and both the same placeholders."""

from __future__ import annotations

import ast
import json
import os
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import app
from app.i18n import FOLDER, LANGUAGES, language, set_language, system_language, tr, tr_diagnostic, tr_text
from model_core.diagnostics import Diagnostic

APP = Path(app.__file__).parent
TRANSLATED = [name for name in LANGUAGES if name != "en"]
# Texts of the core have a part file of their own and a test of their own.
CORE_PARTS = {"calibration", "core", "experts", "experts_model", "schedule", "search", "training"}


def calls_of_tr(source: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tr":
            yield node


def literal(call: ast.Call) -> str | None:
    argument = call.args[0] if call.args else None
    value = argument.value if isinstance(argument, ast.Constant) else None
    return value if isinstance(value, str) else None


def literals() -> dict[str, str]:
    """Every literal inside tr(...) and the file it is in."""
    found: dict[str, str] = {}
    for path in APP.rglob("*.py"):
        for call in calls_of_tr(path.read_text(encoding="utf-8")):
            text = literal(call)
            if text is not None:
                found[text] = str(path.relative_to(APP))
    return found


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def part_files(name: str) -> list[Path]:
    return sorted(FOLDER.glob(f"parts/*.{name}.json")) + sorted(FOLDER.glob(f"{name}.json"))


def pairs(path: Path) -> dict[str, str]:
    content: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return content


def all_pairs(name: str) -> dict[str, str]:
    return {source: text for path in part_files(name) for source, text in pairs(path).items()}


def test_that_the_scan_sees_literals_and_other_arguments() -> None:
    calls = list(calls_of_tr('tr("Open {name}", name=x)\ntr(variable)\ntr(f"a{b}")'))
    assert [literal(call) for call in calls] == ["Open {name}", None, None]


@pytest.mark.parametrize("path", sorted(APP.rglob("*.py")), ids=lambda p: str(p.relative_to(APP)))
def test_that_tr_is_called_with_literals_only(path: Path) -> None:
    calls = calls_of_tr(path.read_text(encoding="utf-8"))
    wrong = [call.lineno for call in calls if literal(call) is None]
    inside = path.name == "i18n.py"
    assert not wrong or inside, f"{path.name}: use tr_text for texts that are not literals, lines {wrong}"


@pytest.mark.parametrize("path", sorted(APP.rglob("*.py")), ids=lambda p: str(p.relative_to(APP)))
def test_that_tr_is_given_a_value_for_each_placeholder(path: Path) -> None:
    for call in calls_of_tr(path.read_text(encoding="utf-8")):
        text = literal(call)
        given = {keyword.arg for keyword in call.keywords}
        if text is not None and None not in given:
            assert placeholders(text) == given, f"{path.name}:{call.lineno}"


@pytest.mark.parametrize("name", TRANSLATED)
def test_that_no_text_is_untranslated(name: str) -> None:
    known = all_pairs(name)
    missing = {text: where for text, where in literals().items() if not known.get(text)}
    assert not missing


@pytest.mark.parametrize("name", TRANSLATED)
def test_that_no_translation_is_stale(name: str) -> None:
    used = literals()
    stale = {
        source: path.name
        for path in part_files(name)
        if path.name.partition(".")[0] not in CORE_PARTS
        for source in pairs(path)
        if source not in used
    }
    assert not stale


@pytest.mark.parametrize("name", TRANSLATED)
def test_that_translations_keep_the_placeholders(name: str) -> None:
    wrong = [s for s, t in all_pairs(name).items() if placeholders(s) != placeholders(t)]
    assert not wrong


@pytest.mark.parametrize("name", TRANSLATED)
def test_that_parts_do_not_contradict_each_other(name: str) -> None:
    seen: dict[str, str] = {}
    for path in part_files(name):
        for source, text in pairs(path).items():
            assert seen.setdefault(source, text) == text, f"{path.name}: {source}"


def test_that_values_are_filled_in_the_chosen_language() -> None:
    set_language("zh_CN")
    assert tr("Model: {title}", title="PaLM 62B") == "模型：PaLM 62B"
    set_language("en")
    assert tr("Model: {title}", title="PaLM 62B") == "Model: PaLM 62B"


def test_that_an_unknown_text_stays_english() -> None:
    set_language("zh_CN")
    assert tr_text("no translation has this") == "no translation has this"


def test_that_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="zh_CN"):
        set_language("tlh")
    assert language() == "en"


def test_that_a_diagnostic_is_filled_with_its_values() -> None:
    found = Diagnostic("mesh_axis_reused", "plan.mesh", {"axis": "x"})
    assert tr_diagnostic(found) == (found.message, found.hint)
    set_language("zh_CN")
    message, hint = tr_diagnostic(found)
    assert "x" in message
    assert message != found.message
    assert hint != found.hint


@pytest.mark.parametrize(
    ("value", "expected"),
    [("zh_CN.UTF-8", "zh_CN"), ("zh_Hans", "zh_CN"), ("de_DE.UTF-8", "en"), ("C", "en")],
)
def test_that_the_environment_chooses_the_first_language(
    value: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", value)
    assert system_language() == expected


def test_that_the_command_line_can_translate_without_qt() -> None:
    code = (
        "import sys, app.i18n as i; i.tr('Open'); sys.exit(any(m.startswith('PySide6') for m in sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(APP.parent)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
