"""Rows of reading and writing parts of arrays: slices, arrays of indices, masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from .row import Operand, Row, Ulp, case

ALL = slice(None)


def index(n: int) -> Operand:
    """Indices of an axis of length n, from both ends."""
    return Operand(-n, n - 1, kind="int32")


def order(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Different indices along the last axis, of which there are one more."""
    n = shape[-1] + 1 if shape else 3
    rows = np.prod(shape[:-1], dtype=int)
    drawn = [rng.permutation(n)[: n - 1] for _ in range(rows)]
    return np.array(drawn, int).reshape(shape) if shape else rng.integers(0, n)


def different_rows(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """The same along the first axis."""
    return np.moveaxis(order(rng, (*shape[1:], shape[0])), -1, 0)


UNIQUE = Operand(kind="int32", draw=order)
UNIQUE_ROWS = Operand(kind="int32", draw=different_rows)

# ---- reading ------------------------------------------------------------------


def read(x: Any, index: Any) -> Any:
    return x[index]


READS = [
    Row(
        "getitem.slices",
        read,
        read,
        (
            case((4, 5), index=(slice(1, None), slice(None, None, 2))),
            case((4, 5), index=(slice(None, None, -1), slice(-2, None, -3))),
            case((4, 5), index=2),
            case((4, 5), index=(..., -1)),
            case((4, 5), index=(None, ALL, None, 1)),
            case((4, 5), index=(slice(3, 1), ALL)),
            case((2, 3, 4), index=(1, slice(0, 2), slice(None, None, -2))),
        ),
        nodes=("Slice",),
    ),
    Row(
        "slice",
        "slice",
        lambda x, start, axes, slice_size: x[
            tuple(
                slice(start[axes.index(i)], start[axes.index(i)] + n)
                if i in axes
                else slice(0, n)
                for i, n in enumerate(slice_size)
            )
        ],
        (
            case((4, 5), (2,), axes=(0, 1), slice_size=(2, 3)),
            case((4, 5), (1,), axes=(1,), slice_size=(4, 2)),
        ),
        (Operand(), Operand(0, 2, kind="int32")),
        nodes=("DynamicSlice",),
    ),
    Row(
        "getitem.array",
        lambda x, i, before: x[(*[ALL] * before, i)],
        lambda x, i, before: x[(*[ALL] * before, i)],
        (
            case((4, 5), (3,), before=0),
            case((5, 4), (2, 3), before=1),
            case((4,), (), before=0),
            case((4, 2), (0,), before=0),
        ),
        (Operand(), index(4)),
        sized=lambda n: (case((4, 3), (n,), before=0), case((3, 4), (n,), before=1)),
    ),
    Row(
        "getitem.arrays",
        lambda x, i, j: x[i, j],
        lambda x, i, j: x[i, j],
        (
            case((4, 4), (3,), (3,)),
            case((4, 4, 2), (2, 1), (3,)),
            case((4, 4), (), (2,)),
        ),
        (Operand(), index(4), index(4)),
        sized=lambda n: (case((4, 4), (n,), (n,)),),
        nodes=("Gather",),
    ),
    Row(
        "getitem.array_and_slice",
        lambda x, i: x[1:, i, ::2],
        lambda x, i: x[1:, i, ::2],
        (case((3, 4, 5), (2,)), case((3, 4, 3), (2, 2))),
        (Operand(), index(4)),
    ),
    Row(
        "take",
        "take",
        lambda x, i, axis=None: np.take(x, i, axis, mode="wrap"),
        (
            case((4, 3), (2,), axis=0),
            case((3, 4), (2, 2), axis=-1),
            case((2, 2), (3,)),
            case((4, 3), (), axis=0),
        ),
        (Operand(), index(4)),
        sized=lambda n: (case((4, 2), (n,), axis=0), case((n, 4), (3,), axis=1)),
    ),
    Row(
        "take_along_axis",
        "take_along_axis",
        lambda x, i, axis: np.take_along_axis(x, i, axis),
        (
            case((4, 3), (2, 3), axis=0),
            case((3, 4), (3, 5), axis=-1),
            case((2, 4, 3), (2, 1, 3), axis=1),
            case((4,), (0,), axis=0),
        ),
        (Operand(), index(4)),
        sized=lambda n: (case((4, n), (2, n), axis=0), case((2, 4), (2, n), axis=1)),
        nodes=("GatherAxis",),
    ),
]

# ---- writing ------------------------------------------------------------------


def write(x: Any, v: Any, index: Any) -> Any:
    y = x[...] if isinstance(x, mx.array) else x.copy()
    y[index] = v
    return y


def accumulate(name: str) -> Callable[..., Any]:
    return lambda x, v, index: getattr(x.at[index], name)(v)


def accumulated(f: Any) -> Callable[..., Any]:
    def reference(x: Any, v: Any, index: Any) -> Any:
        y = x.copy()
        f.at(y, index, np.broadcast_to(v, y[index].shape))
        return y

    return reference


TWO = (Operand(), Operand())
SLICES = (
    case((4, 5), (5,), index=1),
    case((4, 5), (2, 3), index=(slice(1, 3), slice(None, None, 2))),
    case((4, 5), (), index=(slice(None, None, -2), 0)),
    case((4, 5), (4, 5), index=...),
    case((4,), (0,), index=slice(2, 2)),
)
UPDATES = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
NUMBERS: dict[str, Any] = {
    "dtypes": "number",
    "also_takes": ("bool_",),
    "promotes": False,
}
ADDED = Ulp(
    1, 1, 2, terms=4, widens=False, why="a few terms are added, rounded at each step"
)


def updates_of(name: str) -> dict[str, Any]:
    """What an accumulating update shares."""
    product = name == "multiply"
    return {
        **NUMBERS,
        "ulp": ADDED,
        "magnitude": (lambda x, v, *_, **__: 64.0)
        if product
        else (lambda *_, **__: 8.0),
        "derivative": (0, 1),
    }


def put_along(x: Any, i: Any, v: Any, axis: int) -> Any:
    y = x.copy()
    np.put_along_axis(y, i, v, axis)
    return y


def products_of_many(name: str) -> dict[str, Any]:
    """Several factors may meet in one element: no derivative by them."""
    return {"derivative": (0,)} if name == "multiply" else {}


WRITES = [
    Row(
        "setitem.slices",
        write,
        write,
        SLICES,
        TWO,
        promotes=False,
        derivative=(0, 1),
        nodes=("SliceUpdate",),
    ),
    *(
        Row(
            f"at.slices.{name}",
            accumulate(name),
            accumulated(f),
            SLICES,
            TWO,
            **updates_of(name),
        )
        for name, f in UPDATES.items()
    ),
    Row(
        "slice_update",
        "slice_update",
        lambda x, u, start, axes: write(
            x,
            u,
            tuple(
                slice(start[axes.index(i)], start[axes.index(i)] + n)
                if i in axes
                else slice(0, n)
                for i, n in enumerate(u.shape)
            ),
        ),
        (
            case((4, 5), (2, 3), (2,), axes=(0, 1)),
            case((4, 5), (4, 2), (1,), axes=(1,)),
        ),
        (Operand(), Operand(), Operand(0, 2, kind="int32")),
        promotes=False,
        derivative=(0, 1),
        nodes=("DynamicSliceUpdate",),
    ),
    Row(
        "setitem.array",
        lambda x, v, i, before: write(x, v, (*[ALL] * before, i)),
        lambda x, v, i, before: write(x, v, (*[ALL] * before, i)),
        (
            case((4, 5), (3, 5), (3,), before=0),
            case((5, 4), (), (3,), before=1),
            case((5, 4), (5, 3), (3,), before=1),
        ),
        (Operand(), Operand(), UNIQUE),
        promotes=False,
        derivative=(0, 1),
    ),
    Row(
        "setitem.arrays",
        lambda x, v, i, j: write(x, v, (i, j)),
        lambda x, v, i, j: write(x, v, (i, j)),
        (case((4, 4), (3,), (3,), (3,)), case((4, 4, 2), (2,), (3,), (3,))),
        (Operand(), Operand(), UNIQUE, UNIQUE),
        promotes=False,
        derivative=(0, 1),
        nodes=("Scatter",),
    ),
    *(
        Row(
            f"at.array.{name}",
            lambda x, v, i, name=name: getattr(x.at[i], name)(v),
            lambda x, v, i, f=f: accumulated(f)(x, v, i),
            (case((4, 3), (5, 3), (5,)), case((4,), (2, 3), (2, 3))),
            (Operand(), Operand(), index(4)),
            **updates_of(name) | products_of_many(name),
        )
        for name, f in UPDATES.items()
    ),
    Row(
        "put_along_axis",
        "put_along_axis",
        lambda x, i, v, axis: put_along(x, i, v, axis),
        (
            case((3, 4), (3, 3), (3, 3), axis=1),
            case((2, 4), (2, 3), (), axis=-1),
        ),
        (Operand(), UNIQUE, Operand()),
        promotes=False,
        derivative=(0, 2),
        nodes=("ScatterAxis",),
    ),
    Row(
        "put_along_axis.rows",
        "put_along_axis",
        lambda x, i, v, axis: put_along(x, i, v, axis),
        (case((4, 3), (3, 3), (3, 3), axis=0),),
        (Operand(), UNIQUE_ROWS, Operand()),
        promotes=False,
        derivative=(0, 2),
    ),
    Row(
        "setitem.mask",
        lambda x, m, v: write(x, v, m),
        lambda x, m, v: write(x, v[: m.sum()] if v.ndim > x.ndim - m.ndim else v, m),
        (
            case((3, 4), (3, 4), ()),
            case((3, 4), (3,), (4,)),
            case((3, 4), (3,), (3, 4)),
            case((3, 4), (3, 4), (12,)),
        ),
        (Operand(), Operand(kind="bool_"), Operand()),
        promotes=False,
        derivative=(0, 2),
        sized=lambda n: (case((n,), (n,), (n,)), case((n, 2), (n,), (n, 2))),
        nodes=("MaskedScatter",),
    ),
]

ROWS = [*READS, *WRITES]
