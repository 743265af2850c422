"""Losses of order and direction: margins between scores or distances, angles."""

from __future__ import annotations

import mlx.core as mx
from mlx.nn.losses._common import Reduction, reduce, same_shape


def triplet_loss(
    anchors: mx.array,
    positives: mx.array,
    negatives: mx.array,
    axis: int = -1,
    p: int = 2,
    margin: float = 1.0,
    eps: float = 1e-6,
    reduction: Reduction = "none",
) -> mx.array:
    r"""How much nearer an anchor should be to its like than to its unlike.

    .. math:: \max(d(a, p) - d(a, n) + \mathrm{margin}, 0), \quad
        d(x, y) = \left(\sum |x - y|^p + \epsilon\right)^{1/p}

    Schroff et al., "FaceNet: a unified embedding for face recognition and
    clustering" (2015), https://arxiv.org/abs/1503.03832.

    Args:
        anchors: Vectors along `axis`.
        positives: Vectors that should be near; the shapes broadcast.
        negatives: Vectors that should be far.
        axis: The axis of the vectors.
        p: Degree of the norm.
        margin: By how much the distances should differ.
        eps: Keeps the slope of the root finite for equal vectors.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the common shape without `axis`, or their mean or sum.

    Raises:
        ValueError: If shapes do not broadcast or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> a = mx.array([[0.0, 0.0]])
        >>> b, c = mx.array([[3.0, 4.0]]), mx.array([[0.0, 2.0]])
        >>> nn.losses.triplet_loss(a, b, c)
        array([4], dtype=float32)
    """

    def distance(x: mx.array, y: mx.array) -> mx.array:
        if p == 1:
            return mx.sum(mx.abs(x - y), axis) + eps
        if p == 2:
            return mx.sqrt(mx.sum(mx.square(x - y), axis) + eps)
        return mx.power(mx.sum(mx.power(mx.abs(x - y), p), axis) + eps, 1 / p)

    gap = distance(anchors, positives) - distance(anchors, negatives)
    return reduce("triplet_loss", mx.maximum(gap + margin, 0), reduction)


def hinge_loss(
    inputs: mx.array, targets: mx.array, reduction: Reduction = "none"
) -> mx.array:
    r"""How far a score is on the wrong side of its margin, :math:`\max(1 - x t, 0)`.

    Cortes and Vapnik, "Support-vector networks" (1995),
    https://doi.org/10.1007/BF00994018.

    Args:
        inputs: Scores :math:`x`.
        targets: Signs :math:`t`, -1 or 1; the shapes broadcast.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the common shape, or their mean or sum.

    Raises:
        ValueError: If shapes do not broadcast or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.losses.hinge_loss(mx.array([0.5, 2.0]), mx.array([1, -1])).tolist()
        [0.5, 3.0]
    """
    return reduce("hinge_loss", mx.maximum(1 - inputs * targets, 0), reduction)


def cosine_similarity_loss(
    x1: mx.array,
    x2: mx.array,
    axis: int = 1,
    eps: float = 1e-8,
    reduction: Reduction = "none",
) -> mx.array:
    r"""The cosine of the angle between vectors: 1 where they point the same way.

    .. math:: \frac{x_1 \cdot x_2}{\max(\|x_1\| \, \|x_2\|, \epsilon)}

    It is the similarity itself, so it is to be made large, not small.

    Args:
        x1: Vectors along `axis`.
        x2: Vectors along `axis`; the shapes broadcast.
        axis: The axis of the vectors.
        eps: The least divisor.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The cosines, of the common shape without `axis`, or their mean or sum.

    Raises:
        ValueError: If shapes do not broadcast or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> x, y = mx.array([[3.0, 4.0]]), mx.array([[4.0, 3.0]])
        >>> nn.losses.cosine_similarity_loss(x, y)
        array([0.96], dtype=float32)
    """

    def norm(x: mx.array) -> mx.array:
        # The root has no slope at zero; a vector of zeros has norm and slope 0.
        squares = mx.sum(mx.square(x), axis)
        zero = squares == 0
        return mx.where(zero, 0.0, mx.sqrt(mx.where(zero, 1.0, squares)))

    lengths = mx.maximum(norm(x1) * norm(x2), eps)
    return reduce("cosine_similarity_loss", mx.sum(x1 * x2, axis) / lengths, reduction)


def margin_ranking_loss(
    inputs1: mx.array,
    inputs2: mx.array,
    targets: mx.array,
    margin: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    r"""How much two scores miss their order, :math:`\max(-t (x_1 - x_2) + m, 0)`.

    Herbrich et al., "Support vector learning for ordinal regression" (1999),
    https://doi.org/10.1049/cp:19991091.

    Args:
        inputs1: Scores :math:`x_1`.
        inputs2: Scores :math:`x_2`, of the same shape.
        targets: 1 where the first should be larger, -1 where the second should,
            of the same shape.
        margin: By how much they should differ.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The losses, of the shape of the arguments, or their mean or sum.

    Raises:
        ValueError: If shapes differ or `reduction` is unknown.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> x, y = mx.array([1.0, 1.0]), mx.array([3.0, 0.0])
        >>> nn.losses.margin_ranking_loss(x, y, mx.array([1, 1])).tolist()
        [2.0, 0.0]
    """
    op = "margin_ranking_loss"
    same_shape(op, inputs1=inputs1, inputs2=inputs2, targets=targets)
    return reduce(op, mx.maximum(margin - targets * (inputs1 - inputs2), 0), reduction)
