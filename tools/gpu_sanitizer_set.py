#!/usr/bin/env python3
"""One call of every kernel family of the gpu, with odd shapes and views.

For compute-sanitizer, which makes everything a hundred times slower: memory
errors and races show on small inputs too.

usage: compute-sanitizer --tool memcheck gpu_sanitizer_set.py
"""

from __future__ import annotations

import mlx.core as mx


def elementwise(x: mx.array) -> list[mx.array]:
    column = mx.arange(x.shape[0], dtype=x.dtype)[:, None]
    return [
        x + x,
        x.T * x.T,
        x + column,
        mx.exp(x[1:, 3:]),
        mx.where(x > 0, x, 1),
        x.astype(mx.float16),
        x[::2, ::-1] + 1,
    ]


def moves(x: mx.array) -> list[mx.array]:
    return [
        mx.contiguous(x.T),
        mx.concatenate([x, x[:, 5:], x], axis=1),
        mx.pad(x, 3),
        mx.contiguous(x[::3, 1::2]),
        mx.roll(x, 7),
    ]


def reductions(x: mx.array) -> list[mx.array]:
    return [
        *(mx.sum(x, axis=axis) for axis in (None, 0, 1)),
        mx.max(x.T, axis=0),
        mx.argmin(x, axis=1),
        mx.all(x > -9, axis=0),
        mx.softmax(x, axis=-1),
        mx.logsumexp(x, axis=1),
        *(mx.cumsum(x, axis=axis) for axis in (0, 1)),
        mx.cumsum(x.flatten()),
        mx.logcumsumexp(x, axis=1),
    ]


def orders(x: mx.array) -> list[mx.array]:
    return [
        mx.sort(x, axis=0),
        mx.sort(x, axis=1),
        mx.argsort(x.flatten()),
        mx.topk(x, 3, axis=-1),
    ]


def indexing(x: mx.array) -> list[mx.array]:
    at = mx.array([3, 0, -1, 3])
    updated = mx.array(x)
    updated[2:5, ::2] = 1.0
    return [
        x[at],
        x[:, at],
        mx.take_along_axis(x, mx.argsort(x, axis=1), axis=1),
        x.at[at].add(1.0),
        x.at[:, at].maximum(0.5),
        updated,
        mx.put_along_axis(x, at[None], mx.array(2.0), axis=1),
    ]


def products(x: mx.array) -> list[mx.array]:
    half = x.astype(mx.bfloat16)
    w = mx.random.normal((96, 128))
    found = [x @ x.T, half @ half.T, x[:1] @ x.T, mx.addmm(x[0, 0], x, x.T)]
    for bits in (2, 3, 4, 5, 6, 8):
        packed = mx.quantize(w, group_size=32, bits=bits)
        found.append(mx.dequantize(*packed, group_size=32, bits=bits))
        for rows in (1, 5, 40):
            y = mx.random.normal((rows, 128))
            for z in (y, y.astype(mx.bfloat16)):
                found.append(mx.quantized_matmul(z, *packed, group_size=32, bits=bits))
    return found


def fused(x: mx.array) -> list[mx.array]:
    width = x.shape[-1]
    found = [
        mx.fast.rms_norm(x, mx.ones(width), 1e-5),
        mx.fast.layer_norm(x, mx.ones(width), None, 1e-5),
    ]
    for dtype in (mx.float32, mx.bfloat16):
        for tokens, features in ((1, 64), (3, 72), (70, 128)):
            q = mx.random.normal((2, 6, tokens, features)).astype(dtype)
            k = mx.random.normal((2, 3, 130, features)).astype(dtype)
            for mask in (None, "causal", mx.ones((tokens, 130), dtype=mx.bool_)):
                found.append(
                    mx.fast.scaled_dot_product_attention(q, k, k, scale=0.1, mask=mask)
                )
            found.append(
                mx.fast.rope(q, 32, traditional=False, base=1e4, scale=1.0, offset=3)
            )
    return found


def main() -> None:
    mx.set_default_device(mx.gpu)
    x = mx.random.normal((37, 131))
    families = (elementwise, moves, reductions, orders, indexing, products, fused)
    for family in families:
        results = family(x)
        mx.eval(results)
        print(f"{family.__name__}: {len(results)} results")


if __name__ == "__main__":
    main()
