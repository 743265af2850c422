"""Reductions, softmax and running reductions against NumPy in float64: types,
layouts, derivatives by central differences, vmap against a loop."""

import itertools

import mlx.core as mx
import numpy as np
import pytest

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32"]


def numbers(*shape):
    """Small integers, which every type holds and adds exactly."""
    return np.random.default_rng(3).integers(0, 5, shape).astype(np.float64)


def as_numpy(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def layouts(x, dtype):
    """x three-dimensional: pairs of an array and its values."""
    a = mx.array(x.astype(np.float32)).astype(getattr(mx, dtype))
    yield a, x
    yield a.transpose(2, 0, 1), x.transpose(2, 0, 1)
    yield a[::-1, 1:, ::3], x[::-1, 1:, ::3]
    wide = mx.broadcast_to(a[:, :1], a.shape)
    yield wide, np.broadcast_to(x[:, :1], x.shape)
    yield mx.broadcast_to(a[:1, :1, :1], a.shape), np.full(x.shape, x[0, 0, 0])


AXES = [None, 0, 1, -1, (0, 2), (-2, -1), (0, 1, 2)]


@pytest.mark.parametrize("dtype", ["bool_", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", ["sum", "max", "min", "all", "any", "mean"])
def test_types_and_layouts(name, dtype):
    x = numbers(4, 5, 37)
    x = x.clip(0, 1) if dtype == "bool_" else x
    for (a, values), axis in itertools.product(layouts(x, dtype), AXES):
        got = as_numpy(getattr(mx, name)(a, axis=axis))
        want = np.asarray(getattr(np, name)(values, axis=axis), dtype=float)
        assert got.shape == want.shape
        rtol = 1e-2 if dtype == "bfloat16" else 1e-3 if dtype == "float16" else 1e-6
        np.testing.assert_allclose(got, want, rtol=rtol, err_msg=f"axis {axis}")
        kept = getattr(mx, name)(a, axis=axis, keepdims=True)
        assert kept.shape == getattr(np, name)(values, axis=axis, keepdims=True).shape


@pytest.mark.parametrize(
    "shape", [(70001,), (513, 300), (300, 513), (9001, 3), (5, 2, 9001)]
)
def test_large(shape):
    x = np.random.default_rng(5).normal(size=shape)
    a = mx.array(x.astype(np.float32))
    exact = as_numpy(a)
    for axis in range(-1, len(shape) - 1):
        np.testing.assert_allclose(
            mx.sum(a, axis=axis), exact.sum(axis), rtol=1e-5, atol=1e-3
        )
        np.testing.assert_array_equal(mx.max(a, axis=axis), exact.max(axis))
        np.testing.assert_array_equal(mx.argmin(a, axis=axis), exact.argmin(axis))
        np.testing.assert_allclose(
            mx.var(a, axis=axis, ddof=1), exact.var(axis, ddof=1), rtol=1e-5
        )


def test_complex():
    x = numbers(6, 7) + 1j * numbers(6, 7)[::-1]
    a = mx.array(x.astype(np.complex64))
    for axis in (0, 1, None):
        np.testing.assert_allclose(mx.sum(a, axis=axis), x.sum(axis))
        np.testing.assert_allclose(mx.var(a, axis=axis), x.var(axis), rtol=1e-5)
        np.testing.assert_array_equal(
            np.array(mx.max(a, axis=axis)), x.max(axis).astype(np.complex64)
        )
    np.testing.assert_allclose(mx.prod(a[:2, :2]), x[:2, :2].prod(), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), None])
@pytest.mark.parametrize("name", ["softmax", "logsumexp"])
def test_exponentials(name, axis):
    x = np.random.default_rng(2).normal(0, 5, (4, 5, 33))
    for a in (mx.array(x.astype(np.float32)), mx.array(x.astype(np.float32).T).T):
        v = as_numpy(a)
        m = v.max(axis, keepdims=True)
        e = np.exp(v - m)
        total = e.sum(axis, keepdims=True)
        want = e / total if name == "softmax" else np.squeeze(np.log(total) + m, axis)
        np.testing.assert_allclose(getattr(mx, name)(a, axis=axis), want, rtol=5e-6)


def slopes(f, x, step=1e-5):
    out = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[index] = step
        out[index] = (f(x + d) - f(x - d)) / (2 * step)
    return out


CASES = {
    "sum": (lambda a: a.sum(1), lambda a: a.sum(1)),
    "prod": (lambda a: a.prod(1), lambda a: a.prod(1)),
    "max": (lambda a: a.max(1), lambda a: a.max(1)),
    "mean": (lambda a: a.mean((0, 1)), lambda a: a.mean((0, 1))),
    "var": (lambda a: a.var(0, ddof=1), lambda a: a.var(0, ddof=1)),
    "std": (lambda a: mx.std(a, 1), lambda a: a.std(1)),
    "logsumexp": (
        lambda a: mx.logsumexp(a, 0),
        lambda a: np.log(np.exp(a).sum(0)),
    ),
    "softmax": (
        lambda a: mx.softmax(a, 1),
        lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True),
    ),
    "cumsum": (lambda a: mx.cumsum(a, 1), lambda a: a.cumsum(1)),
    "cumprod": (lambda a: mx.cumprod(a, 0), lambda a: a.cumprod(0)),
    "cummax": (
        lambda a: mx.cummax(a, 1),
        lambda a: np.maximum.accumulate(a, 1),
    ),
    "logcumsumexp": (
        lambda a: mx.logcumsumexp(a, 1),
        lambda a: np.logaddexp.accumulate(a, 1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    ours, numpy = CASES[name]
    x = np.random.default_rng(1).normal(0, 1, (3, 4))
    a = mx.array(x.astype(np.float32))
    weights = np.random.default_rng(4).normal(size=np.shape(numpy(x)))
    w = mx.array(weights.astype(np.float32))
    got = mx.grad(lambda v: (ours(v) * w).sum())(a)
    want = slopes(lambda v: (numpy(v) * weights).sum(), x)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"cumprod", "cummax"}))
def test_tangents(name):
    ours, numpy = CASES[name]
    x, t = np.random.default_rng(1).normal(0, 1, (2, 3, 4))
    a, tangent = (mx.array(v.astype(np.float32)) for v in (x, t))
    _, (got,) = mx.jvp(ours, [a], [tangent])
    want = (numpy(x + 1e-5 * t) - numpy(x - 1e-5 * t)) / 2e-5
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap(name, axis):
    ours, _ = CASES[name]
    x = np.random.default_rng(6).normal(0, 1, (3, 4, 5)).astype(np.float32)
    got = mx.vmap(ours, axis, 0)(mx.array(x))
    loop = [ours(mx.array(part)) for part in np.moveaxis(x, axis, 0)]
    np.testing.assert_allclose(got, mx.stack(loop), rtol=1e-5, atol=1e-6)


def test_axis_errors():
    a = mx.zeros((2, 3))
    for f in (mx.sum, mx.prod, mx.max, mx.all, mx.argmax):
        with pytest.raises(IndexError):
            f(a, axis=2)
    for f in (mx.mean, mx.var, mx.cumsum, mx.softmax):
        with pytest.raises(ValueError):
            f(a, axis=-3)
    with pytest.raises(ValueError, match="named twice"):
        mx.sum(a, axis=(0, -2))
    with pytest.raises(ValueError, match=r"\[max\] axis 0 of"):
        mx.max(mx.zeros((0, 3)), axis=0)


def test_median():
    x = np.random.default_rng(8).normal(size=(4, 5, 6)).astype(np.float32)
    for axis in (None, 0, -1, (0, 1)):
        np.testing.assert_allclose(
            mx.median(mx.array(x), axis=axis), np.median(x, axis), rtol=1e-6
        )
    x[1, 2, 3] = np.nan
    assert np.isnan(np.array(mx.median(mx.array(x), axis=2)))[1, 2]
