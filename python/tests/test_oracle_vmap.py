"""Batches of the oracle table's operations against a loop: the batch in front, at
the end, between axes, in some operands only, in results at any place, twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Case, Row
from oracle.values import (
    arrays_of,
    as_list,
    draw,
    operand_type,
    to_mlx,
    to_numpy,
)

Axes = tuple[int | None, ...]
BATCH = 3
BATCHED = [row for row in TABLE.values() if row.batch is True]


def type_of(row: Row) -> str:
    wanted = ("float32", "int32", "uint8")
    return next(d for d in wanted if d in row.types())


def batched(
    row: Row, case: Case, axes: Axes, rng: np.random.Generator
) -> list[mx.array]:
    """Operands with a batch axis where there is one."""
    arrays = []
    for operand, shape, axis in zip(row.operands, case.shapes, axes):
        dtype = type_of(row)
        if axis is None:
            x = draw(operand, shape, dtype, rng)
        else:
            parts = [draw(operand, shape, dtype, rng) for _ in range(BATCH)]
            x = np.stack(parts, axis)
        arrays.append(to_mlx(x, operand_type(operand, dtype)))
    return arrays


def combinations(case: Case) -> Iterator[Axes]:
    """In front; last; in the middle; each operand alone, and alone without; each
    with its own."""
    ranks = [len(shape) for shape in case.shapes]
    yield tuple(0 for _ in ranks)
    yield tuple(-1 for _ in ranks)
    yield tuple(n // 2 for n in ranks)
    if len(ranks) == 1:
        return
    yield tuple((i + 1) % (n + 1) for i, n in enumerate(ranks))
    for i, n in enumerate(ranks):
        yield tuple(max(n - 1, 0) if k == i else None for k in range(len(ranks)))
    if len(ranks) > 2:
        for i in range(len(ranks)):
            yield tuple(None if k == i else 0 for k in range(len(ranks)))


def loop(row: Row, case: Case, arrays: list[mx.array], axes: Axes) -> list[np.ndarray]:
    results = []
    for b in range(BATCH):
        one = [
            a if axis is None else mx.take(a, b, axis) for a, axis in zip(arrays, axes)
        ]
        results.append([to_numpy(y) for y in as_list(row.run(*one, **case.static))])
    return [np.stack(parts) for parts in zip(*results)]


def same(got: Any, want: list[np.ndarray], text: str) -> None:
    got = [to_numpy(y) for y in as_list(got)]
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == w.shape, f"{text}: {g.shape}, not {w.shape}"
        assert g.dtype == w.dtype, f"{text}: {g.dtype}, not {w.dtype}"
        if w.dtype.kind in "biu":
            assert np.array_equal(g, w), text
        else:
            # Sums may take another order.
            scale = np.abs(w[np.isfinite(w)]).max(initial=0)
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5 * scale, err_msg=text)


@pytest.mark.parametrize("row", BATCHED, ids=str)
def test_against_a_loop(row):
    rng = np.random.default_rng(5)
    for number, case in enumerate(row.cases):
        # All of them for the first case, few for the others, different ones.
        some = list(combinations(case))[number % 3 :: 3 if number else 1]
        for turn, axes in enumerate(some):
            text = f"{row.name} {case} {axes}"
            arrays = batched(row, case, axes, rng)
            want = loop(row, case, arrays, axes)

            def run(*given: mx.array, case: Case = case) -> Any:
                return row.run(*given, **case.static)

            out = [0, -1, 1][turn % 3]
            if any(w.ndim < 2 for w in want):
                out = 0
            got = mx.vmap(run, in_axes=axes, out_axes=out)(*arrays)
            same(got, [np.moveaxis(w, 0, out) for w in want], text)


@pytest.mark.parametrize("row", BATCHED, ids=str)
def test_nested(row):
    """A batch of batches: the inner one in front, the outer one last."""
    rng = np.random.default_rng(6)
    case = row.cases[0]
    dtype = type_of(row)
    arrays, want = [], []
    for operand, shape in zip(row.operands, case.shapes):
        drawn = [
            [draw(operand, shape, dtype, rng) for _ in range(2)] for _ in range(BATCH)
        ]
        x = np.stack([np.stack(inner, -1) for inner in drawn])
        arrays.append(to_mlx(x, operand_type(operand, dtype)))

    def run(*given: mx.array) -> Any:
        return row.run(*given, **case.static)

    for b in range(BATCH):
        for c in range(2):
            one = [a[b][..., c] for a in arrays]
            want.append([to_numpy(y) for y in as_list(run(*one))])
    stacked = [np.stack(p).reshape(BATCH, 2, *p[0].shape) for p in zip(*want)]
    # The inner function sees what is left of the first axis.
    same(mx.vmap(mx.vmap(run, in_axes=-1))(*arrays), stacked, f"{row.name} nested")
    turned = [np.moveaxis(s, 0, 1) for s in stacked]
    got = mx.vmap(mx.vmap(run), in_axes=-1)(*arrays)
    same(got, turned, f"{row.name} nested the other way")


@pytest.mark.parametrize("row", BATCHED, ids=str)
def test_small_batches(row):
    """Of one: the same with an axis more. Of none: its shape and type."""
    rng = np.random.default_rng(20)
    dtype = type_of(row)
    for case, count in itertools.product(row.cases, (0, 1)):
        values = [draw(o, s, dtype, rng) for o, s in zip(row.operands, case.shapes)]
        want = as_list(row.run(*arrays_of(row, values, dtype), **case.static))
        repeated = [np.repeat(x[None], count, 0) for x in values]

        def run(*given: mx.array, case: Case = case) -> Any:
            return row.run(*given, **case.static)

        got = mx.vmap(run)(*arrays_of(row, repeated, dtype))
        wanted = [np.repeat(to_numpy(w)[None], count, 0) for w in want]
        same(got, wanted, f"{row.name} {case} batch of {count}")


GRADIENTS = [r for r in BATCHED if r.differentiable() and "float32" in r.types()]


@pytest.mark.parametrize("row", GRADIENTS, ids=str)
def test_of_derivatives(row):
    """The batch of a vjp, the vjp of a batch."""
    rng = np.random.default_rng(9)
    case = row.cases[0]
    axes = tuple(0 for _ in case.shapes)
    arrays = batched(row, case, axes, rng)
    places = row.differentiable()

    def total(*given: mx.array) -> mx.array:
        results = as_list(row.run(*given, **case.static))
        return sum(
            mx.sum(mx.sin(y)) for y in results if mx.issubdtype(y.dtype, mx.floating)
        )

    grad = mx.grad(total, argnums=places)
    parts = [as_list(grad(*[a[b] for a in arrays])) for b in range(BATCH)]
    want = [np.stack([to_numpy(g) for g in gs]) for gs in zip(*parts)]
    same(as_list(mx.vmap(grad)(*arrays)), want, f"{row.name} batch of gradients")

    def all_of(*given: mx.array) -> mx.array:
        return mx.sum(mx.vmap(total)(*given))

    got = as_list(mx.grad(all_of, argnums=places)(*arrays))
    same(got, want, f"{row.name} gradient of a batch")


@pytest.mark.parametrize("row", [r for r in TABLE.values() if r.batch is not True])
def test_where_there_is_no_rule(row):
    """An operand that has no batches says so; the others have them."""
    rng = np.random.default_rng(21)
    case, count = row.cases[0], len(row.operands)
    refused = []
    for i in range(count):
        axes = tuple(0 if k == i else None for k in range(count))
        arrays = batched(row, case, axes, rng)

        def run(*given: mx.array) -> Any:
            return row.run(*given, **case.static)

        try:
            got = mx.vmap(run, in_axes=axes)(*arrays)
        except ValueError as error:
            assert str(error).startswith(f"[{row.name}]"), error
            refused.append(i)
            continue
        same(got, loop(row, case, arrays, axes), f"{row.name} {axes}")
    assert 0 < len(refused) < count, refused
