"""Layers that tell positions apart."""

from __future__ import annotations

import mlx.core as mx
from mlx.nn.layers.base import Module


class RoPE(Module):
    """Rotary position embedding, see https://arxiv.org/abs/2104.09864.

    Pairs of features turn by ``position * scale * base ** (-2 * pair / dims)``.

    Args:
        dims: Features to turn, from the first; even. Further ones stay.
        traditional: Whether pairs are neighbours (0, 1), (2, 3), ... or lie
            dims / 2 apart.
        base: Sets how fast the angle falls from pair to pair.
        scale: Factor on the positions.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> x = mx.ones((1, 2, 3, 8))  # (batch, heads, positions, features)
        >>> nn.RoPE(8)(x, offset=5).shape
        (1, 2, 3, 8)
    """

    def __init__(
        self,
        dims: int,
        traditional: bool = False,
        base: float = 10000,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def _extra_repr(self) -> str:
        return f"{self.dims}, traditional={self.traditional}"

    def __call__(self, x: mx.array, offset: int | mx.array = 0) -> mx.array:
        return mx.fast.rope(
            x,
            self.dims,
            traditional=self.traditional,
            base=self.base,
            scale=self.scale,
            offset=offset,
        )
