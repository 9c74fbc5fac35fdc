"""Standard output and standard error of the command line: closed, full or with a reader that ended."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress


class _ClosedOutput(io.TextIOBase):
    """Stands for a standard output that is closed: writing fails as it does on a closed file."""

    def writable(self) -> bool:
        return True

    def write(self, _text: str, /) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def prepare_streams() -> None:
    """Let any text be written, and make writing to a closed output an `OSError`."""
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_output_error(error: OSError) -> bool:
    """Whether writing text failed; an error of a file names that file."""
    return error.filename is None


def report_output_error(error: OSError) -> int:
    """Say why output cannot be written, unless its reader ended; return the exit code."""
    if not isinstance(error, BrokenPipeError):
        with suppress(OSError):
            sys.stderr.write(f"error: cannot write the output: {error.strerror or error}\n")
    for stream in (sys.stdout, sys.stderr):
        # What is left in a buffer would be written at exit, and fail again.
        with suppress(OSError):
            stream.flush()
            continue
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 1
