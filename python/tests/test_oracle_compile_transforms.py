"""Transforms and compile around the oracle table's operations: derivatives and
batches that are compiled, of functions that are compiled, and second derivatives by
grad and vmap in any order against central differences of the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Row
from oracle.derivatives import STEP, Problem, close, problems
from oracle.values import as_list, draw, operand_type, to_mlx, to_numpy

ROWS = list(TABLE.values())
SMOOTH = [r for r in ROWS if r.differentiable() and "float64" in r.types()]
TWICE = [r for r in SMOOTH if r.second is True]
BATCHED = [r for r in ROWS if r.batch is True]
BOTH = [r for r in TWICE if r.batch is True]
Gradient = Callable[..., list[mx.array]]


def total_of(p: Problem) -> Callable[..., mx.array]:
    """A number that depends on all results, each in another way."""
    weights = [p.to_mlx(p.directions([to_numpy(y)]))[0] for y in p.smooth(*p.primals())]

    def total(*given: mx.array) -> mx.array:
        results = p.smooth(*given)
        return sum((mx.sum(y * w) for y, w in zip(results, weights)), mx.array(0.0))

    return total


def gradient_of(p: Problem) -> Gradient:
    places = list(range(len(p.places)))
    grad = mx.grad(total_of(p), argnums=places)
    return lambda *given: as_list(grad(*given))


def chosen(row: Row, count: int = 2) -> list[Problem]:
    return [p for p in problems(row)[:count] if all(x.size for x in p.points)]


@pytest.mark.parametrize("row", SMOOTH, ids=str)
def test_compiled_gradients(row):
    """compile of grad, grad of compile, compile of both: as without."""
    for p in chosen(row):
        text = f"{row.name} {p.case}"
        primals = p.primals()
        gradient = gradient_of(p)
        want = [to_numpy(g) for g in gradient(*primals)]
        close(mx.compile(gradient)(*primals), want, p.limit, text)
        inner = mx.compile(total_of(Problem(row, p.case)))
        outer = mx.grad(inner, argnums=list(range(len(primals))))
        close(as_list(outer(*primals)), want, p.limit, f"{text} grad of compile")
        both = mx.compile(lambda *given, f=outer: as_list(f(*given)))
        close(both(*primals), want, p.limit, f"{text} compile of grad of compile")


@pytest.mark.parametrize("row", SMOOTH, ids=str)
def test_compiled_tangents(row):
    """jvp of compile, compile of jvp."""
    for p in chosen(row, 1):
        primals, tangents = p.primals(), p.to_mlx(p.directions(p.points))
        _, want = mx.jvp(p.smooth, primals, tangents)
        want = [to_numpy(t) for t in want]
        _, got = mx.jvp(mx.compile(p.smooth), primals, tangents)
        close(got, want, p.limit, f"{row.name} of compile")

        def push(*both: mx.array, p: Problem = p, n: int = len(primals)) -> Any:
            return mx.jvp(p.smooth, list(both[:n]), list(both[n:]))[1]

        got = mx.compile(push)(*primals, *tangents)
        close(got, want, p.limit, f"{row.name} compiled")


@pytest.mark.parametrize("row", BATCHED, ids=str)
def test_compiled_batches(row):
    """vmap of compile, compile of vmap: as vmap alone."""
    rng = np.random.default_rng(41)
    case = row.cases[0]
    dtype = next(d for d in ("float32", "int32", "uint8") if d in row.types())
    arrays = []
    for operand, shape in zip(row.operands, case.shapes):
        x = np.stack([draw(operand, shape, dtype, rng) for _ in range(3)])
        arrays.append(to_mlx(x, operand_type(operand, dtype)))

    def run(*given: mx.array) -> list[mx.array]:
        return as_list(row.run(*given, **case.static))

    want = mx.vmap(run)(*arrays)
    for form in (mx.vmap(mx.compile(run)), mx.compile(mx.vmap(run))):
        for g, w in zip(form(*arrays), want):
            assert (g.dtype, g.shape) == (w.dtype, w.shape)
            np.testing.assert_allclose(
                to_numpy(g).astype(complex), to_numpy(w), rtol=2e-6, atol=1e-6
            )


# ---- second derivatives ---------------------------------------------------------


def differences_of(gradient: Gradient, p: Problem) -> tuple[list[Any], list[Any]]:
    """A direction, and how the gradient changes along it."""
    tangents = p.directions(p.points)
    sides = [
        gradient(*p.to_mlx([x + sign * STEP * t for x, t in zip(p.points, tangents)]))
        for sign in (1, -1)
    ]
    slopes = [(to_numpy(a) - to_numpy(b)) / (2 * STEP) for a, b in zip(*sides)]
    return tangents, slopes


@pytest.mark.parametrize("row", TWICE, ids=str)
def test_grad_of_grad(row):
    """Plain, compiled, and with a compiled function inside."""
    for p in chosen(row):
        text = f"{row.name} {p.case}"
        gradient = gradient_of(p)
        tangents, want = differences_of(gradient, p)
        along = p.to_mlx(tangents)

        def directional(f: Gradient, along: list[mx.array] = along) -> Gradient:
            def slope(*given: mx.array) -> mx.array:
                parts = zip(f(*given), along)
                return sum((mx.sum(g * t) for g, t in parts), mx.array(0.0))

            twice = mx.grad(slope, argnums=list(range(len(along))))
            return lambda *given: as_list(twice(*given))

        forms = {
            "plain": directional(gradient),
            "compiled": mx.compile(directional(gradient)),
            "of compiled": directional(mx.compile(gradient)),
        }
        for name, form in forms.items():
            close(form(*p.primals()), want, 10 * p.limit, f"{text} {name}")


@pytest.mark.parametrize("row", BOTH, ids=str)
def test_vmap_of_grad_and_grad_of_vmap(row):
    """Gradients of a batch, differentiated again, against differences."""
    for p in chosen(row, 1):
        if any(o.kind != "data" for o in row.operands):
            continue
        total, batch = total_of(p), 2
        places = list(range(len(p.places)))
        p.points = [np.stack([x, 0.5 * (x + np.roll(x, 1))][:batch]) for x in p.points]

        def fixed(*given: mx.array, f: Any = total) -> mx.array:
            return mx.vmap(f)(*given).sum()

        of_vmap = mx.grad(fixed, argnums=places)
        of_grad = mx.vmap(mx.grad(total, argnums=places))
        points = p.to_mlx(p.points)
        first = [to_numpy(g) for g in as_list(of_vmap(*points))]
        close(as_list(of_grad(*points)), first, p.limit, f"{row.name} first")
        tangents, want = differences_of(lambda *g, f=of_vmap: as_list(f(*g)), p)
        along = p.to_mlx(tangents)
        for name, form in {"grad of vmap": of_vmap, "vmap of grad": of_grad}.items():
            push = along_direction(form, along)
            text = f"{row.name} {name}"
            close(push(*points), want, 10 * p.limit, text)
            close(mx.compile(push)(*points), want, 10 * p.limit, f"{text} compiled")


def along_direction(gradient: Callable[..., Any], tangents: list[mx.array]) -> Gradient:
    def run(*given: mx.array) -> list[mx.array]:
        return as_list(gradient(*given))

    return lambda *given: mx.jvp(run, list(given), tangents)[1]


def test_the_sets_are_large():
    assert len(TWICE) > 90 and len(BOTH) > 80 and len(BATCHED) > 200
