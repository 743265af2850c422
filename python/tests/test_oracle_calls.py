"""Other ways to call the oracle table's operations: methods, operators, indices of
other types."""

from __future__ import annotations

import itertools
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE
from oracle.checks import check
from oracle.row import INTEGERS
from oracle.values import arrays_of, as_list, draw_case, to_mlx, to_numpy, types_of

ROWS = list(TABLE.values())
INDEXED = [r for r in ROWS if any(o.kind == "int32" for o in r.operands)]


@pytest.mark.parametrize("row", INDEXED, ids=str)
def test_types_of_indices(row):
    rng = np.random.default_rng(11)
    for case, kind in itertools.product(row.cases, INTEGERS):
        values = draw_case(row, case, row.types()[0], rng)
        types = types_of(row, row.types()[0])
        at = [i for i, o in enumerate(row.operands) if o.kind == "int32"]
        if kind.startswith("u") and any((values[i] < 0).any() for i in at):
            continue
        types = [kind if i in at else t for i, t in enumerate(types)]
        arrays = [to_mlx(x, t) for x, t in zip(values, types)]
        check(row, case, arrays, values, row.types()[0], kind)


# ---- methods and operators ------------------------------------------------------

OPERATORS = {
    "abs": "__abs__",
    "negative": "__neg__",
    "bitwise_invert": "__invert__",
    "add": "__add__",
    "subtract": "__sub__",
    "multiply": "__mul__",
    "divide": "__truediv__",
    "floor_divide": "__floordiv__",
    "remainder": "__mod__",
    "power": "__pow__",
    "matmul": "__matmul__",
    "equal": "__eq__",
    "not_equal": "__ne__",
    "greater": "__gt__",
    "greater_equal": "__ge__",
    "less": "__lt__",
    "less_equal": "__le__",
    "bitwise_and": "__and__",
    "bitwise_or": "__or__",
    "bitwise_xor": "__xor__",
    "left_shift": "__lshift__",
    "right_shift": "__rshift__",
}
NAMED = [r for r in ROWS if r.call == r.name]
METHODS = [
    r
    for r in NAMED
    if callable(getattr(mx.array, r.name, None))
    # Their axes go by position.
    and r.name not in ("reshape", "transpose")
]


def equal_results(got: Any, want: Any) -> bool:
    return all(
        g.dtype == w.dtype
        and np.array_equal(
            to_numpy(g), to_numpy(w), equal_nan="bool" not in str(g.dtype)
        )
        for g, w in zip(as_list(got), as_list(want))
    )


@pytest.mark.parametrize("row", METHODS, ids=str)
def test_methods(row):
    """The method of an array is the function."""
    rng = np.random.default_rng(12)
    for case in row.cases:
        dtype = row.types()[-1]
        values = draw_case(row, case, dtype, rng)
        arrays = arrays_of(row, values, dtype)
        method = getattr(arrays[0], row.name)
        got = method(*arrays[1:], **case.static)
        assert equal_results(got, row.run(*arrays, **case.static)), row.name


@pytest.fixture(scope="module")
def stream():
    return mx.new_stream(mx.cpu)


@pytest.mark.parametrize("row", [r for r in ROWS if isinstance(r.call, str)], ids=str)
def test_streams(row, stream):
    """The result does not depend on the stream that computes it."""
    rng = np.random.default_rng(18)
    dtype = row.types()[-1]
    for case in row.cases[:2]:
        arrays = arrays_of(row, draw_case(row, case, dtype, rng), dtype)
        want = row.run(*arrays, **case.static, stream=mx.cpu)
        got = row.run(*arrays, **case.static, stream=stream)
        assert equal_results(got, want), row.name


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    row = TABLE[name]
    rng = np.random.default_rng(13)
    for dtype, case in itertools.product(row.types(), row.cases):
        values = draw_case(row, case, dtype, rng)
        arrays = arrays_of(row, values, dtype)
        got = getattr(arrays[0], OPERATORS[name])(*arrays[1:])
        assert equal_results(got, row.run(*arrays)), f"{name} {dtype}"
        in_place = OPERATORS[name].replace("__", "__i", 1)
        if hasattr(mx.array, in_place):
            if arrays[0].shape != got.shape or name == "divide":
                continue
            changed = arrays[0][...]
            changed = getattr(changed, in_place)(arrays[1])
            assert equal_results(changed, got), f"{in_place} {dtype}"
