"""A cache of what Qt ties to the thread that made it.

Fonts carry the engine that draws them, and an engine belongs to one thread; a drawing is made in the
evaluation worker as well as on the main thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

Made = TypeVar("Made")


def per_thread(maxsize: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Remember the latest results of a function by its arguments, for every thread apart."""

    def decorate(function: Callable[..., Made]) -> Callable[..., Made]:
        own = threading.local()

        @wraps(function)
        def remembered(*arguments: Any) -> Made:
            cached: Callable[..., Made] | None = getattr(own, "cached", None)
            if cached is None:
                cached = own.cached = lru_cache(maxsize)(function)
            return cached(*arguments)

        return remembered

    return decorate
