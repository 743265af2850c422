"""Reductions, scans, sorting and softmax of mlx.core against NumPy."""

import mlx.core as mx
import numpy as np
import pytest

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 37, 5)).astype(np.float32)
A = mx.array(X)
AXES = [None, 0, -1, (0, 2), [1], (0, 1, 2)]
REDUCTIONS = ["sum", "prod", "max", "min", "mean", "all", "any", "var", "std", "median"]
SCANS = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "logcumsumexp": np.logaddexp.accumulate,
}


def numpy_axis(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def check(got, expected, rtol=2e-5):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(np.array(got), expected, rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name, axis):
    reference = getattr(np, name)
    for keepdims in (False, True):
        expected = reference(X.astype(float), axis=numpy_axis(axis), keepdims=keepdims)
        check(getattr(mx, name)(A, axis=axis, keepdims=keepdims), expected)
        if hasattr(A, name):
            check(getattr(A, name)(axis, keepdims), expected)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_logsumexp(axis):
    expected = np.log(np.sum(np.exp(X.astype(float)), axis=numpy_axis(axis)))
    check(mx.logsumexp(A, axis), expected)
    check(A.logsumexp(axis), expected)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_arguments(axis):
    for name in ("argmin", "argmax"):
        got = getattr(mx, name)(A, axis)
        assert got.dtype == mx.uint32
        check(got, getattr(np, name)(X, axis))
        check(
            getattr(A, name)(axis, keepdims=True),
            getattr(np, name)(X, axis, keepdims=True),
        )


def test_no_axes():
    assert mx.sum(mx.array([1, 2], mx.int8), []).tolist() == [1, 2]
    assert mx.sum(mx.array([1, 2], mx.int8), axis=()).dtype == mx.int8


def test_types():
    for dtype, result in (
        (mx.bool_, mx.int32),
        (mx.int8, mx.int32),
        (mx.uint8, mx.uint32),
        (mx.int64, mx.int64),
        (mx.float16, mx.float16),
    ):
        assert mx.sum(mx.ones(3, dtype)).dtype == result
    assert mx.mean(mx.array([1, 2])).dtype == mx.float32
    assert mx.count_nonzero(A, axis=0).dtype == mx.int32
    assert mx.count_nonzero(mx.array([0, 1, 2])).item() == 2


def test_ddof():
    check(mx.var(A, 1, ddof=1), X.var(1, ddof=1))
    check(A.std(1, True, 1), X.std(1, ddof=1, keepdims=True))


def test_errors():
    for bad in (3, -4, (0, 3)):
        with pytest.raises(mx.AxisError):
            mx.sum(A, bad)
    with pytest.raises(ValueError):
        mx.sum(A, (0, 0))
    with pytest.raises(TypeError):
        mx.sum(A, 0.0)
    with pytest.raises(TypeError):
        mx.sum([1, 2])
    with pytest.raises(ValueError):
        mx.max(mx.zeros((0,)))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", SCANS)
def test_scan(name, axis):
    x = X.astype(float)
    expected = SCANS[name](x, axis=axis)
    check(getattr(mx, name)(A, axis), expected)
    check(getattr(A, name)(axis), expected)
    backwards = np.flip(SCANS[name](np.flip(x, axis), axis=axis), axis)
    check(getattr(mx, name)(A, axis, reverse=True), backwards)


def test_scan_options():
    a = mx.array([1, 2, 3])
    assert mx.cumsum(a, inclusive=False).tolist() == [0, 1, 3]
    assert mx.cumsum(a, reverse=True, inclusive=False).tolist() == [5, 3, 0]
    assert mx.cumprod(a, dtype=mx.float32).dtype == mx.float32
    assert mx.cumsum(mx.array([[1, 2], [3, 4]])).tolist() == [1, 3, 6, 10]
    assert mx.cumulative_sum is mx.cumsum
    assert mx.cumulative_prod is mx.cumprod
    with pytest.raises(ValueError):
        mx.cumsum(a, 1)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_sort(axis):
    check(mx.sort(A, axis), np.sort(X, axis))
    order = mx.argsort(A, axis)
    assert order.dtype == mx.uint32
    check(order, np.argsort(X, axis, kind="stable"))


def test_selection():
    x = X[0].T
    a = mx.array(x)
    check(mx.sort(mx.topk(a, 3)), np.sort(x)[:, -3:])
    parted = np.array(mx.partition(a, 4))
    np.testing.assert_array_equal(parted[:, 4], np.sort(x)[:, 4])
    assert (parted[:, :4] <= parted[:, 4:5]).all()
    chosen = np.take_along_axis(x, np.array(mx.argpartition(a, 4)), 1)
    np.testing.assert_array_equal(chosen[:, 4], np.sort(x)[:, 4])
    check(mx.sort(mx.topk(a, 2, axis=None)), np.sort(x.ravel())[-2:])


def test_searchsorted():
    s, v = np.array([1, 3, 3, 5]), np.array([0, 3, 4, 9])
    for side in ("left", "right"):
        got = mx.searchsorted(mx.array(s), mx.array(v), side)
        check(got, np.searchsorted(s, v, side))
    with pytest.raises(ValueError):
        mx.searchsorted(mx.array(s), mx.array(v), "middle")


@pytest.mark.parametrize("axis", [None, 0, -1, (1, 2)], ids=str)
def test_softmax(axis):
    e = np.exp(X.astype(float) - X.max())
    expected = e / e.sum(axis=axis, keepdims=True)
    check(mx.softmax(A, axis), expected)
    check(mx.softmax(A, axis, precise=True), expected)
