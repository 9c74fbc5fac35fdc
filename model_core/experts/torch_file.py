"""Tensors out of ``torch.save`` files without torch, and without ever running a pickle.

A file of ``torch.save`` is a zip archive: a pickle that says how tensors are put together, and their raw
bytes. The pickle is read here operation by operation by a small machine that knows only plain values,
containers and the one call that rebuilds a tensor. Whatever else a pickle asks for is refused by name.
"""

from __future__ import annotations

import pickletools
import re
import struct
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from model_core.experts.arrays import Floats

MAX_PICKLE_BYTES: Final = 2**20
MAX_ELEMENTS: Final = 2**27
_MAX_DIMENSIONS: Final = 8
_LEGACY_MAGIC: Final = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."

_STORAGES: Final[dict[str, str]] = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "BFloat16Storage": "u2",
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "u1",
}
_REBUILD: Final = "torch._utils._rebuild_tensor_v2"
_ORDERED_DICT: Final = "collections.OrderedDict"
_ALLOWED: Final = {_REBUILD, _ORDERED_DICT, *(f"torch.{name}" for name in _STORAGES)}


class TorchFileError(ValueError):
    """The file is not one that can be read; ``place`` is where in it."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class UnsafePickleError(TorchFileError):
    """The pickle asks for ``name``, which only running code could give."""

    def __init__(self, place: str, name: str) -> None:
        super().__init__(place, name)
        self.name = name


@dataclass(frozen=True, slots=True)
class _Global:
    name: str


@dataclass(frozen=True, slots=True)
class _Storage:
    dtype: str
    is_bfloat16: bool
    key: str
    n_elements: int


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor as the pickle describes it; `TorchFile.array` reads its values."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


_MARK: Final = object()


class TorchFile:
    """An open ``torch.save`` file: ``content`` is its object, with a `TensorRecord` for each tensor.

    Raises:
        UnsafePickleError: the pickle asks for something else than tensors and plain values.
        TorchFileError: the file is damaged, too large, or of another format.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            if file.read(len(_LEGACY_MAGIC)) == _LEGACY_MAGIC:
                raise TorchFileError("start of the file", "it has the format of torch before 1.6")
        try:
            self._archive = zipfile.ZipFile(path)
        except zipfile.BadZipFile:
            raise TorchFileError("start of the file", "it is no archive of torch.save") from None
        try:
            self._prefix = self._find_prefix()
            pickle = self._member("data.pkl", MAX_PICKLE_BYTES)
            self._order = self._byte_order()
            self.content = _Machine(pickle).run()
        except BaseException:
            self._archive.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def _find_prefix(self) -> str:
        names = [name for name in self._archive.namelist() if name.rpartition("/")[2] == "data.pkl"]
        if len(names) != 1:
            raise TorchFileError("archive", "it holds no data.pkl")
        return names[0].removesuffix("data.pkl")

    def _byte_order(self) -> str:
        if self._prefix + "byteorder" not in self._archive.namelist():
            return "<"
        return ">" if self._member("byteorder", 16) == b"big" else "<"

    def _member(self, name: str, limit: int) -> bytes:
        place = f"{self._prefix}{name}"
        try:
            with self._archive.open(place) as member:
                data = member.read(limit + 1)
        except KeyError:
            raise TorchFileError(place, "it is missing from the archive") from None
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError) as error:
            raise TorchFileError(place, f"it cannot be unpacked ({error})") from None
        if len(data) > limit:
            raise TorchFileError(place, "it is too large")
        return data

    def array(self, record: TensorRecord) -> Floats:
        """Read the values of a tensor.

        Raises:
            TorchFileError: its bytes are missing or fewer than its shape needs.
        """
        storage = record.storage
        place = f"{self._prefix}data/{storage.key}"
        dtype = np.dtype(self._order + storage.dtype)
        data = self._member(f"data/{storage.key}", MAX_ELEMENTS * 8)
        if len(data) < storage.n_elements * dtype.itemsize:
            raise TorchFileError(place, "it has fewer bytes than the tensor needs")
        flat = np.frombuffer(data, dtype, storage.n_elements)
        if storage.is_bfloat16:
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        if 0 in record.shape:
            return np.zeros(record.shape)
        steps = tuple(stride * flat.itemsize for stride in record.strides)
        view = np.lib.stride_tricks.as_strided(flat[record.offset :], record.shape, steps, writeable=False)
        values: Floats = view.astype(np.float64)
        return values


class _Machine:
    """Runs the operations of one pickle on plain values; nothing is imported and nothing is called."""

    def __init__(self, pickle: bytes) -> None:
        self._pickle = pickle
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._place = ""

    def run(self) -> Any:
        """Return the pickled value."""
        try:
            for operation, argument, position in self._operations():
                self._place = f"data.pkl, byte {position}"
                if operation.name == "STOP":
                    return self._stack.pop()
                self._step(operation.name, argument)
        except TorchFileError:
            raise
        except (ValueError, TypeError, LookupError, OverflowError, AttributeError, struct.error) as error:
            raise TorchFileError(self._place or "data.pkl", f"the pickle is damaged ({error})") from None
        raise TorchFileError("data.pkl", "the pickle has no end")

    def _operations(self) -> list[tuple[pickletools.OpcodeInfo, Any, int | None]]:
        with warnings.catch_warnings():
            # Odd escapes in the texts of old protocols.
            warnings.simplefilter("ignore", DeprecationWarning)
            return list(pickletools.genops(self._pickle))

    def _step(self, name: str, argument: Any) -> None:
        if name in _PLAIN:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self._stack.append(_EMPTY[name]())
        elif name in _MEMO_WRITES:
            self._memo[len(self._memo) if argument is None else argument] = self._stack[-1]
        elif name in _MEMO_READS:
            self._stack.append(self._memo[argument])
        elif name not in _IGNORED:
            action = getattr(self, f"_on_{name.lower()}", None)
            if action is None:
                raise UnsafePickleError(self._place, name)
            action(argument)

    def _since_mark(self) -> list[Any]:
        values: list[Any] = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        return values[::-1]

    def _on_mark(self, _: None) -> None:
        self._stack.append(_MARK)

    def _on_tuple(self, _: None) -> None:
        self._stack.append(tuple(self._since_mark()))

    def _on_tuple1(self, _: None) -> None:
        self._stack[-1:] = [tuple(self._stack[-1:])]

    def _on_tuple2(self, _: None) -> None:
        self._stack[-2:] = [tuple(self._stack[-2:])]

    def _on_tuple3(self, _: None) -> None:
        self._stack[-3:] = [tuple(self._stack[-3:])]

    def _on_append(self, _: None) -> None:
        value = self._stack.pop()
        self._stack[-1].append(value)

    def _on_appends(self, _: None) -> None:
        values = self._since_mark()
        self._stack[-1].extend(values)

    def _on_setitem(self, _: None) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._stack[-1][key] = value

    def _on_setitems(self, _: None) -> None:
        values = self._since_mark()
        self._stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def _on_global(self, argument: str) -> None:
        self._push_global(argument.replace(" ", ".", 1))

    def _on_stack_global(self, _: None) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._push_global(f"{module}.{name}")

    def _push_global(self, name: str) -> None:
        if name not in _ALLOWED:
            raise UnsafePickleError(self._place, name[:80])
        self._stack.append(_Global(name))

    def _on_binpersid(self, _: None) -> None:
        kind, storage, key, _location, n_elements = self._stack.pop()
        name = storage.name.removeprefix("torch.")
        if kind != "storage" or name not in _STORAGES or not re.fullmatch(r"\d{1,9}", key):
            raise ValueError("unknown storage")
        if not isinstance(n_elements, int) or not 0 <= n_elements <= MAX_ELEMENTS:
            raise ValueError("storage of unlikely size")
        self._stack.append(_Storage(_STORAGES[name], name == "BFloat16Storage", key, n_elements))

    def _on_reduce(self, _: None) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if function == _Global(_ORDERED_DICT) and arguments == ():
            self._stack.append({})
        elif function == _Global(_REBUILD):
            self._stack.append(_tensor(*arguments[:4]))
        else:
            raise UnsafePickleError(self._place, getattr(function, "name", "REDUCE"))


def _tensor(storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> TensorRecord:
    """Check that a tensor lies inside its storage."""
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, _Storage) or not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise ValueError("tensor of unlikely shape")
    if len(shape) != len(strides) or len(shape) > _MAX_DIMENSIONS:
        raise ValueError("tensor of unlikely shape")
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    elements = 1
    for size in shape:
        elements *= size
    if elements > MAX_ELEMENTS or (elements and last >= storage.n_elements):
        raise ValueError("tensor larger than its storage")
    return TensorRecord(storage, offset, tuple(shape), tuple(strides))


_PLAIN: Final = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "BINFLOAT", "FLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINSTRING", "SHORT_BINSTRING"),
}
_CONSTANTS: Final[dict[str, Any]] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_EMPTY: Final[dict[str, Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list}
_MEMO_WRITES: Final = {"BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"}
_MEMO_READS: Final = {"BINGET", "LONG_BINGET", "GET"}
_IGNORED: Final = {"PROTO", "FRAME"}
