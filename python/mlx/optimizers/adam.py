"""Adam and its relatives: running means of gradients and of their size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mlx.core as mx
from mlx.optimizers.base import Float32Optimizer, LearningRate, State, check


def _check_betas(kind: str, betas: Sequence[float]) -> None:
    for name, beta in zip(("betas[0]", "betas[1]"), betas):
        check(kind, name, beta, 0 <= beta < 1, "in [0, 1)")


def _bias(beta: float, step: mx.array) -> mx.array:
    """1 - beta^step, without the digits that the difference would lose."""
    if beta == 0:
        return mx.array(1.0)
    return -mx.expm1(math.log(beta) * step.astype(mx.float32))


class Adam(Float32Optimizer):
    r"""Running means of gradients, divided by the root of those of their squares.

    .. math:: m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        w &\leftarrow w - \eta \, m / (\sqrt v + \epsilon)

    With `bias_correction`, :math:`m` and :math:`v` in the last line are divided by
    :math:`1 - \beta_1^t` and :math:`1 - \beta_2^t` in step :math:`t`. Kingma and
    Ba, "Adam: a method for stochastic optimization" (2015),
    https://arxiv.org/abs/1412.6980.

    Args:
        learning_rate: :math:`\eta`, or a function of the step.
        betas: :math:`\beta_1` and :math:`\beta_2`.
        eps: :math:`\epsilon`.
        bias_correction: Whether means of few steps are corrected, as in the paper.

    Raises:
        ValueError: If `betas` are not in [0, 1) or `eps` is negative.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.Adam(0.5, bias_correction=True)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([4.0])})
        {'w': array([3.5], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: LearningRate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        bias_correction: bool = False,
    ) -> None:
        kind = type(self).__name__
        _check_betas(kind, betas)
        check(kind, "eps", eps, eps >= 0, ">=0")
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = betas
        self.eps = eps
        self.bias_correction = bias_correction

    def init_single(self, parameter: mx.array, state: State) -> None:
        """``m`` and ``v``, the means of gradients and of their squares."""
        state["m"] = mx.zeros_like(parameter)
        state["v"] = mx.zeros_like(parameter)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        beta1, beta2 = self.betas
        m = beta1 * state["m"] + (1 - beta1) * gradient
        v = beta2 * state["v"] + (1 - beta2) * mx.square(gradient)
        state["m"], state["v"] = m, v
        if not self.bias_correction:
            return parameter - self.learning_rate * m / (mx.sqrt(v) + self.eps)
        rate = self.learning_rate / _bias(beta1, self.step)
        root = mx.sqrt(v) * mx.rsqrt(_bias(beta2, self.step))
        return parameter - rate * m / (root + self.eps)


class AdamW(Adam):
    r"""Adam with weight decay that is no part of the gradient.

    Before the step of Adam, :math:`w \leftarrow w - \eta \lambda w`. Loshchilov and
    Hutter, "Decoupled weight decay regularization" (2019),
    https://arxiv.org/abs/1711.05101.

    Args:
        learning_rate: :math:`\eta`, or a function of the step.
        betas: :math:`\beta_1` and :math:`\beta_2`.
        eps: :math:`\epsilon`.
        weight_decay: :math:`\lambda`.
        bias_correction: Whether means of few steps are corrected, as in the paper.

    Raises:
        ValueError: If `betas` are not in [0, 1) or `eps` is negative.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.AdamW(0.5, weight_decay=0.25, bias_correction=True)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([4.0])})
        {'w': array([3], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: LearningRate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
    ) -> None:
        super().__init__(learning_rate, betas, eps, bias_correction)
        self.weight_decay = weight_decay

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        kept = parameter * (1 - self.learning_rate * self.weight_decay)
        return super()._rule(gradient, kept, state)


class Adamax(Adam):
    r"""Adam with the largest gradient so far, fading, in place of the root.

    .. math:: m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \max(\beta_2 v, |g|) \\
        w &\leftarrow w - \eta \, m / (v + \epsilon)

    Kingma and Ba, "Adam: a method for stochastic optimization" (2015), section
    7.1, https://arxiv.org/abs/1412.6980.

    Args:
        learning_rate: :math:`\eta`, or a function of the step.
        betas: :math:`\beta_1` and :math:`\beta_2`.
        eps: :math:`\epsilon`.

    Raises:
        ValueError: If `betas` are not in [0, 1) or `eps` is negative.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.Adamax(0.5, betas=[0.5, 0.999])
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([4.0])})
        {'w': array([3.75], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: LearningRate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(learning_rate, betas, eps)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        beta1, beta2 = self.betas
        m = beta1 * state["m"] + (1 - beta1) * gradient
        v = mx.maximum(beta2 * state["v"], mx.abs(gradient))
        state["m"], state["v"] = m, v
        return parameter - self.learning_rate * m / (v + self.eps)


class Lion(Float32Optimizer):
    r"""Steps of one size: the sign of a mean of gradients.

    .. math:: c &= \beta_1 m + (1 - \beta_1) g \\
        m &\leftarrow \beta_2 m + (1 - \beta_2) g \\
        w &\leftarrow w - \eta \, (\operatorname{sign} c + \lambda w)

    Chen et al., "Symbolic discovery of optimization algorithms" (2023),
    https://arxiv.org/abs/2302.06675.

    Args:
        learning_rate: :math:`\eta`, or a function of the step; a third to a tenth
            of that of AdamW.
        betas: :math:`\beta_1` and :math:`\beta_2`.
        weight_decay: :math:`\lambda`.

    Raises:
        ValueError: If `betas` are not in [0, 1).

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.Lion(0.25)
        >>> optimizer.apply_gradients({"w": mx.array([-2.0])}, {"w": mx.array([4.0])})
        {'w': array([4.25], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: LearningRate,
        betas: Sequence[float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        _check_betas("Lion", betas)
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = betas
        self.weight_decay = weight_decay

    def init_single(self, parameter: mx.array, state: State) -> None:
        """``m``, the mean of gradients."""
        state["m"] = mx.zeros_like(parameter)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        beta1, beta2 = self.betas
        rate, m = self.learning_rate, state["m"]
        direction = mx.sign(beta1 * m + (1 - beta1) * gradient)
        state["m"] = beta2 * m + (1 - beta2) * gradient
        if self.weight_decay > 0:
            parameter = parameter * (1 - rate * self.weight_decay)
        return parameter - rate * direction
