"""Values for the oracle's drivers: drawn, rounded to a type, to and from arrays."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from .row import FLOATS, INTEGERS, Case, Operand, Row

Array = np.ndarray[Any, Any]
NUMPY = {"bool_": np.bool_, "bfloat16": np.float32, **{d: d for d in INTEGERS}}
# Significant bits, exponent of the smallest normal number, largest number.
FORMAT = {
    "float16": (11, -14, 65504.0),
    "bfloat16": (8, -126, (2 - 2.0**-7) * 2.0**127),
    "float32": (24, -126, float(np.finfo(np.float32).max)),
    "float64": (53, -1022, float(np.finfo(np.float64).max)),
    "complex64": (24, -126, float(np.finfo(np.float32).max)),
}


def numpy_type(dtype: str) -> Any:
    return np.dtype(NUMPY.get(dtype, dtype))


def rounded(x: Array, dtype: str) -> Array:
    """float64 (or complex128) numbers as `dtype` holds them."""
    if dtype == "float64":
        return x
    if dtype == "complex64":
        return x.astype(np.complex64).astype(np.complex128)
    if dtype == "bfloat16":
        bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
        even = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        cut = even.astype(np.uint32).view(np.float32)
        return np.where(np.isnan(x), np.nan, cut).astype(np.float64)
    with np.errstate(over="ignore"):
        return x.astype(dtype).astype(np.float64)


def draw(
    operand: Operand, shape: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> Array:
    """Values in NumPy's nearest type, each of which `dtype` holds exactly."""
    dtype = dtype if operand.kind == "data" else operand.kind
    if operand.draw is not None:
        x = np.asarray(operand.draw(rng, shape))
        wide = dtype in FLOATS or dtype == "complex64"
        return rounded(x, dtype) if wide else x.astype(numpy_type(dtype))
    if dtype == "bool_":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        low, high = operand.integers or (
            int(np.ceil(operand.low)),
            int(np.floor(operand.high)),
        )
        info = np.iinfo(dtype)
        return rng.integers(
            max(low, int(info.min)), min(high, int(info.max)), shape, endpoint=True
        ).astype(dtype)
    x = rng.uniform(operand.low, operand.high, shape)
    if dtype == "complex64":
        return rounded(x + 1j * rng.uniform(operand.low, operand.high, shape), dtype)
    return rounded(x, dtype)


def draw_case(
    row: Row, case: Case, dtype: str, rng: np.random.Generator
) -> list[Array]:
    return [draw(o, s, dtype, rng) for o, s in zip(row.operands, case.shapes)]


def operand_type(operand: Operand, dtype: str) -> str:
    return dtype if operand.kind == "data" else operand.kind


def to_mlx(x: Array, dtype: str) -> mx.array:
    if dtype == "float64":
        return mx.array(x, dtype=mx.float64)
    if dtype == "bfloat16":
        return mx.array(x.astype(np.float32)).astype(mx.bfloat16)
    return mx.array(x.astype(numpy_type(dtype)))


def to_numpy(a: mx.array) -> Array:
    if a.dtype == mx.bfloat16:
        return np.array(a.astype(mx.float32))
    return np.array(a)


def type_name(a: mx.array) -> str:
    name = str(a.dtype).split(".")[-1]
    return "bool_" if name == "bool" else name


def as_list(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


def types_of(row: Row, dtype: str) -> list[str]:
    return [operand_type(operand, dtype) for operand in row.operands]


def arrays_of(row: Row, values: list[Array], dtype: str) -> list[mx.array]:
    return [to_mlx(x, t) for x, t in zip(values, types_of(row, dtype))]


def promote(a: str, b: str) -> str:
    """The common type, by category and width."""
    if "complex64" in (a, b):
        return "complex64"
    if "float64" in (a, b):
        return "float64"
    floats = {d for d in (a, b) if d in FLOATS}
    if floats:
        return floats.pop() if len(floats) == 1 else "float32"
    if "bool_" in (a, b):
        return b if a == "bool_" else a
    x, y = np.dtype(a), np.dtype(b)
    both = np.promote_types(x, y)
    return "float32" if both.kind == "f" else both.name
