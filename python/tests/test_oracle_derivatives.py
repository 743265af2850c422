"""Derivatives of the oracle table's operations: forwards and in reverse against
central differences of the NumPy reference in float64, second ones against
differences of the first, and those of complex numbers against each other."""

from __future__ import annotations

import itertools
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Case, Row
from oracle.derivatives import STEP, Problem, close, differences, gradients, problems
from oracle.empty import REFUSE_EMPTY, TIED, emptied
from oracle.row import SETS
from oracle.values import arrays_of, as_list, draw_case, to_numpy

ROWS = list(TABLE.values())
SMOOTH = [r for r in ROWS if r.differentiable()]


def takes_float64(row: Row) -> bool:
    return "float64" in row.types()


# float32 too where kernels and rules of their own may serve it.
PRECISE = [pytest.param(r, "float64", id=r.name) for r in SMOOTH if takes_float64(r)]
FUSED = [
    pytest.param(r, "float32", id=f"{r.name} float32")
    for r in SMOOTH
    if r.nodes and "float32" in r.types() and takes_float64(r)
]
every_smooth = pytest.mark.parametrize(("row", "dtype"), PRECISE + FUSED)


@every_smooth
def test_forwards(row, dtype):
    for p in problems(row, dtype):
        text = f"{row.name} {p.case}"
        tangents = p.directions(p.points)
        _, got = mx.jvp(p.smooth, p.primals(), p.to_mlx(tangents))
        close(got, differences(p, tangents), p.limit, text)
        for i in range(len(p.places)):
            # One alone: the rules see which tangents there are.
            only = [t if k == i else 0 * t for k, t in enumerate(tangents)]

            def one(x: mx.array, p: Problem = p, i: int = i) -> list[mx.array]:
                return p.smooth(
                    *[x if k == i else a for k, a in enumerate(p.primals())]
                )

            _, got = mx.jvp(one, [p.primals()[i]], p.to_mlx([tangents[i]]))
            close(got, differences(p, only), p.limit, f"{text} by operand {i}")


@every_smooth
def test_reverse(row, dtype):
    for p in problems(row, dtype):
        text = f"{row.name} {p.case}"
        results = p.smooth(*p.primals())
        cotangents = p.directions([to_numpy(y) for y in results])
        _, got = mx.vjp(p.smooth, p.primals(), p.to_mlx(cotangents))
        if sum(x.size for x in p.points) <= 80:
            close(got, gradients(p, cotangents), p.limit, text)
        # <c, J t> = <J' c, t>, with what test_forwards has checked.
        tangents = p.directions(p.points)
        _, forward = mx.jvp(p.smooth, p.primals(), p.to_mlx(tangents))
        left = sum(np.sum(to_numpy(f) * c) for f, c in zip(forward, cotangents))
        right = sum(np.sum(to_numpy(g) * t) for g, t in zip(got, tangents))
        scale = sum(
            np.sum(np.abs(to_numpy(f) * c)) for f, c in zip(forward, cotangents)
        )
        assert abs(left - right) <= p.limit * max(1.0, scale), text


@pytest.mark.parametrize("name", ["prod", "cumprod"])
def test_zeros_among_factors(name):
    """One zero in a row, two, none: quotients by factors would not do."""
    for p in problems(TABLE[name]):
        x = p.values[0]
        x[p.rng.random(x.shape) < 0.25] = 0
        p.arrays = p.to_mlx([x])
        tangents = p.directions(p.points)
        _, got = mx.jvp(p.smooth, p.primals(), p.to_mlx(tangents))
        close(got, differences(p, tangents), p.limit, f"{name} {p.case} forwards")
        cotangents = p.directions(differences(p, tangents))
        _, got = mx.vjp(p.smooth, p.primals(), p.to_mlx(cotangents))
        close(got, gradients(p, cotangents), p.limit, f"{name} {p.case} in reverse")


TWICE = [r for r in SMOOTH if takes_float64(r) and r.second is True]


@pytest.mark.parametrize("row", TWICE, ids=str)
def test_second(row):
    """Reverse over reverse and forwards over reverse, against differences of the
    reverse derivative, which test_reverse has checked."""
    for p in problems(row)[:3]:
        text = f"{row.name} {p.case}"
        results = p.smooth(*p.primals())
        if any(y.size == 0 for y in results):
            continue
        cotangents = p.to_mlx(p.directions([to_numpy(y) for y in results]))
        tangents = p.directions(p.points)

        def slope(*given: mx.array, p: Any = p, c: Any = cotangents) -> list[mx.array]:
            return mx.vjp(p.smooth, list(given), c)[1]

        sides = [
            slope(*p.to_mlx([x + sign * STEP * t for x, t in zip(p.points, tangents)]))
            for sign in (1, -1)
        ]
        want = [(to_numpy(a) - to_numpy(b)) / (2 * STEP) for a, b in zip(*sides)]
        _, got = mx.jvp(slope, p.primals(), p.to_mlx(tangents))
        close(got, want, 10 * p.limit, f"{text} forwards over reverse")
        # The second derivative is symmetric.
        _, got = mx.vjp(slope, p.primals(), p.to_mlx(tangents))
        close(got, want, 10 * p.limit, f"{text} reverse over reverse")


HALVES = [
    pytest.param(r, dtype, id=f"{r.name} {dtype}")
    for r in SMOOTH
    for dtype in ("float16", "bfloat16")
    if dtype in r.types() and takes_float64(r)
]


@pytest.mark.parametrize(("row", "dtype"), HALVES)
def test_halves(row, dtype):
    """Types of derivatives, and values next to those of float64 at the same points:
    a few roundings of formulas in the type itself."""
    limit = 2.0**-8 if dtype == "float16" else 2.0**-5
    for p in problems(row, dtype)[:2]:
        wide = Problem(row, p.case)
        wide.arrays = [
            a.astype(mx.float64) if o.kind == "data" else a
            for a, o in zip(p.arrays, row.operands)
        ]
        results = p.smooth(*p.primals())
        cotangents = p.to_mlx(p.directions([to_numpy(y) for y in results]))
        _, got = mx.vjp(p.smooth, p.primals(), cotangents)
        exact = [c.astype(mx.float64) for c in cotangents]
        _, want = mx.vjp(wide.smooth, wide.primals(), exact)
        assert all(g.dtype == a.dtype for g, a in zip(got, p.primals()))
        close(got, [to_numpy(w) for w in want], limit, f"{row.name} {p.case}")


COMPLEX = [r for r in SMOOTH if "complex64" in r.types() and r.complex_rule is True]


@pytest.mark.parametrize("row", COMPLEX, ids=str)
def test_complex(row):
    """Forwards against differences of the reference in complex128; in reverse
    through Re <c, J t> = Re <J' c, t>."""
    for p in problems(row, "complex64"):
        text = f"{row.name} {p.case}"
        tangents = p.directions(p.points)
        _, got = mx.jvp(p.smooth, p.primals(), p.to_mlx(tangents))
        close(got, differences(p, tangents), 2e-4, text)
        cotangents = p.directions(differences(p, tangents))
        _, back = mx.vjp(p.smooth, p.primals(), p.to_mlx(cotangents))
        left = sum(np.vdot(c, to_numpy(f)).real for f, c in zip(got, cotangents))
        right = sum(np.vdot(to_numpy(g), t).real for g, t in zip(back, tangents))
        scale = sum(np.sum(np.abs(to_numpy(f) * c)) for f, c in zip(got, cotangents))
        assert abs(left - right) <= 2e-4 * max(1.0, scale), f"{text}: {left}, {right}"


EMPTIED = [r for r in TWICE if r.name not in TIED | REFUSE_EMPTY]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", EMPTIED, ids=str)
def test_of_nothing(row):
    """Shapes of derivatives where operands are empty."""
    for case in itertools.chain.from_iterable(map(emptied, row.cases)):
        try:
            p = Problem(row, case)
            p.reference(p.points)
        except (ValueError, IndexError, ZeroDivisionError):
            continue
        cotangents = p.directions(p.reference(p.points))
        results, tangents = mx.jvp(p.smooth, p.primals(), p.primals())
        _, grads = mx.vjp(p.smooth, p.primals(), p.to_mlx(cotangents))
        mx.eval(tangents, grads)
        pairs = [*zip(results, tangents), *zip(p.primals(), grads)]
        assert all(x.shape == d.shape for x, d in pairs), f"{row.name} {case}"


# ---- where there is none --------------------------------------------------------


def static_types(row: Row) -> list[str]:
    return [d for d in ("float64", "float32", "int32") if d in row.types()][:1]


def of_ones(row: Row, case: Case, dtype: str) -> tuple[Any, ...]:
    """Arguments, results, and derivatives both ways of ones."""
    values = draw_case(row, case, dtype, np.random.default_rng(8))
    arrays = arrays_of(row, values, dtype)

    def run(*given: mx.array) -> list[mx.array]:
        return as_list(row.run(*given, **case.static))

    results, tangents = mx.jvp(run, arrays, [mx.ones_like(a) for a in arrays])
    cotangents = [mx.ones_like(y) for y in results]
    if row.without == "stops":
        cotangents = []
    return arrays, results, tangents, mx.vjp(run, arrays, cotangents)[1]


@pytest.mark.parametrize("row", [r for r in ROWS if not r.differentiable()], ids=str)
def test_where_there_is_none(row):
    """Zeros, or what the row says."""
    for dtype, case in itertools.product(static_types(row), row.cases[:2]):
        if row.without == "raises":
            with pytest.raises(ValueError, match="Not implemented for"):
                of_ones(row, case, dtype)
            continue
        arrays, results, tangents, grads = of_ones(row, case, dtype)
        for x, d in zip([*results, *arrays], [*tangents, *grads]):
            assert d.shape == x.shape
            # The tangent of a comparison has the type of its operand.
            of_bool = x.dtype == mx.bool_ and d.dtype == arrays[0].dtype
            assert of_bool or d.dtype == x.dtype
            if row.without != "passed":
                assert not to_numpy(d).any(), f"{row.name}: {d}"


def test_casts_pass_derivatives_on():
    """Cotangents are cast back: an integer's gradient is truncated."""
    x = mx.array([1.0, 2.0], mx.float16)
    _, (g,) = mx.vjp(lambda x: x.astype(mx.float32), [x], [mx.array([0.5, 1.5])])
    assert g.dtype == mx.float16 and g.tolist() == [0.5, 1.5]
    n = mx.array([1, 2])
    _, (g,) = mx.vjp(lambda n: n.astype(mx.float32), [n], [mx.array([0.5, 1.5])])
    assert g.dtype == mx.int32 and g.tolist() == [0, 1]


def test_the_sets_hold_what_is_differentiated():
    assert set(SETS["inexact"]) > {"float64", "complex64"}
    assert len(SMOOTH) > 100
