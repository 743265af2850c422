"""What is measured: every case once, for Lynx and for every peer.

A case names a function of `frameworks.py`, the inputs it gets, how much work
that is, a reference in float64 and what we want to reach. Shapes are those of
real models or, for memory-bound work, far larger than any cache.
"""

from __future__ import annotations

import numpy as np

from case import Case, Input
from cases_compile import COMPILE_CASES
from references import (
    attention,
    binary,
    layer_norm,
    matmul,
    quantized_matvec,
    rms_norm,
    softmax,
    unary,
)

GREEDY_TOKENS = 32
PREFILL_TOKENS = 256
CHAT_BYTES = 96.4e6  # what one token reads of SmolLM2-135M's Q4_1 file
CHAT_WEIGHTS = 106.2e6  # of its blocks; the output is computed for one token

LONG = Input((1 << 25,))
BLOCK = Input((32768, 1024))
VECTOR = Input((1024,))
SQUARE = Input((2048, 2048))
SQUARE_BF16 = Input((2048, 2048), "bfloat16")
HEADS = Input((1, 8, 2048, 64))
TINY = Input((4,))
FLOAT = 4
LONG_BYTES = FLOAT * 2.0**25
CUBE_FLOPS = 2 * 2048.0**3
# 4 bits a weight, two bfloat16 numbers for each group of 64.
MATVEC_BYTES = 4096 * 14336 * (0.5 + 4 / 64)
CAUSAL_FLOPS = 4 * 8 * 64 * 2048.0 * 2049 / 2

CASES = [
    Case(
        "smollm2_decode",
        "chat_decode",
        (Input((32,), "int32", integers=(100, 40000)),),
        {"tokens": GREEDY_TOKENS},
        CHAT_BYTES,
        "read",
        ("llama", 1.8),
        calls=GREEDY_TOKENS,
        unit="tok/s",
    ),
    Case(
        "smollm2_prefill",
        "chat_prefill",
        (Input((PREFILL_TOKENS,), "int32", integers=(100, 40000)),),
        work=2 * CHAT_WEIGHTS,
        limit="fma",
        target=("llama", 2.0),
        calls=PREFILL_TOKENS,
        unit="tok/s",
    ),
    Case(
        "add",
        "add",
        (LONG, LONG),
        work=3 * LONG_BYTES,
        limit="copy",
        target=("limit", 0.85),
        reference=binary(np.add),
    ),
    Case(
        "multiply",
        "multiply",
        (LONG, LONG),
        work=3 * LONG_BYTES,
        limit="copy",
        target=("limit", 0.85),
        reference=binary(np.multiply),
    ),
    Case(
        "exp",
        "exp",
        (LONG,),
        work=2 * LONG_BYTES,
        limit="copy",
        target=("limit", 0.85),
        reference=unary(np.exp),
    ),
    Case(
        "sum",
        "sum",
        (LONG,),
        work=LONG_BYTES,
        limit="read",
        target=("torch", 1.0),
        # The terms cancel: the sum is some 5800, its float32 error below 1.
        reference=lambda x: (..., np.sum(x)),
        tolerance=1e-3,
    ),
    Case(
        "softmax",
        "softmax",
        (BLOCK,),
        work=2 * LONG_BYTES,
        limit="copy",
        target=("limit", 0.6),
        reference=softmax,
    ),
    Case(
        "rms_norm",
        "rms_norm",
        (BLOCK, VECTOR),
        work=2 * LONG_BYTES,
        limit="copy",
        target=("limit", 0.6),
        reference=rms_norm,
    ),
    Case(
        "layer_norm",
        "layer_norm",
        (BLOCK, VECTOR, VECTOR),
        work=2 * LONG_BYTES,
        limit="copy",
        target=("limit", 0.6),
        reference=layer_norm,
    ),
    Case(
        "matmul_float32",
        "matmul",
        (SQUARE, SQUARE),
        work=CUBE_FLOPS,
        limit="fma",
        target=("best", 0.97),
        reference=matmul,
    ),
    Case(
        "matmul_bfloat16",
        "matmul",
        (SQUARE_BF16, SQUARE_BF16),
        work=CUBE_FLOPS,
        limit="fma",
        target=("torch", 0.75),
        reference=matmul,
        tolerance=2e-2,
    ),
    Case(
        "quantized_matvec",
        "quantized_matvec",
        (Input((1, 4096), "bfloat16"), Input((14336, 4096))),
        {"bits": 4, "group_size": 64},
        MATVEC_BYTES,
        "read",
        ("limit", 0.8),
        reference=quantized_matvec,
        tolerance=0.15,
        copies=4,
    ),
    Case(
        "attention_causal",
        "attention",
        (HEADS, HEADS, HEADS),
        work=CAUSAL_FLOPS,
        limit="fma",
        target=("torch", 0.8),
        reference=attention,
    ),
    Case(
        "sort",
        "sort",
        (Input((1 << 20,)),),
        target=("numpy", 1.0),
        reference=lambda x: (slice(None), np.sort(x)),
    ),
    Case(
        "build_one_operation",
        "build_add",
        (TINY, TINY),
        {"calls": 1000},
        target=("seconds", 0.5e-6),
        calls=1000,
        unit="us",
    ),
    Case(
        "evaluate_one_operation",
        "evaluate_add",
        (TINY, TINY),
        {"calls": 1000},
        target=("seconds", 3e-6),
        calls=1000,
        unit="us",
    ),
    Case("import", "import", target=("seconds", 40e-3)),
]

CASES += COMPILE_CASES
