"""Activation functions.

All work elementwise except those with an `axis`. Floating arrays keep their
type; integers become float32 where a fraction can come out. NaN stays NaN.
"""

from __future__ import annotations

import math

import mlx.core as mx


def sigmoid(x: mx.array) -> mx.array:
    """The logistic function ``1 / (1 + exp(-x))``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.sigmoid(mx.array([0.0])).tolist()
        [0.5]
    """
    return mx.sigmoid(x)


def relu(x: mx.array) -> mx.array:
    """``max(x, 0)``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.relu(mx.array([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    return mx.maximum(x, 0)


def relu2(x: mx.array) -> mx.array:
    """``max(x, 0) ** 2``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.relu2(mx.array([-1.0, 3.0])).tolist()
        [0.0, 9.0]
    """
    return mx.square(mx.maximum(x, 0))


def relu6(x: mx.array) -> mx.array:
    """``min(max(x, 0), 6)``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.relu6(mx.array([-1.0, 3.0, 9.0])).tolist()
        [0.0, 3.0, 6.0]
    """
    return mx.minimum(mx.maximum(x, 0), 6.0)


def leaky_relu(x: mx.array, negative_slope: float = 0.01) -> mx.array:
    """`x` where positive, else ``negative_slope * x``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.leaky_relu(mx.array([-2.0, 2.0]), 0.5).tolist()
        [-1.0, 2.0]
    """
    return mx.where(x > 0, x, negative_slope * x)


def log_softmax(x: mx.array, axis: int = -1) -> mx.array:
    """``x - logsumexp(x)`` along an axis, accurate for values of any size.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> mx.exp(nn.log_softmax(mx.array([1.0, 1.0]))).tolist()
        [0.5, 0.5]
    """
    # Next to a large maximum its logsumexp would lose the logarithm's digits.
    shifted = x - mx.stop_gradient(mx.max(x, axis=axis, keepdims=True))
    return shifted - mx.logsumexp(shifted, axis=axis, keepdims=True)


def elu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """`x` where positive, else ``alpha * (exp(x) - 1)``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.elu(mx.array([-100.0, 2.0])).tolist()
        [-1.0, 2.0]
    """
    # Without the minimum exp would overflow in the branch that is not taken and
    # its gradient would be NaN.
    return mx.where(x > 0, x, alpha * mx.expm1(mx.minimum(x, 0)))


def softmax(x: mx.array, axis: int = -1) -> mx.array:
    """``exp(x) / sum(exp(x))`` along an axis.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.softmax(mx.array([1.0, 1.0])).tolist()
        [0.5, 0.5]
    """
    return mx.softmax(x, axis=axis)


def softplus(x: mx.array) -> mx.array:
    """``log(1 + exp(x))``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.softplus(mx.array([100.0])).tolist()
        [100.0]
    """
    return mx.logaddexp(x, 0)


def softsign(x: mx.array) -> mx.array:
    """``x / (1 + abs(x))``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.softsign(mx.array([-1.0, 3.0])).tolist()
        [-0.5, 0.75]
    """
    return x / (1 + mx.abs(x))


def softshrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """`x` moved towards zero by `lambd`, and zero where it is no larger.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.softshrink(mx.array([-2.0, 0.25])).tolist()
        [-1.5, 0.0]
    """
    return mx.where(mx.abs(x) <= lambd, 0, x - mx.sign(x) * lambd)


def celu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """``max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.celu(mx.array([-100.0, 2.0]), 0.5).tolist()
        [-0.5, 2.0]
    """
    return mx.maximum(x, 0) + alpha * mx.expm1(mx.minimum(x, 0) / alpha)


def silu(x: mx.array) -> mx.array:
    """``x * sigmoid(x)``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.silu(mx.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    return x * mx.sigmoid(x)


def log_sigmoid(x: mx.array) -> mx.array:
    """``log(sigmoid(x))``.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.log_sigmoid(mx.array([-100.0])).tolist()
        [-100.0]
    """
    return -softplus(-x)


def gelu(x: mx.array) -> mx.array:
    """`x` times the Gaussian distribution function, by the error function.

    See https://arxiv.org/abs/1606.08415.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.gelu(mx.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    return x * (1 + mx.erf(x / math.sqrt(2))) / 2


def gelu_approx(x: mx.array) -> mx.array:
    """`gelu` by tanh: ``x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))``.

    Off by at most 0.0005.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.gelu_approx(mx.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + mx.tanh(inner))


def gelu_fast_approx(x: mx.array) -> mx.array:
    """`gelu` by a sigmoid: ``x * sigmoid(1.702 * x)``.

    Off by at most 0.021.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.gelu_fast_approx(mx.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    return x * mx.sigmoid(1.702 * x)


def glu(x: mx.array, axis: int = -1) -> mx.array:
    """The first half times the sigmoid of the second, along an axis.

    See https://arxiv.org/abs/1612.08083.

    Raises:
        ValueError: If the axis has an odd length.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.glu(mx.array([3.0, 0.0])).tolist()
        [1.5]
    """
    value, gate = mx.split(x, 2, axis=axis)
    return value * mx.sigmoid(gate)


def step(x: mx.array, threshold: float = 0.0) -> mx.array:
    """1 where ``x >= threshold``, else 0, as int32.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.step(mx.array([-1.0, 0.0, 1.0])).tolist()
        [0, 1, 1]
    """
    return (x >= threshold).astype(mx.int32)


def selu(x: mx.array) -> mx.array:
    """``1.0507 * elu(x, 1.67326)``, see https://arxiv.org/abs/1706.02515.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.selu(mx.array([0.0])).tolist()
        [0.0]
    """
    return 1.0507 * elu(x, 1.67326)


def prelu(x: mx.array, alpha: mx.array) -> mx.array:
    """``max(x, 0) + alpha * min(x, 0)``.

    Args:
        x: The input.
        alpha: The slopes for negative values; broadcast against `x`.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.prelu(mx.array([-2.0, 2.0]), mx.array([0.5])).tolist()
        [-1.0, 2.0]
    """
    return mx.maximum(x, 0) + alpha * mx.minimum(x, 0)


def mish(x: mx.array) -> mx.array:
    """``x * tanh(softplus(x))``, see https://arxiv.org/abs/1908.08681.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.mish(mx.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    return x * mx.tanh(softplus(x))


def hardswish(x: mx.array) -> mx.array:
    """``x * min(max(x + 3, 0), 6) / 6``, see https://arxiv.org/abs/1905.02244.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.hardswish(mx.array([0.0, 9.0])).tolist()
        [0.0, 9.0]
    """
    return x * mx.minimum(mx.maximum(x + 3, 0), 6) / 6


def hard_tanh(x: mx.array, min_val: float = -1.0, max_val: float = 1.0) -> mx.array:
    """`x` clipped to [min_val, max_val].

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.hard_tanh(mx.array([-2.0, 0.5])).tolist()
        [-1.0, 0.5]
    """
    return mx.minimum(mx.maximum(x, min_val), max_val)


def hard_shrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """`x` where ``abs(x) > lambd``, else 0.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.hard_shrink(mx.array([-2.0, 0.25])).tolist()
        [-2.0, 0.0]
    """
    return mx.where(mx.abs(x) <= lambd, 0, x)


def softmin(x: mx.array, axis: int = -1) -> mx.array:
    """``softmax(-x)`` along an axis.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.softmin(mx.array([1.0, 1.0])).tolist()
        [0.5, 0.5]
    """
    return mx.softmax(-x, axis=axis)


def tanh(x: mx.array) -> mx.array:
    """The hyperbolic tangent.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.tanh(mx.array([0.0])).tolist()
        [0.0]
    """
    return mx.tanh(x)
