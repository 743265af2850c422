"""Activation functions as layers, for use in `Sequential` and the like.

Layers without arguments call the function of the same name, for example
``nn.ReLU()(x)`` is ``nn.relu(x)``.
"""

from __future__ import annotations

import mlx.core as mx
from mlx.nn.layers import activations
from mlx.nn.layers.base import Module


class Sigmoid(Module):
    """Layer form of `sigmoid`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.sigmoid(x)


class Mish(Module):
    """Layer form of `mish`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.mish(x)


class ReLU(Module):
    """Layer form of `relu`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.relu(x)


class ReLU2(Module):
    """Layer form of `relu2`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.relu2(x)


class ReLU6(Module):
    """Layer form of `relu6`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.relu6(x)


class Softmax(Module):
    """Layer form of `softmax` over the last axis."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.softmax(x)


class Softplus(Module):
    """Layer form of `softplus`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.softplus(x)


class Softsign(Module):
    """Layer form of `softsign`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.softsign(x)


class SiLU(Module):
    """Layer form of `silu`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.silu(x)


class LogSoftmax(Module):
    """Layer form of `log_softmax` over the last axis."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.log_softmax(x)


class LogSigmoid(Module):
    """Layer form of `log_sigmoid`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.log_sigmoid(x)


class Tanh(Module):
    """Layer form of `tanh`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.tanh(x)


class Hardswish(Module):
    """Layer form of `hardswish`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.hardswish(x)


class SELU(Module):
    """Layer form of `selu`."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.selu(x)


class HardTanh(Module):
    """Layer form of `hard_tanh` with the range -1 to 1."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.hard_tanh(x)


class Softmin(Module):
    """Layer form of `softmin` over the last axis."""

    def __call__(self, x: mx.array) -> mx.array:
        return activations.softmin(x)


class GLU(Module):
    """Layer form of `glu`.

    Args:
        axis: The axis that is halved.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.GLU()(mx.array([3.0, 0.0])).tolist()
        [1.5]
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        return activations.glu(x, axis=self.axis)


class LeakyReLU(Module):
    """Layer form of `leaky_relu`.

    Args:
        negative_slope: Factor on negative values.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.LeakyReLU(0.5)(mx.array([-2.0, 2.0])).tolist()
        [-1.0, 2.0]
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def __call__(self, x: mx.array) -> mx.array:
        return activations.leaky_relu(x, self._negative_slope)


class ELU(Module):
    """Layer form of `elu`.

    Args:
        alpha: Minus the limit for large negative values.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.ELU(0.5)(mx.array([-100.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        return activations.elu(x, self._alpha)


class CELU(Module):
    """Layer form of `celu`.

    Args:
        alpha: Minus the limit for large negative values.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.CELU(0.5)(mx.array([-100.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        return activations.celu(x, self._alpha)


class Softshrink(Module):
    """Layer form of `softshrink`.

    Args:
        lambd: How far values move towards zero.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.Softshrink(1.0)(mx.array([-2.0, 0.25])).tolist()
        [-1.0, 0.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        return activations.softshrink(x, self.lambd)


class HardShrink(Module):
    """Layer form of `hard_shrink`.

    Args:
        lambd: The largest magnitude that becomes zero.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.HardShrink()(mx.array([-2.0, 0.25])).tolist()
        [-2.0, 0.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        return activations.hard_shrink(x, self.lambd)


class Step(Module):
    """Layer form of `step`.

    Args:
        threshold: Where the step is.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.Step(1.0)(mx.array([0.5, 1.5])).tolist()
        [0, 1]
    """

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = threshold

    def __call__(self, x: mx.array) -> mx.array:
        return activations.step(x, self.threshold)


class PReLU(Module):
    """Layer form of `prelu`: the slope of negative values is learned.

    The parameter is `weight` (num_parameters,).

    Args:
        num_parameters: 1, or the length of the last axis of the input.
        init: The slope to begin with.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.PReLU()(mx.array([-2.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.weight = mx.full((num_parameters,), init)

    def __call__(self, x: mx.array) -> mx.array:
        return activations.prelu(x, self["weight"])


_GELUS = {
    "none": activations.gelu,
    "precise": activations.gelu_approx,
    "tanh": activations.gelu_approx,
    "fast": activations.gelu_fast_approx,
}


class GELU(Module):
    """Layer form of `gelu` and its approximations.

    Args:
        approx: "none" for `gelu`, "precise" or "tanh" for `gelu_approx`, "fast"
            for `gelu_fast_approx`.

    Raises:
        ValueError: If `approx` is something else.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.GELU("fast")(mx.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """

    def __init__(self, approx: str = "none") -> None:
        super().__init__()
        if approx not in _GELUS:
            raise ValueError(
                f"[GELU] unknown approximation: {approx!r}. "
                f"It must be one of {', '.join(_GELUS)}."
            )
        self._approx = approx

    def __call__(self, x: mx.array) -> mx.array:
        return _GELUS[self._approx](x)
