"""What the oracle table does not say of elementwise functions: scalars, other
names, errors."""

import mlx.core as mx
import numpy as np
import pytest

ALIASES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "conj": "conjugate",
    "pow": "power",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}


def test_aliases():
    for alias, name in ALIASES.items():
        assert getattr(mx, alias) is getattr(mx, name)


def test_scalar_arguments():
    assert mx.exp(0).item() == 1.0
    assert mx.abs(-3).dtype == mx.int32
    assert mx.add(2, mx.array([1.0])).tolist() == [3.0]
    for bad in ([1], "x"):
        with pytest.raises(ValueError):
            mx.exp(bad)
        with pytest.raises(ValueError):
            mx.add(bad, 1)


def test_where():
    c = mx.array([True, False])
    assert mx.where(c, 1, mx.array([5.5, 6.5])).tolist() == [1.0, 6.5]
    assert mx.where(c, mx.array([1], mx.int8), 2).dtype == mx.int8
    assert mx.where(2, mx.array([[1], [2]]), c).tolist() == [[1, 1], [2, 2]]


def test_clip():
    a = mx.array([-1, 0, 5])
    assert mx.clip(a, 0, 3).tolist() == [0, 0, 3]
    assert mx.clip(a, None, mx.array([1, -1, 1])).tolist() == [-1, -1, 1]
    assert mx.clip(a, a_min=1, a_max=None).tolist() == [1, 1, 5]
    with pytest.raises(ValueError):
        mx.clip(a, None, None)


def test_nan_to_num():
    a = mx.array([mx.nan, mx.inf, -mx.inf, 1.0])
    limit = float(np.finfo(np.float32).max)
    assert mx.nan_to_num(a).tolist() == [0.0, limit, -limit, 1.0]
    assert mx.nan_to_num(a, 5, 6, 7).tolist() == [5.0, 6.0, 7.0, 1.0]
    assert mx.nan_to_num(3).item() == 3


def test_wrong_types():
    with pytest.raises(ValueError):
        mx.floor(mx.array(1j))
    with pytest.raises(ValueError):
        mx.negative(mx.array(True))
    with pytest.raises(TypeError):
        mx.exp(mx.array(1.0), 2)
    with pytest.raises(TypeError):
        mx.add(mx.array(1.0))


@pytest.mark.parametrize("name", ["isclose", "allclose", "array_equal"])
def test_comparisons(name):
    x = np.array([1.0, np.nan, np.inf, 2.0], np.float32)
    y = np.array([1.0 + 1e-7, np.nan, np.inf, 2.0], np.float32)
    for equal_nan in (False, True):
        got = np.array(getattr(mx, name)(mx.array(x), mx.array(y), equal_nan=equal_nan))
        expected = getattr(np, name)(x, y, equal_nan=equal_nan)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["sigmoid", "expm1", "erf", "floor"])
def test_no_complex_numbers(name):
    with pytest.raises(ValueError, match="complex64"):
        getattr(mx, name)(mx.array([1 + 2j]))


def test_complex_products_do_not_depend_on_order_and_place():
    rng = np.random.default_rng(1)
    a, b = (
        mx.array((rng.normal(size=37) + 1j * rng.normal(size=37)).astype(np.complex64))
        for _ in range(2)
    )
    whole = np.array(a * b)
    np.testing.assert_array_equal(b * a, whole)
    np.testing.assert_array_equal([(x * y).item() for x, y in zip(a, b)], whole)
    np.testing.assert_array_equal(mx.broadcast_to(a, (2, 37)) * b, [whole, whole])
