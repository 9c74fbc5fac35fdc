"""Every text of the core that a user can see has a translation; terms of the field may stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import presets
from app.i18n import LANGUAGES, translations
from app.panels.core_text import PATTERNS, pattern_of
from model_core import Evaluation, evaluate
from model_core.diagnostics import CATALOGUE
from model_core.explain import tensors
from model_core.partition.notation import DIMENSION_NAMES
from model_core.quantities import FORMULAS
from model_core.spec import Spec

# Symbols, tensors with their sharding, einsums and collectives with their axes: the same in every language.
NOTATION = re.compile(
    r"[\w·≫.]+|[A-Z]+(,[A-Z]+)?->[A-Z]+|[\w. ]+: ([A-Z](_[a-z]+)?)+(\(partialsum-[a-z]+\))?|[a-z-]+\([a-z]+\)"
)
PLACEHOLDER = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
OTHERS = [language for language in LANGUAGES if language != "en"]


def _specs(base: type[Spec] = Spec) -> Iterator[type[Spec]]:
    yield base
    for child in base.__subclasses__():
        yield from _specs(child)


def _keys(evaluation: Evaluation) -> Iterator[str]:
    yield from evaluation.quantities
    yield from (f"op/{op.program}/{op.index}" for op in (evaluation.time.ops if evaluation.time else ()))
    yield from (f"memory/{item.name}" for item in (evaluation.memory.items if evaluation.memory else ()))
    yield from (f"parameters/{g}" for g in (evaluation.parameters.groups if evaluation.parameters else ()))
    for name, program in evaluation.programs.items():
        yield from (f"tensor/{name}/{tensor.name}" for tensor in tensors(program))


def _evaluated_texts() -> Iterator[str]:
    for name in presets.names("designs"):
        evaluation = evaluate(presets.load_design(name))
        if evaluation.time is not None:
            yield evaluation.time.bound_by
        for program in evaluation.programs.values():
            yield from (title for title, _ in program.sections)
        for key in _keys(evaluation):
            quantity = evaluation.explain(key)
            assert quantity is not None, key
            yield from (quantity.label, quantity.note, quantity.formula.title, quantity.formula.assumes)
            yield from (term.meaning for term in quantity.terms)
        yield from (item.name for item in (evaluation.memory.items if evaluation.memory else ()))


def _core_texts() -> set[str]:
    texts = {text for template in CATALOGUE.values() for text in (template.message, template.hint)}
    texts |= {field.description or "" for spec in _specs() for field in spec.model_fields.values()}
    texts |= {text for formula in FORMULAS.values() for text in (formula.title, formula.assumes)}
    texts |= set(DIMENSION_NAMES.values())
    texts |= {f"{name} ({letter})" for letter, name in DIMENSION_NAMES.items()}
    texts |= set(PATTERNS) | set(_evaluated_texts())
    return {" ".join(text.split()) for text in texts} - {""}


@pytest.mark.parametrize("language", OTHERS)
def test_that_every_text_of_the_core_has_a_translation(language: str) -> None:
    known = translations(language)
    missing = sorted(
        text
        for text in _core_texts()
        if text not in known
        and not NOTATION.fullmatch(text)
        and not any(pattern_of(template).fullmatch(text) for template in PATTERNS)
    )
    assert not missing


@pytest.mark.parametrize("language", OTHERS)
def test_that_translations_keep_the_placeholders(language: str) -> None:
    wrong = {
        source: text
        for source, text in translations(language).items()
        if sorted(PLACEHOLDER.findall(source)) != sorted(PLACEHOLDER.findall(text))
    }
    assert not wrong


@pytest.mark.parametrize("language", OTHERS)
def test_that_sentences_are_not_left_in_english(language: str) -> None:
    known = translations(language)
    left = [
        text for text in _core_texts() if known.get(text) == text and len(re.findall("[a-z]{3,}", text)) > 3
    ]
    assert not left
