"""Rows of running reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .reduce import THREE
from .row import EXACT, SETS, Operand, Row, Ulp, case

PLAIN = Operand()


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
    *(
        Row(
            f"{name}.exclusive",
            name,
            running(f, -np.inf),
            EXCLUSIVE,
            dtypes="floats",
            also_takes=SETS["all"],
            ulp=ulp,
            magnitude=lambda x, **_: 1 + np.max(np.abs(x[np.isfinite(x)]), initial=0),
            nans=True,
        )
        for name, f, ulp in (
            ("cummax", np.maximum.accumulate, EXACT),
            ("logcumsumexp", log_add, Ulp(4, 8, half=2, terms=40, why="few terms")),
        )
    ),
    Row(
        "cummin.exclusive",
        "cummin",
        running(np.minimum.accumulate, np.inf),
        EXCLUSIVE,
        dtypes="floats",
        also_takes=SETS["all"],
        nans=True,
    ),
    scan(
        "logcumsumexp",
        log_add,
        result="to_float",
        ulp=Ulp(4, 8, 16, half=2, terms=400, why="as many roundings as terms"),
        magnitude=lambda x, **_: 1 + np.max(np.abs(x[np.isfinite(x)]), initial=0),
    ),
]

ROWS = SCANS
