"""Arrays of given values that lie differently in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import numpy as np

from .values import Array, to_mlx

Make = Callable[[Array, str], mx.array]


def temporary(x: Array, dtype: str) -> mx.array:
    """Not computed yet and held by nothing: its memory may be taken over."""
    a = to_mlx(x, dtype)
    return mx.maximum(a, a)


def contiguous(x: Array, dtype: str, make: Make = to_mlx) -> mx.array:
    return make(x, dtype)


def transposed(x: Array, dtype: str, make: Make = to_mlx) -> mx.array:
    return mx.transpose(make(x.transpose().copy(), dtype))


def strided(x: Array, dtype: str, make: Make = to_mlx) -> mx.array:
    """Every second number of each row, others between."""
    if x.ndim == 0:
        return make(np.stack([x, x, x]), dtype)[1]
    wide = np.repeat(x, 2, axis=-1)
    wide[..., 1::2] = np.roll(x, 1) if x.size else x
    return make(wide, dtype)[..., ::2]


def backwards(x: Array, dtype: str, make: Make = to_mlx) -> mx.array:
    turned = make(np.flip(x).copy(), dtype)
    return turned[(slice(None, None, -1),) * x.ndim] if x.ndim else turned


def offset(x: Array, dtype: str, make: Make = to_mlx) -> mx.array:
    """A window of a larger array."""
    if x.ndim == 0:
        return make(np.stack([x, x]), dtype)[1]
    framed = np.pad(x, [(1, 2)] * x.ndim, mode="wrap" if x.size else "constant")
    return make(framed, dtype)[tuple(slice(1, 1 + n) for n in x.shape)]


def broadcast(x: Array, dtype: str, make: Make = to_mlx) -> mx.array:
    """x must be constant along its first axis."""
    if x.ndim == 0 or x.size == 0:
        return make(x, dtype)
    return mx.broadcast_to(make(x[:1], dtype), x.shape)


def constant(x: Array) -> Array:
    """The values that `broadcast` lays out."""
    return np.broadcast_to(x[:1], x.shape).copy() if x.ndim and x.size else x


LAYOUTS = {
    f.__name__: f
    for f in (contiguous, transposed, strided, backwards, offset, broadcast)
}


def layouts(
    values: list[Array], types: list[str], make: Make = to_mlx
) -> Iterator[tuple[str, Any, Any]]:
    """Name, arrays and their values: all operands in one layout, then each in
    another than its neighbour."""
    names = list(LAYOUTS)
    mixtures = [[name] * len(values) for name in names]
    if len(values) > 1:
        turns = [names[i:] + names[:i] for i in range(len(names))]
        mixtures += [t[: len(values)] for t in turns]
    for mixture in mixtures:
        laid = [
            constant(x) if name == "broadcast" else x
            for name, x in zip(mixture, values)
        ]
        arrays = [
            LAYOUTS[name](x, dtype, make)
            for name, x, dtype in zip(mixture, laid, types)
        ]
        yield " ".join(mixture), arrays, laid


def any_view(x: Array, dtype: str, rng: np.random.Generator) -> tuple[mx.array, Array]:
    """Axes in any order, each with a step and a margin, perhaps one repeated; and
    the values that this shows."""
    order = rng.permutation(x.ndim)
    inner = x.transpose(order)
    places, shape = [], []
    for n in inner.shape:
        step = int(rng.choice([1, 1, 1, 2, 3, -1, -2]))
        first, rest = rng.integers(0, 3), rng.integers(0, 2)
        at = first + abs(step) * np.arange(n)
        places.append(at if step > 0 else at[::-1])
        shape.append(int(first + abs(step) * n + rest))
    base = np.ones(shape, x.dtype)
    base[np.ix_(*places)] = inner
    whole = to_mlx(base, dtype)
    for axis, (n, at) in enumerate(zip(inner.shape, places)):
        step = int(at[1] - at[0]) if n > 1 else 1
        stop = int(at[-1] + np.sign(step)) if n else 0
        part = slice(int(at[0]), stop if stop >= 0 else None, step) if n else slice(0)
        whole = whole[(*[slice(None)] * axis, part)]
    a = mx.transpose(whole, np.argsort(order).tolist()) if x.ndim else whole
    if x.size and x.ndim and rng.random() < 0.2:
        axis = int(rng.integers(x.ndim))
        first = np.take(x, [0], axis)
        a = mx.broadcast_to(mx.take(a, mx.array([0]), axis), x.shape)
        x = np.broadcast_to(first, x.shape).copy()
    return a, x
