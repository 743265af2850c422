"""Rows of the elementwise operations of one operand, and of functions composed of
them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .functions import erf, erfinv, inverse, sigmoid
from .row import Case, Operand, Row, Ulp, case

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


def whole(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Integers and bool as they are, which not every NumPy does."""
    return lambda x: x if x.dtype.kind in "biu" else f(x)


def either(f: Callable[..., Any], of_bool: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *x: (of_bool if x[0].dtype == bool else f)(*x)


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

ROWS = [*SIGNS, *PARTS, *POWERS, *FUNCTIONS, *TRUTHS]
