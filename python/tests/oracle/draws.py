"""Rows of random numbers: exact consequences of Threefry-2x32 and of the rules by
which words become numbers. An operand that is not read gives the type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from .functions import erfinv
from .row import SETS, Case, Operand, Row, Ulp, case

KEY = Operand(0, 2**32 - 1, kind="uint32")
CONSTANT = "it is a function of bits"
BELOW_ONE = {
    "float16": 1 - 2.0**-11,
    "bfloat16": 1 - 2.0**-8,
    "float32": 1 - 2.0**-24,
}


def threefry(key: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """20 rounds of two 32-bit words, keyed by two."""
    mask = np.uint64(0xFFFFFFFF)
    k0, k1 = (np.uint64(k) for k in key)
    ks = [k0, k1, k0 ^ k1 ^ np.uint64(0x1BD11BDA)]
    x0, x1 = (
        (x0.astype(np.uint64) + ks[0]) & mask,
        (x1.astype(np.uint64) + ks[1]) & mask,
    )
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = (x0 + x1) & mask
            left, right = np.uint64(turn), np.uint64(32 - turn)
            x1 = (((x1 << left) | (x1 >> right)) & mask) ^ x0
        x0 = (x0 + ks[(group + 1) % 3]) & mask
        x1 = (x1 + ks[(group + 2) % 3] + np.uint64(group + 1)) & mask
    return x0, x1


def bits(key: Any, shape: tuple[int, ...]) -> Any:
    count = math.prod(shape)
    half, odd = divmod(count, 2)
    first = np.arange(half)
    low, high = threefry(key, first, first + half + odd)
    middle = threefry(key, np.array([half]), np.array([0]))[0][:odd]
    return np.concatenate([low, middle, high]).astype(np.uint32).reshape(shape)


def uniform(key: Any, low: Any, high: Any, shape: tuple[int, ...]) -> Any:
    """float32 numbers, by float32 operations."""
    u = bits(key, shape).astype(np.float32) / np.float32(2**32)
    u = np.minimum(u, np.float32(BELOW_ONE["float32"]))
    low, high = np.float32(low), np.float32(high)
    return u * (high - low) + low


def from_normal_uniform(key: Any, shape: tuple[int, ...]) -> Any:
    return uniform(key, np.nextafter(np.float32(-1), np.float32(0)), 1, shape).astype(
        float
    )


def truncated(key: Any, x: Any, low: float, high: float, shape: tuple[int, ...]) -> Any:
    a, b = (math.erf(bound / math.sqrt(2)) for bound in (low, high))
    y = math.sqrt(2) * erfinv(uniform(key, a, b, shape).astype(float))
    return np.clip(y, low, high)


def gumbel(key: Any, shape: tuple[int, ...]) -> Any:
    u = uniform(key, 0, 1, shape).astype(float)
    return -np.log(-np.log(u))


def drawn(name: str, call: Any, reference: Any, *cases: Case, **more: Any) -> Row:
    more.setdefault("operands", (KEY, Operand()))
    more.setdefault("dtypes", "small_floats")
    more.setdefault("also_takes", ("float64", "complex64"))
    return Row(
        name,
        call,
        reference,
        cases,
        derivative=CONSTANT,
        without="raises",
        promotes=False,
        nodes=("RandomBits",) if name == "random.split" else (),
        **more,
    )


SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (2, 3), (5,), (0, 2))


def shaped(**static: Any) -> tuple[Case, ...]:
    return tuple(case((2,), (1,), shape=shape, **static) for shape in SHAPES)


def long_draws(**static: Any) -> Callable[[int], tuple[Case, ...]]:
    return lambda n: (case((2,), (1,), shape=(n,), **static),)


SPREAD = Ulp(1, terms=2, widens=False, why="the rule's steps round in the type")
ONLY_KEY: dict[str, Any] = {
    "operands": (KEY,),
    "dtypes": "one",
    "also_takes": SETS["all"],
}

ROWS = [
    drawn(
        "random.split",
        "random.split",
        lambda key, num: bits(key, (num, 2)),
        *(case((2,), num=n) for n in (1, 2, 5, 0)),
        result="uint32",
        sized=lambda n: (case((2,), num=n),),
        **ONLY_KEY,
    ),
    drawn(
        "random.uniform",
        lambda key, x, low, high, shape: mx.random.uniform(
            low, high, shape, x.dtype, key
        ),
        lambda key, x, low, high, shape: uniform(key, low, high, shape),
        *shaped(low=0, high=1),
        *shaped(low=-2, high=3),
        ulp=SPREAD,
        magnitude=lambda *_, low, high, shape: max(abs(low), abs(high)),
        sized=long_draws(low=-2, high=3),
    ),
    drawn(
        "random.normal",
        lambda key, x, shape: mx.random.normal(shape, x.dtype, key=key),
        lambda key, x, shape: math.sqrt(2) * erfinv(from_normal_uniform(key, shape)),
        *shaped()[:4],
        ulp=Ulp(5, half=3, why="an inverse error function and a product"),
        sized=long_draws(),
    ),
    drawn(
        "random.truncated_normal",
        lambda key, x, low, high, shape: mx.random.truncated_normal(
            low, high, shape, x.dtype, key
        ),
        truncated,
        *shaped(low=-1, high=2)[:4],
        dtypes="one",
        also_takes=("float16", "bfloat16"),
        ulp=Ulp(8, terms=8, why="bounds and numbers pass error functions"),
        magnitude=lambda *_, **__: 2.0,
        sized=long_draws(low=-1, high=2),
    ),
    drawn(
        "random.laplace",
        lambda key, x, shape: mx.random.laplace(shape, x.dtype, key=key),
        lambda key, x, shape: (lambda u: np.sign(u) * np.log1p(-np.abs(u)))(
            from_normal_uniform(key, shape)
        ),
        *shaped(),
        ulp=Ulp(2, half=1),
        sized=long_draws(),
    ),
    drawn(
        "random.gumbel",
        lambda key, x, shape: mx.random.gumbel(shape, x.dtype, key=key),
        lambda key, x, shape: gumbel(key, shape),
        *shaped(),
        dtypes="one",
        also_takes=("float16", "bfloat16"),
        ulp=Ulp(3, half=2, terms=4, why="two logarithms"),
        magnitude=lambda *_, **__: 1.0,
        sized=long_draws(),
    ),
    drawn(
        "random.randint",
        lambda key, x, low, high, shape: mx.random.randint(
            low, high, shape, x.dtype, key
        ),
        lambda key, x, low, high, shape: np.clip(
            np.floor(uniform(key, low, high, shape)), low, high - 1
        ),
        *shaped(low=0, high=10),
        *shaped(low=3, high=100),
        dtypes="integers",
        also_takes=("bool_",),
        sized=long_draws(low=0, high=100),
    ),
    drawn(
        "random.bernoulli",
        lambda key, p, shape: mx.random.bernoulli(p, shape, key),
        lambda key, p, shape: (
            bits(key, shape)
            < np.float32(p) * np.nextafter(np.float32(2**32 - 1), np.float32(np.inf))
        ),
        *(case((2,), (), shape=shape) for shape in SHAPES),
        case((2,), (3,), shape=(2, 3)),
        operands=(KEY, Operand(0.1, 0.9, (0, 0))),
        dtypes="one",
        also_takes=("float16", "bfloat16", "float64", "complex64"),
        result="bool_",
        sized=lambda n: (case((2,), (), shape=(n,)),),
    ),
    drawn(
        "random.permutation",
        lambda key, n: mx.random.permutation(n, key=key),
        lambda key, n: np.argsort(bits(key, (n,)), kind="stable"),
        *(case((2,), n=n) for n in (1, 2, 6)),
        result="uint32",
        sized=lambda n: (case((2,), n=n),),
        **ONLY_KEY,
    ),
    drawn(
        "random.categorical",
        lambda key, logits: mx.random.categorical(logits, key=key),
        lambda key, logits: np.argmax(logits + gumbel(key, logits.shape), -1),
        case((2,), (3, 4)),
        case((2,), (2, 2, 5)),
        operands=(KEY, Operand()),
        dtypes="one",
        also_takes=SETS["all"],
        result="uint32",
        compute="operand",
        sized=lambda n: (case((2,), (3, n)),),
    ),
]
