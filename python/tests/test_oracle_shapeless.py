"""The oracle table's operations under shapeless compile: one trace gives what the
plain function gives for other lengths, or raises what that raises."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Case, Row
from oracle.values import arrays_of, as_list, draw_case, to_numpy

ROWS = list(TABLE.values())
every_row = pytest.mark.parametrize("row", ROWS, ids=str)

# Where one trace cannot serve other lengths, with the reason.
REFUSED: dict[str, str] = {
    "unstack": "how many results there are is a length",
}


def grown(case: Case) -> Case:
    """Each length above one longer, equal ones alike."""
    other = {2: 4, 3: 5, 4: 7, 5: 6}
    shapes = tuple(tuple(other.get(n, n + 2 * (n > 1)) for n in s) for s in case.shapes)
    return Case(shapes, case.static)


def type_of(row: Row) -> str:
    return next(d for d in ("float32", "int32", "uint8") if d in row.types())


def drawn(row: Row, case: Case) -> list[mx.array]:
    rng = np.random.default_rng(34)
    dtype = type_of(row)
    return arrays_of(row, draw_case(row, case, dtype, rng), dtype)


def same(got: Any, want: Any, text: str) -> None:
    got, want = as_list(got), as_list(want)
    assert len(got) == len(want), text
    for g, w in zip(got, want):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), f"{text}: {g.shape}"
        x, y = to_numpy(g), to_numpy(w)
        if x.dtype.kind in "biu":
            assert np.array_equal(x, y), text
        else:
            np.testing.assert_allclose(x, y, rtol=2e-6, atol=2e-6, err_msg=text)


def outcome(function: Any, arrays: list[mx.array]) -> Any:
    """The results, or the error that is raised."""
    try:
        results = as_list(function(*arrays))
        mx.eval(results)
    except (ValueError, IndexError, RuntimeError) as error:
        return error
    return results


@every_row
def test_other_lengths(row):
    """Longer operands, then the first again, then longer ones first."""
    for case in row.cases:

        def plain(*arrays: mx.array, case: Case = case) -> Any:
            return row.run(*arrays, **case.static)

        small, large = drawn(row, case), drawn(row, grown(case))
        for order in ([small, large, small], [large, small]):
            compiled = mx.compile(plain, shapeless=True)
            for arrays in order:
                text = f"{row.name} {case} {[a.shape for a in arrays]}"
                want = outcome(plain, arrays)
                got = outcome(compiled, arrays)
                if isinstance(want, Exception):
                    # Static arguments that hold for the other shapes alone.
                    assert isinstance(got, Exception), f"{text}: {got}"
                    continue
                if row.name in REFUSED and isinstance(got, Exception):
                    assert row.name in str(got), got
                    continue
                assert not isinstance(got, Exception), f"{text}: {got}"
                same(got, want, text)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    row = TABLE[name]
    case = row.cases[0]
    compiled = mx.compile(
        lambda *arrays: row.run(*arrays, **case.static), shapeless=True
    )
    with pytest.raises(ValueError, match=name):
        for shapes in (case, grown(case)):
            mx.eval(compiled(*drawn(row, shapes)))


SMOOTH = [r for r in ROWS if r.differentiable() and "float32" in r.types()]


@pytest.mark.parametrize("row", SMOOTH, ids=str)
def test_gradients_for_other_lengths(row):
    for case in row.cases[:2]:
        places = row.differentiable()

        def total(*arrays: mx.array, case: Case = case) -> mx.array:
            results = as_list(row.run(*arrays, **case.static))
            return sum(
                mx.sum(mx.sin(y))
                for y in results
                if mx.issubdtype(y.dtype, mx.floating)
            )

        gradient = mx.grad(total, argnums=places)
        compiled = mx.compile(gradient, shapeless=True)
        for shapes in (case, grown(case)):
            arrays = drawn(row, shapes)
            want = outcome(gradient, arrays)
            got = outcome(compiled, arrays)
            text = f"{row.name} {shapes}"
            if isinstance(want, Exception) or row.name in REFUSED:
                continue
            assert not isinstance(got, Exception), f"{text}: {got}"
            for g, w in zip(got, want):
                assert g.shape == w.shape, text
                size = np.abs(to_numpy(w)).max(initial=1)
                np.testing.assert_allclose(
                    to_numpy(g), to_numpy(w), atol=1e-5 * size, err_msg=text
                )
