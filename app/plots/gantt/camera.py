"""Which stretch of time and which ranks are shown: one camera for all charts, so that their axes are linked."""

from __future__ import annotations

from dataclasses import dataclass

OVERSCROLL = 0.04
DEEPEST = 1e-5
MOST_ROWS_ZOOM = 400.0


@dataclass(slots=True)
class TimeCamera:
    """Shows ``start_s`` to ``end_s`` of a whole of ``whole_s``; ``rows`` times fewer ranks than all, from ``top`` on.

    ``top`` is the part of all ranks that lies above the upper edge. ``fitted``: it follows the whole.
    """

    whole_s: float = 1.0
    start_s: float = 0.0
    end_s: float = 1.0
    rows: float = 1.0
    top: float = 0.0
    fitted: bool = True

    @property
    def span_s(self) -> float:
        """Time shown."""
        return self.end_s - self.start_s

    def show_whole(self, whole_s: float) -> None:
        """Take over another whole; a view that was fitted stays so, others keep their times if they can."""
        self.whole_s = whole_s
        if self.fitted:
            self.fit()
        else:
            self._set(self.start_s, self.span_s)

    def fit(self) -> None:
        """Show everything."""
        self.start_s, self.end_s, self.rows, self.top, self.fitted = 0.0, self.whole_s, 1.0, 0.0, True

    def zoom(self, factor: float, at_s: float) -> None:
        """Zoom so that a time keeps its place."""
        span = min(max(self.span_s / factor, self.whole_s * DEEPEST), self.whole_s * (1 + OVERSCROLL))
        part = (at_s - self.start_s) / self.span_s
        self._set(at_s - part * span, span)

    def zoom_rows(self, factor: float, at: float) -> None:
        """Show fewer or more ranks; ``at`` is the place on the chart that stays, from 0 to 1."""
        rows = min(max(self.rows * factor, 1.0), MOST_ROWS_ZOOM)
        place = self.top + at / self.rows
        self.rows = rows
        self._set_top(place - at / rows)

    def pan(self, shift_s: float, rows: float) -> None:
        """Move to later times and by a part of the ranks shown."""
        self._set(self.start_s + shift_s, self.span_s)
        self._set_top(self.top + rows / self.rows)

    def show(self, start_s: float, end_s: float, top: float = 0.0, bottom: float = 1.0) -> None:
        """Show a stretch of time and of ranks, the latter as parts of all."""
        span = max(end_s - start_s, self.whole_s * DEEPEST)
        self.rows = min(max(1.0 / max(bottom - top, 1e-9), 1.0), MOST_ROWS_ZOOM)
        self._set(start_s, min(span, self.whole_s * (1 + OVERSCROLL)))
        self._set_top(top)

    def reveal(self, start_s: float, end_s: float) -> None:
        """Move just so far that a stretch of time can be seen."""
        margin = 0.05 * self.span_s
        if start_s < self.start_s:
            self._set(start_s - margin, self.span_s)
        elif end_s > self.end_s:
            self._set(end_s + margin - self.span_s, self.span_s)

    def reveal_rows(self, top: float, bottom: float) -> None:
        """Move just so far that some ranks can be seen, given as parts of all."""
        if top < self.top:
            self._set_top(top)
        elif bottom > self.top + 1.0 / self.rows:
            self._set_top(bottom - 1.0 / self.rows)

    def _set(self, start_s: float, span_s: float) -> None:
        slack = OVERSCROLL * min(self.whole_s, span_s)
        latest = max(self.whole_s + slack - span_s, -slack)
        self.start_s = min(max(start_s, -slack), latest)
        self.end_s = self.start_s + span_s
        self.fitted = False

    def _set_top(self, top: float) -> None:
        self.top = min(max(top, 0.0), 1.0 - 1.0 / self.rows)
        self.fitted = False
