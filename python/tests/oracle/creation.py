"""Rows of what makes arrays and gives them other types."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from .row import SETS, Operand, Row, Ulp, case
from .shape import THREE, move

CONSTANT = "its result does not depend on the values it is given"


def cast(x: Any, to: str) -> Any:
    """As C casts: towards zero, integers modulo their range."""
    if to == "bool_":
        return x != 0
    if to in SETS["integers"]:
        x = x.real if np.iscomplexobj(x) else x
        return (
            np.trunc(x).astype(np.int64).astype(to)
            if x.dtype.kind == "f"
            else x.astype(to)
        )
    if to == "complex64":
        return x.astype(np.complex64)
    return (x.real if np.iscomplexobj(x) else x).astype(np.float64)


CASTS = [
    Row(
        f"astype.{to}",
        lambda x, to: x.astype(getattr(mx, to)),
        cast,
        (case((3, 7), to=to), case((), to=to), case((0,), to=to)),
        (Operand(-99, 99) if not to.startswith("u") else Operand(0, 99),),
        result=to,
        compute="operand",
        ulp=Ulp(0.5, 0.5, 0.5, 0.52, why="to nearest; halves by way of float32"),
        derivative=(0,) if to == "float64" else "differences need float64",
        without="passed",
        sized=lambda n, to=to: (case((n,), to=to),),
        nodes=("AsType",),
    )
    for to in SETS["all"]
]

VIEWED = [
    Row(
        f"view.{to}",
        lambda x, to: mx.view(x, getattr(mx, to)),
        lambda x, to: np.ascontiguousarray(x).view(to),
        (case((3, 8), to=to), case((0, 8), to=to)),
        (Operand(-(2**15), 2**15),),
        dtypes="integers",
        also_takes=SETS["all"],
        result=to,
        compute="operand",
        derivative="bits have none",
        without="passed",
        nodes=("View",),
    )
    for to in ("uint8", "int32", "uint64")
]


def made(
    name: str, call: Any, reference: Any, *statics: dict[str, Any], **more: Any
) -> Row:
    """A row of what needs no array: the type under test is a static argument."""
    return Row(
        name,
        call,
        reference,
        tuple(case((1,), **s) for s in statics),
        derivative=CONSTANT,
        promotes=False,
        **more,
    )


CREATION = [
    Row(
        "full",
        lambda v, shape: mx.full(shape, v),
        lambda v, shape: np.broadcast_to(v, shape),
        (case((), shape=(2, 3)), case((3,), shape=(2, 3)), case((), shape=(0, 2))),
        nodes=("Full",),
    ),
    made(
        "zeros",
        lambda x, s: mx.zeros(s, x.dtype),
        lambda x, s: np.zeros(s),
        {"s": (2, 3)},
    ),
    made(
        "ones", lambda x, s: mx.ones(s, x.dtype), lambda x, s: np.ones(s), {"s": (2, 3)}
    ),
    made("zeros_like", "zeros_like", np.zeros_like, {}),
    made("ones_like", "ones_like", np.ones_like, {}),
    made(
        "full_like",
        lambda x, v: mx.full_like(x, v),
        lambda x, v: np.full_like(x, v),
        {"v": 1},
    ),
    made(
        "eye",
        lambda x, n, m, k: mx.eye(n, m, k, dtype=x.dtype),
        lambda x, n, m, k: np.eye(n, m, k),
        {"n": 3, "m": 4, "k": 1},
        {"n": 4, "m": 2, "k": -1},
    ),
    made(
        "identity",
        lambda x, n: mx.identity(n, dtype=x.dtype),
        lambda x, n: np.identity(n),
        {"n": 3},
    ),
    made(
        "tri",
        lambda x, n, m, k: mx.tri(n, m, k, dtype=x.dtype),
        lambda x, n, m, k: np.tri(n, m, k),
        {"n": 3, "m": 4, "k": 1},
        {"n": 4, "m": 2, "k": -1},
    ),
    move("tril", np.tril, case((3, 4), k=0), case(THREE, k=-1)),
    move("triu", np.triu, case((3, 4), k=0), case(THREE, k=2)),
    made(
        "arange",
        lambda x, a, b, s: mx.arange(a, b, s, dtype=x.dtype),
        lambda x, a, b, s: np.arange(a, b, s),
        {"a": 0, "b": 7, "s": 1},
        {"a": 2, "b": 40, "s": 3},
        {"a": 9, "b": 0, "s": -2},
        {"a": 3, "b": 3, "s": 1},
        dtypes="number",
        also_takes=("bool_", "complex64"),
        nodes=("Arange",),
    ),
    made(
        "linspace",
        lambda x, a, b, n: mx.linspace(a, b, n, dtype=x.dtype),
        lambda x, a, b, n: np.linspace(a, b, n),
        {"a": 0.0, "b": 1.0, "n": 7},
        {"a": -3.0, "b": 5.0, "n": 4},
        dtypes="floats",
        also_takes=SETS["all"],
        ulp=Ulp(1, 1, half=1, terms=2, why="a product and a sum"),
        magnitude=lambda x, a, b, n: max(abs(a), abs(b)),
    ),
]

ROWS = [*CASTS, *VIEWED, *CREATION]
