"""compile with shapeless=True: one trace for all lengths of the same rank, also
under grad, vjp, jvp and vmap; values against the uncompiled function."""

import io

import mlx.core as mx
import numpy as np
import pytest


def draw(shape, seed=0):
    x = np.random.default_rng([seed, *shape]).normal(size=shape)
    return mx.array(x.astype(np.float32))


def quantized(rows, columns):
    return mx.quantize(draw((rows, columns), 7), 32, 4)


TABLE = draw((9, 4), 3)
COLUMN = draw((4,), 4)
WEIGHT = draw((6, 4), 5)
HEADS = draw((2, 4, 9, 8), 6)
CODES = quantized(6, 64)
BATCHED_CODES = mx.quantize(draw((3, 6, 64), 8), 32, 4)


def positions(x, n):
    """Integers in [0, n) that depend on x."""
    return mx.floor(mx.abs(mx.sin(x)) * (n - 1e-3)).astype(mx.int32)


def updated(x):
    x = x + 0
    x[1:] = x[:-1] * 2
    return x


def updated_last(x):
    x = x + 0
    x[..., -1] = 3.0
    return x


def scattered(x):
    y = mx.zeros_like(x)
    return y.at[mx.array([0, 1, 0])].add(x[:1])


def attention(x, **more):
    q = mx.stack([x, -x], 1)
    return mx.fast.scaled_dot_product_attention(q, q, q, scale=0.5, **more)


# By name: the function of arrays, and shapes of these for each call.
MATRICES = [((3, 4),), ((7, 4),), ((2, 4),), ((3, 4),)]
GROWING = [((2, 3),), ((5, 7),), ((3, 2),), ((4, 4),)]
ONES = [((1, 1),), ((4, 3),), ((1, 5),), ((6, 1),)]
CUBES = [((2, 3, 4),), ((5, 2, 6),), ((1, 1, 2),), ((3, 7, 8),)]
PAIRS = [
    ((3, 1), (3, 4)),
    ((3, 4), (3, 1)),
    ((1, 4), (5, 1)),
    ((2, 2), (2, 2)),
    ((6, 4), (1, 4)),
]
CASES = {
    "broadcast": (lambda x, y: x * y + x, PAIRS),
    "broadcast_arrays": (lambda x, y: mx.broadcast_arrays(x, y)[0] * 2, PAIRS),
    "broadcast_vector": (
        lambda x, y: x * y - y,
        [((3, 4), (4,)), ((5, 1), (7,)), ((2, 6), (1,))],
    ),
    "divide": (lambda x, y: x / (2 + mx.abs(y)), PAIRS),
    "maximum": (lambda x, y: mx.maximum(x, y), PAIRS),
    "where": (lambda x, y: mx.where(x > 0.1, x, y), PAIRS),
    "unary": (lambda x: mx.exp(mx.sin(x)) * 2, GROWING),
    "square": (lambda x: x * x, GROWING),
    "full_like": (lambda x: mx.full_like(x, 2.0) * x, GROWING),
    "zeros_like": (lambda x: mx.zeros_like(x) + x, GROWING),
    "ones_like": (lambda x: mx.ones_like(x) - x, GROWING),
    "sum": (lambda x: x.sum(0), ONES),
    "sum_keepdims": (lambda x: x * x.sum(-1, keepdims=True), ONES),
    "mean": (lambda x: x - x.mean(), ONES),
    "var": (lambda x: mx.var(x, axis=1) + 1, ONES),
    "prod": (lambda x: mx.prod(x, axis=0), ONES),
    "max": (lambda x: x.max(axis=1, keepdims=True) * x, ONES),
    "min": (lambda x: x.min(), ONES),
    "logsumexp": (lambda x: mx.logsumexp(x, axis=0), ONES),
    "logsumexp_last": (lambda x: mx.logsumexp(x, axis=-1, keepdims=True), ONES),
    "median": (lambda x: mx.median(x, axis=1), ONES),
    "softmax": (lambda x: mx.softmax(x, axis=-1), ONES),
    "softmax_first": (lambda x: mx.softmax(x, axis=0), ONES),
    "softmax_all": (lambda x: mx.softmax(x, axis=(0, 1)), ONES),
    "cumsum": (lambda x: mx.cumsum(x, axis=0), ONES),
    "cumsum_flat": (lambda x: mx.cumsum(x), ONES),
    "cumprod": (lambda x: mx.cumprod(x, axis=1, reverse=True), ONES),
    "cummax": (lambda x: mx.cummax(x, axis=1), ONES),
    "logcumsumexp": (lambda x: mx.logcumsumexp(x, axis=0), ONES),
    "sort": (lambda x: mx.sort(x, axis=0), ONES),
    "sort_flat": (lambda x: mx.sort(x, axis=None), ONES),
    "topk": (lambda x: mx.topk(x, 1, axis=-1), ONES),
    "flatten": (lambda x: x.flatten(0, 1) * 2, CUBES),
    "unflatten": (lambda x: mx.unflatten(x, -1, (2, -1)), CUBES),
    "reshape_rest": (lambda x: x.reshape(-1, 2), CUBES),
    "expand_dims": (lambda x: mx.expand_dims(x, 1) * 2, GROWING),
    "squeeze": (lambda x: x.squeeze(1), [((3, 1),), ((5, 1),)]),
    "transpose": (lambda x: x.transpose(2, 0, 1) + 1, CUBES),
    "swapaxes": (lambda x: x.swapaxes(0, 2), CUBES),
    "tail": (lambda x: x[1:], GROWING),
    "all_but_last": (lambda x: x[:-1] - x[1:], GROWING),
    "last": (lambda x: x[-1], GROWING),
    "last_column": (lambda x: x[..., -1], GROWING),
    "first": (lambda x: x[:, 0], GROWING),
    "steps": (lambda x: x[::2, ::-1], GROWING),
    "new_axis": (lambda x: x[:, None, 1:], GROWING),
    "whole": (lambda x: x[:], GROWING),
    "listed": (lambda x: x[[0, 1, -1]], GROWING),
    "pairs": (lambda x: x[[0, 1], [1, -1]], GROWING),
    "flip": (lambda x: x[::-1] + x, GROWING),
    "roll": (lambda x: mx.roll(x, 1, 0), GROWING),
    "roll_all": (lambda x: mx.roll(x, 3), GROWING),
    "diff": (lambda x: mx.diff(x, axis=0), GROWING),
    "tril": (lambda x: mx.tril(x), GROWING),
    "diagonal": (lambda x: mx.diagonal(x), GROWING),
    "diag": (lambda x: mx.diag(x, 1), [((3,),), ((5,),), ((1,),)]),
    "repeat": (lambda x: mx.repeat(x, 3, 0), GROWING),
    "tile": (lambda x: mx.tile(x, (2, 1)), GROWING),
    "pad": (lambda x: mx.pad(x, 1), GROWING),
    "pad_edge": (lambda x: mx.pad(x, 1, mode="edge"), GROWING),
    "concatenate": (
        lambda x, y: mx.concatenate([x, y, x], 0),
        [((3, 4), (2, 4)), ((1, 5), (6, 5)), ((4, 1), (4, 1))],
    ),
    "stack": (lambda x: mx.stack([x, 2 * x], 1), GROWING),
    "split": (lambda x: mx.split(x, 2, 0)[1], [((2, 3),), ((6, 1),), ((4, 5),)]),
    "split_at": (lambda x: mx.split(x, [1, -1], 0)[1], GROWING),
    "take": (lambda x: mx.take(x, mx.array([[0, 1], [-1, 0]]), 0), GROWING),
    "take_inner": (lambda x: mx.take(x, mx.array([0, -1, 1]), 1), GROWING),
    "take_along_axis": (
        lambda x: mx.take_along_axis(x, mx.stop_gradient(mx.argsort(x, axis=0)), 0),
        GROWING,
    ),
    "put_along_axis": (
        lambda x: mx.put_along_axis(
            x, mx.stop_gradient(mx.argmax(x, 0, keepdims=True)), x[:1], 0
        ),
        GROWING,
    ),
    "scatter": (scattered, GROWING),
    "slice_update": (updated, GROWING),
    "integer_update": (updated_last, GROWING),
    "at": (lambda x: x.at[1:].multiply(3.0), GROWING),
    "matmul": (
        lambda x, y: x @ y,
        [((2, 3), (3, 4)), ((5, 1), (1, 2)), ((1, 6), (6, 1))],
    ),
    "matmul_vectors": (lambda x, y: x @ y, [((3,), (3,)), ((5,), (5,))]),
    "matmul_batch": (
        lambda x, y: x @ y,
        [((2, 3, 4), (4, 5)), ((6, 1, 2), (2, 3)), ((1, 7, 3), (3, 1))],
    ),
    "matmul_broadcast": (
        lambda x, y: x @ y,
        [
            ((2, 1, 4, 2), (3, 2, 5)),
            ((3, 1, 4, 2), (2, 2, 5)),
            ((1, 6, 1, 3), (1, 3, 2)),
            ((5, 2, 2, 2), (2, 2, 2)),
        ],
    ),
    "matmul_constant": (lambda x: x @ WEIGHT.T, MATRICES),
    "addmm": (
        lambda c, x, y: mx.addmm(c, x, y, alpha=2.0, beta=3.0),
        [
            ((2, 4), (2, 3), (3, 4)),
            ((1, 5), (3, 6), (6, 5)),
            ((3, 1), (3, 2), (2, 7)),
        ],
    ),
    "tensordot": (
        lambda x, y: mx.tensordot(x, y, [[1], [0]]),
        [((2, 3, 4), (3, 5)), ((1, 6, 2), (6, 1))],
    ),
    "inner": (mx.inner, [((2, 3), (4, 3)), ((1, 5), (6, 5))]),
    "outer": (mx.outer, [((3,), (4,)), ((7,), (2,))]),
    "kron": (mx.kron, [((2, 3), (1, 2)), ((1, 1), (4, 3))]),
    "rms_norm": (lambda x: mx.fast.rms_norm(x, COLUMN, 1e-5), MATRICES),
    "layer_norm": (lambda x: mx.fast.layer_norm(x, COLUMN, None, 1e-5), MATRICES),
    "plain_norm": (lambda x: mx.fast.rms_norm(x, None, 1e-5), GROWING),
    "rope": (
        lambda x: mx.fast.rope(
            x, 2, traditional=False, base=100.0, scale=1.0, offset=3
        ),
        CUBES,
    ),
    "attention": (attention, CUBES),
    "causal_attention": (lambda x: attention(x, mask="causal"), CUBES),
    "cross_attention": (
        lambda x: mx.fast.scaled_dot_product_attention(
            x, HEADS[:, :2], HEADS[:, 2:], scale=0.3
        ),
        [((2, 4, 3, 8),), ((2, 2, 7, 8),), ((2, 6, 1, 8),)],
    ),
    "quantized_matmul": (
        lambda x: mx.quantized_matmul(x, *CODES, group_size=32, bits=4),
        [((3, 64),), ((1, 64),), ((7, 64),)],
    ),
    "quantized_batch": (
        lambda x: mx.quantized_matmul(x, *BATCHED_CODES, group_size=32, bits=4),
        [((1, 2, 64),), ((3, 5, 64),), ((3, 1, 64),)],
    ),
    "astype": (lambda x: x.astype(mx.float16).astype(mx.float32) * 2, GROWING),
    "stop_gradient": (lambda x: x * mx.stop_gradient(x), GROWING),
}
# Results without derivatives.
FLAT = {
    "argmax": (lambda x: mx.argmax(x, axis=0), ONES),
    "argmin_all": (lambda x: mx.argmin(x), ONES),
    "argsort": (lambda x: mx.argsort(x, axis=1), ONES),
    "any": (lambda x: mx.any(x > 0.5, axis=1), ONES),
    "all": (lambda x: mx.all(x > -2), ONES),
    "array_equal": (mx.array_equal, PAIRS),
    "size": (lambda x: x.size + mx.zeros_like(x), [((2, 3),), ((3, 2),)]),
    "embedding": (
        lambda x: TABLE[positions(x, 9)] * 2,
        [((3, 1),), ((5, 7),), ((1, 2),)],
    ),
    "searchsorted": (lambda x: mx.searchsorted(COLUMN, x), GROWING),
    "bernoulli": (
        lambda x: mx.random.bernoulli(mx.sigmoid(x), key=mx.random.key(3)),
        GROWING,
    ),
    "categorical": (
        lambda x: mx.random.categorical(x, key=mx.random.key(3)),
        GROWING,
    ),
}

# Exact on the CPU up to the order of sums; products on devices round otherwise.
TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


def check(fun, name, calls, draws=lambda shapes: [draw(s) for s in shapes]):
    """Compares for all calls, for which the function's code may run once."""
    traces = []

    def counted(*arrays):
        traces.append(1)
        return fun(*arrays)

    compiled = mx.compile(counted, shapeless=True)
    for shapes in calls:
        arrays = draws(shapes)
        got, want = compiled(*arrays), fun(*arrays)
        for g, w in zip(leaves(got), leaves(want), strict=True):
            assert g.dtype == w.dtype, f"{name} {shapes}"
            assert g.shape == w.shape, f"{name} {shapes}"
            np.testing.assert_allclose(
                np.array(g), np.array(w), err_msg=f"{name} {shapes}", **TOLERANCE
            )
    assert len(traces) == 1, name


def leaves(tree):
    return (
        [tree] if isinstance(tree, mx.array) else [x for t in tree for x in leaves(t)]
    )


def smooth_sum(fun):
    """A scalar to which all elements of the result contribute differently."""
    return lambda *arrays: (mx.sin(fun(*arrays)) * 1.5).sum()


every_case = pytest.mark.parametrize("name", CASES)


class TestShapeless:
    @pytest.mark.parametrize("name", [*CASES, *FLAT])
    def test_values(self, name):
        check((CASES | FLAT)[name][0], name, (CASES | FLAT)[name][1])

    @every_case
    def test_reversed_order_of_calls(self, name):
        check(CASES[name][0], name, CASES[name][1][::-1])

    @every_case
    def test_grad(self, name):
        fun, calls = CASES[name]
        argnums = list(range(len(calls[0])))
        check(mx.grad(smooth_sum(fun), argnums), name, calls)

    @every_case
    def test_vjp(self, name):
        fun, calls = CASES[name]

        def pulled(*arrays):
            out = fun(*arrays)
            return mx.vjp(fun, arrays, [mx.cos(out)])

        check(pulled, name, calls)

    @every_case
    def test_jvp(self, name):
        fun, calls = CASES[name]
        check(
            lambda *arrays: mx.jvp(fun, arrays, [mx.cos(a) for a in arrays]),
            name,
            calls,
        )

    @every_case
    def test_vmap(self, name):
        fun, calls = CASES[name]
        batches = [2, 3, 1, 4, 2]

        def with_batch(shapes):
            batch = batches[calls.index(shapes)]
            return [draw((batch, *s)) for s in shapes]

        check(mx.vmap(fun), name, calls, with_batch)

    @every_case
    def test_vmap_of_one_operand(self, name):
        fun, calls = CASES[name]
        last = len(calls[0]) - 1
        axes = tuple(1 if i == last else None for i in range(last + 1))
        batches = [3, 2, 4, 1, 2]

        def with_batch(shapes):
            *rest, s = shapes
            batch = batches[calls.index(shapes)]
            return [draw(r) for r in rest] + [draw((s[0], batch, *s[1:]))]

        check(mx.vmap(fun, in_axes=axes, out_axes=0), name, calls, with_batch)

    @pytest.mark.parametrize(
        "name", ["broadcast", "matmul_broadcast", "softmax", "take", "tail", "rms_norm"]
    )
    def test_second_derivative(self, name):
        fun, calls = CASES[name]
        first = mx.grad(smooth_sum(fun))
        check(mx.grad(smooth_sum(first)), name, calls)

    @pytest.mark.parametrize(
        "name", ["broadcast", "matmul", "softmax", "cumsum", "tail"]
    )
    def test_grad_of_vmap(self, name):
        fun, calls = CASES[name]
        check(
            mx.grad(smooth_sum(mx.vmap(fun))),
            name,
            calls,
            lambda shapes: [draw((3, *s)) for s in shapes],
        )

    def test_unmapped_output_of_vmap(self):
        def fun(x):
            return mx.vmap(lambda row: (row * 2, COLUMN))(x)

        check(fun, "vmap", MATRICES)

    def test_reshape_keeps_what_was_read(self):
        fun = mx.compile(
            lambda x: x.reshape(x.shape[0] * x.shape[1], -1), shapeless=True
        )
        assert fun(mx.zeros((2, 3, 4))).shape == (6, 4)
        assert fun(mx.zeros((2, 3, 8))).shape == (6, 8)
        with pytest.raises(ValueError, match="reshape"):
            fun(mx.zeros((5, 5, 3)))

    def test_flatten_follows(self):
        fun = mx.compile(lambda x: x.flatten(0, 1), shapeless=True)
        assert fun(mx.zeros((2, 3, 4))).shape == (6, 4)
        assert fun(mx.zeros((5, 5, 3))).shape == (25, 3)

    def test_shapes_read_in_python_stay(self):
        def fun(x):
            return mx.broadcast_to(mx.array(2.0), x.shape), x[: x.shape[0]]

        compiled = mx.compile(fun, shapeless=True)
        compiled(mx.zeros((3,)))
        frozen, part = compiled(mx.zeros((5,)))
        assert frozen.shape == (3,)
        assert part.shape == (3,)

    @pytest.mark.parametrize(
        ("fun", "first", "second", "text"),
        [
            (lambda x: mx.broadcast_to(x, (2, 3)), (1, 3), (2, 2), "broadcast"),
            (lambda x: mx.squeeze(x, 0), (1, 3), (2, 3), "squeeze"),
            (lambda x: mx.squeeze(x), (1, 3), (2, 3), "squeeze"),
            (lambda x: sum(mx.unstack(x)), (2, 3), (3, 3), "unstack"),
            (lambda x: mx.split(x, 2)[0], (4,), (5,), "split"),
            (lambda x: x @ WEIGHT, (2, 6), (2, 5), "matmul"),
            (lambda x: x + COLUMN, (3, 4), (3, 5), "broadcast"),
            (lambda x: mx.concatenate([x, TABLE]), (2, 4), (2, 5), "concatenate"),
            (lambda x: mx.fast.rms_norm(x, COLUMN, 1e-5), (2, 4), (2, 5), "rms_norm"),
            (lambda x: x.max(0), (2,), (0,), "reduce"),
            (lambda x: mx.argmax(x), (2,), (0,), "argreduce"),
            (lambda x: mx.unflatten(x, 0, (2, 2)), (4,), (6,), "unflatten"),
            (lambda x: mx.topk(x, 3), (4,), (2,), "topk"),
        ],
    )
    def test_lengths_that_do_not_fit_are_refused(self, fun, first, second, text):
        compiled = mx.compile(fun, shapeless=True)
        mx.eval(compiled(mx.zeros(first)))
        with pytest.raises(ValueError, match=text):
            mx.eval(compiled(mx.zeros(second)))
        mx.eval(compiled(mx.zeros(first)))

    def test_index_out_of_range(self):
        fun = mx.compile(lambda x: x[3], shapeless=True)
        assert fun(mx.arange(5)).item() == 3
        assert fun(mx.arange(4)).item() == 3
        with pytest.raises(IndexError):
            fun(mx.arange(3))

    def test_evaluating_inside_is_refused(self):
        def fun(x):
            y = mx.zeros_like(x)
            mx.eval(y)
            return y

        with pytest.raises(ValueError):
            mx.compile(fun, shapeless=True)(mx.zeros((2,)))

    def test_custom_rules_run_while_tracing(self):
        runs = []

        @mx.custom_function
        def fun(x):
            return x * x

        @fun.vjp
        def rule(primal, cotangent, _):
            runs.append(1)
            return cotangent * primal * mx.ones_like(primal)

        compiled = mx.compile(mx.grad(lambda x: fun(x).sum()), shapeless=True)
        for n in (2, 5, 3):
            x = draw((n,))
            np.testing.assert_allclose(np.array(compiled(x)), np.array(x), rtol=1e-6)
        assert len(runs) == 1

    def test_checkpoint(self):
        fun = mx.checkpoint(lambda x: mx.softmax(mx.sin(x), 0))
        check(mx.grad(smooth_sum(fun)), "checkpoint", GROWING)

    def test_stream_of_the_trace(self):
        stream = mx.new_stream(mx.cpu)

        def fun(x):
            with mx.stream(stream):
                return mx.take(x, mx.array([0]), 0)

        compiled = mx.compile(fun, shapeless=True)
        compiled(draw((2, 2)))
        check(fun, "stream", GROWING)

    def test_inside_another_trace(self):
        """A shapeless function called on constants inside of a compiled one."""
        inner = mx.compile(lambda x: mx.grad(smooth_sum(mx.softmax))(x), shapeless=True)
        outer = mx.compile(lambda y: y * inner(COLUMN).sum(), shapeless=True)
        want = mx.grad(smooth_sum(mx.softmax))(COLUMN).sum()
        for n in (2, 5):
            y = draw((n,))
            np.testing.assert_allclose(
                np.array(outer(y)), np.array(y * want), **TOLERANCE
            )

    def test_fused_parts_stay(self):
        """Chains with grad of operations on equal shapes still fuse."""
        fun = mx.compile(
            mx.grad(lambda x: (mx.sin(mx.exp(x) * 2) + 1).sum()), shapeless=True
        )
        fun(draw((3, 3)))
        text = io.StringIO()
        mx.export_to_dot(text, fun(draw((4, 5))))
        assert "Compiled" in text.getvalue()
