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


@pytest.mark.parametrize("tokens", [1, 2])
@pytest.mark.parametrize("mask", [None, "causal", "bool"])
@pytest.mark.parametrize("has_sinks", [False, True])
def test_attention_of_few_rows_over_many_keys(
    tokens: int, mask: str | None, has_sinks: bool
) -> None:
    """Keys are cut into ranges for the threads; their results are joined."""
    rng = np.random.default_rng(tokens)
    heads, kv_heads, keys, size = 6, 2, 4099, 40
    q = rng.standard_normal((1, heads, tokens, size), np.float32)
    k = rng.standard_normal((1, kv_heads, keys, size), np.float32)
    v = rng.standard_normal((1, kv_heads, keys, size), np.float32)
    sinks = rng.standard_normal(heads).astype(np.float32)
    seen = np.ones((tokens, keys), bool)
    if mask == "causal":
        seen = np.tri(tokens, keys, keys - tokens, bool)
    elif mask == "bool":
        seen = np.arange(keys)[None] >= 3000  # whole ranges see nothing
        seen = np.repeat(seen, tokens, 0)
    wide_k, wide_v = (np.repeat(a.astype(np.float64), 3, 1) for a in (k, v))
    scores = np.where(seen, q @ wide_k.swapaxes(-1, -2) * size**-0.5, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    if has_sinks:
        total = total + np.exp(sinks[None, :, None, None] - top)
    got = mx.fast.scaled_dot_product_attention(
        mx.array(q),
        mx.array(k),
        mx.array(v),
        scale=size**-0.5,
        mask=mx.array(seen) if mask == "bool" else mask,
        sinks=mx.array(sinks) if has_sinks else None,
    )
    close(got, weights / total @ wide_v)
