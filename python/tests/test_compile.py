"""compile: when it traces, what it computes, captured state, errors."""

import gc
import inspect
import io
import math
import os
import subprocess
import sys
import threading
import weakref
from collections import namedtuple

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest


class Counted:
    """A function that counts how often its code runs."""

    def __init__(self, fun):
        self.fun = fun
        self.traces = 0

    def __call__(self, *args, **kwargs):
        self.traces += 1
        return self.fun(*args, **kwargs)


def nodes_of(*arrays):
    """The operations of a graph, by name."""
    file = io.StringIO()
    mx.export_to_dot(file, *arrays)
    return [
        line.split('label="')[1].split('"')[0]
        for line in file.getvalue().splitlines()
        if "label=" in line
    ]


def normal(*shape):
    """Evaluated, so that graphs begin with it."""
    x = mx.random.normal(shape)
    mx.eval(x)
    return x


def gelu(x):
    return x * (1 + mx.erf(x / math.sqrt(2))) / 2


@pytest.fixture
def enabled():
    yield
    mx.enable_compile()


class TestTraces:
    def test_same_value(self):
        def fun(x, y):
            return mx.exp(-x) + y

        x, y = mx.array(1.0), mx.array(2.0)
        assert mx.compile(fun)(x, y).item() == fun(x, y).item()
        assert repr(mx.compile(fun)(x, y)) == "array(2.36788, dtype=float32)"

    def test_once_for_equal_shapes(self):
        fun = Counted(lambda x: mx.exp(x) + 1)
        compiled = mx.compile(fun)
        for _ in range(3):
            compiled(mx.array([1.0, 2.0]))
        assert fun.traces == 1
        info = compiled.cache_info()
        assert info == {"hits": 2, "misses": 1, "evictions": 0, "size": 1}

    def test_compiled_again_finds_the_first_trace(self):
        fun = Counted(lambda x: mx.exp(x) + 1)
        first = mx.compile(fun)
        first(mx.array(1.0))
        second = mx.compile(fun)
        del first
        second(mx.array(2.0))
        assert fun.traces == 1

    def test_anew_for_each_difference(self):
        fun = Counted(lambda *xs, **named: sum(x for x in xs))
        compiled = mx.compile(fun)
        calls = [
            lambda: compiled(mx.array([1.0])),
            lambda: compiled(mx.array([1.0, 2.0])),
            lambda: compiled(mx.array([[1.0]])),
            lambda: compiled(mx.array([1])),
            lambda: compiled(mx.array([1.0]), mx.array([2.0])),
            lambda: compiled(mx.array([1.0]), 1),
            lambda: compiled(mx.array([1.0]), 2),
            lambda: compiled(mx.array([1.0]), 1.0),
            lambda: compiled(mx.array([1.0]), True),
            lambda: compiled(mx.array([1.0]), name="a"),
            lambda: compiled(mx.array([1.0]), name="b"),
            lambda: compiled(mx.array([1.0]), name=None),
            lambda: compiled(mx.array([1.0]), name=mx.float32),
            lambda: compiled(mx.array([1.0]), other=None),
        ]
        for count, call in enumerate(calls, 1):
            call()
            call()
            assert fun.traces == count

    def test_huge_integers_are_told_apart(self):
        fun = Counted(lambda x, n: x + (n > 0))
        compiled = mx.compile(fun)
        assert compiled(mx.array(1), 2**70).item() == 2
        assert compiled(mx.array(1), -(2**70)).item() == 1
        assert fun.traces == 2

    def test_lambdas_in_a_loop(self):
        kept = []
        for i in range(5):
            fun = lambda x, i=i: x * i + 1  # noqa: E731
            compiled = mx.compile(fun)
            assert compiled(mx.array(2.0)).item() == 2.0 * i + 1
            kept.append(weakref.ref(fun))
        del fun, compiled
        gc.collect()
        assert all(ref() is None for ref in kept)

    def test_many_shapes_leave_memory_flat(self):
        compiled = mx.compile(lambda x: mx.exp(x) + 1)
        for n in range(1, 600):
            compiled(mx.zeros((n,)))
        info = compiled.cache_info()
        assert info["size"] == 256
        assert info["evictions"] == 599 - 256

    def test_entries_hold_no_data(self):
        compiled = mx.compile(lambda x: mx.exp(x) + mx.zeros((1 << 20,)))
        x = mx.ones((1 << 20,))
        mx.eval(x)
        y = compiled(x)
        mx.eval(y)
        del x, y
        before = mx.get_active_memory()
        mx.clear_cache()
        x = mx.ones((1 << 20,))
        mx.eval(compiled(x))
        del x
        assert mx.get_active_memory() <= before

    def test_streams_of_threads_trace_apart(self):
        fun = Counted(lambda x: mx.exp(x) + 1)
        compiled = mx.compile(fun)
        expected = compiled(mx.array([1.0, 2.0])).tolist()
        results = []

        def work():
            for _ in range(50):
                results.append(compiled(mx.array([1.0, 2.0])).tolist())

        threads = [threading.Thread(target=work) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [expected] * 500


class TestFusion:
    def test_gelu_is_one_part(self):
        x = normal(32, 100)
        compiled = mx.compile(gelu)
        assert len(nodes_of(compiled(x))) == 1
        assert len(nodes_of(gelu(x))) > 4
        assert mx.array_equal(compiled(x), gelu(x))

    def test_deep_and_wide(self):
        def deep(x):
            for i in range(60):
                x = mx.sin(x) + i / 7
            return x

        def wide(*xs):
            total = xs[0]
            for i, x in enumerate(xs[1:]):
                total = total * 0.5 + x if i % 2 else mx.maximum(total, x)
            return total

        x = normal(1000)
        assert len(nodes_of(mx.compile(deep)(x))) == 1
        assert mx.array_equal(mx.compile(deep)(x), deep(x))
        xs = [normal(1000) for _ in range(40)]
        assert len(nodes_of(mx.compile(wide)(*xs))) == 1
        assert mx.array_equal(mx.compile(wide)(*xs), wide(*xs))

    def test_several_outputs_and_what_lies_between(self):
        def fun(x, w):
            a = mx.exp(x) + 1
            b = a @ w
            return a * b, b - a, mx.sin(a)

        x, w = normal(8, 8), normal(8, 8)
        for got, expected in zip(mx.compile(fun)(x, w), fun(x, w)):
            assert mx.array_equal(got, expected)

    def test_broadcast_strided_and_transposed(self):
        def fun(x, row, column, scalar):
            return mx.tanh(x.T + row) * column[::2] - scalar

        x = normal(6, 10)
        row, column = normal(6), normal(20, 1)
        args = (x, row, column, mx.array(0.5))
        assert mx.array_equal(mx.compile(fun)(*args), fun(*args))

    @pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (1, 1), (5, 1)])
    def test_odd_shapes(self, shape):
        def fun(x, y):
            return (x + 1) * y - mx.exp(x), mx.sum(x * y, axis=-1) if shape else x

        x = mx.ones(shape)
        for got, expected in zip(mx.compile(fun)(x, x), fun(x, x)):
            assert got.shape == expected.shape
            assert mx.array_equal(got, expected)

    @pytest.mark.parametrize("n", [2, 7, 100, 1000, 5000])
    def test_rows(self, n):
        def softmax(x):
            e = mx.exp(x - mx.max(x, axis=-1, keepdims=True))
            return e / mx.sum(e, axis=-1, keepdims=True)

        def norm(x, w):
            mean = mx.mean(x * x, axis=-1, keepdims=True)
            return x * mx.rsqrt(mean + 1e-5) * w

        x, w = normal(300, n), normal(n)
        got = mx.compile(softmax)(x)
        assert "Max" in nodes_of(got)[0]
        assert mx.allclose(got, mx.softmax(x, axis=-1), rtol=1e-5, atol=1e-7)
        got = mx.compile(norm)(x, w)
        assert mx.allclose(got, norm(x, w), rtol=1e-5, atol=1e-6)
        assert len(nodes_of(mx.compile(norm)(x, w))) == 1

    @pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
    @pytest.mark.parametrize("n", [5, 1000])
    def test_norms_and_softmax_join_their_neighbours(self, n, dtype):
        def softmax(x, w, b):
            return mx.softmax(x * 0.5, axis=-1) * w

        def rms(x, w, b):
            return mx.fast.rms_norm(x + b, w, 1e-5) * mx.sigmoid(x)

        def layer(x, w, b):
            return mx.maximum(mx.fast.layer_norm(x, w, b, 1e-5), 0)

        x, w, b = (a.astype(dtype) for a in (normal(300, n), normal(n), normal(n)))
        mx.eval(x, w, b)
        bound = 1e-5 if dtype == mx.float32 else float(mx.finfo(dtype).eps) * 4
        for fun in (softmax, rms, layer):
            got = mx.compile(fun)(x, w, b)
            alone = fun is softmax or x.size <= 8192  # on a gpu that is better
            if mx.default_device() == mx.cpu or not alone:
                assert len(nodes_of(got)) == 1
                assert nodes_of(got)[0].startswith("Compiled")
            assert mx.allclose(got, fun(x, w, b), rtol=bound, atol=bound)

    def test_norms_alone_stay(self):
        x, w = normal(300, 100), normal(100)
        compiled = mx.compile(lambda x, w: mx.fast.rms_norm(x, w, 1e-5))
        assert nodes_of(compiled(x, w)) == ["RMSNorm"]

    @pytest.mark.parametrize("n", [2, 14, 100, 3000])
    def test_rows_of_one_value(self, n):
        # Three values that are one in memory, beside reductions of their rows.
        def fun(x, e):
            least = mx.min(x + 1, axis=-1, keepdims=True)
            wide = e.astype(mx.float32)
            return least, mx.where(e > 0, least, wide), wide * 2, x * wide

        x = normal(3, n)
        for value in (0, 1):
            e = mx.broadcast_to(mx.array([[value]]), (3, 1))
            mx.eval(e)
            for got, expected in zip(mx.compile(fun)(x, e), fun(x, e)):
                assert got.shape == expected.shape
                assert mx.array_equal(got, expected)

    def test_no_circle(self):
        # A part that held both exp and the sum would need the product first.
        def fun(x, w):
            a = mx.exp(x)
            return a + (a * 2) @ w + mx.sin(a)

        x = normal(8, 8)
        assert mx.allclose(mx.compile(fun)(x, x), fun(x, x))

    def test_types_change_inside(self):
        def fun(x):
            return mx.where(x.astype(mx.int32) > 0, x, 0).astype(mx.float16) * 2

        x = normal(100) * 3
        assert mx.array_equal(mx.compile(fun)(x), fun(x))

    @pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
    def test_half_types_round_at_each_step(self, dtype):
        def fun(x, y):
            return (x * y + x) * y - mx.exp(x), (x + y) == (y + x)

        x = normal(1000).astype(dtype)
        y = normal(1000).astype(dtype)
        for got, expected in zip(mx.compile(fun)(x, y), fun(x, y)):
            assert mx.array_equal(got, expected)

    def test_mode_of_the_environment_prints_parts(self):
        code = (
            "import mlx.core as mx\n"
            "f = mx.compile(lambda x: mx.exp(mx.exp(x @ x) + 1))\n"
            "mx.eval(f(mx.ones((4, 4))))"
        )
        environment = {**os.environ, "MLX_COMPILE_VERBOSE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, env=environment
        )
        text = done.stderr.decode()
        assert done.returncode == 0, text
        assert "CompiledExpAddExp over (4,4): 2 inputs, 3 operations, 1 outputs" in text
        assert "Matmul of shape (4,4) is not part of Exp" in text


class TestSimplify:
    def test_equal_parts_are_one(self):
        def fun(x):
            return mx.sin(x) + mx.sin(x) * mx.cos(x) @ mx.sin(x)

        x = normal(4, 4)
        names = "".join(nodes_of(mx.compile(fun)(x)))
        assert names.count("Sin") == 1
        assert mx.allclose(mx.compile(fun)(x), fun(x))

    def test_constants_that_differ_stay_apart(self):
        near = float(np.nextafter(np.float32(1), np.float32(2)))

        def fun(x):
            return x * 1.0, x * near, x + math.inf, x + math.nan, x * -0.0, x * 0.0

        x = mx.array([1.0, 2.0])
        for got, expected in zip(mx.compile(fun)(x), fun(x)):
            assert mx.array_equal(got, expected, equal_nan=True)
            assert mx.array_equal(1 / got, 1 / expected, equal_nan=True)

    def test_casts_and_stops_go(self):
        def fun(x):
            y = mx.stop_gradient(x.astype(mx.float32))
            return mx.exp(y.astype(mx.float32)).astype(mx.float32)

        x = mx.array([1.0, 2.0])
        assert nodes_of(mx.compile(fun)(x)) == ["Exp"]
        assert mx.array_equal(mx.compile(fun)(x), mx.exp(x))

    def test_same_scalar_many_times(self):
        def fun(x):
            for _ in range(50):
                x = (x + 2.0) * 0.5 + mx.array(2.0)
            return x

        x = normal(100)
        assert mx.array_equal(mx.compile(fun)(x), fun(x))


class TestArgumentsAndResults:
    def test_keywords(self):
        def fun(x, y=None, *, scale=1.0):
            return x * scale if y is None else x * y * scale

        compiled = mx.compile(fun)
        x = mx.array(3.0)
        assert compiled(x).item() == 3
        assert compiled(x, scale=2.0).item() == 6
        assert compiled(x, y=mx.array(5.0)).item() == 15
        assert compiled(y=mx.array(5.0), x=x).item() == 15
        with pytest.raises(TypeError):
            compiled()
        with pytest.raises(TypeError):
            compiled(x, wrong=1)

    def test_trees(self):
        Pair = namedtuple("Pair", "left right")

        def fun(tree):
            pair, rest = tree["pair"], tree["rest"]
            return Pair(pair.right + 1, [pair.left, {"sum": rest[0] + rest[1]}])

        tree = {"pair": Pair(mx.array(1), mx.array(2)), "rest": (mx.array(3), 4)}
        result = mx.compile(fun)(tree)
        assert isinstance(result, Pair)
        assert result.left.item() == 3
        assert result.right[0].item() == 1
        assert result.right[1]["sum"].item() == 7
        assert tree["pair"].left.item() == 1

    @pytest.mark.parametrize("value", [None, 3, "text", (), [], {"a": (1, None)}])
    def test_results_without_arrays(self, value):
        compiled = mx.compile(lambda x: value)
        assert compiled(mx.array(1.0)) == value
        assert compiled(mx.array(1.0)) == value

    def test_inputs_come_back(self):
        x = mx.array([1.0, 2.0])
        y, z, w = mx.compile(lambda x: (x, x, mx.exp(x)))(x)
        assert mx.array_equal(y, x) and mx.array_equal(z, x)
        assert mx.array_equal(w, mx.exp(x))

    def test_unused_inputs_and_constant_outputs(self):
        compiled = mx.compile(lambda x, y: (x + 1, mx.arange(3), mx.array(7)))
        a, b, c = compiled(mx.array(1), mx.array(2))
        assert (a.item(), b.tolist(), c.item()) == (2, [0, 1, 2], 7)
        a, b, c = compiled(mx.array(5), mx.array(2))
        assert (a.item(), b.tolist(), c.item()) == (6, [0, 1, 2], 7)

    def test_other_arguments_are_an_error(self):
        with pytest.raises(ValueError, match="argument of type object"):
            mx.compile(lambda x: x)(object())
        with pytest.raises(ValueError, match="a key of type object"):
            mx.compile(lambda x: x)({object(): 1})
        with pytest.raises(TypeError):
            mx.compile(3)

    def test_exceptions_pass_and_leave_nothing(self):
        state = [mx.array(1.0)]
        broken = [True]

        def fun(x):
            state[0] = state[0] + x
            if broken[0]:
                raise KeyError("mine")
            return x * 2

        compiled = mx.compile(fun, inputs=state, outputs=state)
        with pytest.raises(KeyError, match="mine"):
            compiled(mx.array(2.0))
        assert state[0].item() == 1
        broken[0] = False
        assert compiled(mx.array(2.0)).item() == 4
        assert state[0].item() == 3

    def test_arguments_are_not_changed(self):
        def fun(x):
            x += 1
            x[0] = 5
            return x

        x = mx.array([1.0, 2.0])
        assert mx.compile(fun)(x).tolist() == [5, 3]
        assert x.tolist() == [1, 2]

    def test_attributes_and_methods(self):
        class Layer:
            @staticmethod
            @mx.compile
            def double(x):
                """Doubles."""
                return x * 2

        assert Layer.double(mx.array(2.0)).item() == 4
        assert Layer.double.__name__ == "double"
        assert Layer.double.__doc__ == "Doubles."
        assert "x" in inspect.signature(Layer.double).parameters

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = mx.array(3.0)

            @mx.compile
            def forward(self, x):
                return self.weight * x

        model = Model()
        assert model.forward(mx.array(2.0)).item() == 6
        model.weight = mx.array(4.0)
        assert model.forward(mx.array(2.0)).item() == 8


class TestValuesInside:
    @pytest.mark.parametrize(
        "read", [print, repr, mx.eval, float, bool, lambda z: z.tolist(), np.array]
    )
    def test_reading_is_an_error(self, read):
        def fun(x):
            z = mx.exp(-x)
            read(z)
            return z

        with pytest.raises(ValueError, match="return it instead, or disable compile"):
            mx.compile(fun)(mx.array(1.0))

    def test_disabled_it_prints(self, enabled, capsys):
        def fun(x):
            print(mx.exp(-x))
            return mx.exp(-x)

        compiled = mx.compile(fun)
        mx.disable_compile()
        compiled(mx.array(1.0))
        compiled(mx.array(1.0))
        assert capsys.readouterr().out == "array(0.367879, dtype=float32)\n" * 2

    @pytest.mark.parametrize("value", ["1", "0", ""])
    def test_environment_disables(self, value):
        code = (
            "import mlx.core as mx\n"
            "n = []\n"
            "f = mx.compile(lambda x: (n.append(1), x + 1)[1])\n"
            "f(mx.array(1)); f(mx.array(1))\n"
            "assert len(n) == 2\n"
            "mx.enable_compile()\n"
            "f(mx.array(1)); f(mx.array(1))\n"
            "assert len(n) == 3\n"
        )
        environment = {**os.environ, "MLX_DISABLE_COMPILE": value}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)

    def test_undeclared_state_is_an_error_later(self):
        state = []

        def fun(x, y):
            z = x + y
            state.append(z)
            return mx.exp(z)

        mx.compile(fun)(mx.array(1.0), mx.array(2.0))
        with pytest.raises(RuntimeError, match="left behind"):
            print(state)

    def test_values_of_other_traces_are_an_error(self):
        state = []
        mx.compile(lambda x: (state.append(x), x + 1)[1])(mx.array(1.0))
        with pytest.raises(ValueError, match="another trace"):
            mx.compile(lambda x: x + state[0])(mx.array(1.0))

    def test_constants_can_be_read(self):
        def fun(x):
            n = mx.array([1, 2, 3]).max().item()
            return x * n

        assert mx.compile(fun)(mx.array(2.0)).item() == 6


class TestTransforms:
    def test_compile_of_grad(self):
        value = mx.compile(mx.grad(mx.exp))(mx.array(1.0)).item()
        assert value == pytest.approx(2.71828, rel=1e-5)

    def test_transforms_of_compiled(self):
        fun = Counted(lambda x: mx.sin(x) * x)
        compiled = mx.compile(fun)
        x = mx.array([1.0, 2.0])
        one = mx.ones((2,))
        expected = mx.cos(x) * x + mx.sin(x)
        grad = mx.grad(lambda x: compiled(x).sum())
        assert mx.allclose(grad(x), expected)
        assert mx.allclose(mx.vjp(compiled, [x], [one])[1][0], expected)
        assert mx.allclose(mx.jvp(compiled, [x], [one])[1][0], expected)
        assert mx.allclose(mx.vmap(compiled)(x), mx.sin(x) * x)
        assert mx.allclose(mx.compile(grad)(x), expected)
        second = mx.grad(lambda x: grad(x).sum())
        assert mx.allclose(mx.compile(second)(x), 2 * mx.cos(x) - x * mx.sin(x))
        assert mx.allclose(mx.compile(mx.vmap(grad))(x[None]), expected[None])

    def test_compiled_inside_of_compiled(self):
        inner = mx.compile(lambda x: mx.exp(x) + 1)

        def outer(x):
            return inner(x) * inner(x * 2)

        x = normal(10)
        got = mx.compile(outer)(x)
        assert len(nodes_of(got)) == 1
        assert mx.array_equal(got, outer(x))

    def test_inside_of_a_transform_without_its_arguments(self):
        inner = mx.compile(lambda x: mx.exp(x) + 1)
        y = mx.array(1.0)
        assert mx.grad(lambda x: x * inner(y))(mx.array(2.0)).item() == inner(y).item()

    @pytest.mark.parametrize("shapeless", [False, True])
    def test_what_a_compiled_function_reads_besides(self, shapeless):
        """An argument of the transform around it, not its own: no constant."""
        y = mx.array([1.0, 2.0])

        def of(compiled):
            def fun(x):
                def inner(y):
                    return mx.exp(x) * y + mx.sin(x * y)

                return (mx.compile(inner, shapeless) if compiled else inner)(y).sum()

            return fun

        x = mx.array([2.0, 3.0])
        transforms = [
            lambda f: mx.grad(f)(x),
            lambda f: mx.grad(lambda x: mx.grad(f)(x).sum())(x),
            lambda f: mx.jvp(f, [x], [x])[1][0],
            lambda f: mx.vmap(f)(mx.stack([x, y])),
            lambda f: mx.compile(f)(x),
            lambda f: mx.compile(mx.grad(f))(x),
            lambda f: mx.grad(mx.checkpoint(f))(x),
        ]
        for transform in transforms:
            got, expected = transform(of(True)), transform(of(False))
            assert mx.allclose(got, expected), (got, expected)

    def test_a_trace_from_before_is_not_used_inside(self):
        factor = [mx.array(2.0)]
        compiled = mx.compile(lambda x: mx.exp(x) * factor[0])
        one = mx.array(1.0)
        compiled(one)

        def fun(f):
            factor[0] = f
            return compiled(one)

        slope = mx.grad(fun)(mx.array(3.0))
        assert slope.item() == pytest.approx(math.e, rel=1e-6)

    def test_value_and_grad_with_modules(self):
        model = nn.Linear(4, 2)

        def loss(x):
            return (model(x) ** 2).sum()

        step = nn.value_and_grad(model, loss)
        compiled = mx.compile(step, inputs=model.state)
        x = normal(3, 4)
        value, grads = step(x)
        fast_value, fast_grads = compiled(x)
        assert mx.allclose(value, fast_value)
        assert mx.allclose(grads["weight"], fast_grads["weight"])
        model.weight = model.weight * 2
        assert mx.allclose(step(x)[0], compiled(x)[0])


class TestShapeless:
    def test_rank_and_length(self):
        fun = Counted(lambda x, y: mx.abs(x + y))
        compiled = mx.compile(fun, shapeless=True)
        assert compiled(mx.array(1.0), mx.array(-2.0)).item() == 1
        assert compiled(mx.array([1.0, -6.0]), mx.array([-2.0, 3.0])).tolist() == [1, 3]
        assert fun.traces == 2
        assert compiled(mx.array([1.0]), mx.array([-2.0])).tolist() == [1]
        assert fun.traces == 2

    def test_lengths_of_one(self):
        def fun(x, y):
            e = mx.exp(x)
            return e, e + y, mx.sum(e, axis=-1, keepdims=True) * y

        compiled = mx.compile(fun, shapeless=True)
        for m, n in [(3, 3), (1, 3), (3, 1), (1, 1), (5, 5)]:
            x, y = normal(2, m), normal(2, n)
            for got, expected in zip(compiled(x, y), fun(x, y)):
                assert got.shape == expected.shape
                assert mx.allclose(got, expected)

    def test_frozen_shape_raises(self):
        compiled = mx.compile(
            lambda x: x.reshape(x.shape[0] * x.shape[1], -1), shapeless=True
        )
        assert compiled(mx.zeros((2, 3, 4))).shape == (6, 4)
        with pytest.raises(ValueError):
            mx.eval(compiled(mx.zeros((5, 5, 3))))

    def test_flatten(self):
        compiled = mx.compile(lambda x: x.flatten(0, 1), shapeless=True)
        assert compiled(mx.zeros((2, 3, 4))).shape == (6, 4)
        assert compiled(mx.zeros((5, 5, 3))).shape == (25, 3)


class TestThreads:
    def test_ten_threads_compile_and_call(self):
        def work(results, i):
            compiled = mx.compile(gelu)
            x = mx.full((50,), i / 10)
            for _ in range(20):
                results[i] = compiled(x).tolist()

        results = [None] * 10
        threads = [threading.Thread(target=work, args=(results, i)) for i in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, result in enumerate(results):
            assert result == gelu(mx.full((50,), i / 10)).tolist()
