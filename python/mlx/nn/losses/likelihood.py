"""Losses that are likelihoods: of classes, of distributions, of samples."""

from __future__ import annotations

import math

import mlx.core as mx
from mlx.nn.losses._common import (
    Reduction,
    checked_axis,
    picked,
    reduce,
    same_shape,
    weighted,
)


def cross_entropy(
    logits: mx.array,
    targets: mx.array,
    weights: mx.array | None = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    r"""Minus the log-probability of the targets under a softmax of the logits.

    .. math:: -\sum_c q_c \log \operatorname{softmax}(x)_c,
        \quad q = (1 - \epsilon) t + \epsilon / C

    The smoothing of the targets is that of Szegedy et al., "Rethinking the
    inception architecture" (2016), https://arxiv.org/abs/1512.00567, section 7.

    Args:
        logits: Scores of the C classes along `axis`, of any scale.
        targets: Class indices (the shape of `logits` without `axis`), or
            probabilities (the shape of `logits`).
        weights: Factors of the losses, of their shape.
        axis: Where the classes are.
        label_smoothing: The share :math:`\epsilon` in [0, 1) of the target that is
            spread over all classes.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, shaped as `logits` without `axis`, or their mean or sum.

    Raises:
        ValueError: If shapes do not fit, or `label_smoothing` or `reduction` is
            out of range.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> logits = mx.array([[0.0, 0.0], [2.0, 0.0]])
        >>> nn.losses.cross_entropy(logits, mx.array([1, 0]))
        array([0.693147, 0.126928], dtype=float32)
        >>> nn.losses.cross_entropy(logits, mx.array([[0.0, 1.0], [0.5, 0.5]]))
        array([0.693147, 1.12693], dtype=float32)
    """
    op = "cross_entropy"
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(
            f"[{op}] label_smoothing out of range: {label_smoothing}. "
            "It must be at least 0 and less than 1."
        )
    axis = checked_axis(op, logits, axis)
    # Only differences of logits count. Taken from the largest one, they keep
    # their digits whatever the common offset is.
    logits = logits - mx.stop_gradient(mx.max(logits, axis, keepdims=True))
    norm = mx.logsumexp(logits, axis, keepdims=True)
    if targets.ndim == logits.ndim:
        same_shape(op, logits=logits, targets=targets)
        score = mx.sum(targets * (logits - norm), axis)
    else:
        score = picked(op, logits, targets, axis) - norm.squeeze(axis)
    if label_smoothing > 0:
        even = mx.mean(logits, axis) - norm.squeeze(axis)
        score = (1 - label_smoothing) * score + label_smoothing * even
    return reduce(op, weighted(op, -score, weights), reduction)


def binary_cross_entropy(
    inputs: mx.array,
    targets: mx.array,
    weights: mx.array | None = None,
    with_logits: bool = True,
    reduction: Reduction = "mean",
) -> mx.array:
    r"""The log loss of two classes, :math:`-t \log p - (1 - t) \log(1 - p)`.

    Args:
        inputs: Logits, or if `with_logits` is False probabilities :math:`p` in
            [0, 1]. Logarithms of these are at least -100, and their slope at 0
            counts as 0, so that loss and gradient stay finite.
        targets: Probabilities of the first class, of the shape of `inputs`.
        weights: Factors of the losses, of their shape.
        with_logits: Whether :math:`p` is the sigmoid of `inputs`.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, shaped as `inputs`, or their mean or sum.

    Raises:
        ValueError: If shapes differ or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> bce = nn.losses.binary_cross_entropy
        >>> bce(mx.array([0.0, 2.0]), mx.array([1, 1]), reduction="none")
        array([0.693147, 0.126928], dtype=float32)
        >>> bce(mx.array([0.5, 0.8]), mx.array([0, 1]), with_logits=False)
        array(0.458145, dtype=float32)
    """
    op = "binary_cross_entropy"
    same_shape(op, inputs=inputs, targets=targets)
    if with_logits:
        loss = mx.logaddexp(0.0, inputs) - inputs * targets
    else:
        loss = -(targets * _log100(inputs) + (1 - targets) * _log100(1 - inputs))
    return reduce(op, weighted(op, loss, weights), reduction)


def _log100(p: mx.array) -> mx.array:
    """log(p), at least -100; at zero the slope is 0, not inf * 0."""
    zero = p <= 0
    return mx.where(zero, -100.0, mx.maximum(mx.log(mx.where(zero, 1.0, p)), -100.0))


def nll_loss(
    inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none"
) -> mx.array:
    """Minus the log-probability at each target.

    Args:
        inputs: Log-probabilities of the classes along `axis`.
        targets: Class indices, of the shape of `inputs` without `axis`.
        axis: Where the classes are.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the shape of `targets`, or their mean or sum.

    Raises:
        ValueError: If shapes do not fit or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> inputs = mx.log(mx.array([[0.5, 0.5], [0.25, 0.75]]))
        >>> nn.losses.nll_loss(inputs, mx.array([0, 1]))
        array([0.693147, 0.287682], dtype=float32)
    """
    axis = checked_axis("nll_loss", inputs, axis)
    loss = -picked("nll_loss", inputs, targets, axis)
    return reduce("nll_loss", loss, reduction)


def gaussian_nll_loss(
    inputs: mx.array,
    targets: mx.array,
    vars: mx.array,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> mx.array:
    r"""Minus the log-density of targets under normal distributions.

    .. math:: \frac12 \left(\log v + \frac{(x - t)^2}{v}\right)
        \; \left[+ \frac12 \log 2\pi\right], \quad v = \max(\mathrm{vars}, \epsilon)

    Nix and Weigend, "Estimating the mean and variance of the target probability
    distribution" (1994), https://doi.org/10.1109/ICNN.1994.374138.

    Args:
        inputs: Predicted means.
        targets: Samples, of the same shape.
        vars: Predicted variances, of the same shape.
        full: Whether to add the constant term.
        eps: The least variance.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the shape of the arguments, or their mean or sum.

    Raises:
        ValueError: If shapes differ or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> x, v = mx.array([0.0, 1.0]), mx.array([1.0, 1.0])
        >>> nn.losses.gaussian_nll_loss(x, mx.array([2.0, 1.0]), v).item()
        1.0
    """
    op = "gaussian_nll_loss"
    same_shape(op, inputs=inputs, targets=targets, vars=vars)
    variance = mx.maximum(vars, eps)
    loss = 0.5 * (mx.log(variance) + mx.square(targets - inputs) / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce(op, loss, reduction)


def kl_div_loss(
    inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none"
) -> mx.array:
    r"""The Kullback-Leibler divergence :math:`\sum e^t (t - x)` of two distributions.

    Kullback and Leibler, "On information and sufficiency" (1951),
    https://doi.org/10.1214/aoms/1177729694.

    Args:
        inputs: Log-probabilities :math:`x` of the predicted distribution.
        targets: Log-probabilities :math:`t` of the true one; the shapes broadcast.
        axis: Where the classes are; they are summed.
        reduction: ``"none"``, ``"mean"`` (over the sums) or ``"sum"``.

    Returns:
        The divergences, shaped as the inputs without `axis`, or their mean or sum.

    Raises:
        ValueError: If the shapes do not broadcast or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> p, q = mx.array([[0.5, 0.5]]), mx.array([[0.25, 0.75]])
        >>> nn.losses.kl_div_loss(mx.log(q), mx.log(p))
        array([0.143841], dtype=float32)
    """
    loss = mx.sum(mx.exp(targets) * (targets - inputs), axis)
    return reduce("kl_div_loss", loss, reduction)
