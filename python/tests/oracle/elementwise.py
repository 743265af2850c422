"""Rows of the elementwise operations: one for each row of elementwise.def, and
the functions that are composed of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import mlx.core as mx
import numpy as np

from .row import SETS, Case, Operand, Row, Ulp, case

ZERO = "its derivative is zero almost everywhere"
DISCRETE = "its values are integers"
# float64 functions are libm's, and NumPy's own vectors of them may be 4 ulp off.
# Complex ones are composed of real ones, each part of some roundings.
THROUGH_DOUBLE = Ulp(0.52, 4, 4, why="float32 is computed in double")
FLOAT32_MAX = float(np.finfo(np.float32).max)
BY_CONSTANT = Ulp(2, 2, 2, 2, why="a product with a constant of the same type")


def f32(ulp: float, why: str = "as src/backend/cpu/simd states") -> Ulp:
    return Ulp(ulp, 4, 4, why=why)


def sizes(count: int) -> Callable[[int], tuple[Case, ...]]:
    return lambda n: (case(*[(n,)] * count),)


UNARY_CASES = (case((2, 3, 4)), case(()), case((0, 3)))
BINARY_CASES = (
    case((2, 3, 4), (2, 3, 4)),
    case((3, 1), (1, 4)),
    case((4,), ()),
    case((2, 1, 4), (3, 1)),
    case((0, 3), (3,)),
)


def unary(
    name: str,
    reference: Callable[..., Any],
    low: float = -2.0,
    high: float = 2.0,
    *,
    integers: tuple[int, int] | None = None,
    call: Callable[..., Any] | None = None,
    **more: Any,
) -> Row:
    more.setdefault("special", True)
    return Row(
        name,
        call or name,
        reference,
        UNARY_CASES,
        (Operand(low, high, integers),),
        sized=sizes(1),
        **more,
    )


def binary(
    name: str,
    reference: Callable[..., Any],
    a: Operand | None = None,
    b: Operand | None = None,
    *,
    call: Callable[..., Any] | None = None,
    **more: Any,
) -> Row:
    more.setdefault("special", True)
    more.setdefault("derivative", (0, 1))
    return Row(
        name,
        call or name,
        reference,
        BINARY_CASES,
        (a or Operand(), b or a or Operand()),
        sized=sizes(2),
        **more,
    )


def whole(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Integers and bool as they are, which not every NumPy does."""
    return lambda x: x if x.dtype.kind in "biu" else f(x)


def either(f: Callable[..., Any], of_bool: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *x: (of_bool if x[0].dtype == bool else f)(*x)


erf = np.vectorize(math.erf, otypes=[float])


def _erfinv(y: float) -> float:
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    if abs(y) < 1e-8:
        return y * math.sqrt(math.pi) / 2
    x = NormalDist().inv_cdf((1 + y) / 2) / math.sqrt(2)
    # One step of Newton's method, for what 1 + y has rounded away.
    return x - (math.erf(x) - y) * math.sqrt(math.pi) / 2 * math.exp(x * x)


erfinv = np.vectorize(_erfinv, otypes=[float])


def sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def inverse(x: Any) -> Any:
    """That of infinite complex numbers is zero, as in C, though not in NumPy."""
    return np.where(np.isinf(x), 0, 1 / x) if np.iscomplexobj(x) else 1 / x


def integer_power(a: Any, b: Any) -> Any:
    if a.dtype == bool:
        return a | ~b
    if a.dtype.kind not in "iu":
        return np.power(a, b)
    return np.where(b < 0, 0, np.power(a, np.where(b < 0, 0, b))).astype(a.dtype)


def floor_divide(a: Any, b: Any) -> Any:
    if a.dtype.kind in "biu":
        return a & b if a.dtype == bool else np.floor_divide(a, b)
    finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
    return np.where(finite, np.floor_divide(a, b), np.floor(a / b))


def remainder(a: Any, b: Any) -> Any:
    return np.zeros(np.broadcast(a, b).shape, bool) if a.dtype == bool else a % b


def logaddexp(a: Any, b: Any) -> Any:
    if np.iscomplexobj(a):
        return np.log(np.exp(a) + np.exp(b))
    return np.logaddexp(a, b)


SIGNS = [
    unary(
        "abs",
        np.abs,
        result="real_part",
        ulp=Ulp(0, 0, 1, 0, why="signs only; complex by hypot"),
    ),
    unary("negative", np.negative, dtypes="number"),
    unary(
        "sign", either(np.sign, np.array), ulp=Ulp(0, 0, 2, 0, why="complex x / |x|")
    ),
    *(
        unary(name, whole(getattr(np, name)), -9.0, 9.0, dtypes="real")
        for name in ("ceil", "floor", "trunc")
    ),
    unary("round", whole(np.round), -9.0, 9.0),
]
PARTS = [
    unary("conjugate", np.conjugate),
    unary("real", np.real, result="real_part"),
    unary("imag", np.imag, result="real_part"),
]
POWERS = [
    unary("square", either(np.square, np.array), ulp=Ulp(0.5, 0.5, 2)),
    unary("sqrt", np.sqrt, 0.1, 9.0, result="to_float", ulp=f32(0.5)),
    unary(
        "rsqrt",
        lambda x: inverse(np.sqrt(x)),
        0.1,
        9.0,
        result="to_float",
        ulp=f32(1.5),
    ),
    unary(
        "reciprocal",
        inverse,
        0.2,
        5.0,
        integers=(1, 9),
        result="to_float",
        ulp=f32(0.5),
    ),
]


def transcendental(
    name: str, low: float, high: float, ulp: Ulp, reference: Any = None, **more: Any
) -> Row:
    reference = reference or getattr(np, name)
    return unary(name, reference, low, high, result="to_float", ulp=ulp, **more)


FUNCTIONS = [
    transcendental("exp", -8, 8, f32(1.05)),
    transcendental("expm1", -3, 3, f32(1.0), dtypes="real"),
    transcendental("log", 0.05, 20, f32(0.9), integers=(1, 20)),
    transcendental("log2", 0.05, 20, THROUGH_DOUBLE, integers=(1, 20)),
    transcendental("log10", 0.05, 20, THROUGH_DOUBLE, integers=(1, 20)),
    transcendental("log1p", -0.7, 5, THROUGH_DOUBLE),
    transcendental("sigmoid", -8, 8, f32(2.4), sigmoid, dtypes="real"),
    transcendental("erf", -3, 3, f32(2.0), erf, dtypes="real"),
    transcendental("erfinv", -0.95, 0.95, f32(3.0), erfinv, dtypes="real"),
    transcendental("sin", -9, 9, f32(1.0)),
    transcendental("cos", -9, 9, f32(1.0)),
    transcendental("tan", -1.3, 1.3, THROUGH_DOUBLE),
    transcendental("arcsin", -0.95, 0.95, THROUGH_DOUBLE),
    transcendental("arccos", -0.95, 0.95, THROUGH_DOUBLE),
    transcendental("arctan", -5, 5, THROUGH_DOUBLE),
    transcendental("sinh", -4, 4, THROUGH_DOUBLE),
    transcendental("cosh", -4, 4, THROUGH_DOUBLE),
    transcendental("tanh", -4, 4, f32(2.6)),
    transcendental("arcsinh", -5, 5, THROUGH_DOUBLE),
    transcendental("arccosh", 1.1, 9, THROUGH_DOUBLE, integers=(1, 9)),
    transcendental("arctanh", -0.9, 0.9, THROUGH_DOUBLE),
    transcendental("degrees", -7, 7, BY_CONSTANT, lambda x: x * (180 / math.pi)),
    transcendental("radians", -400, 400, BY_CONSTANT, lambda x: x * (math.pi / 180)),
]
TRUTHS = [
    unary("logical_not", np.logical_not, -1, 1, result="bool_", derivative=ZERO),
    unary("bitwise_invert", np.invert, -99, 99, dtypes="integral", derivative=DISCRETE),
    unary("positive", np.array),
    unary(
        "stop_gradient",
        np.array,
        derivative="it has none",
        without="stops",
        nodes=("StopGradient",),
    ),
    *(
        unary(name, getattr(np, name), result="bool_", derivative=ZERO)
        for name in ("isnan", "isinf", "isfinite")
    ),
    *(
        unary(
            name,
            getattr(np, name),
            result="bool_",
            dtypes="real",
            also_takes=("complex64",),
            derivative=ZERO,
        )
        for name in ("isposinf", "isneginf")
    ),
]
ARITHMETIC = [
    binary("add", np.add, ulp=Ulp(0.5, 0.5, 1)),
    binary("subtract", either(np.subtract, np.logical_xor), ulp=Ulp(0.5, 0.5, 1)),
    binary("multiply", np.multiply, ulp=Ulp(0.5, 0.5, 2)),
    binary(
        "divide",
        np.divide,
        b=Operand(0.3, 3, (1, 9)),
        result="to_float",
        ulp=Ulp(0.5, 0.5, 4),
    ),
    binary(
        "floor_divide",
        floor_divide,
        Operand(-9, 9),
        Operand(0.6, 3, (-3, 3)),
        dtypes="real",
        derivative=ZERO,
        ulp=Ulp(0.5, 0.5, half=0.5, why="the whole number may need rounding"),
    ),
    binary(
        "remainder",
        remainder,
        Operand(-9, 9),
        Operand(0.6, 3, (-3, 3)),
        dtypes="real",
        ulp=Ulp(0.5, 0.5, why="fmod is exact; one addition gives the sign"),
    ),
    binary(
        "power",
        integer_power,
        Operand(0.3, 3, (-4, 4)),
        Operand(-2, 3),
        ulp=Ulp(0.52, 4, 16, why="through double; complex by exp(b log(a))"),
    ),
    binary("maximum", np.maximum),
    binary("minimum", np.minimum),
    binary(
        "logaddexp",
        logaddexp,
        result="to_float",
        ulp=Ulp(3, 4, 8, terms=3, why="of the larger of |max| and the result"),
        magnitude=lambda a, b: np.maximum(np.abs(a), np.abs(b)),
    ),
    binary(
        "arctan2",
        np.arctan2,
        Operand(-3, 3),
        Operand(0.2, 3),
        dtypes="real",
        result="to_float",
        ulp=THROUGH_DOUBLE,
    ),
]


def compare(name: str, reference: Callable[..., Any] | None = None, **more: Any) -> Row:
    return binary(
        name,
        reference or getattr(np, name),
        Operand(0, 2),
        result="bool_",
        derivative=ZERO,
        **more,
    )


def equal_nan(a: Any, b: Any) -> Any:
    return (a == b) | ((a != a) & (b != b))


COMPARISONS = [
    *(
        compare(name)
        for name in (
            "equal",
            "not_equal",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
        )
    ),
    compare(
        "equal_nan",
        lambda a, b: np.all(equal_nan(a, b)),
        call=lambda a, b: mx.array_equal(*mx.broadcast_arrays(a, b), equal_nan=True),
    ),
    *(compare(name) for name in ("logical_and", "logical_or", "logical_xor")),
]
BITS = [
    *(
        binary(name, getattr(np, name), Operand(-99, 99), dtypes="integral")
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
    *(
        binary(
            name,
            getattr(np, name),
            Operand(-99, 99),
            Operand(0, 8),
            dtypes="integral",
            result="shift",
        )
        for name in ("left_shift", "right_shift")
    ),
]
BITS = [Row(**{**vars(row), "derivative": DISCRETE}) for row in BITS]
CHOICES = [
    Row(
        "where",
        "where",
        np.where,
        (
            case((2, 3), (2, 3), (2, 3)),
            case((3, 1), (2, 1, 4), (4,)),
            case((), (3,), ()),
            case((0,), (1,), (0,)),
        ),
        (Operand(kind="bool_"), Operand(), Operand()),
        derivative=(1, 2),
        sized=sizes(3),
    ),
    Row(
        "clip",
        "clip",
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        (case((2, 3), (2, 3), (3,)), case((2, 3, 4), (), ())),
        (Operand(-3, 3), Operand(-1, 0, (0, 1)), Operand(1, 2)),
        derivative=(0, 1, 2),
        sized=sizes(3),
    ),
    Row(
        "round.decimals",
        "round",
        lambda x, decimals: np.round(x * 10.0**decimals) / 10.0**decimals,
        (case((3, 4), decimals=2), case((3, 4), decimals=-1)),
        # No halves: the product's rounding could send them either way.
        (Operand(draw=lambda g, shape: g.integers(-999, 999, shape) / 100 + 0.002),),
        dtypes="wide_floats",
        also_takes=SETS["all"],
        derivative=ZERO,
        ulp=Ulp(1, 1, why="a product, a rounding and a quotient"),
    ),
    unary(
        "nan_to_num",
        lambda x: np.nan_to_num(x, posinf=FLOAT32_MAX, neginf=-FLOAT32_MAX),
        dtypes="real",
        also_takes=("complex64",),
        special=False,
    ),
    binary(
        "divmod",
        lambda a, b: [floor_divide(a, b), remainder(a, b)],
        Operand(-9, 9),
        Operand(0.6, 3, (-3, 3)),
        dtypes="real",
        result=("keep", "keep"),
        ulp=Ulp(0.5, 0.5, why="as remainder"),
        derivative="both count as constants in the interface",
        special=False,
    ),
    *(
        compare(name, reference, special=False)
        for name, reference in (
            ("array_equal", lambda a, b: a.shape == b.shape and np.all(a == b)),
            ("allclose", lambda a, b: np.allclose(a, b)),
        )
    ),
    compare(
        "isclose",
        lambda a, b: np.abs(a * 1.0 - b) <= 1e-8 + 1e-5 * np.abs(b),
        special=False,
    ),
]

ROWS = [
    *SIGNS,
    *PARTS,
    *POWERS,
    *FUNCTIONS,
    *TRUTHS,
    *ARITHMETIC,
    *COMPARISONS,
    *BITS,
    *CHOICES,
]
