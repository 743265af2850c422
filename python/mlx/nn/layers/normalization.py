"""Layers that normalise the last axis."""

from __future__ import annotations

import mlx.core as mx
from mlx.nn.layers.base import Module


def _check_eps(layer: str, eps: float) -> float:
    # Without it a row without variance gives infinities, and with less NaN.
    if eps <= 0:
        raise ValueError(f"[{layer}] eps must be positive: {eps}.")
    return eps


class LayerNorm(Module):
    """Layer normalisation: ``(x - mean) / sqrt(variance + eps)`` of the last axis.

    The parameters are `weight` (dims,), ones, and `bias` (dims,), zeros; see
    https://arxiv.org/abs/1607.06450.

    Args:
        dims: Length of the last axis.
        eps: Added to the variance; positive.
        affine: Whether to multiply by `weight` and add `bias`.
        bias: Whether there is a `bias`.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.LayerNorm(2)(mx.array([[-3.0, 3.0]])).tolist()
        [[-0.9999994039535522, 0.9999994039535522]]
    """

    def __init__(
        self, dims: int, eps: float = 1e-5, affine: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        self.dims = dims
        self.eps = _check_eps("LayerNorm", eps)
        if affine:
            self.weight = mx.ones((dims,))
            if bias:
                self.bias = mx.zeros((dims,))

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.layer_norm(x, self.get("weight"), self.get("bias"), self.eps)


class RMSNorm(Module):
    """Root mean square normalisation: ``x / sqrt(mean(x^2) + eps) * weight``.

    The parameter is `weight` (dims,), ones; see
    https://arxiv.org/abs/1910.07467.

    Args:
        dims: Length of the last axis.
        eps: Added to the mean square; positive.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.RMSNorm(2, eps=1e-12)(mx.array([[-3.0, 3.0]])).tolist()
        [[-1.0, 1.0]]
    """

    def __init__(self, dims: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = mx.ones((dims,))
        self.eps = _check_eps("RMSNorm", eps)

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.rms_norm(x, self["weight"], self.eps)
