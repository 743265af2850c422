"""Derivatives of Python functions: against differences and known formulas,
through trees, nesting, indexing, rules of one's own, and their errors."""

from __future__ import annotations

import gc
import weakref
from collections import namedtuple

import mlx.core as mx
import numpy as np
import pytest


def differences(fun, x: np.ndarray, step: float = 1e-2) -> np.ndarray:
    """Central differences of a scalar function of float32, error O(step^2)."""
    grad = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += step
        above = fun(mx.array(moved)).item()
        moved[place] -= 2 * step
        grad[place] = (above - fun(mx.array(moved)).item()) / (2 * step)
    return grad


W = mx.array(np.cos(np.arange(12, dtype=np.float32)).reshape(3, 4))

FUNCTIONS = {
    "exp sin": lambda x: mx.sum(mx.exp(mx.sin(x)) * W),
    "tanh sigmoid": lambda x: mx.sum(mx.tanh(x) * mx.sigmoid(x * W)),
    "divide": lambda x: mx.sum(W / (x * x + 1)),
    "power": lambda x: mx.sum((x * x + 1) ** 1.7 + 2.0**x),
    "sqrt log": lambda x: mx.sum(mx.sqrt(x * x + 1) * mx.log(2 + x * x)),
    "where": lambda x: mx.sum(mx.where(W > 0, x * x, 3 * x)),
    "maximum": lambda x: mx.sum(mx.maximum(x, 4 * W) * W),
    "matmul": lambda x: mx.sum((x @ W.T) ** 2),
    "index": lambda x: mx.sum(x[1:, ::2] ** 2) + x[0, -1] * x[2, 0],
    "index arrays": lambda x: mx.sum(x[mx.array([0, 2, 0]), mx.array([1, 1, 1])] ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_grad_equals_differences(name):
    fun = FUNCTIONS[name]
    x = np.linspace(-1.1, 1.3, 12, dtype=np.float32).reshape(3, 4) ** 3
    x += np.sin(7 * np.arange(12, dtype=np.float32)).reshape(3, 4)
    found = mx.grad(fun)(mx.array(x))
    expected = differences(fun, x)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(np.array(found), expected, atol=6e-3 * scale)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_and_reverse_agree(name):
    fun = FUNCTIONS[name]
    x = mx.array(np.sin(5 * np.arange(12, dtype=np.float32)).reshape(3, 4))
    tangent = mx.array(np.cos(3 * np.arange(12, dtype=np.float32)).reshape(3, 4))
    _, (forward,) = mx.jvp(fun, [x], [tangent])
    reverse = mx.sum(mx.grad(fun)(x) * tangent)
    np.testing.assert_allclose(forward.item(), reverse.item(), rtol=2e-4, atol=1e-4)


# ---- which arguments ---------------------------------------------------------

X = mx.array(2.0)
Y = mx.array(3.0)


def product(x, y):
    return x * y * y


def test_argnums():
    assert mx.grad(product)(X, Y).item() == 9
    assert mx.grad(product, argnums=1)(X, Y).item() == 12
    assert mx.grad(product, argnums=[1])(X, Y).item() == 12
    for order in ([0, 1], (1, 0)):
        found = mx.grad(product, argnums=order)(X, Y)
        assert isinstance(found, tuple)
        assert [g.item() for g in found] == [9, 12]


def test_argnames():
    positional, named = mx.grad(product, argnames="y")(X, y=Y)
    assert positional is None
    assert named["y"].item() == 12
    positional, named = mx.grad(product, argnums=0, argnames=["y"])(X, y=Y)
    assert positional.item() == 9
    assert list(named) == ["y"]
    value, (both, named) = mx.value_and_grad(
        lambda a, b, c: a * b * c, argnums=(0, 1), argnames=["c"]
    )(X, Y, c=mx.array(5.0))
    assert value.item() == 30
    assert [g.item() for g in both] == [15, 10]
    assert named["c"].item() == 6


def test_trees_in_and_out():
    Pair = namedtuple("Pair", "a b")
    tree = {"w": [X, (Y,)], "pair": Pair(X, Y)}

    def loss(t):
        return t["w"][0] * t["w"][1][0] + t["pair"].a * t["pair"].b ** 2

    found = mx.grad(loss)(tree)
    assert list(found) == ["w", "pair"]
    assert found["w"][0].item() == 3
    assert found["w"][1][0].item() == 2
    assert isinstance(found["pair"], Pair)
    assert found["pair"].a.item() == 9
    assert found["pair"].b.item() == 12
    # The caller's tree is untouched.
    assert tree["w"][0] is X


def test_auxiliary_outputs():
    def fun(x):
        y = x * x
        return y, {"twice": [2 * y], "text": "kept"}, 7

    (value, more, number), grad = mx.value_and_grad(fun)(Y)
    assert value.item() == 9
    assert more["twice"][0].item() == 18
    assert more["text"] == "kept"
    assert number == 7
    assert grad.item() == 6


def test_other_arguments_are_passed_through():
    seen = []

    def fun(x, n, *rest, flag=False):
        seen.append((n, rest, flag))
        return x * n

    assert mx.grad(fun)(X, 4, "s", None, flag=True).item() == 4
    assert seen == [(4, ("s", None), True)]


def test_unused_arguments_and_types():
    unused = mx.grad(lambda x, y: y * 2, argnums=0)(mx.ones((2, 3)), Y)
    assert unused.tolist() == [[0, 0, 0], [0, 0, 0]]
    half = mx.grad(lambda x: mx.sum(x.astype(mx.float32) * 2.5))(
        mx.ones((2,), mx.float16)
    )
    assert half.dtype == mx.float16
    assert half.tolist() == [2.5, 2.5]
    whole = mx.grad(lambda x: x.astype(mx.float32) * 2.5)(mx.array(3))
    assert whole.dtype == mx.int32
    assert whole.item() == 2


def test_a_tree_without_arrays():
    assert mx.grad(lambda t: X * 1)({"none": []}) == {"none": []}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: mx.grad(product, argnums=-1), "negative"),
        (lambda: mx.grad(product, argnums=[0, 0]), "twice"),
        (lambda: mx.grad(product, argnums=[]), "no argument"),
        (lambda: mx.grad(product, argnums=5)(X, Y), "argument 5"),
        (lambda: mx.grad(product, argnames="q")(X, Y), "q is not in the call"),
        (lambda: mx.grad(product)(2.0, Y), "float"),
        (lambda: mx.grad(lambda t: t[0] * 2)([X, "s"]), "str"),
        (lambda: mx.grad(lambda x: (x, x))(X), "tuple"),
        (lambda: mx.grad(lambda x: 1.0)(X), "float"),
        (lambda: mx.value_and_grad(lambda x: [x, x])(X), "list"),
        (lambda: mx.value_and_grad(lambda x: ())(X), "tuple"),
        (lambda: mx.grad(lambda x: x * 2)(mx.ones(1)), "scalar"),
        (lambda: mx.vjp(lambda x: x * 2, [X], [mx.ones(2)]), "shape"),
        (lambda: mx.vjp(lambda x: (x, x * 2), [X], [X]), "few"),
        (lambda: mx.vjp(lambda x: x * 2, [X], [X, X]), "many"),
        (lambda: mx.vjp(lambda x: (x, "s"), [X], [X]), "str"),
        (lambda: mx.jvp(product, [X, Y], [X]), "tangents"),
        (lambda: mx.jvp(lambda x: x * 2, [X], [mx.ones(2)]), "shape"),
    ],
)
def test_errors(make, text):
    with pytest.raises(ValueError, match=text):
        make()
    # Nothing is left switched on.
    assert mx.grad(product)(X, Y).item() == 9


def test_indices_have_no_derivative():
    def fun(i):
        return mx.sum(mx.take(mx.array([1.0, 2.0]), i.astype(mx.int32)))

    with pytest.raises(ValueError, match="ndices"):
        mx.grad(lambda i: mx.sum(mx.take(mx.array([1.0, 2.0]), i)))(mx.array([0]))
    assert fun(mx.array([1.0])).item() == 2


# ---- vjp and jvp -------------------------------------------------------------


def test_vjp_of_several_outputs():
    outputs, grads = mx.vjp(
        lambda x, y: (x * y, x + y), [X, Y], [mx.array(10.0), mx.array(1.0)]
    )
    assert [o.item() for o in outputs] == [6, 5]
    assert [g.item() for g in grads] == [31, 21]


def test_jvp_of_several_outputs():
    outputs, tangents = mx.jvp(
        lambda x, y: [x * y, x * x], (X, Y), (mx.array(1.0), mx.array(10.0))
    )
    assert [o.item() for o in outputs] == [6, 4]
    assert [t.item() for t in tangents] == [23, 4]


def test_stopped_outputs_take_no_cotangent():
    outputs, grads = mx.vjp(
        lambda x: (x * 2, mx.stop_gradient(x)), [X], [mx.array(1.0)]
    )
    assert len(outputs) == 2
    assert grads[0].item() == 2


def test_stop_gradient():
    assert mx.grad(lambda x: x * mx.stop_gradient(x))(Y).item() == 3


# ---- nesting -----------------------------------------------------------------


def test_nested_grad():
    fun = mx.grad(mx.grad(mx.grad(lambda x: x**4)))
    np.testing.assert_allclose(fun(mx.array(2.0)).item(), 48, rtol=1e-6)
    mixed = mx.grad(lambda x: x * mx.grad(lambda y: x * y * y)(x))
    np.testing.assert_allclose(mixed(X).item(), 3 * 2 * 4, rtol=1e-6)


def test_forward_over_reverse():
    x = mx.array([0.3, -0.7])
    v = mx.array([1.0, 2.0])
    _, (product_found,) = mx.jvp(mx.grad(lambda x: mx.sum(mx.sin(x) * x)), [x], [v])
    at = np.array(x)
    expected = (2 * np.cos(at) - at * np.sin(at)) * np.array(v)
    np.testing.assert_allclose(np.array(product_found), expected, rtol=1e-5)


def test_values_can_be_read_inside():
    def fun(x):
        return x * x if x.item() > 0 else -x

    assert mx.grad(fun)(Y).item() == 6
    assert mx.grad(fun)(mx.array(-1.0)).item() == -1


def test_evaluation_between_makes_no_difference():
    def fun(x):
        y = x * x
        mx.eval(y)
        return y * x

    assert mx.grad(fun)(Y).item() == 27


# ---- changes in place --------------------------------------------------------


def test_indexed_assignment():
    def fun(x):
        y = mx.zeros((4,))
        y[1:3] = x[:2] * 2
        y[0] = x[2] ** 2
        y[mx.array([3])] = x[0]
        return mx.sum(y * mx.array([1.0, 10.0, 100.0, 1000.0]))

    found = mx.grad(fun)(mx.array([1.0, 2.0, 3.0]))
    assert found.tolist() == [1020, 200, 6]


def test_overwritten_values_take_no_gradient():
    def fun(x):
        x[0] = 5.0
        x += 1
        return mx.sum(x * x)

    x = mx.array([1.0, 2.0])
    assert mx.grad(fun)(x).tolist() == [0, 6]
    assert x.tolist() == [1, 2]


def test_at_add():
    def fun(x):
        return mx.sum(mx.zeros((2,)).at[mx.array([0, 0, 1])].add(x) ** 2)

    assert mx.grad(fun)(mx.array([1.0, 2.0, 3.0])).tolist() == [6, 6, 6]


# ---- exceptions and references -----------------------------------------------


class SpecialError(Exception):
    pass


@pytest.mark.parametrize(
    "run",
    [
        lambda f: mx.grad(f)(X),
        lambda f: mx.grad(mx.grad(f))(X),
        lambda f: mx.vjp(f, [X], [X]),
        lambda f: mx.jvp(f, [X], [X]),
        lambda f: mx.vmap(f)(mx.ones(2)),
        lambda f: mx.checkpoint(f)(X),
        lambda f: mx.custom_function(f)(X),
        lambda f: mx.grad(mx.checkpoint(f))(X),
    ],
)
def test_exceptions_reach_the_caller_unchanged(run):
    error = SpecialError("mine", 3)

    def fail(x):
        raise error

    with pytest.raises(SpecialError) as caught:
        run(fail)
    assert caught.value is error
    assert mx.grad(product)(X, Y).item() == 9


@pytest.mark.parametrize(
    "transform",
    [
        mx.grad,
        mx.value_and_grad,
        mx.vmap,
        mx.checkpoint,
        mx.custom_function,
        lambda f: mx.custom_function(f).vjp(f),
    ],
)
def test_functions_are_freed_even_in_cycles(transform):
    class Model:
        def __init__(self):
            self.step = transform(self.forward)

        def forward(self, x, *more):
            return x * 2

    model = Model()
    gone = weakref.ref(model)
    model.step(mx.ones(2)[0] if transform is not mx.vmap else mx.ones(2))
    del model
    gc.collect()
    assert gone() is None


def test_graphs_let_go_of_captured_objects():
    class Token:
        pass

    token = Token()
    gone = weakref.ref(token)

    def fun(x, kept=token):
        return mx.sin(x)

    y = mx.checkpoint(fun)(X)
    z = mx.grad(mx.checkpoint(fun))(X)
    mx.eval(y, z)
    del fun, token
    gc.collect()
    assert gone() is None


# ---- custom_function and checkpoint ------------------------------------------


def test_custom_vjp():
    @mx.custom_function
    def fun(x, y):
        return x * y

    @fun.vjp
    def rule(primals, cotangent, output):
        y = primals[1]
        return (cotangent * output, cotangent * 100 * y)

    assert rule is fun
    assert fun(X, Y).item() == 6
    found = mx.grad(lambda x, y: 2 * fun(x, y), argnums=(0, 1))(X, Y)
    assert [g.item() for g in found] == [12, 600]


def test_custom_vjp_of_trees_and_keywords():
    seen = []

    @mx.custom_function
    def fun(d, *, scale=1):
        return {"out": d["a"] * d["b"] * scale, "text": "kept"}

    @fun.vjp
    def fun(primals, cotangents, outputs, *, scale):
        seen.append((list(primals), sorted(cotangents), scale))
        c = cotangents["out"]
        return {"a": c * 7, "b": None}

    result = fun({"a": X, "b": Y}, scale=2)
    assert result["out"].item() == 12
    assert result["text"] == "kept"
    found = mx.grad(lambda a, b: fun({"a": a, "b": b}, scale=2)["out"], argnums=(0, 1))(
        X, Y
    )
    assert [g.item() for g in found] == [7, 0]
    assert seen == [(["a", "b"], ["out", "text"], 2)]


def test_custom_rules_of_the_wrong_size():
    @mx.custom_function
    def fun(x, y):
        return x * y

    @fun.vjp
    def fun(primals, cotangent, output):
        return (cotangent, cotangent, cotangent)

    with pytest.raises(ValueError, match=r"3 arrays\. Expected 2"):
        mx.grad(fun)(X, Y)


def test_custom_jvp():
    seen = []

    @mx.custom_function
    def fun(x, y):
        return x * y

    @fun.jvp
    def fun(primals, tangents):
        seen.append(tangents[1])
        return tangents[0] * 5

    _, (tangent,) = mx.jvp(lambda x: fun(x, Y), [X], [mx.array(2.0)])
    assert tangent.item() == 10
    assert seen == [None]
    with pytest.raises(ValueError, match="keyword"):
        mx.jvp(lambda x: fun(x, y=Y), [X], [X])


def test_missing_rules_follow_from_the_function():
    @mx.custom_function
    def fun(x):
        return mx.sin(x)

    @fun.jvp
    def fun(x, tangent):
        return tangent * 5

    np.testing.assert_allclose(mx.grad(fun)(X).item(), np.cos(2.0), rtol=1e-6)


def test_captured_arrays_are_constants():
    z = mx.array(4.0)

    def with_rule(z):
        fun = mx.custom_function(lambda x: x * z)
        fun.vjp(lambda x, cotangent, out: cotangent * 2)
        return fun(X)

    assert mx.grad(with_rule)(z).item() == 0
    assert mx.grad(lambda z: mx.custom_function(lambda x: x * z)(X))(z).item() == 2


def test_checkpoint_computes_again():
    calls = []

    def fun(x, params, *, power=2):
        calls.append(1)
        return {"loss": mx.sum(mx.exp(mx.sin(x)) * params["w"] ** power)}

    saved = mx.checkpoint(fun)
    x = mx.array([0.1, 0.2])
    params = {"w": mx.array([1.0, 3.0])}

    def loss(f):
        return lambda x, p: f(x, p, power=3)["loss"]

    plain = mx.value_and_grad(loss(fun), argnums=(0, 1))(x, params)
    count = len(calls)
    again = mx.value_and_grad(loss(saved), argnums=(0, 1))(x, params)
    assert len(calls) == count + 2
    np.testing.assert_allclose(again[0].item(), plain[0].item())
    np.testing.assert_allclose(np.array(again[1][0]), np.array(plain[1][0]))
    np.testing.assert_allclose(np.array(again[1][1]["w"]), np.array(plain[1][1]["w"]))


def test_wrapped_function_can_be_found():
    assert mx.grad(product).__wrapped__ is product
    assert mx.custom_function(product).__wrapped__ is product


class TestContainers:
    """The differentiated function gets the caller's own lists and dicts."""

    def test_same_objects_before_and_after(self):
        arrays = [mx.array(1.0), mx.array(2.0), (mx.array(3.0),), {"a": mx.array(4.0)}]
        before = [*arrays, arrays[2][0], arrays[3]["a"]]
        seen = []

        def fun(p):
            seen.append(p)
            assert p[0] is not before[0]
            return p[0] * p[1] * p[2][0] * p[3]["a"]

        grads = mx.grad(fun)(arrays)
        assert seen[0] is arrays
        after = [*arrays, arrays[2][0], arrays[3]["a"]]
        assert all(a is b for a, b in zip(after, before))
        assert [g.item() for g in grads[:2]] == [24, 12]
        assert grads[2][0].item() == 8
        assert grads[3]["a"].item() == 6

    def test_restored_after_an_error(self):
        p = {"a": mx.array(1.0), "b": [mx.array(2.0)]}
        before = p["a"], p["b"][0]

        def fail(p):
            p["b"].insert(0, p["a"])
            raise KeyError("x")

        with pytest.raises(KeyError):
            mx.grad(fail)(p)
        assert p["a"] is before[0]
        assert p["b"][0] is before[0]
        assert p["b"][1] is before[1]

    def test_what_the_function_writes_stays(self):
        model = [mx.array(0.0), mx.array(1.0)]

        def fun(m):
            m[1] = mx.array(2.0)
            return m[0] + m[1]

        assert mx.grad(fun)(model)[1].item() == 0
        assert model[1].item() == 2

    def test_one_container_twice(self):
        p = [mx.array(2.0)]
        grads = mx.grad(lambda a, b: a[0] * b[0] * 3, argnums=(0, 1))(p, p)
        assert [g[0].item() for g in grads] == [6, 6]
        a = mx.array(2.0)
        assert [g.item() for g in mx.grad(lambda q: q[0] * q[1])([a, a])] == [2, 2]

    def test_types(self):
        class Weights(dict):
            pass

        class Pair(tuple):
            pass

        def fun(p):
            assert type(p) is Weights
            assert type(p["t"]) is Pair
            return p["t"][0] * p["t"][1]

        p = Weights(t=Pair([mx.array(2.0), mx.array(3.0)]))
        grads = mx.grad(fun)(p)
        assert type(grads["t"]) is Pair
        assert [g.item() for g in grads["t"]] == [3, 2]
        loop: list = []
        loop.append(loop)
        with pytest.raises(RecursionError):
            mx.grad(lambda p: mx.array(1.0))(loop)


COMPARISONS = ["greater", "less", "equal", "greater_equal", "less_equal", "not_equal"]


@pytest.mark.parametrize("name", [*COMPARISONS, "logical_and", "logical_not", "any"])
def test_tangents_of_bool_have_the_operands_type(name):
    fun = getattr(mx, name)
    one = name in ("logical_not", "any")
    x = mx.array([1.0, -2.0], mx.float16)
    _, (t,) = mx.jvp(lambda x: fun(x) if one else fun(x, 0.0), [x], [x])
    assert t.dtype == mx.float16
    assert not t.any()
    assert mx.grad(lambda x: (fun(x) if one else fun(x, 0.0)).sum() * x[0])(x).tolist()


def test_divmod_is_constant():
    x = mx.array(7.0)
    _, (dq, dr) = mx.jvp(lambda x: [*mx.divmod(x, 3.0)], [x], [mx.array(1.0)])
    assert (dq.item(), dr.item()) == (0, 0)
    assert mx.grad(lambda x: mx.remainder(x, 3.0))(x).item() == 1


def test_indices_need_stop_gradient():
    x, i = mx.array([1.0, 2.0, 3.0]), mx.array([0, 2])
    for fun in (mx.take, lambda x, i: x.at[i].add(mx.array([1.0, 1.0]))):
        with pytest.raises(ValueError, match="stop_gradient"):
            mx.grad(lambda x, i, f=fun: f(x, i).sum(), argnums=(0, 1))(x, i)


SORTS = {
    "sort": lambda a: mx.sort(a, axis=0),
    "partition": lambda a: mx.partition(a, 1, axis=0),
    "topk": lambda a: mx.topk(a, 2, axis=0),
    "cummax": lambda a: mx.cummax(a, axis=0),
    "cummin exclusive": lambda a: mx.cummin(a, axis=0, reverse=True, inclusive=False),
    "cummax exclusive": lambda a: mx.cummax(a, axis=0, inclusive=False),
}


@pytest.mark.parametrize("name", SORTS)
def test_second_derivative_of_what_moves_elements(name):
    fun = SORTS[name]
    x = mx.array([[3.0, 1.0], [1.5, 7.0], [2.0, 5.0]])
    v = mx.array([[1.0, -2.0], [0.5, 1.5], [2.0, 0.25]])
    first = mx.grad(lambda a: mx.where(mx.isinf(fun(a)), 0, fun(a) ** 3).sum())
    hvp = mx.grad(lambda a: (first(a) * v).sum())(x)
    step = 1e-2
    slope = (first(x + step * v) - first(x - step * v)) / (2 * step)
    np.testing.assert_allclose(hvp, slope, rtol=2e-3, atol=2e-3)


def test_prod_and_multiply_of_complex_agree():
    x = mx.random.normal((2, 20), dtype=mx.complex64, key=mx.random.key(1))
    g = mx.random.normal((20,), dtype=mx.complex64, key=mx.random.key(2))
    _, (of_prod,) = mx.vjp(lambda x: x.prod(axis=0), [x], [g])
    expected = [mx.conj(x[1]) * g, mx.conj(x[0]) * g]
    np.testing.assert_array_equal(of_prod, mx.stack(expected))
    _, of_multiply = mx.vjp(mx.multiply, [x[0], x[1]], [g])
    np.testing.assert_array_equal(mx.stack(of_multiply), of_prod)


def test_arccosh_and_logaddexp_of_complex():
    x = mx.array([-2 + 1j, 0.5 - 3j, 2 + 0.1j])
    _, (t,) = mx.jvp(mx.arccosh, [x], [mx.ones_like(x)])
    z = np.array(x)
    np.testing.assert_allclose(t, 1 / (np.sqrt(z - 1) * np.sqrt(z + 1)), rtol=1e-5)
    y = mx.array([1j, 1 + 1j, -0.5 + 0j])
    _, (t,) = mx.jvp(mx.logaddexp, [x, y], [mx.ones_like(x), mx.zeros_like(y)])
    np.testing.assert_allclose(t, 1 / (1 + np.exp(np.array(y) - z)), rtol=1e-5)
