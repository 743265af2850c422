"""Results of the oracle table's operations: in every type, in every layout, of
every length."""

from __future__ import annotations

import itertools

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Row
from oracle.checks import check
from oracle.layouts import any_view, layouts, temporary
from oracle.row import SETS
from oracle.values import (
    arrays_of,
    draw_case,
    promote,
    rounded,
    to_mlx,
    to_numpy,
    types_of,
)

ROWS = list(TABLE.values())
every_row = pytest.mark.parametrize("row", ROWS, ids=str)


@every_row
def test_types(row):
    rng = np.random.default_rng(1)
    for dtype, case in itertools.product(row.types(), row.cases):
        values = draw_case(row, case, dtype, rng)
        arrays = arrays_of(row, values, dtype)
        check(row, case, arrays, values, dtype)


@every_row
def test_types_that_are_refused(row):
    rng = np.random.default_rng(2)
    case = row.cases[0]
    for dtype in SETS["all"]:
        if dtype in row.types() or dtype in row.also_takes:
            continue
        values = draw_case(row, case, dtype, rng)
        arrays = arrays_of(row, values, dtype)
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
    some = [d for d in ("float32", "bfloat16", "int16", "bool_") if d in row.types()]
    some = some[:3] or row.types()[:1]
    for dtype in row.types():
        # Few types in all cases and mixtures; of the others one case, transposed,
        # strided, backwards.
        often = dtype in some
        for case in row.cases if often else row.cases[:1]:
            values = draw_case(row, case, dtype, rng)
            found = layouts(values, types_of(row, dtype))
            wanted = found if often else itertools.islice(found, 1, 4)
            for name, arrays, laid in wanted:
                check(row, case, arrays, laid, dtype, name)


@every_row
def test_any_views(row):
    """Operands that each lie in memory in a way of their own."""
    rng = np.random.default_rng(17)
    for case, _ in itertools.product(row.cases, range(2)):
        dtype = str(rng.choice(row.types()))
        values = draw_case(row, case, dtype, rng)
        views = [any_view(x, t, rng) for x, t in zip(values, types_of(row, dtype))]
        check(row, case, [a for a, _ in views], [x for _, x in views], dtype, "views")


@every_row
def test_temporaries(row):
    """Operands whose memory the result may take over, and operands that are needed
    again: those keep their values."""
    rng = np.random.default_rng(15)
    some = [d for d in ("float32", "int16", "float16") if d in row.types()]
    some = some[:2] or row.types()[:1]
    for dtype, case in [(some[0], c) for c in row.cases] + [(some[-1], row.cases[0])]:
        values = draw_case(row, case, dtype, rng)
        types = types_of(row, dtype)
        alike = itertools.islice(layouts(values, types, temporary), 6)
        for name, arrays, laid in alike:
            check(row, case, arrays, laid, dtype, f"kept {name}")
            for a, x in zip(arrays, laid):
                assert np.array_equal(to_numpy(a), x), f"{row.name} changed {name}"
        for name, arrays, laid in layouts(values, types, temporary):
            check(row, case, arrays, laid, dtype, f"let go {name}", release=True)
            assert not arrays


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
            arrays = arrays_of(row, values, dtype)
            check(row, case, arrays, values, dtype)


@pytest.mark.parametrize("row", [r for r in ROWS if r.sized], ids=str)
def test_long_layouts(row):
    """Strides met by several threads. Nothing constant: sums of equal numbers
    round all the same way, the worst case of any bound."""
    rng = np.random.default_rng(10)
    dtype = "float32" if "float32" in row.types() else row.types()[0]
    for case in row.sized(20011):
        values = draw_case(row, case, dtype, rng)
        alike = itertools.islice(layouts(values, types_of(row, dtype)), 1, 5)
        for name, arrays, laid in alike:
            check(row, case, arrays, laid, dtype, name)
