"""rms_norm and layer_norm against their definitions in float64 NumPy: types,
layouts, gradients against central differences, vmap against a loop."""

import mlx.core as mx
import numpy as np
import pytest

TOLERANCE = {mx.float32: 2e-6, mx.float16: 2e-3, mx.bfloat16: 2e-2}


def numbers(*shape):
    return np.random.default_rng(7).normal(0.3, 2.0, shape)


def definition(x, weight, bias, eps, centered):
    if centered:
        x = x - x.mean(-1, keepdims=True)
    y = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    return y * weight + bias


def as_numpy(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def layouts(x):
    """Arrays of the values of x, laid out differently."""
    yield mx.array(x)
    yield mx.array(x.swapaxes(0, -1).copy()).swapaxes(0, -1)
    yield mx.array(np.repeat(x, 2, axis=-1))[..., ::2]
    yield mx.array(x[..., ::-1].copy())[..., ::-1]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [1, 7, 64, 1000])
def test_values(n, dtype):
    x, w, b = numbers(3, 4, n), numbers(n) + 1, numbers(n)
    weight, bias = (mx.array(v.astype(np.float32)).astype(dtype) for v in (w, b))
    for a in layouts(x.astype(np.float32)):
        a = a.astype(dtype)
        exact = [as_numpy(v) for v in (a, weight, bias)]
        scale = np.abs(exact[1]).max() * 10 + 1
        got = mx.fast.rms_norm(a, weight, 1e-5)
        assert got.dtype == dtype
        want = definition(exact[0], exact[1], 0, 1e-5, False)
        np.testing.assert_allclose(as_numpy(got), want, atol=TOLERANCE[dtype] * scale)
        got = mx.fast.layer_norm(a, weight, bias, 1e-5)
        want = definition(*exact, 1e-5, True)
        np.testing.assert_allclose(as_numpy(got), want, atol=TOLERANCE[dtype] * scale)


def test_without_parameters():
    x = numbers(5, 33).astype(np.float32)
    got = mx.fast.rms_norm(mx.array(x), None, 1e-3)
    np.testing.assert_allclose(
        got, definition(x.astype(float), 1, 0, 1e-3, False), atol=1e-5
    )
    got = mx.fast.layer_norm(mx.array(x), None, None, 1e-3)
    np.testing.assert_allclose(
        got, definition(x.astype(float), 1, 0, 1e-3, True), atol=1e-5
    )


def test_promotion_and_errors():
    x = mx.ones((2, 4), mx.bfloat16)
    assert mx.fast.rms_norm(x, mx.ones(4), 1e-5).dtype == mx.float32
    assert mx.fast.layer_norm(mx.zeros((0, 4)), None, None, 1e-5).shape == (0, 4)
    with pytest.raises(ValueError, match=r"\[rms_norm\] weight has shape"):
        mx.fast.rms_norm(x, mx.ones(3), 1e-5)
    with pytest.raises(ValueError, match=r"\[layer_norm\] bias has shape"):
        mx.fast.layer_norm(x, None, mx.ones((1, 4)), 1e-5)
    with pytest.raises(ValueError, match="real floating type"):
        mx.fast.rms_norm(mx.ones((2, 4), mx.int32), None, 1e-5)
    with pytest.raises(ValueError, match="no axes"):
        mx.fast.rms_norm(mx.array(1.0), None, 1e-5)


@pytest.mark.parametrize("centered", [False, True])
def test_gradients(centered):
    inputs = [numbers(3, 6), numbers(6) + 1, numbers(6)]
    weights = numbers(3, 6)[::-1]
    if not centered:
        inputs.pop()

    def loss(*a):
        norm = mx.fast.layer_norm if centered else mx.fast.rms_norm
        return (norm(*a, 1e-3) * mx.array(weights.astype(np.float32))).sum()

    arrays = [mx.array(v.astype(np.float32)) for v in inputs]
    grads = mx.grad(loss, argnums=tuple(range(len(arrays))))(*arrays)

    def exact(*a):
        a = a if centered else (*a, 0)
        return (definition(*a, 1e-3, centered) * weights).sum()

    for i, grad in enumerate(grads):
        slope = np.zeros_like(inputs[i])
        for index in np.ndindex(slope.shape):
            step = np.zeros_like(slope)
            step[index] = 1e-6
            high = [v + step if k == i else v for k, v in enumerate(inputs)]
            low = [v - step if k == i else v for k, v in enumerate(inputs)]
            slope[index] = (exact(*high) - exact(*low)) / 2e-6
        np.testing.assert_allclose(grad, slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_vmap(axis):
    x = mx.array(numbers(4, 5, 6).astype(np.float32))
    weight = mx.array(numbers(5, 6).astype(np.float32))
    batched = mx.vmap(
        lambda a: mx.fast.layer_norm(a, weight[0], None, 1e-5), axis, axis
    )(x)
    loop = mx.stack(
        [
            mx.fast.layer_norm(mx.take(x, i, axis), weight[0], None, 1e-5)
            for i in range(x.shape[axis])
        ],
        axis,
    )
    np.testing.assert_array_equal(batched, loop)
    both = mx.vmap(lambda a, w: mx.fast.rms_norm(a, w, 1e-5), (1, 0), 0)(x, weight)
    for i in range(5):
        np.testing.assert_allclose(
            both[i], mx.fast.rms_norm(x[:, i], weight[i], 1e-5), atol=1e-6
        )
