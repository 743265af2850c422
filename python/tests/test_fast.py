"""What the oracle table does not say of fused operations: known numbers, sizes of
real models, errors."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

TOLERANCE = {mx.float32: 2e-5, mx.float16: 4e-3, mx.bfloat16: 3e-2}
TYPES = list(TOLERANCE)


def wave(*shape: int, step: float = 0.7, dtype: mx.Dtype = mx.float32) -> mx.array:
    count = int(np.prod(shape))
    values = np.sin(step * np.arange(count)).reshape(shape)
    return mx.array(values.astype(np.float32)).astype(dtype)


def numbers(a: mx.array) -> np.ndarray:
    return np.array(a.astype(mx.float32)).astype(np.float64)


def check(found: mx.array, expected: np.ndarray, dtype: mx.Dtype = mx.float32) -> None:
    assert found.dtype == dtype
    assert found.shape == expected.shape
    limit = TOLERANCE[dtype]
    scale = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(numbers(found), expected, atol=limit * scale, rtol=limit)


# ---- norms -------------------------------------------------------------------


def test_rms_norm_gradient_of_known_numbers():
    x = mx.array([0.5, -1.0, 2.0])
    w = mx.array([1.0, 0.5, 2.0])
    _, (dx, dw) = mx.vjp(
        lambda x, w: mx.fast.rms_norm(x, w, 1e-5), [x, w], [mx.array([1.0, 2.0, -1.0])]
    )
    np.testing.assert_allclose(np.array(dx), [1.07989, 0.10799, -0.21599], atol=1e-5)
    np.testing.assert_allclose(np.array(dw), [0.37796, -1.51185, -1.51185], atol=1e-5)


def test_norm_errors():
    x = wave(2, 4)
    with pytest.raises(ValueError, match=r"\[rms_norm\] weight has shape"):
        mx.fast.rms_norm(x, mx.ones(3), 1e-5)
    with pytest.raises(ValueError, match=r"\[layer_norm\] bias has shape"):
        mx.fast.layer_norm(x, None, mx.ones((1, 4)), 1e-5)
    with pytest.raises(ValueError, match="no axes"):
        mx.fast.rms_norm(mx.array(1.0), None, 1e-5)
    with pytest.raises(ValueError, match="real floating type"):
        mx.fast.rms_norm(mx.ones((2, 4), mx.int32), None, 1e-5)
    with pytest.raises(TypeError):
        mx.fast.rms_norm(x, None)


# ---- rope --------------------------------------------------------------------


def rotated(
    x: np.ndarray,
    dims: int,
    traditional: bool,
    inverse: np.ndarray,
    scale: float,
    offset: object,
) -> np.ndarray:
    """x of (B, ..., T, D); offset of shape () or (B,)."""
    tokens = np.arange(x.shape[-2], dtype=np.float64)
    first = np.broadcast_to(np.asarray(offset, dtype=np.float64), x.shape[:1])
    theta = (first[:, None] + tokens)[..., None] * scale * inverse
    theta = theta.reshape(x.shape[0], *[1] * (x.ndim - 3), x.shape[-2], dims // 2)
    cos, sin = np.cos(theta), np.sin(theta)
    out = x.copy()
    half = dims // 2
    one = slice(0, dims, 2) if traditional else slice(0, half)
    two = slice(1, dims, 2) if traditional else slice(half, dims)
    out[..., one] = x[..., one] * cos - x[..., two] * sin
    out[..., two] = x[..., one] * sin + x[..., two] * cos
    return out


def inverse_frequencies(dims: int, base: float) -> np.ndarray:
    return base ** (-np.arange(dims // 2) / (dims // 2))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("traditional", [False, True])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((1, 1, 8), 8),
        ((2, 3, 5, 16), 16),
        ((2, 3, 5, 16), 6),
        ((3, 4, 1, 64), 64),
        ((1, 2, 2, 7, 10), 10),
    ],
)
def test_rope(shape, dims, traditional, dtype):
    x = wave(*shape, dtype=dtype)
    found = mx.fast.rope(
        x, dims, traditional=traditional, base=10000.0, scale=0.5, offset=11
    )
    inverse = inverse_frequencies(dims, 10000.0)
    check(found, rotated(numbers(x), dims, traditional, inverse, 0.5, 11), dtype)


def test_rope_frequencies_divide_the_position():
    x = wave(1, 2, 4, 8)
    freqs = mx.array((1e4 ** (np.arange(4) / 4)).astype(np.float32))
    options = {"traditional": False, "scale": 1.0, "offset": 3}
    found = mx.fast.rope(x, 8, **options, base=None, freqs=freqs)
    check(found, numbers(mx.fast.rope(x, 8, **options, base=1e4)))


def test_rope_of_known_numbers():
    # Heads are rows here, so each is a token of its own at position 7.
    x = mx.swapaxes(wave(1, 1, 2, 8, step=0.11), 1, 2)
    found = mx.fast.rope(
        x, 8, traditional=False, base=10000.0, scale=1.0, offset=7
    ).reshape(2, 8)
    expected = [
        [-0.27984, -0.25276, 0.17481, 0.31916, 0.32112, 0.47049, 0.62688, 0.69839],
        [-0.05537, 0.00159, 0.81912, 0.92862, 1.23668, 1.29586, 1.05941, 1.00339],
    ]
    np.testing.assert_allclose(np.array(found), expected, atol=2e-5)


def test_rope_far_positions():
    x = wave(1, 2, 8)
    found = mx.fast.rope(
        x, 8, traditional=False, base=10000.0, scale=1.0, offset=1_000_000
    )
    # Angles are float32 numbers of which 1e6 has a spacing of 0.06.
    turns = np.float32(1_000_000) + np.arange(2, dtype=np.float32)
    inverse = inverse_frequencies(8, 10000.0).astype(np.float32)
    theta = (turns[:, None] * inverse).astype(np.float64)
    values = numbers(x)
    first = values[..., :4] * np.cos(theta) - values[..., 4:] * np.sin(theta)
    np.testing.assert_allclose(numbers(found)[..., 0], first[..., 0], atol=1e-4)
    norms = values[..., :4] ** 2 + values[..., 4:] ** 2
    turned = numbers(found)
    np.testing.assert_allclose(
        turned[..., :4] ** 2 + turned[..., 4:] ** 2, norms, atol=1e-5
    )


def test_rope_errors():
    x = wave(1, 2, 8)
    options = {"traditional": False, "scale": 1.0, "offset": 0}
    with pytest.raises(ValueError, match="rope"):
        mx.fast.rope(x, 8, base=None, **options)
    with pytest.raises(ValueError, match="rope"):
        mx.fast.rope(x, 8, base=10.0, freqs=mx.ones(4), **options)
    for dims in (7, 10, 0):
        with pytest.raises(ValueError, match="rope"):
            mx.fast.rope(x, dims, base=10.0, **options)
    with pytest.raises(TypeError):
        mx.fast.rope(x, 8, base=10.0, scale=1.0, offset=0)


# ---- attention ---------------------------------------------------------------


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    scale: float,
    mask: np.ndarray | None = None,
    sinks: np.ndarray | None = None,
) -> np.ndarray:
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(a, group, axis=1) for a in (k, v))
    scores = scale * q @ np.swapaxes(k, -1, -2)
    if mask is not None:
        scores = (
            np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        )
    top = scores.max(-1, keepdims=True)
    rest = 0.0
    if sinks is not None:
        sinks = sinks[:, None, None]
        top = np.maximum(top, sinks)
        rest = np.exp(sinks - top)
    weights = np.exp(scores - top)
    return weights / (weights.sum(-1, keepdims=True) + rest) @ v


def lower_right(tq: int, tkv: int) -> np.ndarray:
    return np.arange(tkv) <= np.arange(tq)[:, None] + tkv - tq


# Batch, query heads, key heads, queries, keys, features, value features.
SIZES = [
    (1, 1, 1, 1, 1, 4, 4),
    (1, 4, 4, 1, 37, 64, 64),
    (2, 6, 2, 1, 129, 64, 64),
    (2, 6, 2, 5, 9, 16, 16),
    (1, 8, 1, 7, 7, 33, 33),
    (2, 9, 3, 70, 150, 64, 64),
    (1, 2, 2, 3, 4, 8, 5),
]


def operands(size: tuple[int, ...], dtype: mx.Dtype) -> tuple[mx.array, ...]:
    b, nq, nkv, tq, tkv, d, dv = size
    return (
        wave(b, nq, tq, d, step=0.7, dtype=dtype),
        wave(b, nkv, tkv, d, step=0.9, dtype=dtype),
        wave(b, nkv, tkv, dv, step=0.37, dtype=dtype),
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_attention(size, dtype):
    q, k, v = operands(size, dtype)
    b, nq, _, tq, tkv, d, _ = size
    scale = d**-0.5
    arrays = [numbers(a) for a in (q, k, v)]
    run = mx.fast.scaled_dot_product_attention
    check(run(q, k, v, scale=scale), attention(*arrays, scale), dtype)
    causal = attention(*arrays, scale, lower_right(tq, tkv))
    check(run(q, k, v, scale=scale, mask="causal"), causal, dtype)
    keep = np.array(wave(b, 1, tq, tkv, step=1.3)) > -0.5
    keep[..., 0] = True
    check(
        run(q, k, v, scale=scale, mask=mx.array(keep)),
        attention(*arrays, scale, keep),
        dtype,
    )
    added = wave(nq, tq, tkv, step=0.77, dtype=dtype) * 3
    check(
        run(q, k, v, scale=scale, mask=added),
        attention(*arrays, scale, numbers(added)),
        dtype,
    )
    sinks = wave(nq, step=0.5, dtype=dtype)
    check(
        run(q, k, v, scale=scale, mask="causal", sinks=sinks),
        attention(*arrays, scale, lower_right(tq, tkv), numbers(sinks)),
        dtype,
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_attention_in_a_room_that_is_not_full(size, dtype):
    """What lies behind the last key does not matter: on a CPU not even NaN."""
    q, k, v = operands(size, dtype)
    b, nq, _, tq, tkv, d, _ = size
    run = mx.fast.scaled_dot_product_attention
    on_cpu = mx.default_device() == mx.cpu
    want = run(q, k, v, scale=d**-0.5)

    def same(got: mx.array) -> None:
        if on_cpu:
            assert mx.array_equal(got, want)
        else:
            check(got, numbers(want), dtype)

    for more in (1, 8, 300):
        axes = ((0, 0), (0, 0), (0, more), (0, 0))
        beyond = mx.nan if on_cpu else 100.0
        roomy = [mx.pad(a, axes, constant_values=beyond) for a in (k, v)]
        filled = mx.arange(tkv + more) < tkv
        for mask in (filled, mx.broadcast_to(filled, (b, nq, tq, tkv + more))):
            same(run(q, *roomy, scale=d**-0.5, mask=mask))
        strided = mx.repeat(filled, 2)[::2]
        same(run(q, *roomy, scale=d**-0.5, mask=strided))


def test_attention_whose_rows_see_different_lengths():
    q, k, v = operands((1, 4, 2, 6, 200, 16, 16), mx.float32)
    ends = np.array([200, 1, 64, 65, 130, 7])
    keep = np.arange(200) < ends[:, None]
    keep[4, 100:110] = False
    run = mx.fast.scaled_dot_product_attention
    arrays = [numbers(a) for a in (q, k, v)]
    for tokens in (6, 2, 1):
        got = run(q[:, :, :tokens], k, v, scale=0.25, mask=mx.array(keep[:tokens]))
        want = attention(arrays[0][:, :, :tokens], *arrays[1:], 0.25, keep[:tokens])
        check(got, want, mx.float32)
    # A row that sees nothing is the mean of all values.
    none = np.array([False] * 200)
    got = run(q[:, :, :1], k, v, scale=0.25, mask=mx.array(none))
    mean = np.repeat(arrays[2].mean(2, keepdims=True), 2, axis=1)
    check(got, mean, mx.float32)


def test_attention_of_known_numbers():
    q = wave(1, 1, 2, 4, step=0.7)
    k = wave(1, 1, 4, 4, step=0.9)
    v = mx.arange(16).astype(mx.float32).reshape(1, 1, 4, 4)
    run = mx.fast.scaled_dot_product_attention
    causal = run(q, k, v, scale=0.5, mask="causal")
    np.testing.assert_allclose(
        np.array(causal)[0, 0, :, 0], [2.97072, 6.01225], atol=2e-5
    )
    added = run(q, k, v, scale=0.5, mask=mx.array([1.0, 1.0, 0.0, 0.0]))
    np.testing.assert_allclose(
        np.array(added)[0, 0, :, 0], [2.80976, 4.58812], atol=2e-5
    )


def test_attention_of_views():
    run = mx.fast.scaled_dot_product_attention
    q = mx.swapaxes(wave(2, 5, 4, 16), 1, 2)
    cache_k = wave(2, 2, 32, 16, step=0.9)
    cache_v = wave(2, 2, 32, 16, step=0.3)
    k, v = cache_k[:, :, 3:12], cache_v[:, :, 3:12]
    arrays = [numbers(a) for a in (q, k, v)]
    check(run(q, k, v, scale=0.25), attention(*arrays, 0.25))
    back = wave(2, 2, 9, 32, step=0.9)[:, :, ::-1, ::2]
    arrays[1] = numbers(back)
    check(
        run(q, back, v, scale=0.25, mask="causal"),
        attention(*arrays, 0.25, lower_right(5, 9)),
    )
    keep = mx.broadcast_to(mx.arange(9) > 2, (5, 9))
    check(
        run(q, back, v, scale=0.25, mask=keep), attention(*arrays, 0.25, np.array(keep))
    )


def test_attention_of_large_scores():
    q = wave(1, 1, 3, 8) * 1000
    k = wave(1, 1, 5, 8, step=0.9) * 1000
    v = wave(1, 1, 5, 8, step=0.3)
    found = mx.fast.scaled_dot_product_attention(q, k, v, scale=1.0)
    check(found, attention(*(numbers(a) for a in (q, k, v)), 1.0))


def test_attention_errors():
    q, k, v = operands((1, 4, 2, 3, 5, 8, 8), mx.float32)
    run = mx.fast.scaled_dot_product_attention
    for bad in (
        lambda: run(q, k, v, scale=1.0, mask="other"),
        lambda: run(q[0], k, v, scale=1.0),
        lambda: run(q[:, :3], k, v, scale=1.0),
        lambda: run(q, k[..., :4], v, scale=1.0),
        lambda: run(q, k, v[:, :, :4], scale=1.0),
        lambda: run(q, k, v, scale=1.0, mask=mx.zeros((3, 4))),
        lambda: run(q, k, v, scale=1.0, sinks=mx.zeros(3)),
        lambda: run(*(a.astype(mx.int32) for a in (q, k, v)), scale=1.0),
    ):
        with pytest.raises(ValueError, match="scaled_dot_product_attention"):
            bad()
    with pytest.raises(TypeError):
        run(q, k, v, scale=1.0, mask=3)
