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


def numeric_gradient(f: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    grad = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i] = 1e-4
        grad[i] = (f(x + step) - f(x - step)) / 2e-4
    return grad


@pytest.mark.parametrize("shapes", SHAPES[1:5] + SHAPES[10:13] + SHAPES[14:])
def test_gradients(shapes: Any) -> None:
    a, b = (rng.standard_normal(s) for s in shapes)
    ct = rng.standard_normal(np.shape(np.matmul(a, b)))
    args = [mx.array(x, dtype=mx.float64) for x in (a, b)]
    _, (ga, gb) = mx.vjp(mx.matmul, args, [mx.array(ct, dtype=mx.float64)])
    numeric_a = numeric_gradient(lambda x: np.sum(np.matmul(x, b) * ct), a)
    numeric_b = numeric_gradient(lambda x: np.sum(np.matmul(a, x) * ct), b)
    np.testing.assert_allclose(wide(ga), numeric_a, atol=1e-6)
    np.testing.assert_allclose(wide(gb), numeric_b, atol=1e-6)
    ta, tb = (rng.standard_normal(s) for s in shapes)
    _, (t,) = mx.jvp(mx.matmul, args, [mx.array(x, dtype=mx.float64) for x in (ta, tb)])
    np.testing.assert_allclose(wide(t), np.matmul(ta, b) + np.matmul(a, tb), atol=1e-9)


@pytest.mark.parametrize("c", [(6,), (5, 6), (5, 1), (2, 5, 6), ()])
def test_gradients_of_addmm(c: Any) -> None:
    shapes = (c, (2, 5, 7), (7, 6))
    z, x, y = (rng.standard_normal(s) for s in shapes)
    ct = rng.standard_normal((2, 5, 6))

    def f(c: Any, a: Any, b: Any) -> Any:
        return mx.addmm(c, a, b, 0.5, -2.0)

    args = [mx.array(v, dtype=mx.float64) for v in (z, x, y)]
    _, grads = mx.vjp(f, args, [mx.array(ct, dtype=mx.float64)])
    values = (z, x, y)
    for i in range(3):

        def loss(v: Any, i: int = i) -> Any:
            c, a, b = (v if j == i else values[j] for j in range(3))
            return np.sum((0.5 * (a @ b) - 2.0 * c) * ct)

        np.testing.assert_allclose(
            wide(grads[i]), numeric_gradient(loss, values[i]), atol=1e-6
        )
    tangents = [rng.standard_normal(s) for s in shapes]
    _, (t,) = mx.jvp(f, args, [mx.array(v, dtype=mx.float64) for v in tangents])
    expected = 0.5 * (tangents[1] @ y + x @ tangents[2]) - 2.0 * tangents[0]
    np.testing.assert_allclose(wide(t), expected + np.zeros_like(ct), atol=1e-9)


def test_gradient_of_complex_product_is_the_adjoint() -> None:
    a, b = random_array((3, 4), "complex64"), random_array((4, 5), "complex64")
    ct = random_array((3, 5), "complex64")
    _, (ga, gb) = mx.vjp(mx.matmul, [a, b], [ct])
    np.testing.assert_allclose(wide(ga), wide(ct) @ wide(b).conj().T, atol=1e-4)
    np.testing.assert_allclose(wide(gb), wide(a).conj().T @ wide(ct), atol=1e-4)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, 2), (2, 1)])
def test_vmap_is_a_loop(axes: tuple[int | None, int | None]) -> None:
    def make(axis: int | None, shape: tuple[int, ...]) -> mx.array:
        if axis is not None:
            shape = (*shape[:axis], 5, *shape[axis:])
        return random_array(shape, "float32")

    a, b = make(axes[0], (3, 4)), make(axes[1], (4, 6))
    got = mx.vmap(mx.matmul, in_axes=axes)(a, b)
    for i in range(5):
        one = [
            x if axis is None else mx.take(x, i, axis)
            for x, axis in zip((a, b), axes, strict=True)
        ]
        np.testing.assert_allclose(got[i], mx.matmul(*one), rtol=1e-5, atol=1e-5)
    c = random_array((5, 6), "float32")
    got = mx.vmap(mx.addmm, in_axes=(0, *axes))(c, a, b)
    for i in range(5):
        one = [
            x if axis is None else mx.take(x, i, axis)
            for x, axis in zip((a, b), axes, strict=True)
        ]
        np.testing.assert_allclose(got[i], mx.addmm(c[i], *one), rtol=1e-5, atol=1e-5)


def test_tensordot() -> None:
    a, b = random_array((2, 3, 4, 5), "float64"), random_array((5, 4, 6), "float64")
    for axes in (0, 1, [[2, 3], [1, 0]], [[-1], [0]], [[], []]):
        expected = np.tensordot(wide(a), wide(b), axes)
        np.testing.assert_allclose(wide(mx.tensordot(a, b, axes)), expected, atol=1e-12)
    c = random_array((4, 5, 7), "float64")
    np.testing.assert_allclose(
        wide(mx.tensordot(a, c)), np.tensordot(wide(a), wide(c)), atol=1e-12
    )
    for bad in (-1, 4, [[0], [0]], [[0, 1], [0]], [[1, 1], [0, 1]], [[0]]):
        with pytest.raises(ValueError, match=r"\[tensordot\]"):
            mx.tensordot(a, b, bad)


def test_inner_and_outer() -> None:
    a, b = random_array((2, 3, 4), "float64"), random_array((5, 4), "float64")
    np.testing.assert_allclose(
        wide(mx.inner(a, b)), np.inner(wide(a), wide(b)), atol=1e-12
    )
    np.testing.assert_allclose(wide(mx.outer(a, b)), np.outer(wide(a), wide(b)))
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
