"""Layers whose weight is quantized, and the conversion of models to them.

A weight is kept as packed codes (`weight`, uint32) with `scales` and, in affine
mode, `biases` for every group of neighbours along its last axis.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NoReturn, Union

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx.utils import tree_map_with_path

# Group size and bits of each mode when they are not given.
_DEFAULTS = {
    "affine": (64, 4),
    "mxfp4": (32, 4),
    "mxfp8": (32, 8),
    "nvfp4": (16, 4),
}
_INPUT_MODES = ("nvfp4", "mxfp8")

Predicate = Callable[[str, Module], Union[bool, dict[str, Any]]]


def _group_and_bits(
    op: str, group_size: int | None, bits: int | None, mode: str
) -> tuple[int, int]:
    if mode not in _DEFAULTS:
        raise ValueError(
            f"[{op}] unknown quantization mode: {mode!r}. "
            f"It must be one of {', '.join(_DEFAULTS)}."
        )
    default_group, default_bits = _DEFAULTS[mode]
    return group_size or default_group, bits or default_bits


def refuse_quantized_input(layer: str, mode: str) -> NoReturn:
    """Raise the error for ``to_quantized(quantize_input=True)``."""
    op = f"[{layer}.to_quantized]"
    if mode not in _INPUT_MODES:
        raise ValueError(
            f"{op} mode does not go with quantized inputs: {mode!r}. "
            f"It must be one of {', '.join(_INPUT_MODES)}."
        )
    raise NotImplementedError(
        f"{op} no layer quantizes its inputs yet: {mode!r} was asked. "
        "Leave quantize_input out."
    )


class _Quantized(Module):
    """What both quantized layers share: the packed weight and its settings."""

    group_size: int
    bits: int
    mode: str

    def _set_layout(self, group_size: int | None, bits: int | None, mode: str) -> None:
        name = type(self).__name__
        self.group_size, self.bits = _group_and_bits(name, group_size, bits, mode)
        self.mode = mode

    def _pack(self, weight: mx.array) -> None:
        self.weight, self.scales, *biases = mx.quantize(
            weight, group_size=self.group_size, bits=self.bits, mode=self.mode
        )
        if biases:
            self.biases = biases[0]

    def _layout_repr(self) -> str:
        return f"group_size={self.group_size}, bits={self.bits}, mode={self.mode}"


def _times_transposed(x: mx.array, layer: _Quantized) -> mx.array:
    """``x @ weight.T`` with the packed weight.

    A model with small layers spends more time here than in the product: an
    attribute of a module takes several look-ups, its dictionary as a whole
    takes them once, and arguments by position are bound faster than by name.
    """
    settings = layer.__dict__
    return mx.quantized_matmul(
        x,
        layer["weight"],
        layer["scales"],
        layer.get("biases"),
        True,
        settings["group_size"],
        settings["bits"],
        settings["mode"],
    )


class QuantizedLinear(_Quantized):
    """The affine map ``x @ weight.T + bias`` with a quantized weight.

    All parameters are frozen at first: `weight` (output_dims, input_dims *
    bits / 32) uint32, `scales` and, in affine mode, `biases` (output_dims,
    input_dims / group_size), and `bias` (output_dims,).

    Args:
        input_dims: Length of the last axis of the input.
        output_dims: Length of the last axis of the output.
        bias: Whether to add a bias.
        group_size: Weights that share a scale; the default of `mode` if None.
        bits: Bits of a weight; the default of `mode` if None.
        mode: How weights are coded, see `mx.quantize`.

    Raises:
        ValueError: If `mx.quantize` has no such code, or `input_dims` is not
            divisible by the group size.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.QuantizedLinear(64, 8)(mx.ones((2, 64))).shape
        (2, 8)
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> None:
        super().__init__()
        self._set_layout(group_size, bits, mode)
        bound = math.sqrt(1.0 / input_dims)
        self._pack(mx.random.uniform(-bound, bound, (output_dims, input_dims)))
        if bias:
            self.bias = mx.zeros((output_dims,))
        self.freeze()

    def _extra_repr(self) -> str:
        outputs, words = self.weight.shape
        return (
            f"input_dims={words * 32 // self.bits}, output_dims={outputs}, "
            f"bias={'bias' in self}, {self._layout_repr()}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        y = _times_transposed(x, self)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> QuantizedLinear:
        """Quantize a `Linear`; its bias is kept as it is and stays trainable.

        Args:
            linear_layer: The layer with `weight` and perhaps `bias`.
            group_size: Weights that share a scale; the default of `mode` if None.
            bits: Bits of a weight; the default of `mode` if None.
            mode: How weights are coded, see `mx.quantize`.

        Raises:
            ValueError: As for `QuantizedLinear`.

        Example:
            >>> import mlx.nn as nn
            >>> nn.QuantizedLinear.from_linear(nn.Linear(64, 8), bits=8).bits
            8
        """
        outputs, inputs = linear_layer.weight.shape
        layer = cls(inputs, outputs, False, group_size, bits, mode)
        layer._pack(linear_layer.weight)
        if "bias" in linear_layer:
            layer.bias = linear_layer.bias
        return layer


class QuantizedEmbedding(_Quantized):
    """A quantized table of vectors, looked up by index.

    All parameters are frozen at first: `weight` (num_embeddings, dims * bits /
    32) uint32, `scales` and, in affine mode, `biases` (num_embeddings, dims /
    group_size).

    Args:
        num_embeddings: Number of vectors.
        dims: Length of a vector.
        group_size: Values that share a scale; the default of `mode` if None.
        bits: Bits of a value; the default of `mode` if None.
        mode: How values are coded, see `mx.quantize`.

    Raises:
        ValueError: If `mx.quantize` has no such code, or `dims` is not
            divisible by the group size.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.QuantizedEmbedding(10, 64)(mx.array([1, 2])).shape
        (2, 64)
    """

    def __init__(
        self,
        num_embeddings: int,
        dims: int,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> None:
        super().__init__()
        self._set_layout(group_size, bits, mode)
        self.num_embeddings = num_embeddings
        self.dims = dims
        deviation = math.sqrt(1.0 / dims)
        self._pack(mx.random.normal((num_embeddings, dims), scale=deviation))
        self.freeze()

    def _extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.dims}, {self._layout_repr()}"

    def __call__(self, x: mx.array) -> mx.array:
        biases = self.get("biases")
        return mx.dequantize(
            self["weight"][x],
            scales=self["scales"][x],
            biases=None if biases is None else biases[x],
            group_size=self.group_size,
            bits=self.bits,
            mode=self.mode,
        )

    def as_linear(self, x: mx.array) -> mx.array:
        """Use the table as the weight of a linear map without bias.

        Args:
            x: Array (..., dims).

        Returns:
            ``x @ weight.T`` (..., num_embeddings).

        Example:
            >>> import mlx.core as mx
            >>> import mlx.nn as nn
            >>> nn.QuantizedEmbedding(10, 64).as_linear(mx.ones((2, 64))).shape
            (2, 10)
        """
        return _times_transposed(x, self)

    @classmethod
    def from_embedding(
        cls,
        embedding_layer: Module,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> QuantizedEmbedding:
        """Quantize an `Embedding`.

        Args:
            embedding_layer: The layer with `weight`.
            group_size: Values that share a scale; the default of `mode` if None.
            bits: Bits of a value; the default of `mode` if None.
            mode: How values are coded, see `mx.quantize`.

        Raises:
            ValueError: As for `QuantizedEmbedding`.

        Example:
            >>> import mlx.nn as nn
            >>> nn.QuantizedEmbedding.from_embedding(nn.Embedding(10, 64)).dims
            64
        """
        count, dims = embedding_layer.weight.shape
        layer = cls(count, dims, group_size, bits, mode)
        layer._pack(embedding_layer.weight)
        return layer


def _can_be_quantized(path: str, module: Module) -> bool:
    return hasattr(module, "to_quantized")


def quantize(
    model: Module,
    group_size: int | None = None,
    bits: int | None = None,
    *,
    mode: str = "affine",
    quantize_input: bool = False,
    class_predicate: Predicate | None = None,
) -> None:
    """Replace sub-modules that have `to_quantized` by what it returns.

    Args:
        model: Changed in place.
        group_size: Weights that share a scale; the default of `mode` if None.
        bits: Bits of a weight; the default of `mode` if None.
        mode: How weights are coded, see `mx.quantize`.
        quantize_input: Passed on to `to_quantized`.
        class_predicate: Called with the path and each module without
            sub-modules. True quantizes it as said by the other arguments, a
            dictionary with the arguments in it instead, false leaves it alone.

    Raises:
        ValueError: If the predicate chooses a module that has no
            `to_quantized`, or returns something else.

    Example:
        >>> import mlx.nn as nn
        >>> net = nn.Sequential(nn.Linear(64, 8, bias=False), nn.ReLU())
        >>> nn.quantize(net, bits=8)
        >>> net.layers[0].bits
        8
    """
    chosen = class_predicate or _can_be_quantized
    arguments: dict[str, Any] = {
        "group_size": group_size,
        "bits": bits,
        "mode": mode,
        "quantize_input": quantize_input,
    }

    def convert(path: str, module: Any) -> Any:
        if not Module.is_module(module):
            return module
        answer = chosen(path, module)
        if not answer:
            return module
        if not hasattr(module, "to_quantized"):
            raise ValueError(
                f"[quantize] cannot be quantized: {path!r}, a "
                f"{type(module).__name__}. It has no to_quantized."
            )
        if isinstance(answer, dict):
            return module.to_quantized(**answer)
        if isinstance(answer, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            return module.to_quantized(**arguments)
        raise ValueError(
            f"[quantize] class_predicate returned a {type(answer).__name__} for "
            f"{path!r}. It must return a bool or a dict of arguments."
        )

    leaves = model.leaf_modules()
    model.update_modules(
        tree_map_with_path(convert, leaves, is_leaf=Module.is_module), strict=False
    )
