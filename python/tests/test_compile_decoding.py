"""Compiled steps of a language model, called until a backend may have recorded
them: what such a step is made of has kernels of its own there."""

from __future__ import annotations

from typing import Callable

import mlx.core as mx
import numpy as np
import pytest

CALLS = 5  # more than a backend watches before it records
HALVES = [mx.float16, mx.bfloat16]
BOUNDS = {mx.float32: 1e-5, mx.float16: 4e-3, mx.bfloat16: 3e-2}


def values(*shape: int, seed: int = 0, dtype: mx.Dtype = mx.float32) -> mx.array:
    made = np.random.default_rng(seed).standard_normal(shape)
    return mx.array(made.astype(np.float32)).astype(dtype)


def numbers(x: mx.array) -> np.ndarray:
    return np.array(x.astype(mx.float32))


def check(step: Callable[..., list[mx.array]], make: Callable[[int], list]) -> None:
    """The compiled step gives what the plain one does, for new inputs each time."""
    compiled = mx.compile(step)
    for i in range(CALLS):
        inputs = make(i)
        for got, want in zip(compiled(*inputs), step(*inputs), strict=True):
            assert got.dtype == want.dtype
            expected = numbers(want)
            # Of the largest: sums of rounded numbers may cancel.
            bound = BOUNDS.get(want.dtype, 0) * np.abs(expected).max()
            np.testing.assert_allclose(numbers(got), expected, 0, bound)


@pytest.mark.parametrize("dtype", [mx.float32, *HALVES])
@pytest.mark.parametrize(
    "heads, dims, keys",
    [((9, 3), 64, 256), ((4, 4), 72, 33), ((4, 1), 128, 2100), ((2, 2), 8, 1)],
)
def test_attention_of_one_token(
    dtype: mx.Dtype, heads: tuple[int, int], dims: int, keys: int
) -> None:
    def step(q: mx.array, k: mx.array, v: mx.array, end: mx.array) -> list[mx.array]:
        filled = mx.arange(keys) <= end
        added = mx.where(filled, 0.25, -mx.inf).astype(dtype)
        return [
            mx.fast.scaled_dot_product_attention(
                q * (1 + i / 8), k, v, scale=dims**-0.5, mask=mask
            )
            for i, mask in enumerate((filled, added, None) * 4)
        ]

    def make(i: int) -> list[mx.array]:
        shapes = (heads[0], 1, dims), (heads[1], keys, dims), (heads[1], keys, dims)
        arrays = [values(1, *s, seed=i, dtype=dtype) for s in shapes]
        return [*arrays, mx.array((i * 37 + 1) % keys)]

    check(step, make)


@pytest.mark.parametrize("dtype", [mx.float32, *HALVES])
@pytest.mark.parametrize("n", [1, 30, 576, 4096, 5000])
@pytest.mark.parametrize("with_weight", [True, False])
def test_norm_of_a_sum(dtype: mx.Dtype, n: int, with_weight: bool) -> None:
    def step(x: mx.array, y: mx.array, w: mx.array) -> list[mx.array]:
        rows = []
        for _ in range(5):
            x = x + y  # the next round needs it too
            y = mx.fast.rms_norm(x, w if with_weight else None, 1e-5)
            rows.append(mx.fast.rms_norm(x + y, None, 1e-5))  # nobody else does
        both = x + y
        return [x, y, *rows, mx.fast.rms_norm(both, both[0], 1e-5)]

    def make(i: int) -> list[mx.array]:
        x, y = (values(1, n, seed=2 * i + k, dtype=dtype) for k in (0, 1))
        return [x, y, 1 + 0.1 * values(n, seed=99, dtype=dtype)]

    check(step, make)


@pytest.mark.parametrize("n", [8192, 8193, 49152, 100_001])
def test_place_of_the_largest(n: int) -> None:
    def step(x: mx.array) -> list[mx.array]:
        found = []
        for i in range(6):
            found += [mx.argmax(x + i, -1), mx.argmin(x, -1)]
            x = mx.where(mx.arange(n) == found[-2], 0, x)
        return found

    check(step, lambda i: [mx.round(values(n, seed=i) * 50)])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group_size, depth", [(32, 32), (32, 576), (64, 1536)])
@pytest.mark.parametrize("scales", [mx.float32, *HALVES])
def test_product_with_a_long_matrix(
    bits: int, group_size: int, depth: int, scales: mx.Dtype
) -> None:
    lines = 4231
    w = values(lines, depth, seed=1)
    codes, *kept = mx.quantize(w, group_size, bits)
    kept = [x.astype(scales) for x in kept]
    dense = mx.dequantize(
        codes, *(x.astype(mx.float32) for x in kept), group_size, bits
    )
    want_of = np.array(dense).astype(np.float64)

    @mx.compile
    def step(x: mx.array) -> list[mx.array]:
        # As many as are worth a recording: outside of one a matrix as short as
        # this goes through a list.
        return [
            mx.quantized_matmul(x * (1 - i / 16), codes, *kept, True, group_size, bits)
            for i in range(12)
        ]

    for seed in range(CALLS):
        x = values(1, depth, seed=seed)
        want = np.array(x).astype(np.float64) @ want_of.T
        for i, got in enumerate(step(x)):
            np.testing.assert_allclose(np.array(got), want * (1 - i / 16), 1e-5, 1e-4)


@pytest.mark.parametrize("depth", [4096, 8192, 8224])
def test_product_with_a_long_and_wide_matrix(depth: int) -> None:
    lines = 4224
    codes, *kept = mx.quantize(values(lines, depth, seed=3), 32, 4)
    dense = np.array(mx.dequantize(codes, *kept, 32, 4)).astype(np.float64)
    x = values(1, depth)
    got = mx.quantized_matmul(x, codes, *kept, True, 32, 4)
    want = np.array(x).astype(np.float64) @ dense.T
    np.testing.assert_allclose(np.array(got), want, 1e-4, 1e-3)
