"""Values for the oracle's drivers: drawn, rounded to a type, laid out in memory,
compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import numpy as np

from .row import FLOATS, HALVES, INTEGERS, Case, Operand, Row, Ulp

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


def expected(
    row: Row, case: Case, values: list[Array], promoted: str
) -> tuple[list[Array], list[str]]:
    """What the reference gives, and the types the results shall have."""
    count = 1 if isinstance(row.result, str) else len(row.result)
    target = row.result_types(promoted, count)[0]
    prepared = []
    for x, operand in zip(values, row.operands):
        if operand.kind == "data" and x.dtype.kind in "biu":
            if promoted in FLOATS:
                x = x.astype(np.float64)
            elif target in FLOATS:
                x = rounded(x.astype(np.float64), target)
            elif promoted == "complex64" or target == "complex64":
                x = x.astype(np.complex128)
            else:
                own = row.compute == "operand" or target not in INTEGERS
                x = x.astype(numpy_type(promoted if own else target))
        prepared.append(x)
    with np.errstate(all="ignore"):
        results = as_list(row.reference(*prepared, **case.static))
    results = [np.asarray(r) for r in results]
    return results, row.result_types(promoted, len(results))


def spacing(x: Array, dtype: str) -> Array:
    """The distance of neighbours of `dtype` around |x|."""
    bits, lowest, _ = FORMAT[dtype]
    exponent = np.frexp(np.where(np.isfinite(x), np.abs(x), 0.0))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, lowest) - bits + 1)


def bound(
    row: Row, case: Case, values: list[Array], want: Array, dtype: str, promoted: str
) -> Array:
    """The largest error that the row allows."""
    kind = "complex64" if promoted == "complex64" else dtype
    limit = row.ulp.of(kind) * spacing(want, dtype)
    if row.magnitude is not None:
        inner = "float32" if promoted in HALVES and row.ulp.widens else dtype
        unit = 2.0 ** (1 - FORMAT[inner][0])
        wide = [
            x.astype(np.float64) if o.kind == "data" and x.dtype.kind in "biu" else x
            for o, x in zip(row.operands, values)
        ]
        with np.errstate(all="ignore"):
            size = row.magnitude(*wide, **case.static)
        terms = row.ulp.terms
        if dtype == "float64" and row.ulp.terms64 is not None:
            terms = row.ulp.terms64
        limit = limit + terms * unit * np.asarray(size)
    return limit


def assert_close(got: Array, want: Array, limit: Any, dtype: str, text: str) -> None:
    """Each number within its limit; infinities and NaN in the same places."""
    assert got.shape == want.shape, f"{text}: shape {got.shape}, not {want.shape}"
    if dtype not in FORMAT:
        same = np.array_equal(got, want.astype(got.dtype))
        assert same, f"{text}: {got} is not {want}"
        return
    wide = got.astype(np.complex128 if dtype == "complex64" else np.float64)
    want = want.astype(wide.dtype)
    with np.errstate(all="ignore"):
        near = np.abs(wide - want) <= limit
        # What rounds past the largest number may be infinite.
        largest = FORMAT[dtype][2]
        past = np.isinf(wide) & (np.abs(want) >= largest) & ~np.isnan(want)
        if dtype != "complex64":
            past &= np.sign(wide) == np.sign(want)
    same = near | past | (wide == want) | (np.isnan(wide) & np.isnan(want))
    if not same.all():
        place = tuple(int(i) for i in np.argwhere(~same)[0])
        many = f"{int((~same).sum())} of {same.size} differ"
        raise AssertionError(
            f"{text}: {many}; at {place} {wide[place]} is not {want[place]} "
            f"within {np.broadcast_to(limit, want.shape)[place]}"
        )


# ---- layouts ------------------------------------------------------------------


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


def contiguous(x: Array, dtype: str) -> mx.array:
    return to_mlx(x, dtype)


def transposed(x: Array, dtype: str) -> mx.array:
    return mx.transpose(to_mlx(x.transpose().copy(), dtype))


def strided(x: Array, dtype: str) -> mx.array:
    """Every second number of each row, others between."""
    if x.ndim == 0:
        return to_mlx(np.stack([x, x, x]), dtype)[1]
    wide = np.repeat(x, 2, axis=-1)
    wide[..., 1::2] = np.roll(x, 1) if x.size else x
    return to_mlx(wide, dtype)[..., ::2]


def backwards(x: Array, dtype: str) -> mx.array:
    turned = to_mlx(np.flip(x).copy(), dtype)
    return turned[(slice(None, None, -1),) * x.ndim] if x.ndim else turned


def offset(x: Array, dtype: str) -> mx.array:
    """A window of a larger array."""
    if x.ndim == 0:
        return to_mlx(np.stack([x, x]), dtype)[1]
    framed = np.pad(x, [(1, 2)] * x.ndim, mode="wrap" if x.size else "constant")
    return to_mlx(framed, dtype)[tuple(slice(1, 1 + n) for n in x.shape)]


def broadcast(x: Array, dtype: str) -> mx.array:
    """x must be constant along its first axis."""
    if x.ndim == 0 or x.size == 0:
        return to_mlx(x, dtype)
    return mx.broadcast_to(to_mlx(x[:1], dtype), x.shape)


def constant(x: Array) -> Array:
    """The values that `broadcast` lays out."""
    return np.broadcast_to(x[:1], x.shape).copy() if x.ndim and x.size else x


LAYOUTS = {
    f.__name__: f
    for f in (contiguous, transposed, strided, backwards, offset, broadcast)
}


def layouts(values: list[Array], types: list[str]) -> Iterator[tuple[str, Any, Any]]:
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
            LAYOUTS[name](x, dtype) for name, x, dtype in zip(mixture, laid, types)
        ]
        yield " ".join(mixture), arrays, laid


__all__ = [
    "LAYOUTS",
    "Ulp",
    "as_list",
    "assert_close",
    "bound",
    "draw",
    "draw_case",
    "expected",
    "layouts",
    "operand_type",
    "promote",
    "rounded",
    "spacing",
    "to_mlx",
    "to_numpy",
    "type_name",
]
