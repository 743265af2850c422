"""The form of a row of the oracle table: how an operation is called, what
NumPy says it gives, where its arguments come from, how near the result is."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import numpy as np

BOOL = ("bool_",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
HALVES = ("float16", "bfloat16")
FLOATS = (*HALVES, "float32", "float64")
COMPLEX = ("complex64",)

# What `dtypes` of a row may name.
SETS = {
    "all": BOOL + INTEGERS + FLOATS + COMPLEX,
    "number": INTEGERS + FLOATS + COMPLEX,
    "real": BOOL + INTEGERS + FLOATS,
    "integral": BOOL + INTEGERS,
    "integers": INTEGERS,
    "inexact": FLOATS + COMPLEX,
    "floats": FLOATS,
    "one": ("float32",),
    "wide_floats": ("float32", "float64"),
    "small_floats": (*HALVES, "float32"),
}

# How the type of the result follows from the promoted type of the operands.
RESULTS: dict[str, Callable[[str], str]] = {
    "keep": lambda d: d,
    "to_float": lambda d: d if d in SETS["inexact"] else "float32",
    "real_part": lambda d: "float32" if d == "complex64" else d,
    "real_float": lambda d: d if d in FLOATS else "float32",
    "shift": lambda d: "uint8" if d == "bool_" else d,
    "sum": lambda d: {
        "bool_": "int32",
        "int8": "int32",
        "int16": "int32",
        "uint8": "uint32",
        "uint16": "uint32",
    }.get(d, d),
    "scan": lambda d: "int32" if d == "bool_" else d,
}


@dataclass(frozen=True)
class Operand:
    """Where the values of one operand are drawn from.

    `low` to `high` holds for floating types, and for integers where they hold
    it; `integers` narrows those. `kind` is "data" for what takes the type under
    test, else a type of its own ("bool_", "int32", "uint32"), the values of which
    are drawn from `low` to `high` too.
    """

    low: float = -2.0
    high: float = 2.0
    integers: tuple[int, int] | None = None
    kind: str = "data"
    # Draws the values instead: (generator, shape) to float64.
    draw: Callable[[np.random.Generator, tuple[int, ...]], Any] | None = None


@dataclass(frozen=True)
class Case:
    """Shapes of the operands and the arguments that are no arrays."""

    shapes: tuple[tuple[int, ...], ...]
    static: dict[str, Any] = field(default_factory=dict)


def case(*shapes: Sequence[int], **static: Any) -> Case:
    return Case(tuple(tuple(s) for s in shapes), static)


@dataclass(frozen=True)
class Ulp:
    """How far a result may be from the exact one.

    In units in the last place of the result's type, with the reason. float16 and
    bfloat16 are computed in float32 and rounded once. Complex numbers err as a
    whole: units of the modulus. `terms` counts roundings of the type that is
    computed in, each of the size of Row.magnitude: what a sum may lose.
    """

    float32: float = 1.0
    float64: float = 1.0
    complex64: float = 1.0
    half: float = 1.0
    terms: float = 0.0
    terms64: float | None = None  # for float64, where it differs
    # Whether halves are float32 until the end, and `terms` counts roundings of it.
    widens: bool = True
    why: str = "computed in the type and rounded once"

    def of(self, dtype: str) -> float:
        return self.half if dtype in HALVES else getattr(self, dtype)


EXACT = Ulp(0, 0, 0, 0, why="values are moved or chosen, not computed")


@dataclass(frozen=True)
class Row:
    name: str
    # Called with the arrays of a case and its static arguments; gives an array
    # or several. A name is that of mlx.core, looked up when it is called.
    call: Callable[..., Any] | str
    # The same over NumPy arrays. Floating operands come as float64, complex
    # ones as complex128, integers as `compute` says.
    reference: Callable[..., Any]
    cases: tuple[Case, ...]
    operands: tuple[Operand, ...] = (Operand(),)
    dtypes: str = "all"
    # A key of RESULTS or the name of a type; one for each of several results.
    result: str | tuple[str, ...] = "keep"
    # Integer operands of the reference: of the "result" type (floating results:
    # float64), or of the "operand" type.
    compute: str = "result"
    ulp: Ulp = EXACT
    # Of the exact numbers that go into each result: what `ulp.terms` multiplies.
    magnitude: Callable[..., Any] | None = None
    # The operands that it can be differentiated by, or the reason why not.
    derivative: tuple[int, ...] | str = (0,)
    # Where there is no derivative: "zero" says that tangents and cotangents are
    # zeros, "passed" that they are passed on, "raises" that there is no rule,
    # "stops" that results take no cotangent.
    without: str = "zero"
    # Whether the derivative can be derived again, or the reason why not.
    second: bool | str = True
    # Whether the derivative of complex numbers is tested, or the reason why not.
    complex_rule: bool | str = True
    # Whether it has a batch rule, or the reason why not.
    batch: bool | str = True
    # Cases of a length n: for odd lengths and one that threads share.
    sized: Callable[[int], tuple[Case, ...]] | None = None
    # Whether NaN, infinities, zeros of both signs, subnormal numbers and the ends
    # of integers follow the reference: elementwise rows.
    special: bool = False
    # Whether NaN, infinities and zeros of both signs among other numbers follow
    # the reference: what combines elements.
    nans: bool = False
    # Whether operands of two types promote to a common one.
    promotes: bool = True
    # Types beside `dtypes` that are cast, with or without a meaning.
    also_takes: tuple[str, ...] = ()
    # The names of the primitives that it is made of and that it is the row of.
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def run(self, *arrays: mx.array, **static: Any) -> Any:
        call = self.call
        if isinstance(call, str):
            call = operator.attrgetter(call)(mx)
        return call(*arrays, **static)

    def types(self) -> tuple[str, ...]:
        return SETS[self.dtypes]

    def result_types(self, promoted: str, count: int) -> list[str]:
        rules = self.result if isinstance(self.result, tuple) else (self.result,)
        if len(rules) == 1:
            rules *= count
        return [RESULTS[r](promoted) if r in RESULTS else r for r in rules]

    def differentiable(self) -> tuple[int, ...]:
        return self.derivative if isinstance(self.derivative, tuple) else ()
