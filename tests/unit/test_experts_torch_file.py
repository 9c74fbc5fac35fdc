"""Files of ``torch.save``: tensors are read, and no pickle is ever run."""

from __future__ import annotations

import contextlib
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.experts.load_files import read_loads
from model_core.experts.torch_file import TensorRecord, TorchFile, TorchFileError, UnsafePickleError

DATA = Path(__file__).parents[1] / "data"


def archive(path: Path, data_pkl: bytes, **members: bytes) -> Path:
    """Write an archive as ``torch.save`` does; members are storages by number (``_0``) or names."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", data_pkl)
        for name, content in members.items():
            file.writestr(f"archive/data/{name[1:]}" if name.startswith("_") else f"archive/{name}", content)
    return path


def tensor_pickle(
    storage: str, elements: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> bytes:
    """Return the pickle of ``{"logical_count": tensor}`` in the operations that ``torch.save`` uses."""

    def number(value: int) -> bytes:
        return pickle.BININT + value.to_bytes(4, "little", signed=True)

    def text(value: str) -> bytes:
        return pickle.BINUNICODE + len(value).to_bytes(4, "little") + value.encode()

    def tuple_of(values: tuple[int, ...]) -> bytes:
        return pickle.MARK + b"".join(number(v) for v in values) + pickle.TUPLE

    record = (
        *(pickle.MARK, text("storage"), pickle.GLOBAL, b"torch\n", storage.encode(), b"\n"),
        *(text("0"), text("cpu"), number(elements), pickle.TUPLE, pickle.BINPERSID),
    )
    return b"".join(
        (
            *(pickle.PROTO, b"\x02", pickle.EMPTY_DICT, text("logical_count")),
            *(pickle.GLOBAL, b"torch._utils\n_rebuild_tensor_v2\n", pickle.MARK, *record),
            *(number(offset), tuple_of(shape), tuple_of(strides), pickle.NEWFALSE),
            *(pickle.GLOBAL, b"collections\nOrderedDict\n", pickle.EMPTY_TUPLE, pickle.REDUCE),
            *(pickle.TUPLE, pickle.REDUCE, pickle.SETITEM, pickle.STOP),
        )
    )


def test_that_a_file_of_torch_itself_is_read() -> None:
    """Written by torch 2.11: rank, logical_count[steps, layers, experts], average_utilization_rate_over_window."""
    loads, found = read_loads(DATA / "expert_recorder.pt")
    assert found == ()
    assert loads is not None
    assert loads.counts.tolist() == [[12, 14, 16, 18], [20, 22, 24, 26], [28, 30, 32, 34]]
    assert loads.steps is not None
    assert loads.steps.ravel().tolist() == list(range(24))


def test_that_bfloat16_of_torch_itself_is_read() -> None:
    file = TorchFile(DATA / "expert_bfloat16.pt")
    record = file.content["logical_count"]
    assert isinstance(record, TensorRecord)
    assert file.array(record).ravel().tolist() == list(range(24))
    file.close()


@pytest.mark.parametrize(
    ("storage", "dtype"),
    [
        ("FloatStorage", "<f4"),
        ("DoubleStorage", "<f8"),
        ("LongStorage", "<i8"),
        ("IntStorage", "<i4"),
        ("HalfStorage", "<f2"),
    ],
)
def test_that_strides_and_offsets_are_followed(tmp_path: Path, storage: str, dtype: str) -> None:
    values = np.arange(12, dtype=dtype)
    path = archive(tmp_path / "a.pt", tensor_pickle(storage, 12, 1, (2, 3), (1, 4)), _0=values.tobytes())
    loads, found = read_loads(path)
    assert found == ()
    assert loads is not None
    assert loads.counts.tolist() == [[1, 5, 9], [2, 6, 10]]


def test_that_big_endian_bytes_are_read(tmp_path: Path) -> None:
    values = np.arange(4, dtype=">f4").tobytes()
    path = archive(
        tmp_path / "a.pt", tensor_pickle("FloatStorage", 4, 0, (2, 2), (2, 1)), _0=values, byteorder=b"big"
    )
    loads, _ = read_loads(path)
    assert loads is not None
    assert loads.counts.tolist() == [[0, 1], [2, 3]]


class Malicious:
    """Unpickling this would make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def test_that_a_pickle_is_never_run(tmp_path: Path) -> None:
    trap = tmp_path / "made by the pickle"
    path = archive(tmp_path / "a.pt", pickle.dumps({"logical_count": Malicious(trap)}))
    loads, found = read_loads(path)
    assert loads is None
    assert found[0].code == "loads_unsafe"
    assert "mkdir" in found[0].message
    assert "data.pkl, byte" in found[0].message
    assert not trap.exists()
    pickle.loads(pickle.dumps(Malicious(trap)))
    assert trap.exists(), "the trap works when it is run"


@pytest.mark.parametrize("protocol", range(6))
def test_that_objects_of_any_protocol_are_refused(tmp_path: Path, protocol: int) -> None:
    path = archive(tmp_path / "a.pt", pickle.dumps(Malicious(tmp_path / "no"), protocol))
    with pytest.raises(UnsafePickleError):
        TorchFile(path)


@pytest.mark.parametrize(
    ("data_pkl", "members", "part"),
    [
        (tensor_pickle("FloatStorage", 4, 0, (2, 2), (2, 1)), {}, "missing from the archive"),
        (tensor_pickle("FloatStorage", 4, 0, (2, 2), (2, 1)), {"_0": b"\0" * 15}, "fewer bytes"),
        (tensor_pickle("FloatStorage", 4, 1, (2, 2), (2, 1)), {"_0": b"\0" * 16}, "larger than its storage"),
        (
            tensor_pickle("FloatStorage", 4, 0, (2**30, 2**30), (0, 0)),
            {"_0": b"\0" * 16},
            "larger than its storage",
        ),
        (tensor_pickle("FloatStorage", 4, 0, (2, -2), (2, 1)), {"_0": b"\0" * 16}, "unlikely shape"),
        (tensor_pickle("FloatStorage", -4, 0, (2, 2), (2, 1)), {"_0": b"\0" * 16}, "unlikely size"),
        (tensor_pickle("EvilStorage", 4, 0, (2, 2), (2, 1)), {"_0": b"\0" * 16}, "torch.EvilStorage"),
        (pickle.dumps({"other": 1}), {}, "no entry logical_count"),
        (pickle.dumps({"logical_count": 1}), {}, "no entry logical_count"),
        (b"\x80\x02}", {}, "damaged"),
        (b"", {}, "damaged"),
        (b"\x80\x02]q\x00h\x05.", {}, "damaged"),
    ],
)
def test_that_a_damaged_file_is_told(
    tmp_path: Path, data_pkl: bytes, members: dict[str, bytes], part: str
) -> None:
    loads, found = read_loads(archive(tmp_path / "a.pt", data_pkl, **members))
    assert loads is None
    assert part in found[0].message


def test_that_lists_in_a_pickle_are_read(tmp_path: Path) -> None:
    loads, _ = read_loads(archive(tmp_path / "a.pt", pickle.dumps({"logical_count": [[1, 2], [3, 4]]})))
    assert loads is not None
    assert loads.counts.tolist() == [[1, 2], [3, 4]]


def test_that_the_format_before_torch_1_6_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + b"\0" * 100)
    loads, found = read_loads(path)
    assert loads is None
    assert "before 1.6" in found[0].message


@given(st.binary(max_size=60), st.integers(0, 400))
def test_that_no_bytes_do_harm(tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    """Any damage to a good pickle gives a tensor, other plain content, or a refusal."""
    good = tensor_pickle("FloatStorage", 4, 0, (2, 2), (2, 1))
    damaged = good[: at % len(good)] + noise + good[at % len(good) + len(noise) :]
    path = archive(tmp_path_factory.mktemp("noise") / "a.pt", damaged, _0=bytes(16))
    with contextlib.suppress(TorchFileError):
        TorchFile(path).close()
