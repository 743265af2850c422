"""Results larger than the caches, which are stored past them, and rows long
enough that threads share them."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

ROWS, LENGTH = 4800, 1001  # 19 MB of float32; rows begin on any address


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ROWS, LENGTH), np.float32)


def close(got: mx.array, expected: np.ndarray) -> None:
    np.testing.assert_allclose(np.array(got), expected, rtol=2e-6, atol=2e-6)


def test_softmax(rows: np.ndarray) -> None:
    e = np.exp(rows.astype(np.float64) - rows.max(-1, keepdims=True))
    close(mx.softmax(mx.array(rows), -1), e / e.sum(-1, keepdims=True))


@pytest.mark.parametrize("centered", [False, True])
def test_norms(rows: np.ndarray, centered: bool) -> None:
    x, weight = mx.array(rows), mx.arange(LENGTH, dtype=mx.float32)
    wide = rows.astype(np.float64)
    wide -= wide.mean(-1, keepdims=True) if centered else 0
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    norm = mx.fast.layer_norm if centered else mx.fast.rms_norm
    arguments = (weight, None) if centered else (weight,)
    got = np.array(norm(x, *arguments, 1e-5))
    scale = np.arange(LENGTH)
    np.testing.assert_allclose(got, expected * scale, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", [mx.float32, mx.int64, mx.float16, mx.uint8])
@pytest.mark.parametrize("length", [1023, 1024, 65537, 300_000])
def test_sort(dtype: mx.Dtype, length: int) -> None:
    values = np.random.default_rng(length).integers(-(2**40), 2**40, length)
    keys = mx.array(values).astype(dtype)
    expected = np.sort(np.array(keys), kind="stable")
    order = np.argsort(np.array(keys), kind="stable")
    assert np.array_equal(np.array(mx.sort(keys)), expected)
    assert np.array_equal(np.array(mx.argsort(keys)), order)


def test_sort_with_nan_and_equal_digits() -> None:
    x = np.full(200_000, 1.5, np.float32)
    x[::7] = np.nan
    x[::5] = -0.0
    x[3::11] = 0.0
    assert np.array_equal(np.array(mx.sort(mx.array(x))), np.sort(x), equal_nan=True)
    columns = np.stack([x, -x], 1)
    got = np.array(mx.sort(mx.array(columns), 0))
    assert np.array_equal(got, np.sort(columns, 0), equal_nan=True)
