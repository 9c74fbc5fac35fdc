"""Design files: versioned JSON that is read with diagnostics and written atomically."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from model_core.diagnostics import Diagnostic
from model_core.spec.base import Spec
from model_core.spec.design import Design
from model_core.spec.errors import diagnostics_of, unit_of
from model_core.units import BYTES, exact_text, format_quantity

FORMAT = "design"
FORMAT_VERSION = 1
SUFFIX = ".meshwright.json"
MAX_BYTES = 4 * 2**20
MAX_DEPTH = 32
MAX_DIGITS = 400

Outcome = tuple[Design | None, tuple[Diagnostic, ...]]
Migration = Callable[[dict[str, Any]], dict[str, Any]]

MIGRATIONS: Mapping[int, Migration] = {}
"""For each older version the function that brings the ``design`` object to the next version."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d+|[{}\[\]:,]', re.DOTALL)


def read_design(path: str | Path) -> Outcome:
    """Read a design file.

    Returns:
        The design, or ``None`` and the diagnostics that say why there is none. Never raises.
    """
    try:
        content = _content_of(Path(path))
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        return None, (Diagnostic("file_unreadable", "", {"file": str(path), "reason": reason}),)
    if len(content) > MAX_BYTES:
        return None, (_too_large(),)
    try:
        return parse_design(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        reason = f"byte 0x{content[error.start]:02x} is not UTF-8 text"
        return None, (_not_json(before, len(before), reason),)


def parse_design(text: str) -> Outcome:
    """Read a design from the text of a file; see `read_design`."""
    if len(text) > MAX_BYTES:
        return None, (_too_large(),)
    document, problem = _parse_json(text.removeprefix("\ufeff"))
    if problem is not None:
        return None, (problem,)
    content, problems = _open_envelope(document)
    if content is None:
        return None, problems
    try:
        design = Design.model_validate(content)
    except ValidationError as error:
        return None, problems + diagnostics_of(error)
    return (None if problems else design), problems


def dump_design(design: Design) -> str:
    """Write a design as the text of a file; quantities carry their units."""
    envelope = {"format": FORMAT, "version": FORMAT_VERSION}
    document = {"meshwright": envelope, "design": _with_units(design)}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def write_design(design: Design, path: str | Path) -> None:
    """Save a design so that the file always holds either the old or the new content.

    A symbolic link is followed and keeps pointing where it did; permissions are kept.

    Raises:
        OSError: the file cannot be written; an existing file is left as it was.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(dump_design(design).encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def upgrade(
    content: dict[str, Any],
    version: int,
    target: int = FORMAT_VERSION,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> dict[str, Any]:
    """Bring the ``design`` object of an older version to the target version, step by step."""
    for step in range(version, target):
        content = migrations[step](content)
    return content


def _content_of(path: Path) -> bytes:
    """Read at most one byte more than a design may have; a pipe or a device is never opened."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _parse_json(text: str) -> tuple[Any, Diagnostic | None]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}" if text.strip() else "the file is empty"
        return None, _not_json(text, error.pos, reason)
    except (RecursionError, ValueError) as error:
        return None, _first_fault(text) or _not_json(text, 0, str(error))
    return document, _first_fault(text)


def _first_fault(text: str) -> Diagnostic | None:
    """Find what Python's reader lets pass or chokes on: repeated keys, NaN, depth, endless numbers."""
    keys: list[set[str] | None] = []
    previous = ""
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in "{[":
            keys.append(set() if word == "{" else None)
            if len(keys) > MAX_DEPTH:
                return _not_json(text, token.start(), f"more than {MAX_DEPTH} levels deep")
        elif word in "}]":
            if keys:
                keys.pop()
        elif word in ("NaN", "Infinity", "-Infinity"):
            return _not_json(text, token.start(), f"{word} is not a number in JSON")
        elif len(word) > MAX_DIGITS and word[0] != '"':
            return _not_json(text, token.start(), f"a number with {len(word):,} digits")
        elif word[0] == '"' and keys and keys[-1] is not None and previous in ("{", ","):
            name = json.loads(word, strict=False)
            if name in keys[-1]:
                return _not_json(text, token.start(), f"the key {word[:40]} is repeated")
            keys[-1].add(name)
        previous = word
    return None


def _open_envelope(document: Any) -> tuple[dict[str, Any] | None, tuple[Diagnostic, ...]]:
    """Check the header, upgrade an older version and return the ``design`` object."""
    reason = _foreign(document)
    if reason:
        return None, (_file_foreign(reason),)
    version = document["meshwright"]["version"]
    if version > FORMAT_VERSION:
        return None, (Diagnostic("file_newer", "", {"found": version, "known": FORMAT_VERSION}),)
    extra = tuple(
        Diagnostic("field_unknown", name[:40], {"field": name[:40], "known": "meshwright, design"})
        for name in document
        if name not in ("meshwright", "design")
    )
    try:
        return upgrade(document["design"], version), extra
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return None, (_file_foreign(f"its version {version} cannot be upgraded ({type(error).__name__})"),)


def _foreign(document: Any) -> str:
    if not isinstance(document, dict):
        return f"it holds {_kind_of(document)} where an object is expected"
    header = document.get("meshwright")
    if not isinstance(header, dict):
        return 'it has no "meshwright" entry'
    if header.get("format") != FORMAT:
        return f"its format is {str(header.get('format'))[:40]!r}"
    version = header.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        return f"its version is {str(version)[:40]!r}"
    if not isinstance(document.get("design"), dict):
        return 'it has no "design" object'
    return ""


def _kind_of(value: Any) -> str:
    kinds = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "nothing (null)")


def _with_units(spec: Spec) -> dict[str, Any]:
    """Dump a description with its quantities as text that reads back to the same numbers."""
    plain = spec.model_dump(mode="json")
    for name, field in type(spec).model_fields.items():
        value, dimension = getattr(spec, name), unit_of(field)
        if isinstance(value, Spec):
            plain[name] = _with_units(value)
        elif dimension is not None and value is not None:
            plain[name] = exact_text(value, dimension)
    return plain


def _not_json(text: str, position: int, reason: str) -> Diagnostic:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return Diagnostic("file_not_json", "", {"line": line, "column": column, "reason": reason})


def _file_foreign(reason: str) -> Diagnostic:
    return Diagnostic("file_foreign", "", {"reason": reason, "version": FORMAT_VERSION})


def _too_large() -> Diagnostic:
    limit = format_quantity(MAX_BYTES, BYTES)
    values = {"size": f"more than {limit}", "limit": limit}
    return Diagnostic("file_too_large", "", values)


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself durable where the system allows it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
