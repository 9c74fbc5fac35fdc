"""What the command line calls DESIGN: a file or a preset, with ``--set path=value`` applied. Needs no Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import presets
from model_core.diagnostics import Diagnostic
from model_core.spec import Design, Spec
from model_core.spec.edits import edit, edit_texts
from model_core.spec.io import Outcome, read_design

PARTS: Final[dict[str, tuple[presets.Kind, Callable[[str], Spec]]]] = {
    "model": ("models", presets.load_model),
    "cluster": ("clusters", presets.load_cluster),
    "cluster.chip": ("chips", presets.load_chip),
    "workload": ("workloads", presets.load_workload),
}
"""Parts of a design that ``--set`` takes from a preset, outer parts first."""


def open_design(name: str, assignments: Iterable[tuple[str, str]], commands: Iterable[str] = ()) -> Outcome:
    """Load a design and set fields of it.

    Args:
        name: a preset's name or a file.
        assignments: paths and values as typed; a part such as ``cluster`` may name a preset.
        commands: further names to suggest when there is no such design.
    """
    design, found = _load(name, commands)
    return (None, found) if design is None else _assign(design, dict(assignments))


def design_file(name: str) -> Path | None:
    """Return the file that DESIGN names, or ``None`` where it names a preset."""
    return None if name in presets.names("designs") else Path(name)


def is_design(name: str) -> bool:
    """Whether DESIGN can only mean a design: the name of a preset, or what looks like a file."""
    path = design_file(name)
    return path is None or path.suffix == ".json" or path.parent != Path() or _exists(path)


def _load(name: str, commands: Iterable[str]) -> Outcome:
    path = design_file(name)
    if path is None:
        return presets.load_design(name), ()
    if name and is_design(name):
        return read_design(path)
    return None, (_unknown_preset(name, [*presets.names("designs"), *commands], ""),)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # reading it will say what is wrong


def _assign(design: Design, texts: dict[str, str]) -> Outcome:
    problems: list[Diagnostic] = []
    for path, (kind, load) in PARTS.items():
        if path not in texts or texts[path].lstrip().startswith("{"):
            continue
        text = texts.pop(path).strip()
        if text not in presets.names(kind):
            problems.append(_unknown_preset(text, presets.names(kind), path))
            continue
        changed, found = edit(design, path, load(text))
        design = design if changed is None else changed
        problems += found
    changed, found = edit_texts(design, texts)
    problems += found
    if problems or changed is None:
        return None, tuple(problems)
    return presets.with_calibration(changed), ()


def _unknown_preset(name: str, known: Iterable[str], path: str) -> Diagnostic:
    known = tuple(known)
    nearest = presets.nearest(name, known) or known[:3]
    return Diagnostic("preset_unknown", path, {"name": name or '""', "nearest": ", ".join(nearest)})


def unwritable(file: str | Path, error: OSError) -> Diagnostic:
    """Say why a file cannot be written."""
    return Diagnostic(
        "file_unwritable", "", {"file": str(file), "reason": (error.strerror or str(error)).lower()}
    )
