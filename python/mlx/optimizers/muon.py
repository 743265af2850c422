"""Muon: the momentum of a matrix, made orthogonal."""

from __future__ import annotations

import mlx.core as mx
from mlx.optimizers.base import Float32Optimizer, LearningRate, State

# Of the polynomial a x + b x^3 + c x^5, chosen by Jordan to lift small singular
# values fast; it brings all of them near 1, within about 0.3, and no nearer.
_A, _B, _C = 3.4445, -4.7750, 2.0315


class Muon(Float32Optimizer):
    r"""Momentum whose singular values are all brought near 1.

    .. math:: v &\leftarrow \mu v + (1 - \mu)(g + \lambda w) \\
        w &\leftarrow w - \eta \sqrt{\max(1, n / m)} \, \operatorname{orthogonal}(v)

    For n by m matrices; arrays of more axes are made orthogonal as matrices of
    ``shape[0]`` rows, those of fewer take :math:`v` as it is. Embeddings and last
    layers are better left to another optimizer (`MultiOptimizer`). Jordan et al.,
    "Muon: an optimizer for hidden layers in neural networks" (2024),
    https://kellerjordan.github.io/posts/muon.

    Args:
        learning_rate: :math:`\eta`, or a function of the step.
        momentum: :math:`\mu`.
        weight_decay: :math:`\lambda`.
        nesterov: Whether to look one step ahead.
        ns_steps: Newton-Schulz steps that make the matrix orthogonal.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.Muon(0.5, weight_decay=0.0)
        >>> w = {"w": mx.zeros((3, 3))}
        >>> step = optimizer.apply_gradients({"w": 100 * mx.eye(3)}, w)["w"]
        >>> bool(mx.all(mx.abs(mx.diag(step) + 0.5) < 0.2))
        True
    """

    def __init__(
        self,
        learning_rate: LearningRate,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.ns_steps = ns_steps

    def init_single(self, parameter: mx.array, state: State) -> None:
        """``v``, the momentum."""
        state["v"] = mx.zeros_like(parameter)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        v = self.momentum * state["v"] + (1 - self.momentum) * gradient
        state["v"] = v
        if self.nesterov:
            v = self.momentum * v + (1 - self.momentum) * gradient
        rate = self.learning_rate
        if v.ndim >= 2:
            # As in Jordan's program, by the last axes also where there are more.
            rate = rate * max(1.0, v.shape[-2] / v.shape[-1]) ** 0.5
            rows = v.reshape(v.shape[0], -1)
            v = _orthogonal(rows, self.ns_steps).reshape(v.shape)
        return parameter - rate * v


def _orthogonal(x: mx.array, steps: int) -> mx.array:
    """Singular values of `x` (rows, columns) moved towards 1."""
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    # The Frobenius norm bounds the largest singular value.
    x = x / (mx.sqrt(mx.sum(mx.square(x))) + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = _A * x + (_B * gram + _C * (gram @ gram)) @ x
    return x.T if tall else x
