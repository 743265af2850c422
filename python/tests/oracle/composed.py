"""Rows of diagonals, differences and products that are made of other operations."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from .row import INTEGERS, SETS, Operand, Row, Ulp, case

THREE = (2, 3, 4)
TWO = (Operand(), Operand())
FEW = Ulp(1, 4, 4, terms=4, why="summed in parts, of which each rounds")


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return np.diagonal(x, offset, axis1, axis2)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    # NumPy would add bool up in int64 of another sign.
    return np.diagonal(x, offset, axis1, axis2).sum(-1)


def vecdot(a: Any, b: Any, axis: int = -1) -> Any:
    a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    return (np.conj(a) * b).sum(-1)


def hadamard(x: Any, scale: float | None = None) -> Any:
    n = x.shape[-1] if x.ndim else 1
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    rows = x.reshape(*x.shape[:-1], 1, n)
    y = (rows * h).sum(-1).reshape(x.shape)
    return y * (n**-0.5 if scale is None else scale)


ROWS = [
    Row(
        "diagonal",
        "diagonal",
        diagonal,
        (
            case((3, 4)),
            case((3, 4), offset=-1),
            case(THREE, offset=1, axis1=2, axis2=0),
            case((3, 4), offset=9),
            case((0, 3)),
        ),
        sized=lambda n: (case((n, 3)), case((2, n), offset=5)),
    ),
    Row(
        "diag",
        "diag",
        lambda x, k=0: np.diag(x, k),
        (
            case((3,)),
            case((3,), k=-2),
            case((0,), k=1),
            case((3, 4), k=1),
            case((4, 2), k=-1),
        ),
    ),
    Row(
        "trace",
        "trace",
        trace,
        (case((3, 4)), case(THREE, offset=-1, axis1=-1, axis2=1), case((3, 0))),
        result="sum",
        ulp=FEW,
        magnitude=lambda x, **static: trace(np.abs(x), **static),
    ),
    Row(
        "diff",
        "diff",
        np.diff,
        (
            case((5,)),
            case(THREE, n=2, axis=1),
            case((3, 4), n=0),
            case((2, 3), n=1, axis=0),
            case((2,), n=5),
        ),
        ulp=Ulp(1, 1, 1, half=1, terms=2, widens=False, why="rounded each time"),
        magnitude=lambda x, n=1, axis=-1: np.full(
            np.diff(x, n, axis).shape, 2.0**n * np.abs(x).max(initial=0)
        ),
        sized=lambda n: (case((n,)),),
    ),
    Row(
        "kron",
        "kron",
        np.kron,
        (
            case((2,), (3,)),
            case((2, 3), (2, 2)),
            case((2,), (2, 3)),
            case((2, 1, 3), (2, 2)),
            case((), (3,)),
        ),
        TWO,
        ulp=Ulp(0.5, 0.5, 2),
        derivative=(0, 1),
    ),
    Row(
        "vecdot",
        "vecdot",
        vecdot,
        (
            case((3,), (3,)),
            case((2, 3), (2, 3), axis=0),
            case((2, 3), (3,)),
            case((2, 1, 3), (4, 3)),
            case((0,), (0,)),
        ),
        TWO,
        result="sum",
        ulp=FEW,
        magnitude=lambda a, b, axis=-1: vecdot(np.abs(a), np.abs(b), axis),
        derivative=(0, 1),
    ),
    Row(
        "hadamard_transform",
        "hadamard_transform",
        hadamard,
        (case((8,)), case((3, 16), scale=0.25), case((2, 1)), case(())),
        dtypes="floats",
        also_takes=("bool_", *INTEGERS),
        result="to_float",
        ulp=Ulp(1, 2, half=1, terms=8, why="a sum of n terms in two products"),
        magnitude=lambda x, scale=None: (
            np.abs(x).sum(-1, keepdims=True) if x.ndim else np.abs(x)
        ),
    ),
]

ROWS += [
    Row(
        name,
        lambda x, count, name=name: getattr(mx, name)(count),
        lambda x, count, name=name: getattr(np, name)(count),
        (*(case((1,), count=n) for n in (10, 1, 0, 33)),),
        dtypes="one",
        also_takes=SETS["all"],
        result="float32",
        ulp=Ulp(2, terms=2, why="sums of numbers up to 1 that may cancel"),
        magnitude=lambda x, count: np.ones(count),
        derivative="its result does not depend on the values it is given",
        promotes=False,
    )
    for name in ("bartlett", "hanning", "hamming", "blackman")
]


def e4m3(code: int) -> float:
    exponent, mantissa = code >> 3 & 15, code & 7
    size = (8 + mantissa) * 2.0 ** (exponent - 10) if exponent else mantissa * 2.0**-9
    return -size if code & 128 else size


E4M3 = np.array([e4m3(code) for code in range(256)])


def to_fp8(x: Any) -> Any:
    """The nearest of all finite numbers, of two the one with the even code."""
    codes = np.arange(127)
    distance = np.abs(np.abs(x)[..., None] - E4M3[codes])
    best = distance == distance.min(-1, keepdims=True)
    nearest = np.where(best, codes + (codes % 2) * 1000, 9999).argmin(-1)
    return (nearest | np.where(np.signbit(x), 128, 0)).astype(np.uint8)


ROWS += [
    Row(
        "to_fp8",
        "to_fp8",
        to_fp8,
        (case((3, 4)), case(()), case((0, 2))),
        (Operand(-600, 600),),
        dtypes="floats",
        result="uint8",
        derivative="its results are integers",
        promotes=False,
        sized=lambda n: (case((n,)),),
    ),
    Row(
        "from_fp8",
        lambda x: mx.from_fp8(x, mx.float32),
        lambda x: E4M3[x].astype(np.float64),
        (case((3, 4)), case(()), case((0, 2))),
        (Operand(0, 126, kind="uint8"),),
        dtypes="one",
        also_takes=SETS["all"],  # its operand is of uint8 whatever the type
        result="float32",
        derivative="it takes integers",
        promotes=False,
    ),
]
