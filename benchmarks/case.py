"""What a case is made of: inputs, work, a reference and what we want to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# A part of the result, and its expected values in float64.
Expected = tuple[Any, Array]
Limit = Literal["read", "copy", "fma"]


@dataclass(frozen=True)
class Input:
    """An array of a given shape, drawn from `scale` N(0, 1) or from `integers`."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    integers: tuple[int, int] | None = None  # the lowest, and one above the highest
    scale: float = 1

    def draw(self, generator: np.random.Generator) -> Array:
        if self.integers is not None:
            return generator.integers(*self.integers, self.shape, dtype=np.int32)
        values = generator.standard_normal(self.shape, dtype=np.float32)
        return values if self.scale == 1 else values * np.float32(self.scale)


@dataclass(frozen=True)
class Case:
    name: str
    function: str  # of every framework that has it
    inputs: tuple[Input, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    work: float = 0  # bytes or operations of a call, in the unit of the limit
    limit: Limit | None = None
    target: tuple[str, float] | None = None  # see `reached` in run.py
    reference: Callable[..., Expected] | None = None
    head: int | None = None  # how much of each input the reference reads
    tolerance: float = 1e-5  # of the largest expected value
    calls: int = 1  # how many repetitions the function makes itself
    copies: int = 1  # different inputs used in turn, to defeat the cache
    unit: str = "ms"

    def draw(self) -> list[list[Array]]:
        generator = np.random.default_rng(1)
        return [
            [one.draw(generator) for one in self.inputs] for _ in range(self.copies)
        ]
