"""Random functions under compile: elementwise operations of all types, casts,
choices, broadcasts, transposes, reductions, several results and shared parts give
what they give uncompiled."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TYPES = [
    *(mx.bool_, mx.uint8, mx.int8, mx.uint16, mx.int16, mx.uint32, mx.int32),
    *(mx.uint64, mx.int64, mx.float16, mx.bfloat16, mx.float32, mx.float64),
    mx.complex64,
]
REAL_UNARY = [mx.exp, mx.erf, mx.sigmoid, mx.tanh, mx.floor, mx.expm1, mx.round]
UNARY = [mx.abs, mx.square, mx.sin, mx.cos, mx.negative, mx.sign, mx.isnan]
BINARY = [mx.add, mx.subtract, mx.multiply, mx.maximum, mx.minimum, mx.divide]
COMPARE = [mx.less, mx.equal, mx.greater_equal, mx.logical_and]
SCALARS = [0, 1, 2, -1.5, 0.1, 3, float("inf"), True]
# Step k reads results of earlier ones by these numbers.
Step = tuple[str, int, int, int]
KINDS = [
    *("unary", "binary", "binary", "scalar", "compare", "cast", "where"),
    *("transpose", "row", "reduce"),
]

steps = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        *[st.integers(0, 1000)] * 3,
    ),
    min_size=1,
    max_size=14,
)
fixed = settings(
    max_examples=120,
    derandomize=True,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def is_float(x: mx.array) -> bool:
    return mx.issubdtype(x.dtype, mx.floating)


def one_step(step: Step, values: list[mx.array]) -> mx.array:
    kind, i, j, k = step
    # Late results are read more often than early ones.
    x = values[-1 - i % min(len(values), 4)]
    y = values[j % len(values)]
    if kind == "unary":
        some = UNARY + (REAL_UNARY if is_float(x) else [])
        x = x.astype(mx.int8) if x.dtype == mx.bool_ else x
        return some[k % len(some)](x)
    if kind == "binary":
        return BINARY[k % len(BINARY)](x, y)
    if kind == "scalar":
        # A large number beside an integer would be a float.
        return BINARY[k % 3](x, SCALARS[j % len(SCALARS)])
    if kind == "compare":
        if mx.complex64 in (x.dtype, y.dtype):
            return mx.equal(x, y)
        return COMPARE[k % len(COMPARE)](x, y)
    if kind == "cast":
        to = TYPES[k % len(TYPES)]
        # What lies outside of the integers has no meaning as one.
        if is_float(x) and not mx.issubdtype(to, mx.inexact):
            x = mx.clip(mx.where(mx.isnan(x), 0, x), 0, 100)
        if x.dtype == mx.complex64 and to != mx.complex64:
            x = mx.real(x)
            x = mx.clip(mx.where(mx.isnan(x), 0, x), 0, 100)
        return x.astype(to)
    if kind == "where":
        return mx.where(values[k % len(values)], x, y)
    if kind == "transpose":
        return mx.swapaxes(x, 0, 1) if x.shape[0] == x.shape[1] else x
    if kind == "row":
        return mx.broadcast_to(mx.max(x, axis=0, keepdims=True), x.shape)
    some = [mx.max, mx.min, mx.all, mx.any]
    # Sums of integers wrap, in any order.
    some += [] if mx.issubdtype(x.dtype, mx.inexact) else [mx.sum, mx.prod]
    return some[k % len(some)](x, axis=-1, keepdims=True)


def function_of(program: list[Step]) -> Callable[..., list[mx.array]]:
    def run(*arrays: mx.array) -> list[mx.array]:
        values = list(arrays)
        for step in program:
            values.append(one_step(step, values))
        # The last, one from the middle and a sum of both.
        middle = values[(len(arrays) + len(values) - 1) // 2]
        return [values[-1], middle, mx.where(middle, values[-1], middle)]

    return run


def inputs(kinds: list[int], shape: tuple[int, int], seed: int) -> list[mx.array]:
    rng = np.random.default_rng(seed)
    n, m = shape
    layouts = [(n, m), (n, m), (1, m), (n, 1), (1, 1)]
    arrays = []
    for k in kinds:
        dtype = TYPES[k % len(TYPES)]
        x = mx.array(rng.integers(-50, 50, layouts[k % 5]) / 16, dtype=mx.float32)
        x = mx.abs(x) if dtype in TYPES[:9] else x
        x = x.astype(dtype)
        if k % 3 == 1:
            x = mx.contiguous(mx.swapaxes(x, 0, 1)).swapaxes(0, 1)
        elif k % 3 == 2:
            x = mx.concatenate([x, x], axis=0)[::2] if x.shape[0] > 1 else x
        arrays.append(x)
    mx.eval(arrays)
    return arrays


def bits(x: mx.array) -> Any:
    if x.dtype == mx.bfloat16:
        x = x.astype(mx.float32)
    return np.array(x)


def parts(results: list[mx.array]) -> str:
    text = io.StringIO()
    mx.export_to_dot(text, *results)
    return " ".join(re.findall(r'label="(.*?)"', text.getvalue()))


def same(got: list[mx.array], want: list[mx.array], exact: bool) -> None:
    for g, w in zip(got, want):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        x, y = bits(g), bits(w)
        if exact or not mx.issubdtype(g.dtype, mx.inexact):
            assert np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"), (x, y)
        else:
            near = {mx.float16: 2e-2, mx.bfloat16: 2e-1}.get(g.dtype, 1e-4)
            np.testing.assert_allclose(x, y, rtol=near, atol=near, equal_nan=True)


kinds_of_inputs = st.lists(st.integers(0, 1000), min_size=1, max_size=4)
shapes = st.tuples(st.integers(1, 9), st.integers(1, 70))


@fixed
@given(steps, kinds_of_inputs, shapes, st.integers(0, 1000))
def test_the_same_bits(program, kinds, shape, seed):
    """Extremes of rows are exact, so that everything is."""
    function = function_of(program)
    arrays = inputs(kinds, shape, seed)
    compiled = mx.compile(function)
    want = function(*arrays)
    same(compiled(*arrays), want, exact=True)
    # Operands that nobody else holds, whose memory results may take over.
    same(compiled(*[mx.maximum(a, a) for a in arrays]), want, exact=True)
    same(compiled(*arrays), want, exact=True)


@settings(fixed, max_examples=80)
@given(steps, st.sampled_from(TYPES[-5:-1]), shapes, st.integers(0, 1000))
def test_with_sums(program, dtype, shape, seed):
    """Sums of rows may take another order: those of numbers that floats hold
    exactly must not differ."""
    smooth = [s for s in program if s[0] not in ("cast", "compare", "where")]
    whole = mx.array(
        np.random.default_rng(seed).integers(-4, 5, shape), dtype=mx.float32
    ).astype(dtype)

    def function(x: mx.array) -> list[mx.array]:
        total = mx.sum(x * 2 - x, axis=-1, keepdims=True)
        values = [x + total]
        for kind, _, j, k in smooth:
            if kind == "unary":
                values.append([mx.abs, mx.negative, mx.floor][k % 3](values[-1]))
            elif kind in ("binary", "scalar"):
                y = values[j % len(values)]
                values.append([mx.maximum, mx.minimum][k % 2](values[-1], y))
            else:
                row = mx.sum(mx.clip(values[-1], -2, 2), axis=-1, keepdims=True)
                values.append(mx.clip(x + row, -8, 8))
        return [values[-1], total, mx.mean(values[-1], axis=-1)]

    got, want = mx.compile(function)(whole), function(whole)
    same(got[:2], want[:2], exact=True)
    same(got[2:], want[2:], exact=False)


@settings(fixed, max_examples=60)
@given(steps, kinds_of_inputs, st.lists(shapes, min_size=3, max_size=3))
def test_shapeless(program, kinds, three):
    """One trace for all shapes. Broadcasting between inputs stays as traced."""
    keep = [s for s in program if s[0] not in ("transpose", "row")]
    function = function_of(keep)
    compiled = mx.compile(function, shapeless=True)
    for seed, (n, m) in enumerate(three):
        arrays = inputs(kinds, (n + 1, m + 1), seed)
        same(compiled(*arrays), function(*arrays), exact=True)
    assert compiled.cache_info()["misses"] == 1


def test_programs_fuse():
    """That the random functions above are worth something."""
    program = [(kind, k, 2 * k + 1, k) for k, kind in enumerate(KINDS[:7])]
    arrays = inputs([12, 11, 25], (8, 33), 0)
    assert "Compiled" in parts(mx.compile(function_of(program))(*arrays))


@pytest.mark.parametrize("values", [1, 2, 5, 40])
def test_wide_and_shared(values):
    """Sub-expressions that many results share, at any distance."""

    def function(*arrays: mx.array) -> list[mx.array]:
        shared = [mx.exp(-mx.abs(a)) for a in arrays]
        total = shared[0]
        for k, s in enumerate(shared):
            total = total * 0.5 + s * (k + 1)
        return [total, *[s - total for s in shared], mx.max(total, axis=-1)]

    arrays = inputs([11 + 14 * k for k in range(values)], (5, 66), values)
    same(mx.compile(function)(*arrays), function(*arrays), exact=True)
