"""Memoisation of evaluation stages on the identity of the parts they read.

Specs are frozen and an edit replaces only the parts it touches, so identity is an exact and very cheap
key; undo and redo bring the old parts back and find their results again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def memoised(capacity: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep the last ``capacity`` results of a pure function of immutable positional arguments.

    Numbers, strings, ``None`` and enumerations are compared by value, other arguments by identity; the
    arguments are kept alive with the result, so an identity cannot be taken over by another object.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        results: OrderedDict[tuple[object, ...], tuple[tuple[object, ...], R]] = OrderedDict()
        lock = Lock()

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            key = tuple(a if isinstance(a, int | float | str | None) else id(a) for a in args)
            with lock:
                if key in results:
                    results.move_to_end(key)
                    return results[key][1]
            result = function(*args, **kwargs)
            with lock:
                results[key] = (args, result)
                if len(results) > capacity:
                    results.popitem(last=False)
            return result

        return call

    return decorate
