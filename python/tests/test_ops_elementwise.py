"""Elementwise functions of mlx.core against NumPy in float64."""

import mlx.core as mx
import numpy as np
import pytest

# name: (NumPy's function, lowest and highest argument)
UNARY = {
    "abs": (np.abs, -3, 3),
    "negative": (np.negative, -3, 3),
    "sign": (np.sign, -3, 3),
    "ceil": (np.ceil, -3, 3),
    "floor": (np.floor, -3, 3),
    "round": (np.round, -3, 3),
    "trunc": (np.trunc, -3, 3),
    "square": (np.square, -3, 3),
    "sqrt": (np.sqrt, 0, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9),
    "reciprocal": (np.reciprocal, 0.1, 9),
    "exp": (np.exp, -8, 8),
    "expm1": (np.expm1, -1, 1),
    "log": (np.log, 0.01, 100),
    "log2": (np.log2, 0.01, 100),
    "log10": (np.log10, 0.01, 100),
    "log1p": (np.log1p, -0.5, 5),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -8, 8),
    "sin": (np.sin, -10, 10),
    "cos": (np.cos, -10, 10),
    "tan": (np.tan, -1.4, 1.4),
    "arcsin": (np.arcsin, -1, 1),
    "arccos": (np.arccos, -1, 1),
    "arctan": (np.arctan, -9, 9),
    "sinh": (np.sinh, -4, 4),
    "cosh": (np.cosh, -4, 4),
    "tanh": (np.tanh, -4, 4),
    "arcsinh": (np.arcsinh, -9, 9),
    "arccosh": (np.arccosh, 1, 9),
    "arctanh": (np.arctanh, -0.9, 0.9),
    "degrees": (np.degrees, -7, 7),
    "radians": (np.radians, -700, 700),
    "positive": (np.positive, -3, 3),
    "stop_gradient": (np.positive, -3, 3),
    "conjugate": (np.conjugate, -3, 3),
    "real": (np.real, -3, 3),
    "imag": (np.imag, -3, 3),
    "logical_not": (np.logical_not, -1, 1),
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "power": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logaddexp": np.logaddexp,
    "arctan2": np.arctan2,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}
SPECIAL = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isposinf": np.isposinf,
    "isneginf": np.isneginf,
}
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


def samples(low, high, count=65):
    """Numbers that float32 holds exactly, more than some vectors long."""
    return np.linspace(low, high, count).astype(np.float32)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    reference, low, high = UNARY[name]
    x = samples(low, high)
    got = np.array(getattr(mx, name)(mx.array(x)))
    np.testing.assert_allclose(got, reference(x.astype(float)), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    x, y = samples(0.3, 5), samples(4, 0.4)
    y[::7] = x[::7]
    got = np.array(getattr(mx, name)(mx.array(x), mx.array(y)))
    expected = BINARY[name](x.astype(float), y.astype(float))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_broadcast(name):
    x, y = samples(0.3, 5, 12).reshape(3, 4, 1), samples(1, 2, 20).reshape(4, 5)
    got = np.array(getattr(mx, name)(mx.array(x), mx.array(y)))
    expected = BINARY[name](x.astype(float), y.astype(float))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint64"])
def test_bits(name, dtype):
    x, y = np.arange(40, dtype=dtype), (np.arange(40) % 5).astype(dtype)
    got = np.array(getattr(mx, name)(mx.array(x), mx.array(y)))
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, BITS[name](x, y))


@pytest.mark.parametrize("name", SPECIAL)
def test_special(name):
    x = np.array([0, 1, np.inf, -np.inf, np.nan], np.float32)
    got = getattr(mx, name)(mx.array(x))
    assert got.dtype == mx.bool_
    np.testing.assert_array_equal(np.array(got), SPECIAL[name](x))


def test_erf():
    x = mx.array([0.0, 0.5, 1.0, -1.0])
    expected = [0.0, 0.5204998778130465, 0.8427007929497149, -0.8427007929497149]
    np.testing.assert_allclose(np.array(mx.erf(x)), expected, rtol=2e-6)
    np.testing.assert_allclose(np.array(mx.erfinv(mx.erf(x))), np.array(x), rtol=2e-5)


def test_aliases():
    for alias, name in ALIASES.items():
        assert getattr(mx, alias) is getattr(mx, name)


def test_bitwise_invert():
    assert mx.bitwise_invert(mx.array([True, False])).tolist() == [False, True]
    assert mx.bitwise_invert(mx.array([0, 5])).tolist() == [-1, -6]


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


def test_round_and_divmod():
    x = np.array([1.25, -2.5, 3.75], np.float32)
    np.testing.assert_array_equal(np.array(mx.round(mx.array(x), 1)), np.round(x, 1))
    assert mx.round(mx.array([15, 25]), -1).tolist() == [20, 20]
    quotient, rest = mx.divmod(mx.array([7, -7]), 2)
    assert quotient.tolist() == [3, -4]
    assert rest.tolist() == [1, 1]


def test_nan_to_num():
    a = mx.array([mx.nan, mx.inf, -mx.inf, 1.0])
    limit = float(np.finfo(np.float32).max)
    assert mx.nan_to_num(a).tolist() == [0.0, limit, -limit, 1.0]
    assert mx.nan_to_num(a, 5, 6, 7).tolist() == [5.0, 6.0, 7.0, 1.0]
    assert mx.nan_to_num(3).item() == 3


def test_complex():
    z = np.array([0.5 + 1j, -1 + 0.25j], np.complex64)
    for name in ("exp", "sin", "tanh", "sqrt", "log", "abs", "conj", "square"):
        got = np.array(getattr(mx, name)(mx.array(z)))
        np.testing.assert_allclose(got, getattr(np, name)(z), rtol=1e-5)


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
