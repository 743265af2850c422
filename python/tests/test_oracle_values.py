"""Results of the oracle table's operations: in every type, in every layout, of
every length, of special values."""

from __future__ import annotations

import itertools
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Case, Row
from oracle.row import FLOATS, HALVES, INTEGERS, SETS
from oracle.values import (
    as_list,
    assert_close,
    bound,
    draw_case,
    expected,
    layouts,
    operand_type,
    promote,
    rounded,
    to_mlx,
    to_numpy,
    type_name,
)

Array = np.ndarray[Any, Any]
ROWS = list(TABLE.values())
every_row = pytest.mark.parametrize("row", ROWS, ids=str)


def check(
    row: Row,
    case: Case,
    arrays: list[mx.array],
    values: list[Array],
    promoted: str,
    text: str = "",
) -> None:
    got = as_list(row.run(*arrays, **case.static))
    want, types = expected(row, case, values, promoted)
    assert len(got) == len(want)
    for g, w, dtype in zip(got, want, types):
        where = f"{row.name} {case.shapes} {case.static} {promoted} {text}"
        assert type_name(g) == dtype, f"{where}: {g.dtype}, not {dtype}"
        limit = 0
        if dtype in SETS["inexact"]:
            limit = bound(row, case, values, w, dtype, promoted)
        assert_close(to_numpy(g), w, limit, dtype, where)


def types_of(row: Row, dtype: str) -> list[str]:
    return [operand_type(operand, dtype) for operand in row.operands]


@every_row
def test_types(row):
    rng = np.random.default_rng(1)
    for dtype, case in itertools.product(row.types(), row.cases):
        values = draw_case(row, case, dtype, rng)
        arrays = [to_mlx(x, t) for x, t in zip(values, types_of(row, dtype))]
        check(row, case, arrays, values, dtype)


@every_row
def test_types_that_are_refused(row):
    rng = np.random.default_rng(2)
    case = row.cases[0]
    for dtype in SETS["all"]:
        if dtype in row.types() or dtype in row.also_takes:
            continue
        values = draw_case(row, case, dtype, rng)
        arrays = [to_mlx(x, t) for x, t in zip(values, types_of(row, dtype))]
        with pytest.raises((ValueError, RuntimeError)):
            mx.eval(row.run(*arrays, **case.static))


def mixed(row: Row) -> bool:
    return row.promotes and sum(o.kind == "data" for o in row.operands) > 1


@pytest.mark.parametrize("row", [r for r in ROWS if mixed(r)], ids=str)
def test_promotion(row):
    """Operands of two types: as if both had the type they promote to."""
    rng = np.random.default_rng(3)
    case = row.cases[0]
    for pair in itertools.permutations(SETS["all"], 2):
        promoted = promote(*pair)
        turn = itertools.cycle(pair)
        types = [next(turn) if o.kind == "data" else o.kind for o in row.operands]
        if promoted not in row.types():
            continue
        drawn = [draw_case(row, case, t, rng)[i] for i, t in enumerate(types)]
        arrays = [to_mlx(x, t) for x, t in zip(drawn, types)]
        cast = [rounded(x, promoted) if x.dtype.kind in "fc" else x for x in drawn]
        check(row, case, arrays, cast, promoted, str(types))


@every_row
def test_layouts(row):
    rng = np.random.default_rng(4)
    chosen = [d for d in ("float32", "bfloat16", "int16", "bool_") if d in row.types()]
    for dtype, case in itertools.product(chosen[:3] or row.types()[:1], row.cases):
        values = draw_case(row, case, dtype, rng)
        for name, arrays, laid in layouts(values, types_of(row, dtype)):
            check(row, case, arrays, laid, dtype, name)


LENGTHS = [1, 3, 17, 257, 1025, 70001]


@pytest.mark.parametrize("row", [r for r in ROWS if r.sized], ids=str)
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(row, length):
    """Tails of vectors, and lengths that threads share."""
    rng = np.random.default_rng(length)
    chosen = [d for d in ("float32", "float16", "int32") if d in row.types()]
    for dtype in chosen[:2] if length < 70000 else chosen[:1]:
        for case in row.sized(length):
            values = draw_case(row, case, dtype, rng)
            arrays = [to_mlx(x, t) for x, t in zip(values, types_of(row, dtype))]
            check(row, case, arrays, values, dtype)


# ---- special values -----------------------------------------------------------


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


def test_halves_round_to_even():
    """What the drivers expect of float16 and bfloat16, on known numbers."""
    for dtype in HALVES:
        bits = 10 if dtype == "float16" else 7
        x = np.array([1 + 2.0 ** -(bits + 1), 1 + 3 * 2.0 ** -(bits + 1)], np.float32)
        got = to_numpy(mx.array(x).astype(getattr(mx, dtype)))
        assert got.tolist() == [1, 1 + 2 * 2.0**-bits]
