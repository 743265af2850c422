"""Layers that are linear maps with dense weights."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx.nn.layers.quantized import QuantizedLinear, refuse_quantized_input


class Identity(Module):
    """Returns its input.

    Args:
        args: Ignored, as are all keyword arguments.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.Identity()(mx.array([1, 2])).tolist()
        [1, 2]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __call__(self, x: mx.array) -> mx.array:
        return x


class Linear(Module):
    """The affine map ``x @ weight.T + bias``.

    The parameters are `weight` (output_dims, input_dims) and `bias`
    (output_dims,), drawn uniformly from +-1/sqrt(input_dims).

    Args:
        input_dims: Length of the last axis of the input.
        output_dims: Length of the last axis of the output.
        bias: Whether to add a bias.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.Linear(3, 4)(mx.ones((2, 5, 3))).shape
        (2, 5, 4)
    """

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        bound = math.sqrt(1.0 / input_dims)
        self.weight = mx.random.uniform(-bound, bound, (output_dims, input_dims))
        if bias:
            self.bias = mx.random.uniform(-bound, bound, (output_dims,))

    def _extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"input_dims={inputs}, output_dims={outputs}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        if "bias" in self:
            return mx.addmm(self["bias"], x, self["weight"].T)
        return x @ self["weight"].T

    def to_quantized(
        self,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> QuantizedLinear:
        """The same map with a quantized weight.

        Args:
            group_size: Weights that share a scale; the default of `mode` if None.
            bits: Bits of a weight; the default of `mode` if None.
            mode: How weights are coded, see `mx.quantize`.
            quantize_input: Whether to quantize the input too.

        Raises:
            ValueError: If `mx.quantize` cannot code the weight so, or `mode`
                does not go with `quantize_input`.
            NotImplementedError: If `quantize_input` is asked for.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Linear(64, 8).to_quantized(32, 8).bits
            8
        """
        if quantize_input:
            refuse_quantized_input("Linear", mode)
        return QuantizedLinear.from_linear(self, group_size, bits, mode)


class Bilinear(Module):
    """Output k is ``x1 @ weight[k].T @ x2 + bias[k]``.

    The parameters are `weight` (output_dims, input2_dims, input1_dims) and
    `bias` (output_dims,), drawn uniformly from +-1/sqrt(input1_dims).

    Args:
        input1_dims: Length of the last axis of the first input.
        input2_dims: Length of the last axis of the second input.
        output_dims: Length of the last axis of the output.
        bias: Whether to add a bias.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.Bilinear(2, 3, 4)(mx.ones((5, 2)), mx.ones((5, 3))).shape
        (5, 4)
    """

    def __init__(
        self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True
    ) -> None:
        super().__init__()
        bound = math.sqrt(1.0 / input1_dims)
        shape = (output_dims, input2_dims, input1_dims)
        self.weight = mx.random.uniform(-bound, bound, shape)
        if bias:
            self.bias = mx.random.uniform(-bound, bound, (output_dims,))

    def _extra_repr(self) -> str:
        outputs, inputs2, inputs1 = self.weight.shape
        return (
            f"input1_dims={inputs1}, input2_dims={inputs2}, "
            f"output_dims={outputs}, bias={'bias' in self}"
        )

    def __call__(self, x1: mx.array, x2: mx.array) -> mx.array:
        weight = self["weight"]
        outputs, inputs2, inputs1 = weight.shape
        rows = x1 @ weight.reshape(outputs * inputs2, inputs1).T
        rows = rows.reshape(*x1.shape[:-1], outputs, inputs2)
        y = (rows @ mx.expand_dims(x2, -1)).squeeze(-1)
        return y + self["bias"] if "bias" in self else y
