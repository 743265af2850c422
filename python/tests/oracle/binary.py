"""Rows of the elementwise operations of two and three operands, and of functions
composed of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from .elementwise import (
    DISCRETE,
    FLOAT32_MAX,
    THROUGH_DOUBLE,
    ZERO,
    either,
    sizes,
    unary,
)
from .functions import equal_nan, floor_divide, integer_power, logaddexp, remainder
from .row import SETS, Operand, Row, Ulp, case

BINARY_CASES = (
    case((2, 3, 4), (2, 3, 4)),
    case((3, 1), (1, 4)),
    case((4,), ()),
    case((2, 1, 4), (3, 1)),
    case((0, 3), (3,)),
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

ROWS = [*ARITHMETIC, *COMPARISONS, *BITS, *CHOICES]
