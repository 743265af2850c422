"""Operations as functions of what they are differentiated by, and their slopes by
central differences of the NumPy reference."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from .row import Case, Row
from .values import Array, arrays_of, as_list, draw_case, to_mlx, to_numpy

STEP = 1e-5
# Central differences err by STEP^2 of the third derivative and by 2^-52 / STEP of
# the value: 1e-10 and 2e-11, both times what the numbers are.
LIMIT = 2e-7


class Problem:
    """An operation as a function of what it is differentiated by."""

    def __init__(self, row: Row, case: Case, dtype: str = "float64") -> None:
        self.row, self.case, self.dtype = row, case, dtype
        self.rng = np.random.default_rng(7)
        self.values = draw_case(row, case, dtype, self.rng)
        self.arrays = arrays_of(row, self.values, dtype)
        self.places = row.differentiable()
        # And by what the row itself is off.
        unit = 2.0**-52 * row.ulp.float64 if dtype == "float64" else 2.0**-20
        self.limit = LIMIT + 4 * unit
        self.points = [self.values[i] for i in self.places]
        # Which of several results has a derivative: those of a real type.
        self.kept = [
            i
            for i, y in enumerate(as_list(self.run(self.primals())))
            if mx.issubdtype(y.dtype, mx.inexact)
        ]

    def primals(self) -> list[mx.array]:
        return [self.arrays[i] for i in self.places]

    def run(self, given: Any) -> list[mx.array]:
        arrays = list(self.arrays)
        for i, a in zip(self.places, given):
            arrays[i] = a
        return as_list(self.row.run(*arrays, **self.case.static))

    def smooth(self, *given: mx.array) -> list[mx.array]:
        results = self.run(given)
        return [results[i] for i in self.kept]

    def reference(self, given: list[Array]) -> list[Array]:
        values = list(self.values)
        for i, x in zip(self.places, given):
            values[i] = x
        with np.errstate(all="ignore"):
            results = as_list(self.row.reference(*values, **self.case.static))
        return [np.asarray(results[i]) for i in self.kept]

    def directions(self, like: list[Array]) -> list[Array]:
        """One for each array; complex for complex numbers."""
        made = [self.rng.normal(size=x.shape) for x in like]
        return [
            d + 1j * self.rng.normal(size=d.shape) if np.iscomplexobj(x) else d
            for d, x in zip(made, like)
        ]

    def to_mlx(self, arrays: list[Array]) -> list[mx.array]:
        return [
            to_mlx(x, "complex64" if np.iscomplexobj(x) else self.dtype) for x in arrays
        ]


def problems(row: Row, dtype: str = "float64") -> list[Problem]:
    small = [c for c in row.cases if sum(np.prod(s) for s in c.shapes) < 700]
    found = [Problem(row, case, dtype) for case in small]
    return [p for p in found if p.kept]


def close(got: list[mx.array], want: list[Array], limit: float, text: str) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == w.shape, f"{text}: {g.shape}, not {w.shape}"
        scale = max(1.0, np.abs(w).max(initial=0))
        error = np.abs(to_numpy(g) - w)
        assert (error <= limit * scale).all(), (
            f"{text}: off by {error.max() / scale:.2e} of {scale:.2e}"
        )


def differences(p: Problem, tangents: list[Array]) -> list[Array]:
    above = p.reference([x + STEP * t for x, t in zip(p.points, tangents)])
    below = p.reference([x - STEP * t for x, t in zip(p.points, tangents)])
    # Infinite results that stay so do not change.
    return [
        np.subtract(a, b, out=np.zeros_like(a), where=a != b) / (2 * STEP)
        for a, b in zip(above, below)
    ]


def gradients(p: Problem, cotangents: list[Array]) -> list[Array]:
    """By a difference for each number."""
    grads = []
    for k, x in enumerate(p.points):
        grad = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            tangents = [np.zeros_like(v) for v in p.points]
            tangents[k][place] = 1
            slope = differences(p, tangents)
            grad[place] = sum(np.sum(s * c) for s, c in zip(slope, cotangents))
        grads.append(grad)
    return grads
