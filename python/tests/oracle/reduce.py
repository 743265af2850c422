"""Rows of reductions, softmax, running reductions and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from .row import Case, Operand, Row, Ulp, case

ZERO = "its derivative is zero almost everywhere"
THREE = (3, 4, 5)
PLAIN = Operand()
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

# ---- running reductions ---------------------------------------------------------


def running(f: Callable[..., Any], start: Any = None) -> Callable[..., Any]:
    def reference(
        x: Any, axis: Any, reverse: bool = False, inclusive: bool = True
    ) -> Any:
        if axis is None:
            x, axis = x.ravel(), 0
        x = np.moveaxis(x, axis, 0)
        x = x[::-1] if reverse else x
        y = f(x, axis=0).astype(x.dtype)
        if not inclusive:
            first = np.full_like(y[:1], start)
            y = np.concatenate([first, y])[:-1]
        y = y[::-1] if reverse else y
        return np.moveaxis(y, 0, axis)

    return reference


def log_add(x: Any, axis: int) -> Any:
    return (
        np.log(np.cumsum(np.exp(x), axis))
        if np.iscomplexobj(x)
        else np.logaddexp.accumulate(x, axis=axis)
    )


SCAN_CASES = (
    case(THREE, axis=0),
    case(THREE, axis=-1),
    case((3, 7), axis=None),
    case(THREE, axis=1, reverse=True),
    case((0, 3), axis=0),
)
EXCLUSIVE = (
    case(THREE, axis=1, inclusive=False),
    case(THREE, axis=-1, inclusive=False, reverse=True),
)


def scan(
    name: str,
    f: Any,
    start: Any = None,
    operand: Operand = PLAIN,
    longest: int = 1 << 20,
    **more: Any,
) -> Row:
    reference = running(f, start)
    more.setdefault("result", "keep")
    return Row(
        name,
        name,
        reference,
        SCAN_CASES + (EXCLUSIVE if start is not None else ()),
        (operand,),
        sized=lambda n: (
            case((min(n, longest),), axis=0),
            case((3, min(n, longest)), axis=1),
            case((min(n, longest), 3), axis=0),
        ),
        nans=True,
        nodes=("Scan",),
        **more,
    )


def running_magnitude(f: Any) -> Any:
    inner = running(f, 0)
    return lambda x, **static: inner(np.abs(x), **static)


SCANS = [
    scan(
        "cumsum",
        np.cumsum,
        0,
        result="scan",
        ulp=Ulp(1, 4, 4, half=1, terms=40, why="terms are added one by one"),
        magnitude=running_magnitude(np.cumsum),
    ),
    scan(
        "cumprod",
        np.cumprod,
        1,
        # Products that neither vanish nor overflow.
        Operand(0.8, 1.2, (-1, 3)),
        longest=2000,
        ulp=Ulp(1, 4, 4, terms=400, why="as many roundings as factors"),
        magnitude=running_magnitude(np.cumprod),
    ),
    scan("cummax", np.maximum.accumulate),
    scan("cummin", np.minimum.accumulate),
    scan(
        "logcumsumexp",
        log_add,
        result="to_float",
        ulp=Ulp(4, 8, 16, half=2, terms=400, why="as many roundings as terms"),
        magnitude=lambda x, **_: 1 + np.max(np.abs(x[np.isfinite(x)]), initial=0),
    ),
]

# ---- sorting ------------------------------------------------------------------


def in_order(f: Callable[..., Any]) -> Callable[..., Any]:
    """Sorted along an axis, None for all; complex numbers as NumPy sorts them."""

    def reference(x: Any, axis: Any, **static: Any) -> Any:
        if axis is None:
            x, axis = x.ravel(), 0
        return f(x, axis, **static)

    return reference


def largest(x: Any, axis: int, k: int) -> Any:
    n = x.shape[axis]
    return np.take(np.sort(x, axis), np.arange(n - k, n), axis)


def taken(x: Any, order: Any, axis: int) -> Any:
    return mx.take_along_axis(x, mx.stop_gradient(order), axis)


SORT_CASES = tuple(case((3, 5, 4), axis=a) for a in (0, 1, -1, None)) + (
    case((0, 3), axis=0),
)


def sorting(name: str, call: Any, reference: Any, cases: Any, **more: Any) -> Row:
    return Row(name, call, in_order(reference), cases, nans=True, **more)


def long_sorts(**static: Any) -> Callable[[int], tuple[Case, ...]]:
    return lambda n: (
        case((n,), axis=0, **static),
        case((3, n), axis=1, **static),
        case((n, 2), axis=0, **static),
    )


SORTS = [
    sorting("sort", "sort", np.sort, SORT_CASES, sized=long_sorts(), nodes=("Sort",)),
    sorting(
        "argsort",
        "argsort",
        lambda x, axis: np.argsort(x, axis, kind="stable"),
        SORT_CASES,
        result="uint32",
        compute="operand",
        derivative=ZERO,
        sized=long_sorts(),
        nodes=("ArgSort",),
    ),
    sorting(
        "topk",
        lambda x, axis, k: mx.sort(mx.topk(x, k, axis), -1 if axis is None else axis),
        largest,
        tuple(case((3, 5, 4), axis=a, k=2) for a in (0, 1, -1, None)),
        sized=long_sorts(k=1),
    ),
    sorting(
        "partition",
        # What is fixed is the element at kth: the parts have any order.
        lambda x, axis, kth: mx.take(mx.partition(x, kth, axis), kth, axis),
        lambda x, axis, kth: np.take(np.sort(x, axis), kth, axis),
        tuple(case((3, 5, 4), axis=a, kth=2) for a in (0, 1, -1)),
        sized=long_sorts(kth=0),
    ),
    sorting(
        "argpartition",
        lambda x, axis, kth: mx.take(
            taken(x, mx.argpartition(x, kth, axis), axis), kth, axis
        ),
        lambda x, axis, kth: np.take(np.sort(x, axis), kth, axis),
        tuple(case((3, 5, 4), axis=a, kth=2) for a in (0, 1, -1)),
        sized=long_sorts(kth=0),
    ),
    Row(
        "searchsorted",
        lambda s, v, side: mx.searchsorted(mx.sort(s), v, side),
        lambda s, v, side: np.searchsorted(np.sort(s), v, side),
        (case((6,), (3, 4), side="left"), case((7,), (), side="right")),
        (Operand(), Operand()),
        dtypes="real",
        also_takes=("complex64",),
        result="uint32",
        compute="operand",
        derivative=ZERO,
        sized=lambda n: (case((n,), (3,), side="left"), case((9,), (n,), side="right")),
        batch="the sorted sequence has no batches",
        nans=True,
        nodes=("SearchSorted",),
    ),
    Row(
        "searchsorted.values",
        lambda v, side: mx.searchsorted(mx.arange(-2, 3), v, side),
        lambda v, side: np.searchsorted(np.arange(-2, 3), v, side),
        (case((3, 4), side="left"), case((), side="right")),
        dtypes="real",
        also_takes=("complex64",),
        result="uint32",
        compute="operand",
        derivative=ZERO,
    ),
]

ROWS = [*REDUCTIONS, *SCANS, *SORTS]
