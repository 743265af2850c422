"""Tables of vectors that are looked up by integer."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx.nn.layers.quantized import QuantizedEmbedding


class Embedding(Module):
    """A table of vectors, looked up by index.

    The parameter is `weight` (num_embeddings, dims), drawn from a normal
    distribution of standard deviation 1/sqrt(dims).

    Args:
        num_embeddings: Number of vectors.
        dims: Length of a vector.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> table = nn.Embedding(10, 4)
        >>> table(mx.array([[1, 2, 3]])).shape
        (1, 3, 4)
        >>> table.as_linear(mx.ones((2, 4))).shape
        (2, 10)
    """

    def __init__(self, num_embeddings: int, dims: int) -> None:
        super().__init__()
        deviation = math.sqrt(1.0 / dims)
        self.weight = mx.random.normal((num_embeddings, dims), scale=deviation)

    def _extra_repr(self) -> str:
        count, dims = self.weight.shape
        return f"{count}, {dims}"

    def __call__(self, x: mx.array) -> mx.array:
        return self["weight"][x]

    def as_linear(self, x: mx.array) -> mx.array:
        """Use the table as the weight of a linear map without bias.

        Args:
            x: Array (..., dims).

        Returns:
            ``x @ weight.T`` (..., num_embeddings), as for an output layer that
            shares its weights with the input embedding.

        Example:
            >>> import mlx.core as mx
            >>> import mlx.nn as nn
            >>> nn.Embedding(10, 4).as_linear(mx.ones((2, 4))).shape
            (2, 10)
        """
        return x @ self["weight"].T

    def to_quantized(
        self,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> QuantizedEmbedding:
        """The same table, quantized.

        Args:
            group_size: Values that share a scale; the default of `mode` if None.
            bits: Bits of a value; the default of `mode` if None.
            mode: How values are coded, see `mx.quantize`.
            quantize_input: Must be false: indices cannot be quantized.

        Raises:
            ValueError: If `quantize_input` is true or `mx.quantize` cannot code
                the table so.

        Example:
            >>> import mlx.nn as nn
            >>> nn.Embedding(10, 64).to_quantized().weight.shape
            (10, 8)
        """
        if quantize_input:
            raise ValueError(
                "[Embedding.to_quantized] the input cannot be quantized: it is "
                "indices. Leave quantize_input out."
            )
        return QuantizedEmbedding.from_embedding(self, group_size, bits, mode)
