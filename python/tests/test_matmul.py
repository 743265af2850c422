"""Matrix products against NumPy in double precision."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

# Largest error of one rounding, and of a term in a sum.
EPSILON = {
    "float16": (2**-11, 2**-21),
    "bfloat16": (2**-8, 2**-21),
    "float32": (2**-23, 2**-20),
    "float64": (2**-52, 2**-49),
    "complex64": (2**-22, 2**-19),
}
rng = np.random.default_rng(7)


def random_array(shape: tuple[int, ...], dtype: str) -> mx.array:
    values = rng.standard_normal(shape)
    if dtype == "complex64":
        values = values + 1j * rng.standard_normal(shape)
        return mx.array(values.astype(np.complex64))
    if dtype == "float64":
        return mx.array(values, dtype=mx.float64)
    return mx.array(values.astype(np.float32)).astype(getattr(mx, dtype))


def wide(x: mx.array) -> np.ndarray[Any, Any]:
    """The values in double precision."""
    if x.dtype == mx.complex64:
        return np.array(x).astype(np.complex128)
    if x.dtype == mx.bfloat16:
        x = x.astype(mx.float32)
    return np.array(x).astype(np.float64)


def check(
    got: mx.array,
    expected: np.ndarray[Any, Any],
    magnitude: np.ndarray[Any, Any],
    dtype: str,
) -> None:
    rounding, term = EPSILON[dtype]
    assert got.dtype == getattr(mx, dtype)
    assert got.shape == expected.shape
    bound = (
        rounding * np.abs(expected) + term * magnitude + 2**-24 * (dtype == "float16")
    )
    assert np.all(np.abs(wide(got) - expected) <= bound)


def check_product(a: mx.array, b: mx.array, dtype: str) -> None:
    x, y = wide(a), wide(b)
    check(mx.matmul(a, b), x @ y, np.abs(x) @ np.abs(y), dtype)


SHAPES = [
    ((1, 1), (1, 1)),
    ((3, 4), (4, 5)),
    ((7,), (7,)),
    ((7,), (7, 3)),
    ((3, 7), (7,)),
    ((5, 130), (130, 9)),
    ((130, 5), (5, 70)),
    ((1, 300), (300, 257)),
    ((257, 300), (300, 1)),
    ((97, 331), (331, 113)),
    ((2, 3, 4), (4, 5)),
    ((4, 5), (3, 5, 6)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((8, 33, 17), (8, 17, 40)),
    ((6,), (2, 6, 3)),
    ((2, 3, 6), (6,)),
]


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shapes", SHAPES)
def test_shapes(shapes: Any, dtype: str) -> None:
    check_product(*(random_array(s, dtype) for s in shapes), dtype)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shapes", [((60, 90), (90, 50)), ((4, 70), (70, 90))])
def test_layouts_are_read_where_they_lie(shapes: Any, dtype: str) -> None:
    (m, k), (_, n) = shapes
    at = random_array((k, m), dtype).T
    bt = random_array((n, k), dtype).T
    a2 = random_array((2 * m, 2 * k), dtype)[::2, 1::2]
    b2 = random_array((k, 3 * n), dtype)[:, ::3]
    backwards = random_array((k, n), dtype)[::-1, ::-1]
    row = mx.broadcast_to(random_array((1, k), dtype), (m, k))
    column = mx.broadcast_to(random_array((k, 1), dtype), (k, n))
    for a in (at, a2, row):
        for b in (bt, b2, backwards, column):
            check_product(a, b, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_batches_of_any_layout(dtype: str) -> None:
    a = random_array((4, 3, 20, 30), dtype)
    b = random_array((3, 4, 30, 10), dtype)
    check_product(a, b.transpose(1, 0, 2, 3), dtype)
    check_product(a.transpose(0, 2, 1, 3), b[0, :1], dtype)
    check_product(a[:, :1], b[:, 0], dtype)
    check_product(mx.swapaxes(random_array((4, 30, 20), dtype), 1, 2), b[0], dtype)


@pytest.mark.parametrize("dtype", EPSILON)
def test_empty(dtype: str) -> None:
    for m, k, n in ((0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)):
        got = random_array((m, k), dtype) @ random_array((k, n), dtype)
        assert got.shape == (m, n)
        assert np.all(wide(got) == 0)
    assert (random_array((0, 2, 3), dtype) @ random_array((3, 4), dtype)).shape == (
        0,
        2,
        4,
    )


def test_types_promote() -> None:
    a = mx.ones((2, 3), dtype=mx.float16)
    assert (a @ mx.ones((3, 2), dtype=mx.bfloat16)).dtype == mx.float32
    assert (a @ mx.ones((3, 2), dtype=mx.int32)).dtype == mx.float16
    assert (a @ mx.ones((3, 2), dtype=mx.complex64)).dtype == mx.complex64


def test_nan_and_infinity_stay_in_their_row_and_column() -> None:
    a = np.ones((20, 40), np.float32)
    b = np.ones((40, 30), np.float32)
    a[3, 39] = np.nan
    b[5, 7] = np.inf
    expected = a @ b
    assert np.array_equal(np.array(mx.array(a) @ mx.array(b)), expected, equal_nan=True)


def test_errors_say_what_was_given() -> None:
    with pytest.raises(ValueError, match=r"\[matmul\].*\(2,3\).*\(4,5\)"):
        mx.matmul(mx.ones((2, 3)), mx.ones((4, 5)))
    with pytest.raises(ValueError, match=r"\[matmul\]"):
        mx.matmul(mx.array(1.0), mx.ones((1,)))
    with pytest.raises(ValueError, match=r"\[matmul\].*int32"):
        mx.matmul(mx.ones((2, 3), dtype=mx.int32), mx.ones((3, 2), dtype=mx.int32))
    with pytest.raises(ValueError):
        mx.matmul(mx.ones((2, 2, 3)), mx.ones((3, 3, 2)))
    with pytest.raises(ValueError, match=r"\[addmm\]"):
        mx.addmm(mx.ones((7,)), mx.ones((2, 3)), mx.ones((3, 5)))
    with pytest.raises(ValueError, match=r"\[addmm\]"):
        mx.addmm(mx.ones((3, 2, 5)), mx.ones((2, 3)), mx.ones((3, 5)))


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize(
    ("c", "a", "b"),
    [
        ((6,), (5, 7), (7, 6)),
        ((), (5, 7), (7, 6)),
        ((5, 6), (5, 7), (7, 6)),
        ((5, 1), (5, 7), (7, 6)),
        ((6,), (2, 5, 7), (7, 6)),
        ((2, 5, 6), (2, 5, 7), (7, 6)),
        ((2, 1, 1), (2, 5, 7), (7, 6)),
        ((3, 5, 6), (5, 7), (3, 7, 6)),
        ((6,), (7,), (7, 6)),
        ((5,), (5, 7), (7,)),
        ((2, 5), (2, 5, 7), (7,)),
        ((3, 6), (7,), (3, 7, 6)),
        ((), (7,), (7,)),
        ((90,), (70, 300), (300, 90)),
    ],
)
def test_addmm(c: Any, a: Any, b: Any, dtype: str) -> None:
    z, x, y = (random_array(s, dtype) for s in (c, a, b))
    zw, xw, yw = wide(z), wide(x), wide(y)
    for alpha, beta in ((1.0, 1.0), (0.5, -2.0), (1.0, 0.0)):
        expected = alpha * (xw @ yw) + beta * zw
        magnitude = abs(alpha) * (np.abs(xw) @ np.abs(yw)) + abs(beta) * np.abs(zw)
        check(mx.addmm(z, x, y, alpha, beta), expected, magnitude, dtype)


def test_tensordot() -> None:
    a, b = random_array((2, 3, 4, 5), "float64"), random_array((5, 4, 6), "float64")
    for axes in ([[2, 3], [1, 0]], [[-1], [0]], [[], []]):
        expected = np.tensordot(wide(a), wide(b), axes)
        np.testing.assert_allclose(wide(mx.tensordot(a, b, axes)), expected, atol=1e-12)
    for bad in (-1, 4, [[0], [0]], [[0, 1], [0]], [[1, 1], [0, 1]], [[0]]):
        with pytest.raises(ValueError, match=r"\[tensordot\]"):
            mx.tensordot(a, b, bad)


def test_inner_of_scalars_and_its_errors() -> None:
    two = mx.array(2.0)
    np.testing.assert_allclose(np.array(mx.inner(two, mx.ones((3,)))), 2 * np.ones(3))
    with pytest.raises(ValueError, match=r"\[inner\]"):
        mx.inner(mx.ones((2, 3)), mx.ones((4,)))


def test_a_chain_of_products_of_many_sizes() -> None:
    sizes = [1, 7, 64, 65, 200, 8, 9, 513, 3]
    arrays = [
        random_array(pair, "float64") / pair[1] ** 0.5 for pair in pairwise(sizes)
    ]
    got, expected = arrays[0], wide(arrays[0])
    for x in arrays[1:]:
        got, expected = got @ x, expected @ wide(x)
    np.testing.assert_allclose(wide(got), expected, rtol=1e-9)


@pytest.mark.parametrize("value", [0.1, 1e-3])
def test_long_dot_products_keep_their_digits(value: float) -> None:
    """One sum for each lane would lose a digit for ten times the depth."""
    depth = 200_003
    x = mx.full((depth,), value)
    exact = depth * float(np.float32(value)) ** 2
    for got in (x @ x, (x[None] @ x[:, None])[0, 0], (x[None] @ x)[0]):
        assert abs(got.item() - exact) <= 3e-6 * exact
