"""How the command line reads the words of its options."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

FORMATS: Final = (".png", ".svg", ".pdf")
SIDES: Final = (240, 16_384)
SCALES: Final = (0.1, 16.0)


def assignment(text: str) -> tuple[str, str]:
    """Read PATH=VALUE."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not PATH=VALUE, for instance workload.batch=64")
    return path.strip(), value


def picture_file(text: str) -> Path:
    """Read the name of a file in a format that can be drawn."""
    if Path(text).suffix.lower() not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {', '.join(FORMATS)}")
    return Path(text)


def picture_size(text: str) -> tuple[int, int]:
    """Read a size in pixels, such as 1600x900."""
    match = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text)
    if match is None or not all(SIDES[0] <= int(side) <= SIDES[1] for side in match.groups()):
        limits = f"{SIDES[0]} to {SIDES[1]:,} pixels"
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 1600x900, each side {limits}")
    return int(match[1]), int(match[2])


def picture_scale(text: str) -> float:
    """Read a number of device pixels per pixel."""
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not SCALES[0] <= scale <= SCALES[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {SCALES[0]:g} to {SCALES[1]:g}")
    return scale
