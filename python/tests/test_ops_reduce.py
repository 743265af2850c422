"""What the oracle table does not say of reductions, scans and sorting: errors,
Python's arguments, shapes of many blocks."""

import mlx.core as mx
import numpy as np
import pytest

A = mx.zeros((3, 37, 5))


@pytest.mark.parametrize(
    "shape", [(70001,), (513, 300), (300, 513), (9001, 3), (5, 2, 9001)]
)
def test_large(shape):
    x = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    a = mx.array(x)
    exact = x.astype(np.float64)
    for axis in range(-1, len(shape) - 1):
        np.testing.assert_allclose(
            mx.sum(a, axis=axis), exact.sum(axis), rtol=1e-5, atol=1e-3
        )
        np.testing.assert_array_equal(mx.max(a, axis=axis), exact.max(axis))
        np.testing.assert_array_equal(mx.argmin(a, axis=axis), exact.argmin(axis))
        np.testing.assert_allclose(
            mx.var(a, axis=axis, ddof=1), exact.var(axis, ddof=1), rtol=1e-5
        )


def test_no_axes():
    assert mx.sum(mx.array([1, 2], mx.int8), []).tolist() == [1, 2]
    assert mx.sum(mx.array([1, 2], mx.int8), axis=()).dtype == mx.int8


def test_axis_errors():
    for f in (mx.sum, mx.prod, mx.max, mx.all, mx.argmax):
        with pytest.raises(IndexError):
            f(A, axis=3)
    for f in (mx.mean, mx.var, mx.cumsum, mx.softmax):
        with pytest.raises(ValueError):
            f(A, axis=-4)
    for bad in (3, -4, (0, 3)):
        with pytest.raises(mx.AxisError):
            mx.sum(A, bad)
    with pytest.raises(ValueError, match="named twice"):
        mx.sum(A, axis=(0, -3))
    with pytest.raises(TypeError):
        mx.sum(A, 0.0)
    with pytest.raises(TypeError):
        mx.sum([1, 2])


def test_what_has_no_extreme():
    with pytest.raises(ValueError, match=r"\[max\] axis 0 of"):
        mx.max(mx.zeros((0, 3)), axis=0)
    with pytest.raises(ValueError):
        mx.argmin(mx.zeros((0,)))


def test_scan_options():
    a = mx.array([1, 2, 3])
    assert mx.cumprod(a, dtype=mx.float32).dtype == mx.float32
    assert mx.cumsum(mx.array([1, 2], mx.int8), dtype=mx.int64).dtype == mx.int64
    assert mx.cumulative_sum is mx.cumsum
    assert mx.cumulative_prod is mx.cumprod
    with pytest.raises(ValueError):
        mx.cumsum(a, 1)


def test_searchsorted_errors():
    s = mx.array([1, 3, 3, 5])
    with pytest.raises(ValueError, match="side"):
        mx.searchsorted(s, s, "middle")
    with pytest.raises(ValueError, match="dimensions"):
        mx.searchsorted(mx.zeros((2, 2)), s)
