"""Quantized matrices against codes unpacked bit by bit in NumPy."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

BITS = (2, 3, 4, 5, 6, 8)
GROUPS = (32, 64, 128)
FLOATS = ("float16", "bfloat16", "float32")
ROUNDING = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-22, "float64": 1e-14}
rng = np.random.default_rng(11)

every_width = pytest.mark.parametrize("bits", BITS)
every_group = pytest.mark.parametrize("group_size", GROUPS)


def wide(x: mx.array) -> np.ndarray[Any, Any]:
    return np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x).astype(
        np.float64
    )


def random_array(shape: tuple[int, ...], dtype: str = "float32") -> mx.array:
    values = rng.standard_normal(shape)
    if dtype == "float64":
        return mx.array(values, dtype=mx.float64)
    return mx.array(values.astype(np.float32)).astype(getattr(mx, dtype))


def unpack(words: mx.array, bits: int) -> np.ndarray[Any, Any]:
    """The codes, from the stream of bits along the last axis."""
    stream = np.unpackbits(np.array(words).view(np.uint8), axis=-1, bitorder="little")
    groups = stream.reshape(*stream.shape[:-1], -1, bits)
    return groups @ (1 << np.arange(bits))


def numbers(q: Any, bits: int, group_size: int) -> np.ndarray[Any, Any]:
    codes = unpack(q[0], bits)
    spread = [np.repeat(wide(x), group_size, axis=-1) for x in q[1:]]
    return codes * spread[0] + spread[1]


def test_quantize_edge_cases() -> None:
    w = mx.concatenate([mx.zeros((1, 64)), mx.ones((1, 64)), -mx.ones((1, 64))], axis=0)
    back = mx.dequantize(*mx.quantize(w))
    np.testing.assert_allclose(wide(back), wide(w), atol=1e-6)
    q, scales, biases = mx.quantize(mx.ones((0, 64)))
    assert q.shape == (0, 8) and scales.shape == biases.shape == (0, 1)
    assert mx.quantize(mx.ones((2, 3, 64)))[1].shape == (2, 3, 1)
    strided = random_array((64, 10)).T
    for got, expected in zip(
        mx.quantize(strided), mx.quantize(mx.contiguous(strided)), strict=True
    ):
        assert np.array_equal(np.array(got), np.array(expected))
    wide_type = mx.quantize(random_array((2, 64), "float64"))
    assert wide_type[1].dtype == mx.float64


def check_product(
    x: mx.array, q: Any, transpose: bool, group_size: int, bits: int
) -> None:
    got = mx.quantized_matmul(x, *q, transpose, group_size, bits)
    w = numbers(q, bits, group_size)
    w = np.swapaxes(w, -1, -2) if transpose else w
    expected = wide(x) @ w
    magnitude = np.abs(wide(x)) @ np.abs(w)
    name = str(got.dtype).split(".")[-1]
    assert got.shape == expected.shape
    bound = ROUNDING[name] * np.abs(expected) + (1 + magnitude) * (
        1e-13 if name == "float64" else 3e-6
    )
    assert np.all(np.abs(wide(got) - expected) <= bound)


@every_width
@every_group
@pytest.mark.parametrize("transpose", (True, False))
def test_product(bits: int, group_size: int, transpose: bool) -> None:
    for rows in (1, 2, 3, 4, 5, 6, 7, 8, 9, 33):
        packed, other = group_size * int(rng.integers(1, 12)), int(rng.integers(1, 90))
        q = mx.quantize(random_array((other, packed)), group_size, bits)
        depth = packed if transpose else other
        check_product(random_array((rows, depth)), q, transpose, group_size, bits)


@pytest.mark.parametrize("x_type", (*FLOATS, "float64"))
@pytest.mark.parametrize("w_type", FLOATS)
@pytest.mark.parametrize("rows", (1, 4, 20))
def test_types(x_type: str, w_type: str, rows: int) -> None:
    q = mx.quantize(random_array((70, 256), w_type))
    x = random_array((rows, 256), x_type)
    got = mx.quantized_matmul(x, *q)
    assert got.dtype == mx.matmul(x, mx.ones((256, 1), dtype=getattr(mx, w_type))).dtype
    check_product(x, q, True, 64, 4)
    check_product(random_array((rows, 70), x_type), q, False, 64, 4)
    integers = mx.ones((rows, 256), dtype=mx.int32)
    assert mx.quantized_matmul(integers, *q).dtype == getattr(mx, w_type)


def test_leading_axes_and_layouts() -> None:
    q = mx.quantize(random_array((40, 128)))
    stack = mx.quantize(random_array((3, 40, 128)))
    strided = random_array((4, 2, 5, 128))
    for x in (
        random_array((128,)),
        random_array((2, 5, 128)),
        strided.transpose(1, 0, 2, 3),
        strided[:, :, ::2],
        random_array((128, 7)).T,
        random_array((9, 256))[:, ::2],
        mx.broadcast_to(random_array((128,)), (6, 128)),
        random_array((0, 128)),
    ):
        check_product(x, q, True, 64, 4)
    for x in (
        random_array((3, 5, 128)),
        random_array((5, 128)),
        random_array((2, 1, 5, 128)),
        random_array((2, 3, 1, 128)),
    ):
        check_product(x, stack, True, 64, 4)
        check_product(x[..., :40], stack, False, 64, 4)
    part = [x[:, ::2] for x in stack]
    check_product(random_array((3, 2, 128)), part, True, 64, 4)


def test_rows_do_not_depend_on_their_neighbours_type_of_kernel() -> None:
    q = mx.quantize(random_array((64, 512)))
    x = random_array((24, 512))
    together = mx.quantized_matmul(x, *q)
    alone = mx.concatenate([mx.quantized_matmul(x[i : i + 1], *q) for i in range(24)])
    np.testing.assert_allclose(wide(together), wide(alone), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "call",
    (
        lambda w: mx.quantize(w, group_size=48),
        lambda w: mx.quantize(w, bits=7),
        lambda w: mx.quantize(w, bits=1),
        lambda w: mx.quantize(w[:, :60]),
        lambda w: mx.quantize(w[0]),
        lambda w: mx.quantize(w.astype(mx.int32)),
        lambda w: mx.quantize(w.astype(mx.complex64)),
        lambda w: mx.quantize(w, mode="other"),
        lambda w: mx.quantize(w, global_scale=mx.array(1.0)),
    ),
)
def test_quantize_refuses(call: Any) -> None:
    with pytest.raises(ValueError, match=r"\[quantize\]"):
        call(random_array((8, 64)))


def test_products_refuse() -> None:
    q, s, b = mx.quantize(random_array((8, 64)))
    x = random_array((3, 64))
    for bad in (
        (x, q, s),
        (x[:, :32], q, s, b),
        (x, q, s, b, False),
        (x, q, s[:4], b),
        (x, q, s, b[:, :0]),
        (x, q.astype(mx.int32), s, b),
        (x, q, s, b, True, 64, 8),
        (x.astype(mx.complex64), q, s, b),
        (mx.array(1.0), q, s, b),
    ):
        with pytest.raises(ValueError, match=r"\[quantized_matmul\]"):
            mx.quantized_matmul(*bad)
    with pytest.raises(ValueError, match=r"\[dequantize\]"):
        mx.dequantize(q, s)
    with pytest.raises(ValueError, match=r"\[dequantize\]"):
        mx.dequantize(q, s, b, bits=8)
    with pytest.raises(ValueError, match=r"\[dequantize\]"):
        mx.dequantize(q, s, b, dtype=mx.int32)
    with pytest.raises(RuntimeError, match="codes"):
        mx.vjp(lambda w: mx.dequantize(w, s, b), [q], [mx.ones((8, 64))])
