"""Losses of single values: how far a prediction is from its target."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.nn.losses._common import Reduction, not_negative, reduce, same_shape


def l1_loss(
    predictions: mx.array, targets: mx.array, reduction: Reduction = "mean"
) -> mx.array:
    """The absolute difference.

    Args:
        predictions: Predicted values.
        targets: True values, of the same shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the shape of the arguments, or their mean or sum.

    Raises:
        ValueError: If shapes differ or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.losses.l1_loss(mx.array([1.0, 2.0]), mx.array([3.0, 2.0])).item()
        1.0
    """
    same_shape("l1_loss", predictions=predictions, targets=targets)
    return reduce("l1_loss", mx.abs(predictions - targets), reduction)


def mse_loss(
    predictions: mx.array, targets: mx.array, reduction: Reduction = "mean"
) -> mx.array:
    """The squared difference.

    Args:
        predictions: Predicted values.
        targets: True values, of the same shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the shape of the arguments, or their mean or sum.

    Raises:
        ValueError: If shapes differ or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.losses.mse_loss(mx.array([1.0, 2.0]), mx.array([3.0, 2.0])).item()
        2.0
    """
    same_shape("mse_loss", predictions=predictions, targets=targets)
    return reduce("mse_loss", mx.square(predictions - targets), reduction)


def smooth_l1_loss(
    predictions: mx.array,
    targets: mx.array,
    beta: float = 1.0,
    reduction: Reduction = "mean",
) -> mx.array:
    r"""The absolute difference with a parabola around zero.

    .. math:: \begin{cases} d^2 / 2\beta & |d| < \beta \\
        |d| - \beta / 2 & \text{else} \end{cases}

    Girshick, "Fast R-CNN" (2015), https://arxiv.org/abs/1504.08083.

    Args:
        predictions: Predicted values.
        targets: True values, of the same shape.
        beta: Where the parabola ends; 0 gives the absolute difference.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the shape of the arguments, or their mean or sum.

    Raises:
        ValueError: If shapes differ, `beta` is negative or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> x, y = mx.array([1.5, 4.0]), mx.array([1.0, 1.0])
        >>> nn.losses.smooth_l1_loss(x, y, reduction="none").tolist()
        [0.125, 2.5]
    """
    op = "smooth_l1_loss"
    same_shape(op, predictions=predictions, targets=targets)
    not_negative(op, "beta", beta)
    distance = mx.abs(predictions - targets)
    if beta > 0:
        parabola = mx.square(distance) * (0.5 / beta)
        distance = mx.where(distance < beta, parabola, distance - 0.5 * beta)
    return reduce(op, distance, reduction)


def huber_loss(
    inputs: mx.array,
    targets: mx.array,
    delta: float = 1.0,
    reduction: Reduction = "none",
) -> mx.array:
    r"""Half the squared difference, with straight lines outside of `delta`.

    .. math:: \begin{cases} d^2 / 2 & |d| \le \delta \\
        \delta \, (|d| - \delta / 2) & \text{else} \end{cases}

    Huber, "Robust estimation of a location parameter" (1964),
    https://doi.org/10.1214/aoms/1177703732.

    Args:
        inputs: Predicted values.
        targets: True values; the shapes broadcast.
        delta: Where the parabola ends.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the common shape, or their mean or sum.

    Raises:
        ValueError: If `delta` is negative, shapes do not broadcast or `reduction`
            is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.losses.huber_loss(mx.array([1.0, 4.0]), mx.array(0.0), 2.0).tolist()
        [0.5, 6.0]
    """
    not_negative("huber_loss", "delta", delta)
    distance = mx.abs(inputs - targets)
    parabola = 0.5 * mx.square(distance)
    line = delta * (distance - 0.5 * delta)
    loss = mx.where(distance <= delta, parabola, line)
    return reduce("huber_loss", loss, reduction)


def log_cosh_loss(
    inputs: mx.array, targets: mx.array, reduction: Reduction = "none"
) -> mx.array:
    r"""The logarithm of the hyperbolic cosine of the difference :math:`d`.

    A parabola near zero and :math:`|d| - \log 2` far from it; worked out as
    :math:`\log(e^d + e^{-d}) - \log 2`, which does not overflow.

    Args:
        inputs: Predicted values.
        targets: True values; the shapes broadcast.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the common shape, or their mean or sum.

    Raises:
        ValueError: If shapes do not broadcast or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.losses.log_cosh_loss(mx.array([1.0, 300.0]), mx.array(0.0))
        array([0.433781, 299.307], dtype=float32)
    """
    difference = inputs - targets
    loss = mx.logaddexp(difference, -difference) - math.log(2)
    return reduce("log_cosh_loss", loss, reduction)
