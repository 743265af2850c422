"""Rows of matrix products and of quantized matrices."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from .row import Case, Operand, Row, Ulp, case

# A product of n terms errs by its last rounding and by a few of its sum.
SUMMED = Ulp(1, 1, 2, half=1, terms=16, why="a sum of products in blocks")
TWO = (Operand(), Operand())
THREE = (Operand(), Operand(), Operand())

MATRICES = (
    case((3, 4), (4, 5)),
    case((4,), (4,)),
    case((4,), (4, 3)),
    case((2, 3), (3,)),
    case((2, 3, 4), (4, 2)),
    case((2, 1, 3, 4), (3, 4, 2)),
    case((0, 3), (3, 2)),
    case((2, 0), (0, 3)),
)


def addmm(c: Any, a: Any, b: Any, alpha: float = 1.0, beta: float = 1.0) -> Any:
    return alpha * (a @ b) + beta * c


PRODUCTS = [
    Row(
        "matmul",
        "matmul",
        np.matmul,
        MATRICES,
        TWO,
        dtypes="inexact",
        ulp=SUMMED,
        magnitude=lambda a, b: np.abs(a) @ np.abs(b),
        derivative=(0, 1),
        sized=lambda n: (
            case((n,), (n,)),
            case((2, n), (n, 3)),
            case((1, 5), (5, n)),
            case((n, 3), (3, 2)),
        ),
        nans=True,
        nodes=("Matmul",),
    ),
    Row(
        "addmm",
        "addmm",
        addmm,
        (
            case((5,), (3, 4), (4, 5)),
            case((3, 5), (3, 4), (4, 5), alpha=0.5, beta=-2.0),
            case((), (2, 3, 4), (4, 2)),
            case((2, 1, 1), (3, 4), (2, 4, 2), alpha=2.0),
            case((3,), (4,), (4, 3)),
        ),
        THREE,
        dtypes="inexact",
        ulp=SUMMED,
        magnitude=lambda c, a, b, alpha=1.0, beta=1.0: (
            abs(alpha) * (np.abs(a) @ np.abs(b)) + abs(beta) * np.abs(c)
        ),
        derivative=(0, 1, 2),
        sized=lambda n: (case((n,), (2, 5), (5, n)), case((2,), (3, n), (n, 2))),
        nans=True,
        nodes=("AddMM",),
    ),
    Row(
        "tensordot",
        "tensordot",
        np.tensordot,
        (
            case((2, 3, 4), (3, 4, 5), axes=2),
            case((2, 3), (3, 2), axes=[[0], [1]]),
            case((2,), (3,), axes=0),
        ),
        TWO,
        dtypes="inexact",
        ulp=SUMMED,
        magnitude=lambda a, b, axes: np.tensordot(np.abs(a), np.abs(b), axes),
        derivative=(0, 1),
    ),
    Row(
        "inner",
        "inner",
        np.inner,
        (case((2, 3), (4, 3)), case((3,), (3,)), case((2, 2, 3), (3,))),
        TWO,
        dtypes="inexact",
        ulp=SUMMED,
        magnitude=lambda a, b: np.inner(np.abs(a), np.abs(b)),
        derivative=(0, 1),
    ),
    Row(
        "outer",
        "outer",
        np.outer,
        (case((3,), (4,)), case((2, 2), (3,))),
        TWO,
        ulp=Ulp(0.5, 0.5, 2),
        derivative=(0, 1),
    ),
]

# ---- quantized ----------------------------------------------------------------


def codes_of(words: Any, bits: int) -> Any:
    """Codes of the stream of bits along the last axis, the lowest bits first."""
    stream = np.unpackbits(
        np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little"
    )
    groups = stream.reshape(*stream.shape[:-1], -1, bits)
    return groups @ (1 << np.arange(bits))


def dequantize(w: Any, scales: Any, biases: Any, group_size: int, bits: int) -> Any:
    s, b = (np.repeat(v, group_size, axis=-1) for v in (scales, biases))
    return codes_of(w, bits) * s + b


def quantized_matmul(
    x: Any,
    w: Any,
    scales: Any,
    biases: Any,
    transpose: bool,
    group_size: int,
    bits: int,
) -> Any:
    full = dequantize(w, scales, biases, group_size, bits)
    return x @ (np.swapaxes(full, -1, -2) if transpose else full)


def product_magnitude(x: Any, w: Any, s: Any, b: Any, **static: Any) -> Any:
    return quantized_matmul(np.abs(x), w, np.abs(s), np.abs(b), **static)


def affine(w: Any, group_size: int, bits: int) -> Any:
    """Codes, scales and biases by the rule, in float32 as it is: where halves tie,
    that decides."""
    groups = w.astype(np.float32).reshape(*w.shape[:-1], -1, group_size)
    top = np.float32(2**bits - 1)
    low, high = groups.min(-1), groups.max(-1)
    scale = np.maximum((high - low) / top, np.float32(1e-7))
    from_low = np.abs(low) > np.abs(high)
    edge = np.where(from_low, low, high)
    scale = np.where(from_low, scale, -scale)
    first = np.round(edge / scale)
    scale = np.where(
        first != 0, edge / np.where(first != 0, first, np.float32(1)), scale
    )
    bias = np.where(first != 0, edge, np.float32(0))
    codes = np.round((groups - bias[..., None]) / scale[..., None])
    return codes.clip(0, top).reshape(w.shape), scale, bias


def quantized(w: Any, group_size: int, bits: int) -> Any:
    """Codes as numbers: unpacked with scales of one and no biases."""
    words, scales, biases = mx.quantize(w, group_size=group_size, bits=bits)
    one = mx.ones(scales.shape)
    static = {"group_size": group_size, "bits": bits}
    return [mx.dequantize(words, one, mx.zeros_like(one), **static), scales, biases]


WORDS = Operand(0, 2**32 - 1, kind="uint32")
SCALE = Operand(0.01, 0.1, (1, 1))
BITS = (2, 3, 4, 5, 6, 8)
GROUPS = (32, 64, 128)


def packed(rows: tuple[int, ...], n: int, group_size: int, bits: int) -> Any:
    """Shapes of words and of scales for rows of n numbers."""
    return (*rows, n * bits // 32), (*rows, n // group_size)


def dequantize_case(rows: tuple[int, ...], n: int, group_size: int, bits: int) -> Case:
    words, scales = packed(rows, n, group_size, bits)
    return case(words, scales, scales, group_size=group_size, bits=bits)


def product_case(
    x: tuple[int, ...],
    rows: tuple[int, ...],
    transpose: bool,
    group_size: int,
    bits: int,
) -> Case:
    n = x[-1] if transpose else 64
    words, scales = packed(rows, n, group_size, bits)
    return case(
        x, words, scales, scales, transpose=transpose, group_size=group_size, bits=bits
    )


QUANTIZED = [
    Row(
        "quantize",
        quantized,
        affine,
        tuple(case((2, 128), group_size=g, bits=b) for g in GROUPS for b in BITS)
        + (case((2, 2, 64), group_size=32, bits=4),),
        dtypes="floats",
        result=("float32", "keep", "keep"),
        ulp=Ulp(2, 2e9, half=1, why="codes are exact, scales rounded"),
        derivative="codes are integers",
        without="raises",
        nodes=("Quantize",),
    ),
    Row(
        "dequantize",
        lambda w, s, b, group_size, bits: mx.dequantize(
            w, s, b, group_size=group_size, bits=bits
        ),
        dequantize,
        tuple(dequantize_case((3,), 128, g, b) for g in GROUPS for b in BITS)
        + (dequantize_case((2, 2), 128, 128, 4),),
        (WORDS, SCALE, Operand(-1, 1)),
        dtypes="floats",
        ulp=Ulp(1, 1, half=1, terms=2, why="a product and a sum"),
        magnitude=lambda w, s, b, **k: dequantize(w, np.abs(s), np.abs(b), **k),
        derivative=(1, 2),
        sized=lambda n: (dequantize_case((n % 5000,), 32, 32, 4),),
        nodes=("Dequantize",),
    ),
    Row(
        "quantized_matmul",
        lambda x, w, s, b, **static: mx.quantized_matmul(x, w, s, b, **static),
        quantized_matmul,
        tuple(product_case((2, 64), (5,), True, 32, b) for b in BITS)
        + tuple(product_case((2, 5), (5,), False, 64, b) for b in BITS)
        + (
            product_case((128,), (3,), True, 128, 4),
            product_case((2, 3, 64), (4,), True, 64, 8),
        ),
        (Operand(), WORDS, SCALE, Operand(-1, 1)),
        dtypes="floats",
        ulp=Ulp(1, 1, half=1, terms=32, why="a sum of products, weights unrounded"),
        magnitude=product_magnitude,
        derivative=(0, 2, 3),
        sized=lambda n: (
            product_case((1, 64), (n % 5000,), True, 32, 4),
            product_case((n % 200 + 1, 64), (17,), True, 64, 4),
        ),
        nodes=("QuantizedMatmul",),
    ),
]

ROWS = [*PRODUCTS, *QUANTIZED]
