"""Special values in the oracle table's operations: NaN, infinities, zeros of both
signs, subnormal numbers, the ends of integers."""

from __future__ import annotations

import itertools
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Case
from oracle.checks import check, expected
from oracle.empty import REFUSE_EMPTY, TIED, emptied
from oracle.row import FLOATS, HALVES, INTEGERS
from oracle.values import arrays_of, draw_case, to_mlx, to_numpy

Array = np.ndarray[Any, Any]
ROWS = list(TABLE.values())


def special(dtype: str) -> Array:
    if dtype == "bool_":
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        some = {0, 1, 2, 5, info.max, info.max - 1, info.min, info.min + 1}
        return np.array(sorted(some | ({-1, -2, -7} if info.min else set())), dtype)
    tiny = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}
    large = {
        "float16": 65504.0,
        "bfloat16": (2 - 2.0**-7) * 2.0**127,
        "float64": 1.5e308,
    }
    least = tiny.get(dtype, 5e-324)
    most = large.get(dtype, float(np.finfo(np.float32).max))
    ones = [0.0, least, 3 * least, 0.5, 1.0, 1.5, 2.5, 3.0, 100.0, most, np.inf]
    return np.array([*ones, *(-x for x in ones), np.nan])


@pytest.mark.parametrize("row", [r for r in ROWS if r.special], ids=str)
def test_special_values(row):
    """NaN, infinities, both zeros, subnormal numbers, the ends of integers,
    division by zero."""
    for dtype in row.types():
        if dtype == "complex64":
            continue
        one = special(dtype)
        grid = np.meshgrid(*[one] * len(row.operands), indexing="ij")
        values = [g.ravel() for g in grid]
        arrays = [to_mlx(x, dtype) for x in values]
        case = Case(tuple(x.shape for x in values))
        check(row, case, arrays, values, dtype)
        want, types = expected(row, case, values, dtype)
        if types[0] in FLOATS:
            got = to_numpy(row.run(*arrays)).astype(np.float64)
            zero = (want[0] == 0) & ~np.isnan(got)
            signs = np.signbit(got[zero]) == np.signbit(want[0][zero])
            assert signs.all(), f"{row.name} {dtype}: signs of zero differ"


# What NumPy does not give in complex128 either, or gives otherwise.
OTHERWISE = {
    "sign": "infinite numbers have no direction: NaN, as the interface has it",
    "log1p": "NumPy adds 1 first and loses small numbers",
}
COMPLEX = [
    r
    for r in ROWS
    if r.special
    and len(r.operands) == 1
    and "complex64" in r.types()
    and r.name not in OTHERWISE
]


@pytest.mark.parametrize("row", COMPLEX, ids=str)
def test_special_complex_numbers(row):
    """Numbers as NumPy has them; else both infinite (in either part) or both NaN."""
    some = [0.0, 2.0**-149, 1e-20, 0.5, 1.0, 88.75, 20000.0, 3e38, np.inf]
    parts = np.array([*some, *(-x for x in some), np.nan])
    x = np.empty((len(parts), len(parts)), np.complex128)
    x.real, x.imag = np.meshgrid(parts, parts)
    x = x.astype(np.complex64).astype(np.complex128)
    got = to_numpy(row.run(mx.array(x.astype(np.complex64))))
    with np.errstate(all="ignore"):
        want = np.asarray(row.reference(x))
        if want.dtype == bool:
            assert np.array_equal(got, want)
            return
        kind = want.astype(np.complex64 if got.dtype == np.complex64 else got.dtype)
        near = np.abs(got - want) <= 4e-6 * np.abs(want) + 2.0**-148
    finite = np.isfinite(kind)
    near |= finite & (got == kind)
    near |= ~finite & np.isinf(kind) & np.isinf(got)
    near |= ~finite & ~np.isinf(kind) & np.isnan(got) & ~np.isinf(got)
    if not near.all():
        place = tuple(np.argwhere(~near)[0])
        raise AssertionError(f"{row.name} of {x[place]}: {got[place]}, {want[place]}")


POKED = {
    "nan": [np.nan],
    "infinities": [np.inf, -np.inf],
    "minus infinity": [-np.inf],
    "zeros": [0.0, -0.0],
    "all": [np.nan, np.inf, -np.inf, 0.0, -0.0],
}


@pytest.mark.parametrize("row", [r for r in ROWS if r.nans], ids=str)
def test_special_values_among_others(row):
    """Where NaN goes and infinities end up, in what combines elements."""
    rng = np.random.default_rng(14)
    floats = [d for d in row.types() if d in FLOATS]
    for dtype, case, poked in itertools.product(floats, row.cases, POKED):
        values = draw_case(row, case, dtype, rng)
        for x in values:
            where = rng.random(x.shape) < 0.3
            x[where] = rng.choice(POKED[poked], int(where.sum()))
        arrays = arrays_of(row, values, dtype)
        check(row, case, arrays, values, dtype, poked)


EXTREMES = [r for r in ROWS if r.nans and "int32" in r.types()]


@pytest.mark.parametrize("row", EXTREMES, ids=str)
def test_integer_extremes_among_others(row):
    """Sums wrap; order knows all bits of 64."""
    rng = np.random.default_rng(16)
    for dtype, case in itertools.product(INTEGERS, row.cases):
        count = 1 if isinstance(row.result, str) else len(row.result)
        if row.result_types(dtype, count)[0] in FLOATS:
            continue
        shapes = case.shapes
        values = [rng.choice(special(dtype), shape) for shape in shapes]
        arrays = arrays_of(row, values, dtype)
        check(row, case, arrays, values, dtype, "extremes")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", [r for r in ROWS if r.name not in TIED], ids=str)
def test_empty(row):
    """Whatever NumPy does with empty operands."""
    rng = np.random.default_rng(19)
    dtype = "float32" if "float32" in row.types() else row.types()[-1]
    for case in itertools.chain.from_iterable(map(emptied, row.cases)):
        try:
            values = draw_case(row, case, dtype, rng)
            row.reference(*values, **case.static)
        except (ValueError, IndexError, ZeroDivisionError):
            continue
        arrays = arrays_of(row, values, dtype)
        try:
            check(row, case, arrays, values, dtype, "empty")
        except ValueError:
            assert row.name in REFUSE_EMPTY, f"{row.name} {case}"


def test_halves_round_to_even():
    """What the drivers expect of float16 and bfloat16, on known numbers."""
    for dtype in HALVES:
        bits = 10 if dtype == "float16" else 7
        x = np.array([1 + 2.0 ** -(bits + 1), 1 + 3 * 2.0 ** -(bits + 1)], np.float32)
        got = to_numpy(mx.array(x).astype(getattr(mx, dtype)))
        assert got.tolist() == [1, 1 + 2 * 2.0**-bits]
