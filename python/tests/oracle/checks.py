"""Whether an operation gives what its row says: type, shape, values within the
bound of the row."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from .row import FLOATS, HALVES, INTEGERS, SETS, Case, Row
from .values import (
    FORMAT,
    Array,
    as_list,
    numpy_type,
    rounded,
    to_numpy,
    type_name,
)


def expected(
    row: Row, case: Case, values: list[Array], promoted: str
) -> tuple[list[Array], list[str]]:
    """What the reference gives, and the types the results shall have."""
    count = 1 if isinstance(row.result, str) else len(row.result)
    target = row.result_types(promoted, count)[0]
    prepared = []
    for x, operand in zip(values, row.operands):
        if operand.kind == "data" and x.dtype.kind in "biu":
            if promoted in FLOATS:
                x = x.astype(np.float64)
            elif target in FLOATS:
                x = rounded(x.astype(np.float64), target)
            elif promoted == "complex64" or target == "complex64":
                x = x.astype(np.complex128)
            else:
                own = row.compute == "operand" or target not in INTEGERS
                x = x.astype(numpy_type(promoted if own else target))
        prepared.append(x)
    with np.errstate(all="ignore"):
        results = as_list(row.reference(*prepared, **case.static))
    results = [np.asarray(r) for r in results]
    return results, row.result_types(promoted, len(results))


def spacing(x: Array, dtype: str) -> Array:
    """The distance of neighbours of `dtype` around |x|."""
    bits, lowest, _ = FORMAT[dtype]
    exponent = np.frexp(np.where(np.isfinite(x), np.abs(x), 0.0))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, lowest) - bits + 1)


def bound(
    row: Row, case: Case, values: list[Array], want: Array, dtype: str, promoted: str
) -> Array:
    """The largest error that the row allows."""
    kind = "complex64" if promoted == "complex64" else dtype
    limit = row.ulp.of(kind) * spacing(want, dtype)
    if row.magnitude is not None:
        inner = "float32" if promoted in HALVES and row.ulp.widens else dtype
        unit = 2.0 ** (1 - FORMAT[inner][0])
        wide = [
            x.astype(np.float64) if o.kind == "data" and x.dtype.kind in "biu" else x
            for o, x in zip(row.operands, values)
        ]
        with np.errstate(all="ignore"):
            size = row.magnitude(*wide, **case.static)
        terms = row.ulp.terms
        if dtype == "float64" and row.ulp.terms64 is not None:
            terms = row.ulp.terms64
        limit = limit + terms * unit * np.asarray(size)
    return limit


def assert_close(got: Array, want: Array, limit: Any, dtype: str, text: str) -> None:
    """Each number within its limit; infinities and NaN in the same places."""
    assert got.shape == want.shape, f"{text}: shape {got.shape}, not {want.shape}"
    if dtype not in FORMAT:
        same = np.array_equal(got, want.astype(got.dtype))
        assert same, f"{text}: {got} is not {want}"
        return
    wide = got.astype(np.complex128 if dtype == "complex64" else np.float64)
    want = want.astype(wide.dtype)
    with np.errstate(all="ignore"):
        near = np.abs(wide - want) <= limit
        # What rounds past the largest number may be infinite.
        largest = FORMAT[dtype][2]
        past = np.isinf(wide) & (np.abs(want) >= largest) & ~np.isnan(want)
        if dtype != "complex64":
            past &= np.sign(wide) == np.sign(want)
    same = near | past | (wide == want) | (np.isnan(wide) & np.isnan(want))
    if not same.all():
        place = tuple(int(i) for i in np.argwhere(~same)[0])
        many = f"{int((~same).sum())} of {same.size} differ"
        raise AssertionError(
            f"{text}: {many}; at {place} {wide[place]} is not {want[place]} "
            f"within {np.broadcast_to(limit, want.shape)[place]}"
        )


def check(
    row: Row,
    case: Case,
    arrays: list[mx.array],
    values: list[Array],
    promoted: str,
    text: str = "",
    release: bool = False,
) -> None:
    """With `release` the operands are let go of before anything is computed."""
    got = as_list(row.run(*arrays, **case.static))
    if release:
        arrays.clear()
    want, types = expected(row, case, values, promoted)
    assert len(got) == len(want)
    for g, w, dtype in zip(got, want, types):
        where = f"{row.name} {case.shapes} {case.static} {promoted} {text}"
        assert type_name(g) == dtype, f"{where}: {g.dtype}, not {dtype}"
        limit = 0
        if dtype in SETS["inexact"]:
            limit = bound(row, case, values, w, dtype, promoted)
        assert_close(to_numpy(g), w, limit, dtype, where)
