#!/usr/bin/env python3
"""Time the gpu against torch and the machine's copy bandwidth, in one process.

Each row is one line of JSON: our time, torch's, and what it means. Inputs are
rotated through sets that together exceed the second-level cache; a time is the
wall time of a run of launches that is waited for once, divided by their number,
the median of several such runs taken in turns with torch's. It is not measured
by CUDA events, because the library shows nobody its stream: runs are long
enough, milliseconds at least, that the wait at their end does not count, and
what the host does between launches does count.

usage: gpu.py [--only NAME] [--turns N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mlx.core as mx
import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

GIB = 1 << 30
DEVICE = "cuda"
UNITS = {"GB/s": 1e9, "TFLOP/s": 1e12, "Mop/s": 1e6}
Launch = Callable[[int], object]


@dataclass
class Row:
    """One measurement: `ours(i)` and `peers[name](i)` launch on input set i."""

    name: str
    ours: Launch
    peers: dict[str, Launch]
    amount: float  # bytes or operations of one launch
    unit: str  # of UNITS
    launches: int = 20
    limit: bool = False  # compare with the copy bandwidth
    together: int = 1  # launches of ours that are evaluated as one graph


def seconds_of_ours(launch: Launch, n: int, together: int) -> float:
    mx.synchronize()
    start = time.perf_counter()
    for i in range(0, n, together):
        mx.async_eval([launch(i + j) for j in range(together)])
    mx.synchronize()
    return (time.perf_counter() - start) / n


def seconds_of_torch(launch: Launch, n: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for i in range(n):
        launch(i)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n


def measure(row: Row, turns: int, copy: float) -> dict[str, object]:
    times: dict[str, list[float]] = {"ours": []} | {name: [] for name in row.peers}
    for turn in range(turns + 1):
        found = {"ours": seconds_of_ours(row.ours, row.launches, row.together)}
        for name, peer in row.peers.items():
            found[name] = seconds_of_torch(peer, row.launches)
        if turn > 0:  # the first warms up
            for name, value in found.items():
                times[name].append(value)
    middle = {name: statistics.median(values) for name, values in times.items()}
    scale = UNITS[row.unit]
    result: dict[str, object] = {"row": row.name, "unit": row.unit}
    for name, value in middle.items():
        result[name + "_ms"] = round(value * 1e3, 4)
        result[name] = round(row.amount / value / scale, 1)
    if row.peers:
        best = min(value for name, value in middle.items() if name != "ours")
        result["over_best_peer"] = round(best / middle["ours"], 3)
    if row.limit:
        result["share_of_copy"] = round(row.amount / middle["ours"] / copy, 3)
    return result


def both(shape: tuple[int, ...], dtype: str, sets: int) -> tuple[list, list]:
    """The same kind of random inputs for ours and for torch."""
    theirs = [
        torch.randn(shape, device=DEVICE, dtype=getattr(torch, dtype))
        for _ in range(sets)
    ]
    ours = [mx.random.normal(shape).astype(getattr(mx, dtype)) for _ in range(sets)]
    mx.eval(ours)
    return ours, theirs


def copy_bandwidth() -> float:
    source = torch.randn(GIB // 4, device=DEVICE)
    target = torch.empty_like(source)
    best = min(seconds_of_torch(lambda _: target.copy_(source), 10) for _ in range(5))
    return 2 * GIB / best


def elementwise_rows() -> Iterator[Row]:
    a, ta = both((GIB // 4,), "float32", 2)
    yield Row(
        "add float32, 1 GiB",
        lambda i: a[i % 2] + a[1 - i % 2],
        {"torch": lambda i: ta[i % 2] + ta[1 - i % 2]},
        3 * GIB,
        "GB/s",
        limit=True,
    )
    yield Row(
        "abs float32, 1 GiB",
        lambda i: mx.abs(a[i % 2]),
        {"torch": lambda i: torch.abs(ta[i % 2])},
        2 * GIB,
        "GB/s",
        limit=True,
    )


def row_rows() -> Iterator[Row]:
    shape = (32768, 4096)
    n = shape[0] * shape[1]
    x, tx = both(shape, "bfloat16", 2)
    w, tw = both(shape[1:], "bfloat16", 1)
    torch_compiled = torch.compile(lambda x: functional.softmax(x, -1))
    cases: list[tuple[str, Launch, dict[str, Launch]]] = [
        (
            "rms_norm",
            lambda i: mx.fast.rms_norm(x[i % 2], w[0], 1e-5),
            {"torch": lambda i: functional.rms_norm(tx[i % 2], (4096,), tw[0], 1e-5)},
        ),
        (
            "layer_norm",
            lambda i: mx.fast.layer_norm(x[i % 2], w[0], w[0], 1e-5),
            {
                "torch": lambda i: functional.layer_norm(
                    tx[i % 2], (4096,), tw[0], tw[0], 1e-5
                )
            },
        ),
        (
            "softmax",
            lambda i: mx.softmax(x[i % 2], axis=-1),
            {
                "torch": lambda i: functional.softmax(tx[i % 2], -1),
                "torch_compile": lambda i: torch_compiled(tx[i % 2]),
            },
        ),
    ]
    for name, ours, peers in cases:
        yield Row(f"{name} bfloat16 {shape}", ours, peers, 4.0 * n, "GB/s", limit=True)


def move_rows() -> Iterator[Row]:
    x, tx = both((32768, 4096), "float32", 2)
    n = 32768 * 4096
    yield Row(
        "transposed copy float32 (32768, 4096)",
        lambda i: mx.contiguous(x[i % 2].T),
        {"torch": lambda i: tx[i % 2].T.contiguous()},
        8.0 * n,
        "GB/s",
        limit=True,
    )
    yield Row(
        "sum over the last axis float32 (32768, 4096)",
        lambda i: mx.sum(x[i % 2], axis=-1),
        {"torch": lambda i: tx[i % 2].sum(-1)},
        4.0 * n,
        "GB/s",
        limit=True,
    )
    yield Row(
        "sum over the first axis float32 (32768, 4096)",
        lambda i: mx.sum(x[i % 2], axis=0),
        {"torch": lambda i: tx[i % 2].sum(0)},
        4.0 * n,
        "GB/s",
        limit=True,
    )


def matmul_rows() -> Iterator[Row]:
    n = 8192
    for dtype in ("bfloat16", "float32"):
        x, tx = both((n, n), dtype, 2)
        yield Row(
            f"matmul {dtype} {n}",
            lambda i, x=x: x[0] @ x[1],
            {"torch": lambda i, tx=tx: tx[0] @ tx[1]},
            2.0 * n**3,
            "TFLOP/s",
            launches=10,
        )


def quantized_rows() -> Iterator[Row]:
    rows, columns, sets = 14336, 4096, 8
    weights = [
        mx.quantize(mx.random.normal((rows, columns)).astype(mx.bfloat16), 64, 4)
        for _ in range(sets)
    ]
    mx.eval(weights)
    for tokens in (1, 4, 16, 128, 1024):
        x = mx.random.normal((tokens, columns)).astype(mx.bfloat16)
        mx.eval(x)
        few = tokens <= 4
        yield Row(
            f"4-bit product, {tokens} rows, 14336x4096 group 64",
            lambda i, x=x: mx.quantized_matmul(
                x, *weights[i % sets], group_size=64, bits=4
            ),
            {},
            rows * columns / 2 if few else 2.0 * tokens * rows * columns,
            "GB/s" if few else "TFLOP/s",
            launches=160 if few else 20,
            together=16 if few else 4,
        )


def attention_rows() -> Iterator[Row]:
    heads, tokens, width = 16, 8192, 128
    q, tq = both((1, heads, tokens, width), "bfloat16", 3)

    def torch_with(backend: SDPBackend) -> Launch:
        def launch(_: int) -> object:
            with sdpa_kernel(backend):
                return functional.scaled_dot_product_attention(*tq, is_causal=True)

        return launch

    yield Row(
        "attention causal bfloat16, 16 heads, T 8192, D 128",
        lambda i: mx.fast.scaled_dot_product_attention(
            *q, scale=width**-0.5, mask="causal"
        ),
        {
            "torch_cudnn": torch_with(SDPBackend.CUDNN_ATTENTION),
            "torch_flash": torch_with(SDPBackend.FLASH_ATTENTION),
        },
        2.0 * heads * tokens**2 * width,
        "TFLOP/s",
    )
    keys = 32768
    one, t_one = both((1, 32, 1, width), "bfloat16", 1)
    kv, t_kv = both((1, 8, keys, width), "bfloat16", 4)
    yield Row(
        "attention decode bfloat16, 32/8 heads, T 32768, D 128",
        lambda i: mx.fast.scaled_dot_product_attention(
            one[0], kv[2 * (i % 2)], kv[2 * (i % 2) + 1], scale=width**-0.5
        ),
        {
            "torch": lambda i: functional.scaled_dot_product_attention(
                t_one[0], t_kv[2 * (i % 2)], t_kv[2 * (i % 2) + 1], enable_gqa=True
            )
        },
        2.0 * 8 * keys * width * 2,
        "GB/s",
        limit=True,
        launches=80,
        together=8,
    )


def order_rows() -> Iterator[Row]:
    n = 1 << 24
    x, tx = both((n,), "float32", 4)
    yield Row(
        "sort float32 16M (bytes of one pass)",
        lambda i: mx.sort(x[i % 4]),
        {"torch": lambda i: torch.sort(tx[i % 4])},
        8.0 * n,
        "GB/s",
    )
    yield Row(
        "cumsum float32 16M",
        lambda i: mx.cumsum(x[i % 4]),
        {"torch": lambda i: torch.cumsum(tx[i % 4], 0)},
        8.0 * n,
        "GB/s",
    )


def overhead_rows() -> Iterator[Row]:
    def ours(_: int) -> mx.array:
        x = mx.zeros((8,))
        for _ in range(1000):
            x = x + 1
        return x

    def theirs(_: int) -> object:
        x = torch.zeros(8, device=DEVICE)
        for _ in range(1000):
            x = x + 1
        return x

    yield Row(
        "1000 dependent tiny additions",
        ours,
        {"torch": theirs},
        1000.0,
        "Mop/s",
        launches=5,
    )


FAMILIES = (
    elementwise_rows,
    row_rows,
    move_rows,
    matmul_rows,
    quantized_rows,
    attention_rows,
    order_rows,
    overhead_rows,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="families whose name has this")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    mx.set_default_device(mx.gpu)
    torch.backends.cuda.matmul.allow_tf32 = False
    copy = copy_bandwidth()
    print(json.dumps({"device": torch.cuda.get_device_name(), "copy_GBps": copy / 1e9}))
    for family in FAMILIES:
        if arguments.only in family.__name__:
            for row in family():
                print(json.dumps(measure(row, arguments.turns, copy)), flush=True)
            torch.cuda.empty_cache()
            mx.clear_cache()


if __name__ == "__main__":
    main()
