"""How compiled functions go through memory: many inputs, gradients of transposes."""

import io

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest


def nodes_of(*arrays):
    """The operations of a graph, by name."""
    file = io.StringIO()
    mx.export_to_dot(file, *arrays)
    text = file.getvalue().splitlines()
    return [line.split('label="')[1].split('"')[0] for line in text if "label=" in line]


def values(count, size):
    generator = np.random.default_rng(size)
    return [
        mx.array(generator.standard_normal(size).astype(np.float32))
        for _ in range(count)
    ]


def woven(*inputs):
    """Two results; inputs and sums are wanted again long after they were made."""
    total, seen = inputs[0], []
    for one in inputs[1:]:
        total = mx.maximum(total * 0.5 + one, inputs[0])
        seen.append(total)
    return total - seen[3] * inputs[1], seen[len(seen) // 2] + seen[0]


@pytest.mark.parametrize("count", [8, 9, 10, 26])
@pytest.mark.parametrize("size", [1, 63, 4096, 4097, 100_003])
def test_many_inputs(count, size):
    inputs = values(count, size)
    expected = woven(*inputs)
    got = mx.compile(woven)(*inputs)
    for one, other in zip(got, expected):
        assert np.array_equal(np.array(one), np.array(other))


def test_many_inputs_of_several_kinds():
    inputs = values(14, 5000)
    inputs[3] = inputs[3].astype(mx.bfloat16)
    inputs[5] = inputs[5][:1]
    inputs[7] = inputs[7][::-1]
    expected = woven(*inputs)
    got = mx.compile(woven)(*inputs)
    for one, other in zip(got, expected):
        assert np.array_equal(np.array(one), np.array(other))


def test_many_inputs_that_are_given_away():
    expected = woven(*values(20, 50_000))
    got = mx.compile(woven)(*[one + 0 for one in values(20, 50_000)])
    for one, other in zip(got, expected):
        assert np.array_equal(np.array(one), np.array(other))


@pytest.mark.parametrize("shape", [(5, 6), (2, 3, 6)])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_of_weights_lie_as_the_weights(shape, bias):
    layer = nn.Linear(6, 4, bias=bias)
    x = mx.random.normal(shape)

    def loss(weight):
        layer.weight = weight
        return (layer(x) ** 2).sum()

    gradient = mx.grad(loss)(mx.random.normal((4, 6)))
    with mx.stream(mx.cpu):
        seen = np.array(gradient, copy=False)
    assert seen.flags.c_contiguous
    flat = np.array(x).reshape(-1, 6)
    out = np.array(layer(x)).reshape(-1, 4)
    np.testing.assert_allclose(seen, 2 * out.T @ flat, rtol=1e-4, atol=1e-4)


def test_transposes_undo_each_other():
    def twice(x):
        return x.transpose(2, 0, 1).transpose(1, 2, 0) * 2

    def turned(x):
        return x.transpose(2, 0, 1).transpose(2, 0, 1) * 2

    x = mx.array(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    assert "Transpose" not in nodes_of(mx.compile(twice)(x))
    assert "Transpose" in nodes_of(mx.compile(turned)(x))
    for function in (twice, turned):
        assert mx.array_equal(mx.compile(function)(x), function(x))


def test_equal_parts_are_computed_from_their_own_inputs():
    def step(tensors, rate):
        return [mx.exp(x) * rate + x for x in tensors]

    tensors = [mx.array(np.full((5, 7), i, np.float32)) / 8 for i in range(6)]
    tensors[3] = mx.array(np.arange(35, dtype=np.float32).reshape(7, 5)).T / 40
    tensors[4] = mx.broadcast_to(mx.array([1.0, 2, 3, 4, 5])[:, None], (5, 7))
    tensors.append(mx.ones((3,)))
    got = mx.compile(step)(tensors, mx.array(0.5))
    for one, other in zip(got, step(tensors, mx.array(0.5))):
        assert mx.array_equal(one, other)
    assert len(nodes_of(*mx.compile(step)(tensors, mx.array(0.5)))) >= 7


def test_a_graph_that_calls_a_compiled_function_twice_is_drawn_whole():
    compiled = mx.compile(lambda x: mx.exp(x) + x)
    once, twice = compiled(mx.ones((3,))), compiled(compiled(mx.ones((3,))))
    assert len(nodes_of(twice)) == len(nodes_of(once)) + 1
