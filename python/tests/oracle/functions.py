"""References that NumPy lacks, or has otherwise."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def _erfinv(y: float) -> float:
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    if abs(y) < 1e-8:
        return y * math.sqrt(math.pi) / 2
    x = NormalDist().inv_cdf((1 + y) / 2) / math.sqrt(2)
    # One step of Newton's method, for what 1 + y has rounded away.
    return x - (math.erf(x) - y) * math.sqrt(math.pi) / 2 * math.exp(x * x)


erfinv = np.vectorize(_erfinv, otypes=[float])


def sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def inverse(x: Any) -> Any:
    """That of infinite complex numbers is zero, as in C, though not in NumPy."""
    return np.where(np.isinf(x), 0, 1 / x) if np.iscomplexobj(x) else 1 / x


def integer_power(a: Any, b: Any) -> Any:
    if a.dtype == bool:
        return a | ~b
    if a.dtype.kind not in "iu":
        return np.power(a, b)
    return np.where(b < 0, 0, np.power(a, np.where(b < 0, 0, b))).astype(a.dtype)


def floor_divide(a: Any, b: Any) -> Any:
    if a.dtype.kind in "biu":
        return a & b if a.dtype == bool else np.floor_divide(a, b)
    finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
    return np.where(finite, np.floor_divide(a, b), np.floor(a / b))


def remainder(a: Any, b: Any) -> Any:
    return np.zeros(np.broadcast(a, b).shape, bool) if a.dtype == bool else a % b


def logaddexp(a: Any, b: Any) -> Any:
    if np.iscomplexobj(a):
        return np.log(np.exp(a) + np.exp(b))
    return np.logaddexp(a, b)


def equal_nan(a: Any, b: Any) -> Any:
    return (a == b) | ((a != a) & (b != b))
