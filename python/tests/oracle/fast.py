"""Rows of the fused functions: norms, rotary positions, attention."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from .row import Case, Operand, Row, Ulp, case

# Numbers that float holds, as which the interface takes them.
EPS = 2.0**-10
SCALE = 0.375

# ---- norms --------------------------------------------------------------------


def rms_norm(x: Any, weight: Any, eps: float) -> Any:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    return rms_norm(x - x.mean(-1, keepdims=True), weight, eps) + bias


def size_of(x: Any, weight: Any, *rest: Any, eps: float) -> Any:
    """Of the numbers that are added: rows are of unit size after the division."""
    scale = np.abs(x).max(-1, initial=0)[..., None]
    deviation = x.std(-1, keepdims=True)
    return scale / np.sqrt(deviation**2 + eps) * np.abs(weight) + sum(map(np.abs, rest))


NORM = Ulp(3, 4, half=1, terms=6, why="two sums, a root, two products")
FEATURES = ((2, 3, 8), (8,)), ((4, 1), (1,)), ((3, 33), (33,)), ((0, 4), (4,))
WEIGHT = Operand(0.5, 1.5)

NORMS = [
    Row(
        "rms_norm",
        "fast.rms_norm",
        rms_norm,
        tuple(case(*shapes, eps=EPS) for shapes in FEATURES),
        (Operand(), WEIGHT),
        dtypes="floats",
        ulp=NORM,
        derivative=(0, 1),
        sized=lambda n: (case((3, n), (n,), eps=EPS), case((n, 5), (5,), eps=EPS)),
        nodes=("RMSNorm",),
    ),
    Row(
        "rms_norm.bare",
        lambda x, eps: mx.fast.rms_norm(x, None, eps),
        lambda x, eps: rms_norm(x, 1.0, eps),
        (case((2, 3, 8), eps=EPS),),
        dtypes="floats",
        ulp=NORM,
    ),
    Row(
        "layer_norm",
        "fast.layer_norm",
        layer_norm,
        tuple(case(x, w, w, eps=EPS) for x, w in FEATURES),
        (Operand(), WEIGHT, Operand()),
        dtypes="floats",
        ulp=NORM,
        magnitude=size_of,
        derivative=(0, 1, 2),
        sized=lambda n: (
            case((3, n), (n,), (n,), eps=EPS),
            case((n, 5), (5,), (5,), eps=EPS),
        ),
        nodes=("LayerNorm",),
    ),
    Row(
        "layer_norm.bare",
        lambda x, eps: mx.fast.layer_norm(x, None, None, eps),
        lambda x, eps: layer_norm(x, 1.0, 0.0, eps),
        (case((2, 3, 8), eps=EPS),),
        dtypes="floats",
        ulp=NORM,
        magnitude=lambda x, eps: size_of(x, 1.0, eps=eps),
    ),
]

# ---- rope ---------------------------------------------------------------------


def rotated(
    x: Any,
    offset: Any,
    freqs: Any,
    dims: int,
    traditional: bool,
    scale: float,
) -> Any:
    """x of (B, ..., T, D); offset of shape () or (B,); freqs divide positions."""
    tokens = np.arange(x.shape[-2])
    first = np.broadcast_to(np.asarray(offset, float), x.shape[:1])
    theta = (first[:, None] + tokens)[..., None] * scale / freqs
    theta = theta.reshape(x.shape[0], *[1] * (x.ndim - 3), x.shape[-2], dims // 2)
    cos, sin = np.cos(theta), np.sin(theta)
    half = dims // 2
    one = slice(0, dims, 2) if traditional else slice(0, half)
    two = slice(1, dims, 2) if traditional else slice(half, dims)
    y = x.copy()
    y[..., one] = x[..., one] * cos - x[..., two] * sin
    y[..., two] = x[..., one] * sin + x[..., two] * cos
    return y


def rope(x: Any, offset: Any, base: float, dims: int, **static: Any) -> Any:
    return rotated(x, offset, base ** (np.arange(dims // 2) * 2 / dims), dims, **static)


def rope_case(*shapes: tuple[int, ...], dims: int, **more: Any) -> Case:
    static = {"traditional": False, "scale": 1.0, "dims": dims, **more}
    return case(*shapes, **static)


# Angles are products in float32: an error of the angle counts as much as it is.
TURN = Ulp(
    2, 4e9, half=1, terms=40, terms64=2e10, why="angles, some dozens, are float32"
)
OFFSET = Operand(0, 20, kind="int32")
ROPES = [
    Row(
        "rope",
        lambda x, offset, **static: mx.fast.rope(x, offset=offset, **static),
        rope,
        (
            rope_case((2, 3, 5, 8), (), dims=8, base=100.0),
            rope_case((2, 3, 5, 8), (2,), dims=6, base=100.0, traditional=True),
            rope_case((3, 4, 8), (3,), dims=8, base=10000.0, scale=0.5),
            rope_case((1, 2, 1, 16), (), dims=16, base=500.0, traditional=True),
        ),
        (Operand(), OFFSET),
        dtypes="floats",
        ulp=TURN,
        magnitude=lambda x, *_, **__: np.abs(x).max(initial=0),
        sized=lambda n: (
            rope_case((1, n % 2000, 8), (), dims=8, base=100.0, scale=0.01),
        ),
        nodes=("RoPE",),
    ),
    Row(
        "rope.freqs",
        lambda x, freqs, **static: mx.fast.rope(
            x, base=None, offset=3, freqs=freqs, **static
        ),
        lambda x, freqs, **static: rotated(x, 3, freqs, **static),
        (
            rope_case((2, 3, 5, 8), (4,), dims=8),
            rope_case((2, 3, 8), (3,), dims=6, traditional=True),
        ),
        (Operand(), Operand(1, 20, kind="float32")),
        dtypes="floats",
        ulp=TURN,
        magnitude=lambda x, *_, **__: np.abs(x).max(initial=0),
    ),
]

# ---- attention ----------------------------------------------------------------


def attention(
    q: Any,
    k: Any,
    v: Any,
    *rest: Any,
    scale: float,
    causal: bool = False,
    how: str = "",
) -> Any:
    """`rest`: what `how` names, a mask that keeps, one that is added, sinks."""
    group = q.shape[-3] // k.shape[-3]
    k, v = (np.repeat(a, group, axis=-3) for a in (k, v))
    scores = scale * q @ np.swapaxes(k, -1, -2)
    if causal:
        rows, columns = scores.shape[-2:]
        kept = np.arange(columns) <= np.arange(rows)[:, None] + columns - rows
        scores = np.where(kept, scores, -np.inf)
    if how == "kept":
        scores = np.where(rest[0], scores, -np.inf)
    if how == "added":
        scores = scores + rest[0]
    top = scores.max(-1, keepdims=True)
    others = 0.0
    if how == "sinks":
        sinks = rest[0][:, None, None]
        top = np.maximum(top, sinks)
        others = np.exp(sinks - top)
    weights = np.exp(scores - top)
    return weights / (weights.sum(-1, keepdims=True) + others) @ v


def run_attention(q: Any, k: Any, v: Any, *rest: Any, **static: Any) -> Any:
    how, causal = static.pop("how", ""), static.pop("causal", False)
    mask = "causal" if causal else rest[0] if how in ("kept", "added") else None
    sinks = rest[0] if how == "sinks" else None
    return mx.fast.scaled_dot_product_attention(
        q, k, v, mask=mask, sinks=sinks, **static
    )


def keep_first(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """A mask that leaves each query a key."""
    kept = rng.integers(0, 2, shape).astype(bool)
    kept[..., 0] = True
    return kept


def heads(b: int, nq: int, nkv: int, tq: int, tkv: int, d: int) -> Any:
    return (b, nq, tq, d), (b, nkv, tkv, d), (b, nkv, tkv, d)


def attention_row(name: str, cases: Any, *rest: Operand, **more: Any) -> Row:
    return Row(
        f"scaled_dot_product_attention.{name}"
        if name
        else "scaled_dot_product_attention",
        run_attention,
        attention,
        cases,
        (Operand(), Operand(), Operand(), *rest),
        dtypes="floats",
        ulp=Ulp(
            2, 8, half=2, terms=12, why="exponents, sums; halves round the weights"
        ),
        magnitude=lambda q, k, v, *_, **__: np.abs(v).max(initial=0),
        nodes=("ScaledDotProductAttention",),
        **more,
    )


ATTENTION = [
    attention_row(
        "",
        (
            case(*heads(1, 2, 2, 3, 5, 8), scale=SCALE),
            case(*heads(2, 4, 2, 1, 7, 4), scale=0.5),
            case(*heads(1, 4, 1, 3, 5, 8), scale=SCALE, causal=True),
            case(*heads(1, 2, 2, 6, 6, 4), scale=0.5, causal=True),
        ),
        derivative=(0, 1, 2),
        sized=lambda n: (
            case(*heads(1, 2, 1, 1, n % 3000, 16), scale=0.25),
            case(*heads(1, 2, 1, n % 300, n % 300 + 3, 16), scale=0.25, causal=True),
        ),
    ),
    attention_row(
        "kept",
        (
            case(*heads(1, 2, 2, 3, 5, 8), (3, 5), scale=SCALE, how="kept"),
            case(*heads(2, 2, 1, 2, 4, 4), (2, 1, 2, 4), scale=0.5, how="kept"),
        ),
        Operand(kind="bool_", draw=keep_first),
        derivative=(0, 1, 2),
    ),
    attention_row(
        "added",
        (
            case(*heads(1, 2, 2, 3, 5, 8), (3, 5), scale=SCALE, how="added"),
            case(*heads(2, 2, 1, 2, 4, 4), (2, 2, 4), scale=0.5, how="added"),
        ),
        Operand(),
        derivative=(0, 1, 2, 3),
        promotes=False,
    ),
    attention_row(
        "sinks",
        (
            case(*heads(2, 4, 2, 3, 5, 8), (4,), scale=SCALE, how="sinks"),
            case(*heads(1, 4, 2, 3, 5, 4), (4,), scale=0.5, how="sinks", causal=True),
        ),
        Operand(),
        derivative=(0, 1, 2, 3),
    ),
]

ROWS = [*NORMS, *ROPES, *ATTENTION]
