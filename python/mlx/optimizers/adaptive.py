"""Steps divided by the size that gradients have had: RMSprop, Adagrad, AdaDelta."""

from __future__ import annotations

import mlx.core as mx
from mlx.optimizers.base import Float32Optimizer, LearningRate, State, check


class RMSprop(Float32Optimizer):
    r"""Steps divided by the root of a running mean of squared gradients.

    .. math:: v &\leftarrow \alpha v + (1 - \alpha) g^2 \\
        w &\leftarrow w - \eta \, g / (\sqrt v + \epsilon)

    Tieleman and Hinton, "Lecture 6.5: rmsprop" (2012), Neural networks for machine
    learning, https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf.

    Args:
        learning_rate: :math:`\eta`, or a function of the step.
        alpha: How much of the mean is kept.
        eps: :math:`\epsilon`.

    Raises:
        ValueError: If `alpha` is negative or `eps` not positive.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.RMSprop(0.5, alpha=0.75)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([4.0])})
        {'w': array([3], dtype=float32)}
    """

    def __init__(
        self, learning_rate: LearningRate, alpha: float = 0.99, eps: float = 1e-8
    ) -> None:
        check("RMSprop", "alpha", alpha, alpha >= 0, ">=0")
        check("RMSprop", "eps", eps, eps > 0, ">0")
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.alpha = alpha
        self.eps = eps

    def init_single(self, parameter: mx.array, state: State) -> None:
        """``v``, the mean of squared gradients."""
        state["v"] = mx.zeros_like(parameter)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        v = self.alpha * state["v"] + (1 - self.alpha) * mx.square(gradient)
        state["v"] = v
        return parameter - self.learning_rate * gradient / (mx.sqrt(v) + self.eps)


class Adagrad(Float32Optimizer):
    r"""Steps divided by the root of the sum of squared gradients.

    .. math:: v &\leftarrow v + g^2 \\
        w &\leftarrow w - \eta \, g / (\sqrt v + \epsilon)

    Duchi et al., "Adaptive subgradient methods for online learning and stochastic
    optimization" (2011), https://jmlr.org/papers/v12/duchi11a.html.

    Args:
        learning_rate: :math:`\eta`, or a function of the step.
        eps: :math:`\epsilon`.

    Raises:
        ValueError: If `eps` is not positive.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.Adagrad(0.5)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([4.0])})
        {'w': array([3.5], dtype=float32)}
    """

    def __init__(self, learning_rate: LearningRate, eps: float = 1e-8) -> None:
        check("Adagrad", "eps", eps, eps > 0, ">0")
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps

    def init_single(self, parameter: mx.array, state: State) -> None:
        """``v``, the sum of squared gradients."""
        state["v"] = mx.zeros_like(parameter)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        v = state["v"] + mx.square(gradient)
        state["v"] = v
        return parameter - self.learning_rate * gradient / (mx.sqrt(v) + self.eps)


class AdaDelta(Float32Optimizer):
    r"""Steps as large as former steps, by running means of both squares.

    .. math:: v &\leftarrow \rho v + (1 - \rho) g^2 \\
        d &= g \sqrt{u + \epsilon} / \sqrt{v + \epsilon} \\
        u &\leftarrow \rho u + (1 - \rho) d^2 \\
        w &\leftarrow w - \eta \, d

    Zeiler, "ADADELTA: an adaptive learning rate method" (2012),
    https://arxiv.org/abs/1212.5701.

    Args:
        learning_rate: :math:`\eta`, or a function of the step; 1 in the paper.
        rho: How much of the means is kept.
        eps: :math:`\epsilon`.

    Raises:
        ValueError: If `rho` is negative or `eps` not positive.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.AdaDelta(1.0, rho=0.75, eps=1e-4)
        >>> w = optimizer.apply_gradients({"w": mx.array(2.0)}, {"w": mx.array(4.0)})
        >>> round(w["w"].item(), 3)
        3.98
    """

    def __init__(
        self, learning_rate: LearningRate, rho: float = 0.9, eps: float = 1e-6
    ) -> None:
        check("AdaDelta", "rho", rho, rho >= 0, ">=0")
        check("AdaDelta", "eps", eps, eps > 0, ">0")
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.rho = rho
        self.eps = eps

    def init_single(self, parameter: mx.array, state: State) -> None:
        """``v`` and ``u``, the means of squared gradients and of squared steps."""
        state["v"] = mx.zeros_like(parameter)
        state["u"] = mx.zeros_like(parameter)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        rho, eps, u = self.rho, self.eps, state["u"]
        v = rho * state["v"] + (1 - rho) * mx.square(gradient)
        step = mx.sqrt(u + eps) / mx.sqrt(v + eps) * gradient
        state["v"] = v
        state["u"] = rho * u + (1 - rho) * mx.square(step)
        return parameter - self.learning_rate * step
