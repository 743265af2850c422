"""Compiled functions on a GPU beside the same functions uncompiled: kernels that
are made at run time give the bits of single operations, in all layouts; sums
may be added in another order."""

import os
import subprocess
import sys
import textwrap

import mlx.core as mx
import numpy as np
import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not mx.cuda.is_available(), reason="needs an NVIDIA GPU and libmlx_cuda"
    ),
]

FLOATS = ("float16", "bfloat16", "float32", "float64")
BOUNDS = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 4e-6, "float64": 1e-13}


@pytest.fixture(autouse=True)
def on_the_gpu():
    with mx.stream(mx.gpu):
        yield


def number(x):
    return np.array(x.astype(mx.float64, mx.cpu))


def random(shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).uniform(-3, 3, shape)
    return mx.array(values.astype(np.float32)).astype(getattr(mx, dtype))


def gelu(x):
    return x * (1 + mx.erf(x / 2**0.5)) / 2


def gelu_approx(x):
    return 0.5 * x * (1 + mx.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def silu_gate(x):
    return x * mx.sigmoid(x) * mx.maximum(x, 0.1) + x.square()


def rounds(x):
    return mx.floor(x) + mx.round(x * 3) // 2 - mx.where(x > 0, x % 2, -x)


def softmax(x):
    e = mx.exp(x - mx.max(x, axis=-1, keepdims=True))
    return e / mx.sum(e, axis=-1, keepdims=True)


def rms_norm(x):
    wide = x.astype(mx.float32)
    scale = mx.rsqrt(mx.mean(wide.square(), axis=-1, keepdims=True) + 1e-5)
    return (wide * scale).astype(x.dtype) * 1.5


def layer_norm(x):
    mean = mx.mean(x, axis=-1, keepdims=True)
    d = x - mean
    return d * mx.rsqrt(mx.mean(d * d, axis=-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [gelu, gelu_approx, silu_gate, rounds])
def test_elementwise_functions_give_the_same_bits(function, dtype):
    compiled = mx.compile(function)
    for shape in [(1,), (7,), (1000,), (33, 129), (3, 64, 256)]:
        x = random(shape, dtype)
        got, want = compiled(x), function(x)
        assert got.dtype == want.dtype
        if dtype == "float64":  # the toolkit's functions are inlined differently
            np.testing.assert_allclose(number(got), number(want), 1e-15, 1e-15)
        else:
            assert np.array_equal(number(got), number(want)), shape


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [softmax, rms_norm, layer_norm])
def test_functions_of_rows(function, dtype):
    compiled = mx.compile(function)
    # rms_norm computes in float32 whatever comes in
    bound = max(BOUNDS[dtype], BOUNDS["float32"] if function is rms_norm else 0)
    for shape in [(5, 2), (300, 7), (64, 128), (9, 1001), (2, 3, 4096), (3, 50257)]:
        x = random(shape, dtype)
        got, want = compiled(x), function(x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(
            number(got), number(want), bound, bound, err_msg=str(shape)
        )


def test_operands_of_any_layout():
    def function(x, y, z):
        return mx.exp(x - y) * z + y, mx.maximum(x, z)

    compiled = mx.compile(function)
    n, m = 96, 200
    layouts = [
        random((n, m)),
        random((m, n), seed=1).T,
        random((n, m + 1), seed=2)[:, 1:],
        random((n, 2 * m), seed=3)[:, ::2],
        random((n, m), seed=4)[::-1, ::-1],
        random((m,), seed=5),
        random((n, 1), seed=6),
        mx.broadcast_to(random((n, 1), seed=7), (n, m)),
        mx.array(0.75),
    ]
    mx.eval(layouts)
    for x in layouts:
        for y in layouts:
            z = layouts[0]
            for got, want in zip(compiled(x, y, z), function(x, y, z)):
                assert np.array_equal(number(got), number(want))


def test_large_transposed_operands():
    x, y = random((2048, 1500)), random((1500, 2048), seed=1)
    got = mx.compile(lambda x, y: mx.sqrt(mx.abs(x + y.T)) * 2 - x)(x, y)
    assert np.array_equal(number(got), number(mx.sqrt(mx.abs(x + y.T)) * 2 - x))


def test_whole_numbers_wrap():
    def function(x):
        return (x * x + 1) * 7 - (x << 3) // 3, x > 2

    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"):
        x = mx.array(np.arange(-500, 500)).astype(getattr(mx, name))
        for got, want in zip(mx.compile(function)(x), function(x)):
            assert got.dtype == want.dtype
            assert np.array_equal(number(got), number(want)), name


def test_types_side_by_side():
    def function(a, b, c, flag):
        wide = a.astype(mx.float32) * b
        chosen = mx.where(flag, wide, c.astype(mx.float32))
        return chosen.astype(mx.bfloat16), c + 1, mx.logical_not(flag)

    a = random((64, 520), "bfloat16")
    b = random((64, 520), seed=1)
    c = mx.array(np.arange(64 * 520, dtype=np.int8).reshape(64, 520))
    flag = b > 0
    for got, want in zip(mx.compile(function)(a, b, c, flag), function(a, b, c, flag)):
        assert got.dtype == want.dtype
        assert np.array_equal(number(got), number(want))


def test_many_inputs_and_outputs():
    def adam(ps, gs, ms, vs, rate):
        outs = []
        for p, g, m, v in zip(ps, gs, ms, vs):
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g.square()
            outs += [p - rate * m / (mx.sqrt(v) + 1e-8), m, v]
        return outs

    def make(seed):
        return [mx.abs(random((300,), seed=seed + k)) for k in range(40)]

    lists = [make(100 * k) for k in range(4)]
    mx.eval(lists)
    rate = mx.array(0.01)
    for got, want in zip(mx.compile(adam)(*lists, rate), adam(*lists, rate)):
        assert np.array_equal(number(got), number(want))


def test_more_elements_than_32_bits_count():
    x = mx.zeros((2**16 + 1, 2**16), dtype=mx.uint8) + 3
    mx.eval(x)
    y = mx.compile(lambda x: (x + 2) * x - 1)(x)
    assert y[0, 0].item() == 14
    assert y[-1, -1].item() == 14
    assert mx.all(y == 14).item()


def test_few_steps_of_a_loop_reuse_memory():
    step = mx.compile(lambda x: x * 0.5 + 1)
    x = mx.zeros((1 << 22,))
    for _ in range(60):
        x = step(x)
        mx.eval(x)
    assert np.array_equal(number(x), np.full(1 << 22, 2.0))


def test_kernels_are_kept_on_disk(tmp_path):
    code = """
        import mlx.core as mx
        f = mx.compile(lambda x: mx.exp(x) * 2 + mx.tanh(x))
        with mx.stream(mx.gpu):
            x = mx.array([0.0] * 1000)
            assert f(x).tolist() == [2.0] * 1000
    """
    counts = []
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            check=True,
            timeout=120,
            env={
                **os.environ,
                "MLX_PTX_CACHE_DIR": str(tmp_path),
            },
        )
        counts.append(sum(p.is_file() for p in tmp_path.rglob("*")))
    assert counts[0] > 0
    assert counts[1] == counts[0]
