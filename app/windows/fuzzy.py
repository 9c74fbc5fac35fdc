"""Fuzzy matching for the command palette."""

from __future__ import annotations

from dataclasses import dataclass

_WORD_START = 8
_CONSECUTIVE = 5
_GAP = 1


@dataclass(frozen=True)
class Match:
    """How well a query fits a text (higher is better), and which letters it hit."""

    score: int
    positions: tuple[int, ...]


def fuzzy_match(query: str, text: str) -> Match | None:
    """Match the letters of a query, in order, against a text; words of the query may come in any order.

    Returns:
        None where a letter is missing.
    """
    folded = text.lower()
    score = 0
    positions: list[int] = []
    for word in query.lower().split():
        found = _match_word(word, folded)
        if found is None:
            return None
        score += found.score
        positions += found.positions
    return Match(score * 4 - len(text) // 8, tuple(sorted(set(positions))))


def _match_word(word: str, text: str) -> Match | None:
    whole = _best_occurrence(word, text)
    if whole is not None:
        return whole
    starts = [i for i, letter in enumerate(text) if letter == word[0]]
    candidates = [m for m in (_match_from(word, text, start) for start in starts) if m is not None]
    return max(candidates, key=_score, default=None)


def _best_occurrence(word: str, text: str) -> Match | None:
    starts = []
    start = text.find(word)
    while start >= 0:
        starts.append(start)
        start = text.find(word, start + 1)
    if not starts:
        return None
    best = next((s for s in starts if _starts_word(text, s)), starts[0])
    bonus = _WORD_START if _starts_word(text, best) else 0
    return Match(_CONSECUTIVE * 2 * len(word) + bonus, tuple(range(best, best + len(word))))


def _match_from(word: str, text: str, start: int) -> Match | None:
    position, score = start, 0
    positions: list[int] = []
    for letter in word:
        hit = text.find(letter, position)
        if hit < 0:
            return None
        adjacent = bool(positions) and hit == positions[-1] + 1
        score += _CONSECUTIVE if adjacent else -_GAP
        score += _WORD_START if _starts_word(text, hit) else 0
        positions.append(hit)
        position = hit + 1
    return Match(score, tuple(positions))


def _starts_word(text: str, index: int) -> bool:
    return index == 0 or (not text[index - 1].isalnum() and text[index].isalnum())


def _score(match: Match) -> int:
    return match.score
