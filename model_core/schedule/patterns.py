"""Orders of operations written as the papers describe them: phases of a repeated pattern."""

from __future__ import annotations

from functools import cache

import numpy as np

from model_core.schedule.operations import Ints, OpKind, code


def phases(*parts: tuple[str, int]) -> Ints:
    """Return the operations of one rank.

    Args:
        parts: patterns and how often each is repeated (negative: not at all). A pattern lists operations
            such as ``"F0"``, ``"B1"``, ``"I0"``, ``"W"`` (the oldest deferred backward for weights) and
            ``"FB01"`` (forward in lane 0 overlapped with backward in lane 1).
    """
    return np.concatenate([np.tile(_pattern(text), max(0, count)) for text, count in parts])


@cache
def _pattern(text: str) -> Ints:
    return np.array([_operation(word) for word in text.split()], np.int64)


def _operation(word: str) -> int:
    if word.startswith("FB"):
        return int(code(OpKind.OVERLAPPED, int(word[2]), int(word[3])))
    op = OpKind("FBIW".index(word[0]))
    return int(code(op, int(word[1:] or 0)))
