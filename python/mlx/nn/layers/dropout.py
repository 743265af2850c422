"""Layers that zero a random part of their input in training.

What is kept is divided by the probability of being kept, so that expectations
stay the same. In evaluation mode the input passes unchanged.
"""

from __future__ import annotations

import mlx.core as mx
from mlx.nn.layers.base import Module


class _Dropout(Module):
    """What the three layers share: the probability and the mask."""

    # Axes, counted from the end, that share one decision; accepted ranks.
    _shared: tuple[int, ...] = ()
    _ranks: tuple[int, ...] = ()

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(
                f"[{type(self).__name__}] probability out of range: {p}. "
                "It must be at least 0 and less than 1."
            )
        self._p = p

    def _extra_repr(self) -> str:
        return f"p={self._p}"

    def __call__(self, x: mx.array) -> mx.array:
        if self._ranks and x.ndim not in self._ranks:
            few, many = self._ranks
            raise ValueError(
                f"[{type(self).__name__}] wrong number of axes: {x.ndim}. "
                f"The input must have {few} or {many}."
            )
        if self._p == 0.0 or not self._training:
            return x
        shape = list(x.shape)
        for axis in self._shared:
            shape[axis] = 1
        keep = 1.0 - self._p
        return mx.random.bernoulli(keep, shape) * x * (1.0 / keep)


class Dropout(_Dropout):
    """Zeroes elements at random in training.

    Args:
        p: Probability that an element is zeroed.

    Raises:
        ValueError: If `p` is not in [0, 1).

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> kept = nn.Dropout(0.75)(mx.ones((1000,)))
        >>> sorted(set(kept.tolist()))
        [0.0, 4.0]
    """


class Dropout2d(_Dropout):
    """Zeroes whole channels of (H, W, C) or (N, H, W, C) input in training.

    Args:
        p: Probability that a channel is zeroed.

    Raises:
        ValueError: If `p` is not in [0, 1), or the input has another rank.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> y = nn.Dropout2d(0.5)(mx.ones((8, 8, 3)))
        >>> mx.array_equal(y[0, 0], y[7, 7]).item()
        True
    """

    _shared = (-2, -3)
    _ranks = (3, 4)


class Dropout3d(_Dropout):
    """Zeroes whole channels of (D, H, W, C) or (N, D, H, W, C) input in training.

    Args:
        p: Probability that a channel is zeroed.

    Raises:
        ValueError: If `p` is not in [0, 1), or the input has another rank.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> y = nn.Dropout3d(0.5)(mx.ones((4, 8, 8, 3)))
        >>> mx.array_equal(y[0, 0, 0], y[3, 7, 7]).item()
        True
    """

    _shared = (-2, -3, -4)
    _ranks = (4, 5)
