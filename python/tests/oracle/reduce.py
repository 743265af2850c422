"""Rows of reductions and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .row import Case, Operand, Row, Ulp, case

ZERO = "its derivative is zero almost everywhere"

THREE = (3, 4, 5)

AXES: tuple[Any, ...] = (None, 0, 1, -1, (0, 2), (-2, -1), (0, 1, 2))


def along(*shapes: tuple[int, ...], **static: Any) -> tuple[Case, ...]:
    return tuple(case(s, **static) for s in shapes)


def by_axes(empty: bool) -> tuple[Case, ...]:
    some = tuple(case(THREE, axis=axis, keepdims=False) for axis in AXES)
    kept = (case(THREE, axis=1, keepdims=True), case((1,), axis=0, keepdims=False))
    none = (
        case((0, 3), axis=0, keepdims=False),
        case((2, 0), axis=None, keepdims=False),
    )
    return some + kept + (none if empty else ())


def long(n: int) -> tuple[Case, ...]:
    """Along rows, down columns, over all."""
    return (
        case((n,), axis=0, keepdims=False),
        case((3, n), axis=1, keepdims=False),
        case((n, 3), axis=0, keepdims=False),
        case((2, n, 2), axis=(0, 1), keepdims=False),
    )


def reduction(
    name: str, reference: Any = None, *, empty: bool = True, **more: Any
) -> Row:
    more.setdefault("sized", long)
    more.setdefault("nodes", ("Reduce",))
    more.setdefault("nans", True)
    return Row(
        name,
        name,
        reference or getattr(np, name),
        by_axes(empty),
        **more,
    )


def wrapped(f: Callable[..., Any]) -> Callable[..., Any]:
    """Integers stay in their type, bool counts."""

    def reference(x: Any, axis: Any, keepdims: bool) -> Any:
        return f(x, axis=axis, keepdims=keepdims, dtype=x.dtype)

    return reference


def absolute_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(np.abs(x), axis=axis, keepdims=keepdims)


def absolute_mean(x: Any, axis: Any, keepdims: bool, **_: Any) -> Any:
    return np.mean(np.abs(x), axis=axis, keepdims=keepdims)


def absolute_prod(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.prod(np.abs(x), axis=axis, keepdims=keepdims)


def mean_square(x: Any, axis: Any, keepdims: bool, **_: Any) -> Any:
    return np.mean(np.abs(x) ** 2, axis=axis, keepdims=keepdims)


def logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    if np.iscomplexobj(x):
        return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))
    return np.logaddexp.reduce(x, axis=axis, keepdims=keepdims)


def softmax(x: Any, axis: Any, precise: bool = False) -> Any:
    if np.iscomplexobj(x):
        e = np.exp(x)
    else:
        e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def softmax_magnitude(x: Any, axis: Any, precise: bool = False) -> Any:
    lowered = np.abs(x - np.max(x, axis=axis, keepdims=True))
    return lowered * np.abs(softmax(x, axis))


def number_of(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.count_nonzero(x, axis=axis, keepdims=keepdims)


# Sums are kept in several float32 (or float64) parts, hence terms of a few.
PARTS = Ulp(1, 4, 4, terms=4, why="summed in parts, of which each rounds")

REDUCTIONS = [
    reduction("sum", wrapped(np.sum), result="sum", ulp=PARTS, magnitude=absolute_sum),
    reduction(
        "prod",
        wrapped(np.prod),
        result="sum",
        ulp=Ulp(1, 4, 4, half=1, terms=12, why="a rounding for each factor"),
        magnitude=absolute_prod,
        sized=None,
    ),
    reduction("max", empty=False),
    reduction("min", empty=False),
    reduction("all", result="bool_", derivative=ZERO),
    reduction("any", result="bool_", derivative=ZERO),
    reduction(
        "mean",
        empty=False,
        result="to_float",
        ulp=PARTS,
        magnitude=absolute_mean,
        nodes=("Reduce", "NumberOfElements"),
    ),
    reduction(
        "count_nonzero", number_of, result="int32", compute="operand", derivative=ZERO
    ),
    reduction(
        "median",
        empty=False,
        result="real_float",
        dtypes="real",
        also_takes=("complex64",),
        ulp=Ulp(1, 1),
    ),
    *(
        Row(
            name,
            name,
            getattr(np, name),
            (
                case(THREE, axis=None, keepdims=False, ddof=0),
                case(THREE, axis=1, keepdims=False, ddof=1),
                case(THREE, axis=(0, -1), keepdims=True, ddof=0),
            ),
            result="real_float",
            ulp=Ulp(4, 8, 8, half=2, terms=terms, why="squares of rounded differences"),
            magnitude=magnitude,
            nans=True,
            sized=lambda n: (
                case((n + 1,), axis=0, keepdims=False, ddof=1),
                case((n, 3), axis=0, keepdims=False, ddof=0),
                case((3, n), axis=1, keepdims=False, ddof=0),
            ),
        )
        for name, terms, magnitude in (
            ("var", 8, mean_square),
            ("std", 8, lambda x, **k: np.sqrt(mean_square(x, **k))),
        )
    ),
    Row(
        "logsumexp",
        "logsumexp",
        logsumexp,
        by_axes(empty=False),
        result="to_float",
        ulp=Ulp(4, 8, 8, terms=4, why="a sum of exponentials, a logarithm, a sum"),
        magnitude=lambda x, axis, keepdims: (
            1 + np.max(np.abs(x), axis=axis, keepdims=keepdims)
        ),
        sized=long,
        nans=True,
        nodes=("LogSumExp",),
    ),
    *(
        Row(
            name,
            name,
            getattr(np, name),
            tuple(case(THREE, axis=a, keepdims=False) for a in (None, 0, 1, -1))
            + (case(THREE, axis=1, keepdims=True),),
            result="uint32",
            compute="operand",
            derivative=ZERO,
            sized=lambda n: long(n)[:3],
            nans=True,
            nodes=("ArgReduce",),
        )
        for name in ("argmax", "argmin")
    ),
    Row(
        "softmax",
        "softmax",
        softmax,
        (
            case(THREE, axis=-1),
            case(THREE, axis=1),
            case(THREE, axis=(0, 2)),
            case(THREE, axis=None),
            case(THREE, axis=-1, precise=True),
            case((0, 3), axis=-1),
        ),
        (Operand(-6, 6),),
        result="to_float",
        ulp=Ulp(6, 8, 16, half=1, terms=1, why="the exponent's rounding counts"),
        magnitude=softmax_magnitude,
        sized=lambda n: (
            case((3, n), axis=-1),
            case((n, 3), axis=0),
            case((n,), axis=0),
        ),
        nans=True,
        nodes=("Softmax",),
    ),
]

ROWS = REDUCTIONS
