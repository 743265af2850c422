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
