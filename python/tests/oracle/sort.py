"""Rows of sorting and of searching what is sorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from .reduce import ZERO
from .row import Case, Operand, Row, case


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

ROWS = SORTS
