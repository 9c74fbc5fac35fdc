"""Recomputes published figures with the live model and sets them beside the published values."""

from model_core.reproduce.rows import ReproducedRow, reproduce

__all__ = ["ReproducedRow", "reproduce"]
