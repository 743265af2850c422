"""vmap: axes and their trees, with derivatives and rules of one's own, and its
errors. Each operation against a loop: test_oracle_vmap.py."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

A = mx.array(np.sin(np.arange(24, dtype=np.float32)).reshape(2, 3, 4))
B = mx.array(np.cos(np.arange(24, dtype=np.float32)).reshape(2, 3, 4))
M = mx.array(np.cos(np.arange(20, dtype=np.float32)).reshape(4, 5))


def check(found: mx.array, expected: mx.array) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(
        np.array(found), np.array(expected), rtol=1e-5, atol=1e-6
    )


def test_in_place_updates():
    def fun(x, y):
        x[0] = y[1]
        x[:, 1] += 10
        return x

    found = mx.vmap(fun)(A, B)
    expected = np.array(A)
    expected[:, 0] = np.array(B)[:, 1]
    expected[:, :, 1] += 10
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-6)


def test_scalars_of_a_vector():
    found = mx.vmap(lambda x, y: x * y + 1)(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))
    assert found.tolist() == [4, 9]


def test_nested():
    outer = mx.vmap(mx.vmap(mx.inner, (None, 0)), (0, None))
    check(outer(A[0], B[0]), A[0] @ mx.transpose(B[0]))
    inner_axis = mx.vmap(mx.vmap(lambda x: x * 2, in_axes=1, out_axes=1), in_axes=2)
    check(inner_axis(A), mx.transpose(A, (2, 0, 1)) * 2)


# ---- axes --------------------------------------------------------------------


@pytest.mark.parametrize("out_axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -2])
def test_axes_move(in_axis, out_axis):
    found = mx.vmap(lambda x: x * 2, in_axes=in_axis, out_axes=out_axis)(A)
    check(found, mx.moveaxis(A, in_axis, out_axis) * 2)


def test_trees_of_axes():
    def fun(d, z):
        return {"s": d["a"] + d["b"][0], "t": (d["a"] * z,)}

    arguments = {"a": A, "b": [B[0]]}
    found = mx.vmap(
        fun,
        in_axes=({"b": [None], "a": 0}, None),
        out_axes={"s": 0, "t": (2,)},
    )(arguments, mx.array(3.0))
    check(found["s"], A + B[0])
    check(found["t"][0], mx.moveaxis(A * 3, 0, 2))


def test_one_axis_for_a_whole_tree():
    found = mx.vmap(lambda d: d["a"] + d["b"], in_axes=1)({"a": A, "b": B})
    check(found, mx.moveaxis(A + B, 1, 0))
    only = mx.vmap(lambda d: d["a"] + d["b"], in_axes={"a": 0, "b": None})
    check(only({"a": A, "b": B[0]}), A + B[0])


def test_a_tuple_of_one_axis():
    assert mx.vmap(lambda x: x, in_axes=(1,), out_axes=(1,))(A).shape == A.shape


def test_outputs_without_batch():
    z = mx.array([1.0, 2.0])
    repeated = mx.vmap(lambda x: (x, z))(A)
    assert repeated[1].tolist() == [[1, 2], [1, 2]]
    once = mx.vmap(lambda x: (x, z), out_axes=(0, None))(A)
    assert once[1].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mx.vmap(lambda x: x)(mx.array(1.0)), "out of range"),
        (lambda: mx.vmap(lambda x: x, in_axes=3)(A), "out of range"),
        (lambda: mx.vmap(lambda x: x, in_axes=-4)(A), "out of range"),
        (lambda: mx.vmap(lambda x: x, out_axes=3)(A), "out of range"),
        (lambda: mx.vmap(lambda x: x, in_axes=None)(A), "no input is mapped"),
        (lambda: mx.vmap(lambda x: x, out_axes=None)(A), "no out axis"),
        (lambda: mx.vmap(lambda x: x, in_axes=1.5), "float"),
        (lambda: mx.vmap(lambda x: x, in_axes=True), "bool"),
        (lambda: mx.vmap(lambda x, y: x, in_axes=(0,))(A, A), "does not match"),
        (lambda: mx.vmap(lambda x, y: x, in_axes=[0, 0])(A, A), "does not match"),
        (lambda: mx.vmap(lambda x: x, in_axes={"a": 0})({"b": A}), "does not match"),
        (lambda: mx.vmap(lambda x: (x, x), out_axes=(0,))(A), "does not match"),
        (lambda: mx.vmap(lambda x, y: x + y)(A, A[:1]), "length"),
        (lambda: mx.vmap(lambda x, y: x * y)(A, 2), "int"),
        (lambda: mx.vmap(lambda x: (x, "s"))(A), "str"),
        (lambda: mx.vmap(lambda x: mx.sum(x).item())(A), "has no value"),
    ],
)
def test_errors(make, text):
    with pytest.raises(ValueError, match=text):
        make()
    check(mx.vmap(lambda x: x * 2)(A), A * 2)


def test_keywords_are_refused():
    with pytest.raises(TypeError, match="keyword"):
        mx.vmap(lambda x: x)(x=A)


# ---- with derivatives --------------------------------------------------------


def loss(x, w):
    return mx.sum(mx.tanh(x @ w) ** 2)


def test_vmap_of_grad():
    x = A[0]
    found = mx.vmap(mx.grad(loss, argnums=1), in_axes=(0, None))(x, M)
    check(found, mx.stack([mx.grad(loss, argnums=1)(row, M) for row in x]))


def test_grad_of_vmap():
    x = A[0]

    def total(w):
        return mx.sum(mx.vmap(loss, in_axes=(0, None))(x, w))

    check(mx.grad(total)(M), mx.grad(loss, argnums=1)(x, M))


def test_vmap_of_value_and_grad():
    values, grads = mx.vmap(mx.value_and_grad(lambda x: mx.sum(x * x)))(A)
    check(values, mx.sum(A * A, axis=(1, 2)))
    check(grads, 2 * A)


def test_jacobian_and_hessian():
    def fun(x):
        return mx.sin(x) * mx.sum(x)

    x = mx.array([0.1, 0.5, -0.3])
    basis = mx.eye(3)
    rows = mx.vmap(lambda v: mx.vjp(fun, [x], [v])[1][0])(basis)
    columns = mx.vmap(lambda v: mx.jvp(fun, [x], [v])[1][0], out_axes=1)(basis)
    check(rows, columns)
    at = np.array(x)
    expected = np.diag(np.cos(at) * at.sum()) + np.sin(at)[:, None]
    np.testing.assert_allclose(np.array(rows), expected, rtol=1e-5, atol=1e-6)


# ---- custom_function ---------------------------------------------------------


def test_custom_rule():
    seen = []

    @mx.custom_function
    def fun(x, y):
        return x * y

    @fun.vmap
    def fun(inputs, axes):
        seen.append(axes)
        return inputs[0] * 7, axes[0]

    check(
        mx.vmap(lambda x: fun(x, mx.array(2.0)), in_axes=1)(A), mx.moveaxis(A, 1, 0) * 7
    )
    assert seen == [(1, None)]
    with pytest.raises(ValueError, match="keyword"):
        mx.vmap(lambda x: fun(x, y=mx.array(2.0)))(A)


def test_custom_rule_of_the_wrong_form():
    fun = mx.custom_function(lambda x: x)
    fun.vmap(lambda inputs, axes: inputs)
    with pytest.raises(ValueError, match="no pair"):
        mx.vmap(fun)(A)


def test_custom_function_without_batch_rule():
    fun = mx.custom_function(lambda x: mx.sin(x))
    fun.vjp(lambda x, cotangent, out: cotangent * 5)
    check(mx.vmap(fun)(A), mx.sin(A))
    check(mx.vmap(mx.grad(lambda x: mx.sum(fun(x))))(A), 5 * mx.ones_like(A))


def test_checkpoint():
    fun = mx.checkpoint(lambda x: mx.sum(mx.sin(x)))
    check(mx.vmap(fun)(A), mx.sum(mx.sin(A), axis=(1, 2)))
    check(mx.vmap(mx.grad(fun))(A), mx.cos(A))


def test_inputs_that_cannot_be_mapped() -> None:
    with pytest.raises(ValueError, match="vmap over the border value"):
        mx.vmap(lambda a, v: mx.pad(a, 1, constant_values=v))(A, mx.array([1.0, 2.0]))
    padded = mx.vmap(lambda a, v: mx.pad(a, 1, constant_values=v), (0, None))
    check(padded(A, mx.array(2.0)), mx.pad(A, [(0, 0), (1, 1), (1, 1)], "constant", 2))
    with pytest.raises(ValueError, match="vmap over the sorted sequence"):
        mx.vmap(lambda s: mx.searchsorted(s, mx.array([1.0])))(mx.zeros((3, 4)))


class Pair(tuple):
    pass


def test_tuples_keep_their_type() -> None:
    out = mx.vmap(lambda t: Pair([t[0] + 1, t[1]]))(Pair([A, B]))
    assert type(out) is Pair
    check(out[0], A + 1)
    assert type(mx.vmap(lambda t: t)(Pair([A]))) is Pair
