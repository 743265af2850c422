"""The oracle table's operations under compile: the bits of the uncompiled function
unless a sum was fused, in every type and layout, alone and between operations that
fuse."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Case, Row
from oracle.layouts import layouts
from oracle.row import SETS
from oracle.values import (
    FORMAT,
    arrays_of,
    as_list,
    draw_case,
    to_numpy,
    type_name,
    types_of,
)

ROWS = list(TABLE.values())
Function = Callable[..., list[mx.array]]
every_row = pytest.mark.parametrize("row", ROWS, ids=str)


def alone(row: Row, case: Case) -> Function:
    return lambda *arrays: as_list(row.run(*arrays, **case.static))


def around(x: mx.array) -> mx.array:
    """The same number or nearly so, by operations that fuse."""
    if x.dtype == mx.bool_:
        return mx.logical_not(mx.logical_not(x))
    if mx.issubdtype(x.dtype, mx.inexact):
        return x * 1.5 - x * 0.5
    return (x + x) - x


def between(row: Row, case: Case) -> Function:
    """The operation with something to fuse with on both sides."""

    def run(*arrays: mx.array) -> list[mx.array]:
        inner = [around(a) for a in arrays]
        return [around(y) for y in as_list(row.run(*inner, **case.static))]

    return run


def nodes(arrays: list[mx.array]) -> list[str]:
    text = io.StringIO()
    mx.export_to_dot(text, *arrays)
    return re.findall(r'label="(.*?)"', text.getvalue())


def adds_in_another_order(names: list[str]) -> bool:
    return any(n.startswith("Compiled") and re.search("Sum|Prod", n) for n in names)


def same(got: mx.array, want: mx.array, names: list[str], text: str) -> None:
    """The same bits; a bound of the type where a fused part adds along rows."""
    assert got.dtype == want.dtype, f"{text}: {got.dtype}, not {want.dtype}"
    x, y = to_numpy(got), to_numpy(want)
    assert x.shape == y.shape, f"{text}: {x.shape}, not {y.shape}"
    if x.tobytes() == y.tobytes():
        return
    dtype = type_name(got)
    if dtype in SETS["inexact"]:
        # NaN has many bits, of which none counts.
        equal = np.array_equal(x, y, equal_nan=True)
        zeros = np.array_equal(np.signbit(x.real[x == 0]), np.signbit(y.real[x == 0]))
        if equal and zeros:
            return
        if adds_in_another_order(names):
            size = np.abs(y[np.isfinite(y)]).max(initial=1.0)
            limit = 32 * 2.0 ** -FORMAT[dtype][0] * size
            with np.errstate(invalid="ignore"):
                near = (np.abs(x - y) <= limit) | (x == y)
            near |= np.isnan(x) & np.isnan(y)
            assert near.all(), f"{text}: {x[~near]} is not {y[~near]}"
            return
    raise AssertionError(f"{text}: {x[x != y][:9]} is not {y[x != y][:9]} ({names})")


def compare(
    compiled: Function, plain: Function, arrays: list[mx.array], text: str
) -> None:
    got, want = compiled(*arrays), plain(*arrays)
    assert len(got) == len(want), text
    # Names are asked for before the values are there, and only where they matter.
    names = nodes(got) if got and mx.issubdtype(got[0].dtype, mx.inexact) else []
    for g, w in zip(got, want):
        same(g, w, names, text)


@every_row
@pytest.mark.parametrize("form", [alone, between])
def test_types(row, form):
    rng = np.random.default_rng(31)
    for case in row.cases:
        plain = form(row, case)
        compiled = mx.compile(plain)
        for dtype in row.types():
            arrays = arrays_of(row, draw_case(row, case, dtype, rng), dtype)
            compare(compiled, plain, arrays, f"{row.name} {case} {dtype}")
        assert compiled.cache_info()["misses"] == len(row.types())


@every_row
def test_layouts(row):
    """One trace serves all layouts."""
    rng = np.random.default_rng(32)
    some = [d for d in ("float32", "bfloat16", "int16") if d in row.types()]
    for case, dtype in itertools.product(row.cases[:2], (some or row.types())[:2]):
        plain = between(row, case)
        compiled = mx.compile(plain)
        values = draw_case(row, case, dtype, rng)
        for name, arrays, _ in layouts(values, types_of(row, dtype)):
            compare(compiled, plain, arrays, f"{row.name} {case} {dtype} {name}")
        assert compiled.cache_info()["misses"] == 1


@pytest.mark.parametrize("row", [r for r in ROWS if r.sized], ids=str)
@pytest.mark.parametrize("length", [1, 3, 17, 1025, 40001])
def test_lengths(row, length):
    """Tails of vectors, several blocks, several threads."""
    rng = np.random.default_rng(length)
    chosen = [d for d in ("float32", "float16", "int32") if d in row.types()]
    for dtype, case in itertools.product(chosen[:2], row.sized(length)[:2]):
        arrays = arrays_of(row, draw_case(row, case, dtype, rng), dtype)
        plain = between(row, case)
        compare(mx.compile(plain), plain, arrays, f"{row.name} {case} {dtype}")


@pytest.mark.parametrize("row", [r for r in ROWS if r.special], ids=str)
def test_elementwise_rows_are_one_part(row):
    """With what lies around them."""
    case = row.cases[0]
    for dtype in row.types()[-3:]:
        values = draw_case(row, case, dtype, np.random.default_rng(33))
        arrays = arrays_of(row, values, dtype)
        mx.eval(arrays)
        got = mx.compile(between(row, case))(*arrays)
        if row.name in SEVERAL_PARTS:
            continue
        names = nodes(got)
        assert len(names) == 1, f"{row.name} {dtype}: {names}"


# Elementwise by their results, but made of more.
SEVERAL_PARTS = {"equal_nan", "imag"}
