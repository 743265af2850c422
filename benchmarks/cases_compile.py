"""Compiled functions and training: `run.py --cases 'compile_*' --patience 120`.

Among the peers "torch" is torch.compile and torch's fused optimizer, "torch-eager"
(`--peer torch-eager=PYTHON`) torch without its compiler. "lynx-fast" is our own
function for what a case composes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf, prod, sqrt
from typing import Any

import numpy as np

from case import Array, Case, Expected, Input
from references import HEAD, rms_norm, softmax

FLOAT = 4
BIG = (1 << 24,)
NUM_INPUTS = 26
ACTIVATIONS = (32, 1000, 4096)
ROW_LENGTHS = (1024, 4096, 16384)
ELEMENTS = 1 << 25  # of rows
# A transformer block: its width, the hidden one, positions, heads.
WIDTH, HIDDEN, LENGTH, HEADS = 256, 1024, 16, 4
# 300 tensors, 24.9 million parameters: 25 layers of a small language model.
LAYER = [(288, 288)] * 4 + [(288, 1152), (1152, 288)] + [(288,)] * 6
SHAPES = LAYER * 25
PARAMETERS = sum(prod(shape) for shape in SHAPES)
# As in examples/train_digits.
BATCH, PIXELS, CLASSES = 64, 64, 10
DIGITS = (PIXELS, WIDTH, WIDTH, CLASSES)


def gelu(x: Array) -> Array:
    return x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2


def chain(library: Any, *inputs: Array) -> Array:
    """25 operations with an input each and 5 without, in any library."""
    steps = (
        library.add,
        library.multiply,
        library.minimum,
        library.subtract,
        library.maximum,
    )
    value, *others = inputs
    for k, other in enumerate(others):
        if k % 5 == 0:  # here it is bounded
            value = library.square(value) if k % 10 else library.abs(value)
        value = steps[k % 5](value, other)
    return value


def adamw(weights: Array, gradients: Array) -> Expected:
    """The first row after a step, whose means are the gradient and its square."""
    change = gradients / (np.abs(gradients) + 1e-8) + 0.01 * weights
    return (0, slice(0, WIDTH)), (weights - 1e-3 * change)[:WIDTH]


def cross_entropy(images: Array, labels: Array, *layers: Array) -> Expected:
    """Without dropout, which is another one in each framework."""
    *hidden, last = zip(layers[::2], layers[1::2])
    x = images
    for w, b in hidden:
        x = np.maximum(x @ w.T + b, 0)
    x = x @ last[0].T + last[1]
    total = np.log(np.exp(x).sum(axis=-1))
    return ..., np.mean(total - x[np.arange(BATCH), labels.astype(int)])


def block(x: Array, *weights: Array) -> Expected:
    """Attention of all positions to those before, and a network, each added on."""
    query, key, value, out, up, down, norm1, norm2 = weights
    h = rms_norm(x, norm1)[1]
    q, k, v = (
        (h @ w).reshape(LENGTH, HEADS, -1).swapaxes(0, 1) for w in (query, key, value)
    )
    scores = q @ k.swapaxes(1, 2) / sqrt(q.shape[-1])
    scores[:, ~np.tri(LENGTH, dtype=bool)] = -np.inf
    heads = np.stack([softmax(one)[1] for one in scores]) @ v
    x = x + heads.swapaxes(0, 1).reshape(LENGTH, WIDTH) @ out
    return ..., x + gelu(rms_norm(x, norm2)[1] @ up) @ down


def by_hand(name: str, reference: Callable[..., Expected]) -> list[Case]:
    return [
        Case(
            f"compile_{name}_{n}",
            f"{name}_by_hand",
            (Input((ELEMENTS // n, n)), Input((n,)))[: 1 + (name != "softmax")],
            work=2 * FLOAT * float(ELEMENTS),
            limit="copy",
            target=("lynx-fast", 0.8),
            reference=reference,
        )
        for n in ROW_LENGTHS
    ]


def weight(*shape: int) -> Input:
    return Input(shape, scale=1 / sqrt(shape[0]))


BLOCK = (
    Input((LENGTH, WIDTH)),
    *[weight(WIDTH, WIDTH)] * 4,
    weight(WIDTH, HIDDEN),
    weight(HIDDEN, WIDTH),
    *[Input((WIDTH,))] * 2,
)
NETWORK = [
    one
    for n, m in zip(DIGITS, DIGITS[1:])
    for one in (Input((m, n), scale=1 / sqrt(n)), Input((m,), scale=0))
]

COMPILE_CASES = [
    Case(
        "compile_gelu",
        "compiled_gelu",
        (Input(ACTIVATIONS),),
        work=2 * FLOAT * float(prod(ACTIVATIONS)),
        limit="copy",
        target=("limit", 0.7),
        head=1,
        reference=lambda x: ((0, 0), gelu(x[0, 0])),
    ),
    Case(
        "compile_chain_of_30",
        "compiled_chain",
        (Input(BIG),) * NUM_INPUTS,
        work=(NUM_INPUTS + 1) * FLOAT * float(prod(BIG)),
        limit="copy",
        target=("best", 1.1),
        head=4096,
        reference=lambda *inputs: (HEAD, chain(np, *inputs)),
    ),
    *by_hand("softmax", softmax),
    *by_hand("rms_norm", rms_norm),
    Case(
        "compile_first_call_gelu",
        "first_gelu",
        (Input((64,)),),
        target=("seconds", 1e-3),
        reference=lambda x: (..., gelu(x)),
    ),
    Case(
        "compile_first_call_block",
        "first_block",
        BLOCK,
        {"heads": HEADS},
        target=("seconds", 5e-3),
        reference=block,
        tolerance=1e-4,
    ),
    Case(
        "compile_later_call",
        "compiled_calls",
        (Input((4,)), Input((4,))),
        {"calls": 1000},
        target=("seconds", 2e-6),
        calls=1000,
        unit="us",
    ),
    Case(
        "compile_adamw",
        "adamw",
        (Input((PARAMETERS,)), Input((PARAMETERS,))),
        {"shapes": SHAPES},
        work=28.0 * PARAMETERS,
        limit="copy",
        target=("limit", 0.8),
        head=WIDTH,
        reference=adamw,
    ),
    Case(
        "compile_train_digits",
        "train_digits",
        (
            Input((BATCH, PIXELS)),
            Input((BATCH,), "int32", integers=(0, CLASSES)),
            *NETWORK,
        ),
        target=("torch-eager", 1.5),
        reference=cross_entropy,
        tolerance=0.2,
    ),
]
